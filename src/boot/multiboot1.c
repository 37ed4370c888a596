/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiboot 1 (Multiboot Specification 0.6.96): 32-bit mode, EAX the magic number, EBX
 * the address of the information, which is made here as one block.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "boot/multiboot_private.h"

#define ENTRY_MAGIC 0x2badb002u

/* Header flags (3.1.2): 0 to 15 are requirements. */
#define KNOWN_REQUIREMENTS 0x0007u /* page-aligned modules, memory, video mode */
#define REQUIREMENTS 0xffffu
#define VIDEO_TEXT_MODE 1 /* 3.1.4, mode_type */

/* Flags of the information (3.3): which fields count. Absent are the boot device (1), the
 * drives (7), the configuration table (8), APM (10), VBE (11): no BIOS is there to ask.
 */
enum {
    INFO_MEMORY = 1 << 0,
    INFO_CMDLINE = 1 << 2,
    INFO_MODULES = 1 << 3,
    INFO_ELF_SECTIONS = 1 << 5,
    INFO_MEMORY_MAP = 1 << 6,
    INFO_LOADER_NAME = 1 << 9,
    INFO_FRAMEBUFFER = 1 << 12,
};

struct information {
    uint32_t flags;
    uint32_t lower_kib;
    uint32_t upper_kib;
    uint32_t boot_device;
    uint32_t cmdline;
    uint32_t module_count;
    uint32_t modules;
    uint32_t section_count;
    uint32_t section_row_bytes;
    uint32_t sections;
    uint32_t section_names;
    uint32_t memory_map_bytes;
    uint32_t memory_map;
    uint32_t drives[2];
    uint32_t configuration_table;
    uint32_t loader_name;
    uint32_t apm_table;
    uint32_t vbe[4];
    uint64_t framebuffer;
    uint32_t framebuffer_pitch; /* bytes a row */
    uint32_t framebuffer_width; /* here: characters */
    uint32_t framebuffer_height;
    uint8_t framebuffer_depth; /* bits */
    uint8_t framebuffer_type;
    uint8_t framebuffer_colours[6]; /* none for text */
};
_Static_assert(offsetof(struct information, loader_name) == 64, "3.3");
_Static_assert(offsetof(struct information, framebuffer) == 88, "3.3");
_Static_assert(sizeof(struct information) == 120, "3.3: 116, and padding");

struct module {
    uint32_t start;
    uint32_t end; /* exclusive */
    uint32_t string;
    uint32_t reserved;
};
_Static_assert(sizeof(struct module) == 16, "3.3");

struct __attribute__((packed)) memory_map_entry {
    uint32_t size_bytes; /* of what follows */
    uint64_t gpa;
    uint64_t length_bytes;
    uint32_t type; /* e820 numbers */
};
_Static_assert(sizeof(struct memory_map_entry) == 24, "3.3");

/* ---- what a header may ask for ---- */

static int refuse_requirements(uint32_t unknown, struct error *err)
{
    char numbers[64] = "";
    size_t used = 0;

    for (unsigned bit = 0; bit < 16; bit++)
        if (unknown & (1u << bit))
            used += (size_t)snprintf(numbers + used, sizeof(numbers) - used, "%s%u",
                                     used == 0 ? "" : ", ", bit);
    return error_set(err, -ENOTSUP,
                     "requires flag%s %s, which the specification does not know",
                     strchr(numbers, ',') == NULL ? "" : "s", numbers);
}

static int check_header(const struct image *image, struct error *err)
{
    const struct image_multiboot1 *header = &image->multiboot1;
    uint32_t unknown = header->flags & REQUIREMENTS & ~KNOWN_REQUIREMENTS;

    if (header->problem[0] != '\0')
        return error_set(err, -ENOEXEC, "%s", header->problem);
    if (unknown != 0)
        return refuse_requirements(unknown, err);
    if (!header->has_addresses && (boot_multiboot_check_file(image, err) < 0 ||
                                   boot_multiboot_check_entry(image, err) < 0))
        return err->code;
    return 0;
}

int boot_multiboot1_check(const struct image *image, struct error *err)
{
    const struct image_multiboot1 *header = &image->multiboot1;

    if (!header->present)
        return error_set(err, -ENOEXEC, "has no Multiboot 1 header in its first %d bytes",
                         IMAGE_MULTIBOOT1_SEARCH_BYTES);
    if (check_header(image, err) < 0)
        return error_prefix(err, "Multiboot 1 header at offset 0x%" PRIx64,
                            header->header_offset);
    return 0;
}

/* ---- the information ---- */

/* What is told, and where in the block it lies. */
struct contents {
    struct multiboot_block block;
    struct multiboot_sections sections;
    struct multiboot_module modules[BOOT_MAX_INITRDS];
    size_t module_strings[BOOT_MAX_INITRDS];
    size_t module_list;
    size_t memory_map;
    size_t section_headers;
    size_t cmdline;
    size_t loader_name;
};

static void append_memory_map(struct contents *contents, const struct boot_plan *plan)
{
    for (size_t i = 0; i < plan->e820_count; i++) {
        const struct memory_map_entry entry = {
            .size_bytes = sizeof(entry) - sizeof(entry.size_bytes),
            .gpa = plan->e820[i].gpa,
            .length_bytes = plan->e820[i].size_bytes,
            .type = plan->e820[i].type,
        };
        size_t at = multiboot_block_append(&contents->block, &entry, sizeof(entry),
                                           i == 0 ? 8 : 1);

        if (i == 0)
            contents->memory_map = at;
    }
}

static size_t append_text(struct multiboot_block *block, const char *text)
{
    return multiboot_block_append(block, text, strlen(text) + 1, 1);
}

/* All but the two structures with addresses in them, for which room is left. */
static void collect(struct contents *contents, const struct boot_builder *builder)
{
    struct multiboot_block *block = &contents->block;
    size_t module_count = builder->inputs->initrd_count;

    (void)multiboot_block_append(block, NULL, sizeof(struct information), 1);
    contents->module_list =
        multiboot_block_append(block, NULL, module_count * sizeof(struct module), 8);
    append_memory_map(contents, builder->plan);
    contents->section_headers = multiboot_block_append(block, contents->sections.headers,
                                                       contents->sections.size_bytes, 8);
    contents->loader_name = append_text(block, MULTIBOOT_LOADER_NAME);
    contents->cmdline = append_text(block, builder->plan->cmdline);
    for (size_t i = 0; i < module_count; i++)
        contents->module_strings[i] = append_text(block, contents->modules[i].string);
}

static struct information describe(const struct contents *contents,
                                   const struct boot_builder *builder, uint32_t gpa)
{
    struct information information = {
        .flags = INFO_MEMORY | INFO_CMDLINE | INFO_MODULES | INFO_MEMORY_MAP |
                 INFO_LOADER_NAME,
        .lower_kib = boot_multiboot_lower_kib(builder),
        .upper_kib = boot_multiboot_upper_kib(builder),
        .cmdline = gpa + (uint32_t)contents->cmdline,
        .module_count = (uint32_t)builder->inputs->initrd_count,
        .modules = gpa + (uint32_t)contents->module_list,
        .memory_map_bytes =
            (uint32_t)(builder->plan->e820_count * sizeof(struct memory_map_entry)),
        .memory_map = gpa + (uint32_t)contents->memory_map,
        .loader_name = gpa + (uint32_t)contents->loader_name,
    };

    if (contents->sections.count != 0) {
        information.flags |= INFO_ELF_SECTIONS;
        information.section_count = contents->sections.count;
        information.section_row_bytes = contents->sections.row_bytes;
        information.sections = gpa + (uint32_t)contents->section_headers;
        information.section_names = contents->sections.names_index;
    }
    if (builder->inputs->image.multiboot1.has_video) {
        information.flags |= INFO_FRAMEBUFFER;
        information.framebuffer = LAYOUT_TEXT_SCREEN;
        information.framebuffer_pitch = MULTIBOOT_TEXT_PITCH;
        information.framebuffer_width = LAYOUT_TEXT_COLUMNS;
        information.framebuffer_height = LAYOUT_TEXT_ROWS;
        information.framebuffer_depth = MULTIBOOT_TEXT_DEPTH;
        information.framebuffer_type = MULTIBOOT_TEXT_TYPE;
    }
    return information;
}

static void enter_addresses(struct contents *contents, const struct boot_builder *builder,
                            uint32_t gpa)
{
    const struct information information = describe(contents, builder, gpa);
    uint8_t *bytes = contents->block.bytes;

    memcpy(bytes, &information, sizeof(information));
    for (size_t i = 0; i < builder->inputs->initrd_count; i++) {
        const struct multiboot_module *from = &contents->modules[i];
        const struct module module = {
            .start = (uint32_t)from->gpa,
            .end = (uint32_t)(from->gpa + from->size_bytes),
            .string = gpa + (uint32_t)contents->module_strings[i],
        };

        memcpy(bytes + contents->module_list + i * sizeof(module), &module,
               sizeof(module));
    }
}

static int add_information(struct contents *contents, struct boot_builder *builder,
                           uint64_t *gpa, struct error *err)
{
    collect(contents, builder);
    if (boot_multiboot_place(builder, &contents->block, gpa, err) < 0)
        return err->code;
    enter_addresses(contents, builder, (uint32_t)*gpa);
    return boot_multiboot_add_information(builder, &contents->block, *gpa, err);
}

static void init_kernel(struct multiboot_kernel *kernel, const struct image *image)
{
    const struct image_multiboot1 *header = &image->multiboot1;

    boot_multiboot_kernel_init(kernel, image,
                               header->has_addresses ? &header->segment : NULL);
    if (header->has_addresses)
        kernel->entry = header->entry_addr;
}

int boot_multiboot1_build(struct boot_builder *builder, struct error *err)
{
    const struct image_multiboot1 *header = &builder->inputs->image.multiboot1;
    struct contents contents = {.module_list = 0};
    struct multiboot_kernel kernel;
    uint64_t information = 0;
    int status = -1; /* err says why */

    init_kernel(&kernel, &builder->inputs->image);
    if (header->has_video)
        boot_multiboot_note_video(builder, &header->video,
                                  header->video_mode_type == VIDEO_TEXT_MODE);
    if (boot_multiboot_kernel_add(&kernel, builder, err) == 0 &&
        boot_multiboot_add_modules(builder, contents.modules, err) == 0 &&
        boot_multiboot_add_sections(builder, &kernel, &contents.sections, err) == 0 &&
        add_information(&contents, builder, &information, err) == 0)
        status =
            boot_multiboot_enter(builder, kernel.entry, ENTRY_MAGIC, information, err);
    free(contents.sections.headers);
    free(contents.block.bytes);
    return status;
}
