/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF kernel's sections, by which it finds its own symbols (Multiboot 0.6.96, 3.3, at
 * `syms`; Multiboot 2, 3.6.7). What no segment loads is placed as well, and its header
 * gets the address, as GRUB does it; the specifications leave that open.
 */
#include "boot/multiboot_private.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "x86/layout.h"

/* Where the two classes of ELF keep the fields of a section header that matter. */
struct section_layout {
    size_t word_bytes;
    size_t flags, address, file_offset, size;
};

static const struct section_layout layout32 = {
    .word_bytes = sizeof(Elf32_Word),
    .flags = offsetof(Elf32_Shdr, sh_flags),
    .address = offsetof(Elf32_Shdr, sh_addr),
    .file_offset = offsetof(Elf32_Shdr, sh_offset),
    .size = offsetof(Elf32_Shdr, sh_size),
};

static const struct section_layout layout64 = {
    .word_bytes = sizeof(Elf64_Xword),
    .flags = offsetof(Elf64_Shdr, sh_flags),
    .address = offsetof(Elf64_Shdr, sh_addr),
    .file_offset = offsetof(Elf64_Shdr, sh_offset),
    .size = offsetof(Elf64_Shdr, sh_size),
};

static uint64_t load_word(const struct section_layout *layout, const uint8_t *bytes)
{
    return layout->word_bytes == sizeof(uint64_t) ? load_le64(bytes) : load_le32(bytes);
}

static void store_word(const struct section_layout *layout, uint8_t *bytes,
                       uint64_t value)
{
    if (layout->word_bytes == sizeof(uint64_t))
        store_le64(bytes, value);
    else
        store_le32(bytes, (uint32_t)value);
}

/* The part of the file that has all sections to be placed; they lie together at its end,
 * and as one they can be mapped. */
struct span {
    uint64_t start;
    uint64_t end;
};

/* True for what is in the file but in no segment. */
static bool must_place(const struct section_layout *layout, const uint8_t *row,
                       uint64_t file_bytes)
{
    uint32_t type = load_le32(row + offsetof(Elf32_Shdr, sh_type)); /* as in ELF64 */

    return type != SHT_NULL && type != SHT_NOBITS &&
           (load_word(layout, row + layout->flags) & SHF_ALLOC) == 0 &&
           load_word(layout, row + layout->address) == 0 &&
           load_word(layout, row + layout->size) != 0 &&
           range_within(load_word(layout, row + layout->file_offset),
                        load_word(layout, row + layout->size), file_bytes);
}

static struct span find_span(const struct multiboot_sections *sections,
                             const struct section_layout *layout, uint64_t file_bytes)
{
    struct span span = {.start = UINT64_MAX};

    for (size_t i = 0; i < sections->count; i++) {
        const uint8_t *row = sections->headers + i * sections->row_bytes;
        uint64_t offset = load_word(layout, row + layout->file_offset);

        if (!must_place(layout, row, file_bytes))
            continue;
        span.start = min_u64(span.start, offset);
        span.end = max_u64(span.end, offset + load_word(layout, row + layout->size));
    }
    return span;
}

static void enter_addresses(struct multiboot_sections *sections,
                            const struct section_layout *layout, uint64_t file_bytes,
                            uint64_t gpa_of_file, uint64_t moved_by)
{
    for (size_t i = 0; i < sections->count; i++) {
        uint8_t *row = sections->headers + i * sections->row_bytes;
        uint64_t address = load_word(layout, row + layout->address);

        if (must_place(layout, row, file_bytes))
            address = gpa_of_file + load_word(layout, row + layout->file_offset);
        else if (address != 0)
            address += moved_by;
        store_word(layout, row + layout->address, address);
    }
}

/* At the place in a page that it has in the file, so that pages can be mapped. */
static int place_span(struct boot_builder *builder, const struct span *span,
                      uint64_t *gpa, struct error *err)
{
    uint64_t in_page = span->start % builder->page_bytes;
    uint64_t size_bytes = span->end - span->start;

    if (!boot_builder_find_lowest(
            builder, max_u64(builder->kernel_end, LAYOUT_KERNEL_START),
            LAYOUT_LOW_RAM_LIMIT, in_page + size_bytes, builder->page_bytes, gpa) &&
        boot_builder_place_low(builder, LAYOUT_KERNEL_START, in_page + size_bytes,
                               builder->page_bytes, "kernel's ELF sections", gpa,
                               err) < 0)
        return err->code;
    *gpa += in_page;
    return boot_builder_add_bytes(builder, *gpa, builder->kernel_file, span->start,
                                  size_bytes, "ELF sections", err);
}

static int read_headers(const struct boot_builder *builder,
                        const struct image_elf_sections *facts,
                        struct multiboot_sections *sections, struct error *err)
{
    struct source source = input_file_source(&builder->inputs->kernel);

    *sections = (struct multiboot_sections){
        .size_bytes = (size_t)facts->count * facts->row_bytes,
        .count = facts->count,
        .row_bytes = facts->row_bytes,
        .names_index = facts->names_index,
    };
    if (sections->count == 0)
        return 0;
    sections->headers = malloc(sections->size_bytes);
    if (sections->headers == NULL)
        return error_set(err, -ENOMEM, "out of memory for the kernel's section headers");
    if (source_read(&source, facts->file_offset, sections->headers, sections->size_bytes,
                    err) < 0)
        return error_prefix(err, "kernel %s: ELF section headers",
                            builder->inputs->kernel.path);
    return 0;
}

int boot_multiboot_add_sections(struct boot_builder *builder,
                                const struct multiboot_kernel *kernel,
                                struct multiboot_sections *sections, struct error *err)
{
    const struct image *image = &builder->inputs->image;
    const struct section_layout *layout =
        image->format == IMAGE_ELF64 ? &layout64 : &layout32;
    uint64_t file_bytes = builder->inputs->kernel.size_bytes;
    struct span span;
    uint64_t gpa = 0;

    *sections = (struct multiboot_sections){.count = 0};
    if (!kernel->is_elf)
        return 0;
    if (read_headers(builder, &image->elf.sections, sections, err) < 0)
        return err->code;
    span = find_span(sections, layout, file_bytes);
    if (span.start < span.end && place_span(builder, &span, &gpa, err) < 0)
        return err->code;
    enter_addresses(sections, layout, file_bytes, gpa - span.start, kernel->moved_by);
    return 0;
}
