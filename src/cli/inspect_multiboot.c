/* SPDX-License-Identifier: Apache-2.0 */
/* husk inspect: the Multiboot headers of a file, with all their fields and tags. */
#include "cli/inspect_private.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"

#define FIELD INSPECT_FIELD

static const char *const preference_names[] = {
    [IMAGE_MULTIBOOT2_ANYWHERE] = "anywhere",
    [IMAGE_MULTIBOOT2_LOWEST] = "lowest",
    [IMAGE_MULTIBOOT2_HIGHEST] = "highest",
};

/* ---- for people */

static void print_problem(const char *problem)
{
    if (problem[0] != '\0')
        (void)printf(FIELD "%s\n", "  problem", problem);
}

static void print_addresses(const struct image_multiboot_addresses *addresses)
{
    (void)printf(FIELD "header 0x%" PRIx32 ", load 0x%" PRIx32 ", load end 0x%" PRIx32
                       ", bss end 0x%" PRIx32 "\n",
                 "  addresses", addresses->header_addr, addresses->load_addr,
                 addresses->load_end_addr, addresses->bss_end_addr);
}

static void print_video(const struct image_multiboot_video *video)
{
    (void)printf(FIELD "%" PRIu32 "x%" PRIu32 ", depth %" PRIu32 "\n", "  video",
                 video->width, video->height, video->depth);
}

static void print_multiboot1(const struct image_multiboot1 *header)
{
    (void)printf(FIELD "header at 0x%" PRIx64 ", flags 0x%08" PRIx32 "\n", "Multiboot 1",
                 header->header_offset, header->flags);
    if (header->has_addresses) {
        print_addresses(&header->addresses);
        (void)printf(FIELD "0x%" PRIx32 "\n", "  entry", header->entry_addr);
    }
    if (header->has_video)
        print_video(&header->video);
    print_problem(header->problem);
}

static void print_tag(const struct image_multiboot2_tag *tag)
{
    const char *name = image_multiboot2_tag_name(tag->type);

    (void)printf(FIELD "%u (%s), %" PRIu32 " bytes%s\n", "  tag", tag->type,
                 name == NULL ? "unknown" : name, tag->size_bytes,
                 tag->optional ? ", optional" : "");
}

static void print_request(const struct image_multiboot2_request *request)
{
    const char *name = image_multiboot2_info_name(request->type);

    (void)printf(FIELD "%" PRIu32 " (%s)%s\n", "  asks for", request->type,
                 name == NULL ? "unknown" : name, request->optional ? ", optional" : "");
}

static void print_multiboot2(const struct image_multiboot2 *header)
{
    const struct image_multiboot2_relocation *relocation = &header->relocation;

    (void)printf(FIELD "header of %" PRIu32 " bytes at 0x%" PRIx64 "\n", "Multiboot 2",
                 header->header_bytes, header->header_offset);
    for (size_t i = 0; i < header->tag_count; i++)
        print_tag(&header->tags[i]);
    for (size_t i = 0; i < header->request_count; i++)
        print_request(&header->requests[i]);
    if (header->has_addresses)
        print_addresses(&header->addresses);
    if (header->has_entry)
        (void)printf(FIELD "0x%" PRIx32 "\n", "  entry", header->entry_addr);
    if (header->console_flags != 0)
        (void)printf(FIELD "flags 0x%" PRIx32 "\n", "  console", header->console_flags);
    if (header->has_video)
        print_video(&header->video);
    if (header->relocatable)
        (void)printf(FIELD "0x%" PRIx32 " to 0x%" PRIx32 ", alignment 0x%" PRIx32
                           ", %s\n",
                     "  relocatable", relocation->min_addr, relocation->max_addr,
                     relocation->alignment, preference_names[relocation->preference]);
    print_problem(header->problem);
}

void inspect_print_multiboot(const struct image *image)
{
    if (image->multiboot1.present)
        print_multiboot1(&image->multiboot1);
    if (image->multiboot2.present)
        print_multiboot2(&image->multiboot2);
}

/* ---- for programs */

static json_t *json_addresses(const struct image_multiboot_addresses *addresses)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "header_addr",
                     (json_int_t)addresses->header_addr, "load_addr",
                     (json_int_t)addresses->load_addr, "load_end_addr",
                     (json_int_t)addresses->load_end_addr, "bss_end_addr",
                     (json_int_t)addresses->bss_end_addr);
}

static json_t *json_video(const struct image_multiboot_video *video)
{
    return json_pack("{s:I, s:I, s:I}", "width", (json_int_t)video->width, "height",
                     (json_int_t)video->height, "depth", (json_int_t)video->depth);
}

/* Addresses where there are such, else null. */
static json_t *json_entry(bool present, uint32_t entry)
{
    return present ? json_integer((json_int_t)entry) : json_null();
}

json_t *inspect_json_multiboot1(const struct image *image)
{
    const struct image_multiboot1 *header = &image->multiboot1;

    if (!header->present)
        return json_null();
    return json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:s}", "header_offset",
        (json_int_t)header->header_offset, "flags", (json_int_t)header->flags,
        "addresses",
        header->has_addresses ? json_addresses(&header->addresses) : json_null(),
        "entry_addr", json_entry(header->has_addresses, header->entry_addr), "video",
        header->has_video ? json_video(&header->video) : json_null(), "problem",
        header->problem);
}

static json_t *json_tags(const struct image_multiboot2 *header)
{
    json_t *array = json_array();

    for (size_t i = 0; i < header->tag_count; i++) {
        const struct image_multiboot2_tag *tag = &header->tags[i];

        (void)json_array_append_new(
            array,
            json_pack("{s:i, s:s?, s:I, s:b}", "type", (int)tag->type, "name",
                      image_multiboot2_tag_name(tag->type), "size_bytes",
                      (json_int_t)tag->size_bytes, "optional", (int)tag->optional));
    }
    return array;
}

static json_t *json_requests(const struct image_multiboot2 *header)
{
    json_t *array = json_array();

    for (size_t i = 0; i < header->request_count; i++) {
        const struct image_multiboot2_request *request = &header->requests[i];

        (void)json_array_append_new(
            array, json_pack("{s:I, s:s?, s:b}", "type", (json_int_t)request->type,
                             "name", image_multiboot2_info_name(request->type),
                             "optional", (int)request->optional));
    }
    return array;
}

static json_t *json_relocation(const struct image_multiboot2 *header)
{
    const struct image_multiboot2_relocation *relocation = &header->relocation;

    if (!header->relocatable)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:s}", "min_addr", (json_int_t)relocation->min_addr,
                     "max_addr", (json_int_t)relocation->max_addr, "alignment",
                     (json_int_t)relocation->alignment, "preference",
                     preference_names[relocation->preference]);
}

json_t *inspect_json_multiboot2(const struct image *image)
{
    const struct image_multiboot2 *header = &image->multiboot2;

    if (!header->present)
        return json_null();
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:s}",
                     "header_offset", (json_int_t)header->header_offset, "header_bytes",
                     (json_int_t)header->header_bytes, "tags", json_tags(header),
                     "requests", json_requests(header), "addresses",
                     header->has_addresses ? json_addresses(&header->addresses)
                                           : json_null(),
                     "entry_addr", json_entry(header->has_entry, header->entry_addr),
                     "console_flags", (json_int_t)header->console_flags, "video",
                     header->has_video ? json_video(&header->video) : json_null(),
                     "relocation", json_relocation(header), "problem", header->problem);
}
