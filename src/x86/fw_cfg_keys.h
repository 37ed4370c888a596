/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of QEMU's firmware configuration interface, which boot/ fills, device/ serves
 * and guests ask for. Sources: QEMU, docs/specs/fw_cfg.rst; Linux,
 * include/uapi/linux/qemu_fw_cfg.h. Values are little-endian where nothing else is said.
 */
#ifndef HUSK_X86_FW_CFG_KEYS_H
#define HUSK_X86_FW_CFG_KEYS_H

enum fw_cfg_key {
    FW_CFG_SIGNATURE = 0x00, /* "QEMU" */
    FW_CFG_FEATURES = 0x01,  /* u32: FW_CFG_FEATURE_* */
    FW_CFG_UUID = 0x02,
    FW_CFG_RAM_SIZE = 0x03,  /* u64: bytes */
    FW_CFG_NOGRAPHIC = 0x04, /* u16: 1 if there is no screen */
    FW_CFG_NB_CPUS = 0x05,   /* u16: running at the start */
    FW_CFG_MACHINE_ID = 0x06,
    FW_CFG_KERNEL_ADDR = 0x07, /* u32, as all addresses and sizes here */
    FW_CFG_KERNEL_SIZE = 0x08,
    FW_CFG_KERNEL_CMDLINE = 0x09,
    FW_CFG_INITRD_ADDR = 0x0a,
    FW_CFG_INITRD_SIZE = 0x0b,
    FW_CFG_BOOT_DEVICE = 0x0c,
    FW_CFG_NUMA = 0x0d,
    FW_CFG_BOOT_MENU = 0x0e,
    FW_CFG_MAX_CPUS = 0x0f, /* u16: one more than the highest APIC id */
    FW_CFG_KERNEL_ENTRY = 0x10,
    FW_CFG_KERNEL_DATA = 0x11,
    FW_CFG_INITRD_DATA = 0x12,
    FW_CFG_CMDLINE_ADDR = 0x13,
    FW_CFG_CMDLINE_SIZE = 0x14, /* with the NUL */
    FW_CFG_CMDLINE_DATA = 0x15,
    FW_CFG_SETUP_ADDR = 0x16,
    FW_CFG_SETUP_SIZE = 0x17,
    FW_CFG_SETUP_DATA = 0x18,
    FW_CFG_FILE_DIRECTORY = 0x19, /* big-endian: u32 count, then entries of 64 bytes */
    FW_CFG_FILE_FIRST = 0x20,     /* files have the keys from here on */
    FW_CFG_ARCHITECTURE = 0x8000, /* this bit chooses the keys of the architecture */
};

/* A name in the directory has this many bytes, with its NUL. */
#define FW_CFG_NAME_BYTES 56

/* FW_CFG_FEATURES */
#define FW_CFG_FEATURE_PORTS 0x1u
#define FW_CFG_FEATURE_DMA 0x2u

#endif
