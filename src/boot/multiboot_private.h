/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both versions of Multiboot share: the kernel's bytes, modules, numbers and texts.
 * What differs, how a kernel is told of them, is in multiboot1.c and multiboot2.c.
 */
#ifndef HUSK_BOOT_MULTIBOOT_PRIVATE_H
#define HUSK_BOOT_MULTIBOOT_PRIVATE_H

#include "boot/builder_private.h"
#include "x86/layout.h"

/* What GRUB and others know as the boot loader's name. */
#define MULTIBOOT_LOADER_NAME "husk " HUSK_VERSION

/* ---- multiboot_block.c: bytes that grow ---- */

struct multiboot_block {
    uint8_t *bytes; /* malloc */
    size_t used;
    size_t capacity;
    bool failed; /* out of memory: the bytes are incomplete */
};

/* Appends at the next multiple of `alignment`, zeroes in between. Where it lies from the
 * block's start; `bytes` NULL appends zeroes. */
size_t multiboot_block_append(struct multiboot_block *block, const void *bytes,
                              size_t size_bytes, size_t alignment);

/* ---- multiboot.c ---- */

/* The kernel as it will be loaded. */
struct multiboot_kernel {
    size_t segment_count;
    struct image_segment segments[IMAGE_MAX_SEGMENTS];
    uint64_t entry;
    uint64_t load_base; /* lowest address of a segment */
    uint64_t moved_by;  /* modulo 2^64, from where it was linked */
    bool is_elf;        /* by its program headers, so that its sections mean something */
};

struct multiboot_module {
    uint64_t gpa;
    uint64_t size_bytes;
    const char *string; /* borrowed from the inputs */
};

/* For headers without addresses: refuses what is no ELF file; and for those that leave
 * the entry to it, one that 32-bit mode cannot reach. */
int boot_multiboot_check_file(const struct image *image, struct error *err) MUST_CHECK;
int boot_multiboot_check_entry(const struct image *image, struct error *err) MUST_CHECK;

/* From the ELF's program headers, or from `flat` (not NULL: it comes first). */
void boot_multiboot_kernel_init(struct multiboot_kernel *kernel,
                                const struct image *image,
                                const struct image_segment *flat);

/* Moves the kernel to where its header wants it; before boot_multiboot_kernel_add. */
int boot_multiboot_kernel_move(struct multiboot_kernel *kernel,
                               const struct boot_builder *builder,
                               const struct image_multiboot2_relocation *wish,
                               struct error *err) MUST_CHECK;

int boot_multiboot_kernel_add(const struct multiboot_kernel *kernel,
                              struct boot_builder *builder, struct error *err) MUST_CHECK;

/* Places all modules, each on pages of its own, behind the kernel if there is room. */
int boot_multiboot_add_modules(struct boot_builder *builder,
                               struct multiboot_module modules[BOOT_MAX_INITRDS],
                               struct error *err) MUST_CHECK;

/* KiB of RAM from address 0 on, and from 1 MiB up to the first hole. */
uint32_t boot_multiboot_lower_kib(const struct boot_builder *builder);
uint32_t boot_multiboot_upper_kib(const struct boot_builder *builder);

/* A kernel that asks for a display is told of a VGA's text mode, in the words of both
 * versions' framebuffer structure (Multiboot 0.6.96, 3.3; Multiboot2 2.0, 3.6.12). */
#define MULTIBOOT_TEXT_PITCH (LAYOUT_TEXT_COLUMNS * LAYOUT_TEXT_CELL_BYTES)
#define MULTIBOOT_TEXT_DEPTH (8 * LAYOUT_TEXT_CELL_BYTES) /* bits a cell */
#define MULTIBOOT_TEXT_TYPE 2                             /* EGA text */

/* Says in the plan what comes of the wish. */
void boot_multiboot_note_video(struct boot_builder *builder,
                               const struct image_multiboot_video *video, bool is_text);

/* Free RAM for the information: low, and never where the kernel is. */
int boot_multiboot_place(const struct boot_builder *builder,
                         const struct multiboot_block *block, uint64_t *gpa,
                         struct error *err) MUST_CHECK;

/* The block becomes part of the plan, which takes its bytes. */
int boot_multiboot_add_information(struct boot_builder *builder,
                                   struct multiboot_block *block, uint64_t gpa,
                                   struct error *err) MUST_CHECK;

/* 32-bit flat mode with `magic` in EAX and the information's place in EBX. */
int boot_multiboot_enter(struct boot_builder *builder, uint64_t entry, uint32_t magic,
                         uint64_t information, struct error *err) MUST_CHECK;

/* ---- multiboot_sections.c ---- */

/* The kernel's section headers, as it will find them. */
struct multiboot_sections {
    uint8_t *headers; /* malloc; NULL: the kernel has none */
    size_t size_bytes;
    uint32_t count;
    uint32_t row_bytes;
    uint32_t names_index;
};

/* Reads the section headers, places the sections that no segment has loaded (symbols,
 * their names) and enters their addresses. The caller frees `headers`. */
int boot_multiboot_add_sections(struct boot_builder *builder,
                                const struct multiboot_kernel *kernel,
                                struct multiboot_sections *sections,
                                struct error *err) MUST_CHECK;

#endif
