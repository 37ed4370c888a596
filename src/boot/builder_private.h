/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A boot plan under construction: what the files of this folder share.
 *
 * Every range enters the plan through boot_builder_add_* (ranges.c), which is the one
 * door where addresses are checked against RAM and against all other ranges.
 */
#ifndef HUSK_BOOT_BUILDER_PRIVATE_H
#define HUSK_BOOT_BUILDER_PRIVATE_H

#include "boot/boot.h"

/* A text that a plan owns: a list, freed with the plan. */
struct boot_text {
    struct boot_text *next;
    char characters[];
};

/* Memory that nothing may be placed in although no range of the plan lies there. */
struct boot_reservation {
    uint64_t gpa;
    uint64_t size_bytes; /* 0: none */
    const char *what;
};

struct boot_builder {
    struct boot_plan *plan;
    const struct boot_inputs *inputs;
    const struct boot_options *options;
    size_t kernel_file;     /* index of the file whose code is entered */
    uint64_t page_bytes;    /* of the host: file maps consist of these */
    uint64_t low_ram_bytes; /* RAM from address 0 on, below the 32-bit hole */
    uint64_t kernel_end;    /* first address behind all the kernel needs */
    uint64_t initrd_gpa;    /* all initrds together; size 0: none */
    uint64_t initrd_bytes;
    struct boot_reservation kernel_work; /* a bzImage's memory to unpack itself in */
};

/* ---- ranges.c ---- */

/* A formatted text that lives as long as the plan; NULL if out of memory. */
const char *boot_builder_text(struct boot_builder *builder, const char *format, ...)
    PRINTF_LIKE(2, 3);

/* A file of the plan, and its index. */
size_t boot_builder_add_file(struct boot_builder *builder, enum boot_file_role role,
                             const struct input_file *input);

/* Bytes of a file at `gpa`: mapped where whole pages of both coincide, else copied. */
int boot_builder_add_bytes(struct boot_builder *builder, uint64_t gpa, size_t file,
                           uint64_t file_offset, uint64_t size_bytes, const char *what,
                           struct error *err) MUST_CHECK;

int boot_builder_add_zero(struct boot_builder *builder, uint64_t gpa, uint64_t size_bytes,
                          const char *what, struct error *err) MUST_CHECK;

/* Takes `bytes` (malloc), also on failure. NULL is "out of memory". */
int boot_builder_add_generated(struct boot_builder *builder, uint64_t gpa, uint8_t *bytes,
                               size_t size_bytes, const char *what,
                               struct error *err) MUST_CHECK;

/* Free RAM for something husk makes: at `wanted` if that is free, else the lowest free
 * place above the first page and below 4 GiB. `alignment` is a power of two. */
int boot_builder_place_low(const struct boot_builder *builder, uint64_t wanted,
                           uint64_t size_bytes, uint64_t alignment, const char *what,
                           uint64_t *gpa, struct error *err) MUST_CHECK;

/* The highest free RAM in [LAYOUT_KERNEL_START, limit), page-aligned; false if none. */
bool boot_builder_place_high(const struct boot_builder *builder, uint64_t limit,
                             uint64_t size_bytes, uint64_t *gpa) MUST_CHECK;

/* Error if something that must end below `end_gpa` does not fit into low RAM; the
 * sentence says how much memory would do. */
int boot_builder_need(const struct boot_builder *builder, uint64_t end_gpa,
                      struct error *err) MUST_CHECK;

/* ---- protocol.c ---- */

/* Sets the plan's protocol and why. Refuses what the kernel cannot do. */
int boot_protocol_choose(struct boot_builder *builder, struct error *err) MUST_CHECK;

/* True if the kernel inside a bzImage is entered, not the bzImage itself. */
bool boot_uses_unpacked(const struct boot_inputs *inputs, enum boot_protocol protocol);

/* ---- kernel.c ---- */

/* Places the segments of an ELF; `entry` must lie in one of them. */
int boot_kernel_add_elf(struct boot_builder *builder, const struct image_elf *elf,
                        uint64_t entry, struct error *err) MUST_CHECK;

/* Places the protected-mode part of a bzImage and reserves its working memory. */
int boot_kernel_add_bzimage(struct boot_builder *builder, uint64_t *load_gpa,
                            struct error *err) MUST_CHECK;

/* ---- handover.c: what several protocols hand over ---- */

/* Places all initrds as one concatenation that ends below `limit`. */
int boot_handover_add_initrds(struct boot_builder *builder, uint64_t limit,
                              struct error *err) MUST_CHECK;

/* Places the command line, terminated. `limit_bytes` excludes the NUL; 0: not known. */
int boot_handover_add_cmdline(struct boot_builder *builder, uint32_t limit_bytes,
                              uint64_t *gpa, struct error *err) MUST_CHECK;

/* Places the GDT of cpu_state_flat32 (code64 false) or cpu_state_long64. */
int boot_handover_add_gdt(struct boot_builder *builder, bool code64, uint32_t *gpa,
                          struct error *err) MUST_CHECK;

/* ---- e820.c ---- */

/* Fills the plan's spans and memory map. */
void boot_e820_build(struct boot_builder *builder, uint64_t firmware_bytes);

/* True if the range lies in one RAM entry of the map. */
bool boot_e820_is_ram(const struct boot_plan *plan, uint64_t gpa, uint64_t size_bytes);

/* ---- acpi.c ---- */

/* Adds the ACPI tables at LAYOUT_ACPI_START, RSDP first. */
int boot_acpi_add(struct boot_builder *builder, struct error *err) MUST_CHECK;

/* The bytes alone, for tests: malloc'd, NULL if out of memory. */
uint8_t *boot_acpi_tables(uint32_t cpu_count, size_t *size_bytes);

/* ---- pvh.c, linux.c, firmware.c: one function a protocol ---- */

int boot_pvh_build(struct boot_builder *builder, struct error *err) MUST_CHECK;
int boot_linux64_build(struct boot_builder *builder, struct error *err) MUST_CHECK;
int boot_linux32_build(struct boot_builder *builder, struct error *err) MUST_CHECK;
int boot_firmware_build(struct boot_builder *builder, struct error *err) MUST_CHECK;

#endif
