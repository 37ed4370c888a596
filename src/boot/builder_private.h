/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A boot plan under construction: what the files of this folder share.
 *
 * Every range enters the plan through boot_builder_add_* (ranges.c), which is the one
 * door where addresses are checked against RAM and against all other ranges.
 */
#ifndef HUSK_BOOT_BUILDER_PRIVATE_H
#define HUSK_BOOT_BUILDER_PRIVATE_H

#include "base/bytes.h"
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
    size_t firmware_file; /* indexes of files of the plan, where there are such: */
    size_t kernel_file;   /* the one that is loaded: what a bzImage contains, for PVH */
    size_t first_initrd_file;
    uint64_t page_bytes;    /* of the host: file maps consist of these */
    uint64_t low_ram_bytes; /* RAM from address 0 on, below the 32-bit hole */
    uint64_t kernel_end;    /* first address behind all the kernel needs */
    uint64_t initrd_gpa;    /* all initrds together; size 0: none */
    uint64_t initrd_bytes;
    struct boot_reservation kernel_work; /* a bzImage's memory to unpack itself in */
    bool by_firmware; /* firmware is to load this plan: everything lies behind the kernel,
                       * and not in what firmware keeps */
};

/* At the end of low RAM firmware has its tables, and itself when it has moved there. */
#define BOOT_FIRMWARE_RAM_BYTES MIB

/* ---- plan.c ---- */

/* A second plan, `kernel`, with the same files: of the kernel alone, as firmware is to
 * load it. The caller destroys kernel->plan. */
int boot_builder_begin_kernel(const struct boot_builder *builder,
                              struct boot_builder *kernel, struct error *err) MUST_CHECK;

/* Fills it as the kernel's protocol wants. */
int boot_builder_build_kernel(struct boot_builder *kernel, struct error *err) MUST_CHECK;

/* ---- ranges.c ---- */

/* A formatted text that lives as long as the plan; NULL if out of memory. */
const char *boot_builder_text(struct boot_builder *builder, const char *format, ...)
    PRINTF_LIKE(2, 3);

/* A sentence in the plan on something that the kernel asks for and does not get. */
void boot_builder_note(struct boot_builder *builder, const char *format, ...)
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

/* True if nothing of the plan lies there. */
bool boot_builder_is_free(const struct boot_builder *builder, uint64_t gpa,
                          uint64_t size_bytes) MUST_CHECK;

/* The lowest or highest place for `size_bytes` of free RAM in [start, limit), below
 * 4 GiB and above the first page; false if there is none. */
bool boot_builder_find_lowest(const struct boot_builder *builder, uint64_t start,
                              uint64_t limit, uint64_t size_bytes, uint64_t alignment,
                              uint64_t *gpa) MUST_CHECK;
bool boot_builder_find_highest(const struct boot_builder *builder, uint64_t start,
                               uint64_t limit, uint64_t size_bytes, uint64_t alignment,
                               uint64_t *gpa) MUST_CHECK;

/* Low RAM but for what firmware has at its end when it loads the kernel. */
uint64_t boot_builder_usable_low_bytes(const struct boot_builder *builder);

/* Error if something that must end below `end_gpa` does not fit into low RAM; the
 * sentence says how much memory would do. */
int boot_builder_need(const struct boot_builder *builder, uint64_t end_gpa,
                      struct error *err) MUST_CHECK;

/* ---- protocol.c ---- */

/* The way into the kernel of `inputs`: the named one, or for BOOT_AUTO the best that it
 * offers. Refuses what the kernel cannot do. Pure. */
int boot_protocol_choose(const struct boot_inputs *inputs, enum boot_protocol named,
                         struct boot_choice *choice, struct error *err) MUST_CHECK;

/* True if -i gives a Multiboot kernel its modules. */
bool boot_takes_modules(const struct boot_inputs *inputs);

/* True if the kernel inside a bzImage is entered, not the bzImage itself. */
bool boot_uses_unpacked(const struct boot_inputs *inputs);

/* ---- kernel.c ---- */

/* Places the segments of a kernel; `entry` must lie in one of them. */
int boot_kernel_add_segments(struct boot_builder *builder,
                             const struct image_segment *segments, size_t count,
                             uint64_t entry, struct error *err) MUST_CHECK;

/* The same for those of an ELF. */
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

/* ---- pmem.c ---- */

/* Opens the files of the options; on failure those that are open stay so. */
int boot_pmem_open(struct boot_inputs *inputs, const struct boot_options *options,
                   struct error *err) MUST_CHECK;
void boot_pmem_close(struct boot_inputs *inputs);

/* Gives each its place above RAM and its span. */
int boot_pmem_place(struct boot_builder *builder, struct error *err) MUST_CHECK;

/* The first address above RAM that is free, also of pmems. */
uint64_t boot_pmem_end(const struct boot_plan *plan);

/* ---- acpi.c ---- */

/* Adds the ACPI tables at LAYOUT_ACPI_START, RSDP first. */
int boot_acpi_add(struct boot_builder *builder, struct error *err) MUST_CHECK;

/* The bytes alone, for tests: malloc'd, NULL if out of memory. `memory_end` is where
 * addresses become free for PCI. */
uint8_t *boot_acpi_tables(const struct boot_options *options, uint64_t memory_end,
                          size_t *size_bytes);

/* The byte that makes the sum of all of them 0; it counts as 0 itself. */
uint8_t boot_checksum(const void *bytes, size_t size_bytes);

/* ---- mp_table.c ---- */

/* Adds the MP table at LAYOUT_MP_TABLE_START, its floating pointer first. */
int boot_mp_table_add(struct boot_builder *builder, struct error *err) MUST_CHECK;

/* The bytes alone, for tests: malloc'd, NULL if out of memory. */
uint8_t *boot_mp_table(uint32_t cpu_count, size_t *size_bytes);

/* ---- option_rom.S, option_rom.c: what starts a kernel that fw_cfg holds ---- */

/* The ROM's bytes with their checksums: malloc'd, NULL if out of memory. */
uint8_t *boot_option_rom(size_t *size_bytes);

/* ---- bios_area.c ---- */

/* Adds what real-mode code finds of a BIOS; nothing where the kernel lies there itself.
 */
int boot_bios_area_add(struct boot_builder *builder, struct error *err) MUST_CHECK;

/* ---- multiboot1.c, multiboot2.c ---- */

/* Refuses a file without a header of that version, or one that husk cannot obey. */
int boot_multiboot1_check(const struct image *image, struct error *err) MUST_CHECK;
int boot_multiboot2_check(const struct image *image, struct error *err) MUST_CHECK;

/* ---- pvh.c, linux.c, multiboot1.c, multiboot2.c, firmware.c: one function a protocol */

int boot_pvh_build(struct boot_builder *builder, struct error *err) MUST_CHECK;
int boot_linux64_build(struct boot_builder *builder, struct error *err) MUST_CHECK;
int boot_linux32_build(struct boot_builder *builder, struct error *err) MUST_CHECK;
int boot_multiboot1_build(struct boot_builder *builder, struct error *err) MUST_CHECK;
int boot_multiboot2_build(struct boot_builder *builder, struct error *err) MUST_CHECK;
int boot_firmware_build(struct boot_builder *builder, struct error *err) MUST_CHECK;

#endif
