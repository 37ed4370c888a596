/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiboot 2 (Multiboot2 Specification 2.0): 32-bit mode, EAX the magic number, EBX the
 * address of the information, a list of tags.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "boot/multiboot_private.h"
#include "x86/layout.h"

#define ENTRY_MAGIC 0x36d76289u

/* Bits of console_flags (3.1.9). */
#define CONSOLE_REQUIRED 1u
#define CONSOLE_EGA_TEXT 2u /* the kernel can use this one */

/* ---- what a header may ask for ---- */

static int check_tags(const struct image_multiboot2 *header, struct error *err)
{
    for (size_t i = 0; i < header->tag_count; i++) {
        const struct image_multiboot2_tag *tag = &header->tags[i];

        if (!tag->optional && image_multiboot2_tag_name(tag->type) == NULL)
            return error_set(err, -ENOTSUP,
                             "requires tag %u, which the specification does not know",
                             tag->type);
    }
    return 0;
}

/* Information that is known but not to be had is left out, says 3.1.4. */
static int check_requests(const struct image_multiboot2 *header, struct error *err)
{
    for (size_t i = 0; i < header->request_count; i++) {
        const struct image_multiboot2_request *request = &header->requests[i];

        if (!request->optional && image_multiboot2_info_name(request->type) == NULL)
            return error_set(err, -ENOTSUP,
                             "requires information of type %" PRIu32
                             ", which the specification does not know",
                             request->type);
    }
    return 0;
}

static int check_header(const struct image *image, struct error *err)
{
    const struct image_multiboot2 *header = &image->multiboot2;

    if (header->problem[0] != '\0')
        return error_set(err, -ENOEXEC, "%s", header->problem);
    if (check_tags(header, err) < 0 || check_requests(header, err) < 0)
        return err->code;
    if ((header->console_flags & (CONSOLE_REQUIRED | CONSOLE_EGA_TEXT)) ==
            CONSOLE_REQUIRED &&
        !header->console_optional)
        return error_set(err, -ENOTSUP,
                         "requires a console that is no EGA text (tag 4), and husk has "
                         "no other");
    if (!header->has_addresses && boot_multiboot_check_file(image, err) < 0)
        return err->code;
    if (!header->has_entry && boot_multiboot_check_entry(image, err) < 0)
        return err->code;
    return 0;
}

int boot_multiboot2_check(const struct image *image, struct error *err)
{
    const struct image_multiboot2 *header = &image->multiboot2;

    if (!header->present)
        return error_set(err, -ENOEXEC, "has no Multiboot 2 header in its first %d bytes",
                         IMAGE_MULTIBOOT2_SEARCH_BYTES);
    if (check_header(image, err) < 0)
        return error_prefix(err, "Multiboot 2 header at offset 0x%" PRIx64,
                            header->header_offset);
    return 0;
}

/* ---- the information (3.6) ---- */

/* What husk has to tell. The boot device, VBE, APM, SMBIOS and network tags would come
 * from a BIOS, the others from EFI: none of them is here.
 */
enum {
    TAG_END = 0,
    TAG_CMDLINE = 1,
    TAG_LOADER_NAME = 2,
    TAG_MODULE = 3,
    TAG_MEMORY = 4,
    TAG_MEMORY_MAP = 6,
    TAG_FRAMEBUFFER = 8,
    TAG_ELF_SECTIONS = 9,
    TAG_OLD_RSDP = 14,
    TAG_NEW_RSDP = 15,
    TAG_LOAD_BASE = 21,
};

#define TAG_ALIGNMENT 8

struct tag {
    uint32_t type;
    uint32_t size_bytes; /* with this, without the padding up to the next tag */
};

struct memory_map_entry {
    uint64_t gpa;
    uint64_t size_bytes;
    uint32_t type; /* e820 numbers */
    uint32_t reserved;
};
_Static_assert(sizeof(struct memory_map_entry) == 24, "3.6.8");

/* A tag: fields of a fixed size, then what varies. */
static void append_tag(struct multiboot_block *block, uint32_t type,
                       const uint32_t *fields, size_t field_count, const void *rest,
                       size_t rest_bytes)
{
    const size_t fields_bytes = field_count * sizeof(*fields);
    const struct tag tag = {
        .type = type,
        .size_bytes = (uint32_t)(sizeof(tag) + fields_bytes + rest_bytes),
    };

    (void)multiboot_block_append(block, &tag, sizeof(tag), TAG_ALIGNMENT);
    (void)multiboot_block_append(block, fields, fields_bytes, 1);
    (void)multiboot_block_append(block, rest, rest_bytes, 1);
}

static void append_text(struct multiboot_block *block, uint32_t type, const char *text)
{
    append_tag(block, type, NULL, 0, text, strlen(text) + 1);
}

static void append_modules(struct multiboot_block *block,
                           const struct multiboot_module *modules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t ends[] = {
            (uint32_t)modules[i].gpa,
            (uint32_t)(modules[i].gpa + modules[i].size_bytes), /* exclusive */
        };

        append_tag(block, TAG_MODULE, ends, ARRAY_SIZE(ends), modules[i].string,
                   strlen(modules[i].string) + 1);
    }
}

static void append_memory(struct multiboot_block *block,
                          const struct boot_builder *builder)
{
    const struct boot_plan *plan = builder->plan;
    const uint32_t kib[] = {boot_multiboot_lower_kib(builder),
                            boot_multiboot_upper_kib(builder)};
    const uint32_t format[] = {sizeof(struct memory_map_entry), 0 /* version */};
    struct memory_map_entry entries[BOOT_MAX_E820];

    for (size_t i = 0; i < plan->e820_count; i++)
        entries[i] = (struct memory_map_entry){
            .gpa = plan->e820[i].gpa,
            .size_bytes = plan->e820[i].size_bytes,
            .type = plan->e820[i].type,
        };
    append_tag(block, TAG_MEMORY, kib, ARRAY_SIZE(kib), NULL, 0);
    append_tag(block, TAG_MEMORY_MAP, format, ARRAY_SIZE(format), entries,
               plan->e820_count * sizeof(entries[0]));
}

/* Behind the type are 16 reserved bits in the specification's multiboot2.h (3.7), and 8
 * in its drawing; they are the last. */
static void append_framebuffer(struct multiboot_block *block)
{
    const uint32_t fields[] = {
        (uint32_t)LAYOUT_TEXT_SCREEN,
        0, /* its upper half */
        MULTIBOOT_TEXT_PITCH,
        LAYOUT_TEXT_COLUMNS,
        LAYOUT_TEXT_ROWS,
        MULTIBOOT_TEXT_DEPTH | MULTIBOOT_TEXT_TYPE << 8,
    };

    append_tag(block, TAG_FRAMEBUFFER, fields, ARRAY_SIZE(fields), NULL, 0);
}

/* The numbers have 32 bits each, as in the specification's own multiboot2.h (3.7); its
 * drawing in 3.6.7 shows 16, which no loader and no kernel follows. */
static void append_sections(struct multiboot_block *block,
                            const struct multiboot_sections *sections)
{
    const uint32_t numbers[] = {sections->count, sections->row_bytes,
                                sections->names_index};

    if (sections->count != 0)
        append_tag(block, TAG_ELF_SECTIONS, numbers, ARRAY_SIZE(numbers),
                   sections->headers, sections->size_bytes);
}

/* ACPI 6.4, 5.2.5.3. Version 1 ends where version 2 adds the XSDT; who knows only that
 * needs an RSDT. With firmware the tables are not there yet. */
#define RSDP_VERSION_1_BYTES 20
#define RSDP_BYTES 36
#define RSDP_CHECKSUM 8
#define RSDP_REVISION 15
#define RSDP_RSDT 16

/* As ACPI 1.0 has it: revision 0, as any other promises the fields behind its end. */
static void append_old_rsdp(struct multiboot_block *block, const uint8_t *rsdp)
{
    uint8_t old[RSDP_VERSION_1_BYTES];

    memcpy(old, rsdp, sizeof(old));
    old[RSDP_REVISION] = 0;
    old[RSDP_CHECKSUM] = 0;
    old[RSDP_CHECKSUM] = boot_checksum(old, sizeof(old));
    append_tag(block, TAG_OLD_RSDP, NULL, 0, old, sizeof(old));
}

static void append_rsdp(struct multiboot_block *block, const struct boot_plan *plan)
{
    for (size_t i = 0; i < plan->range_count; i++) {
        const struct boot_range *range = &plan->ranges[i];

        if (range->gpa != LAYOUT_ACPI_START || range->kind != BOOT_GENERATED ||
            range->size_bytes < RSDP_BYTES)
            continue;
        if (load_le32(range->bytes + RSDP_RSDT) != 0)
            append_old_rsdp(block, range->bytes);
        append_tag(block, TAG_NEW_RSDP, NULL, 0, range->bytes, RSDP_BYTES);
    }
}

static bool wants_screen(const struct image_multiboot2 *header)
{
    return header->has_video || (header->console_flags & CONSOLE_EGA_TEXT) != 0;
}

struct contents {
    struct multiboot_kernel kernel;
    struct multiboot_module modules[BOOT_MAX_INITRDS];
    struct multiboot_sections sections;
    struct multiboot_block block;
};

static void describe(struct contents *contents, const struct boot_builder *builder)
{
    const struct image_multiboot2 *header = &builder->inputs->image.multiboot2;
    const uint32_t load_base = (uint32_t)contents->kernel.load_base;
    struct multiboot_block *block = &contents->block;
    uint32_t total_bytes;

    (void)multiboot_block_append(block, NULL, 2 * sizeof(uint32_t), TAG_ALIGNMENT);
    append_text(block, TAG_CMDLINE, builder->plan->cmdline);
    append_text(block, TAG_LOADER_NAME, MULTIBOOT_LOADER_NAME);
    if (header->relocatable)
        append_tag(block, TAG_LOAD_BASE, &load_base, 1, NULL, 0);
    append_modules(block, contents->modules, builder->inputs->initrd_count);
    append_memory(block, builder);
    if (wants_screen(header))
        append_framebuffer(block);
    append_sections(block, &contents->sections);
    append_rsdp(block, builder->plan);
    append_tag(block, TAG_END, NULL, 0, NULL, 0);
    total_bytes = (uint32_t)block->used;
    if (!block->failed)
        memcpy(block->bytes, &total_bytes, sizeof(total_bytes));
}

/* ---- the boot ---- */

static int place_kernel(struct boot_builder *builder, struct multiboot_kernel *kernel,
                        struct error *err)
{
    const struct image *image = &builder->inputs->image;
    const struct image_multiboot2 *header = &image->multiboot2;

    boot_multiboot_kernel_init(kernel, image,
                               header->has_addresses ? &header->segment : NULL);
    if (header->has_entry)
        kernel->entry = header->entry_addr;
    if (header->relocatable &&
        boot_multiboot_kernel_move(kernel, builder, &header->relocation, err) < 0)
        return err->code;
    return boot_multiboot_kernel_add(kernel, builder, err);
}

int boot_multiboot2_build(struct boot_builder *builder, struct error *err)
{
    const struct image_multiboot2 *header = &builder->inputs->image.multiboot2;
    const struct image_multiboot_video *video = &header->video;
    struct contents contents = {.block = {.used = 0}};
    uint64_t information = 0;
    int status = -1; /* err says why */

    if (header->has_video)
        boot_multiboot_note_video(builder, video, video->depth == 0 && video->width != 0);
    if (place_kernel(builder, &contents.kernel, err) == 0 &&
        boot_multiboot_add_modules(builder, contents.modules, err) == 0 &&
        boot_multiboot_add_sections(builder, &contents.kernel, &contents.sections, err) ==
            0) {
        describe(&contents, builder);
        status = boot_multiboot_place(builder, &contents.block, &information, err);
    }
    if (status == 0)
        status =
            boot_multiboot_add_information(builder, &contents.block, information, err);
    if (status == 0)
        status = boot_multiboot_enter(builder, contents.kernel.entry, ENTRY_MAGIC,
                                      information, err);
    free(contents.sections.headers);
    free(contents.block.bytes);
    return status;
}
