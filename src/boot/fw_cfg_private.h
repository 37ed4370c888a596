/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting items for QEMU's firmware configuration interface into a boot plan. An item is
 * added first, then its parts in order of `at`.
 *
 * This is what firmware, and the option ROM in it, find of a kernel (QEMU,
 * docs/specs/fw_cfg.rst and the ROMs that QEMU has for it). Addresses, sizes and
 * registers are little-endian u32.
 *
 * - A bzImage, entered in real mode: SETUP_DATA goes to SETUP_ADDR, KERNEL_DATA to
 *   KERNEL_ADDR, CMDLINE_DATA (with its NUL) to CMDLINE_ADDR, INITRD_DATA to INITRD_ADDR.
 *   Each has a key for its size. The setup header says all that a loader has to say.
 *   Entry: DS = ES = SS = FS = GS = SETUP_ADDR / 16, CS = that + 0x20, IP 0, SP =
 *   CMDLINE_ADDR - SETUP_ADDR - 16, interrupts off. KERNEL_ENTRY is absent: reads 0.
 *
 * - Every other kernel (Multiboot 1 and 2, PVH), entered in 32-bit protected mode with
 *   paging off, flat segments, interrupts off: KERNEL_DATA goes to KERNEL_ADDR and is all
 *   there is: kernel, modules and what the protocol hands over. KERNEL_ENTRY is EIP; the
 *   file "etc/husk/entry" has EAX and EBX. INITRD_ADDR, _SIZE and _DATA are what EBX
 *   points at, once more, because QEMU's ROM and qboot look for it there. SETUP_SIZE and
 *   CMDLINE_SIZE are absent.
 *
 * Nothing is placed in the top BOOT_FIRMWARE_RAM_BYTES of low RAM, where firmware keeps
 * its tables, nor below 1 MiB, except for segments of kernels that want to be there.
 */
#ifndef HUSK_BOOT_FW_CFG_PRIVATE_H
#define HUSK_BOOT_FW_CFG_PRIVATE_H

#include "boot/builder_private.h"
#include "x86/fw_cfg_keys.h"

/* `item` says key or name, what, and size. */
int boot_fw_add_item(struct boot_builder *builder, const struct boot_fw_item *item,
                     struct error *err) MUST_CHECK;

/* Parts of the item that was added last. `bytes` (malloc) are taken, also on failure;
 * NULL is "out of memory". */
int boot_fw_add_bytes(struct boot_builder *builder, uint64_t at, uint8_t *bytes,
                      size_t size_bytes, struct error *err) MUST_CHECK;
int boot_fw_add_file_bytes(struct boot_builder *builder, uint64_t at, size_t file,
                           uint64_t file_offset, uint64_t size_bytes,
                           struct error *err) MUST_CHECK;

/* A whole item: of bytes (as above), or a little-endian number of 1 to 8 bytes. */
int boot_fw_add_generated(struct boot_builder *builder, const struct boot_fw_item *item,
                          uint8_t *bytes, struct error *err) MUST_CHECK;
int boot_fw_add_number(struct boot_builder *builder, uint16_t key, const char *what,
                       uint64_t value, unsigned size_bytes, struct error *err) MUST_CHECK;

/* Everything: what the machine is, and with firmware the kernel to start. */
int boot_fw_cfg_build(struct boot_builder *builder, struct error *err) MUST_CHECK;

/* fw_cfg_acpi.c: the ACPI tables, and how to place them. */
int boot_fw_add_acpi(struct boot_builder *builder, struct error *err) MUST_CHECK;

/* fw_cfg_kernel.c: the kernel, as above. */
int boot_fw_add_kernel(struct boot_builder *builder, struct error *err) MUST_CHECK;

#endif
