/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Multiboot 2 headers and their tags (Multiboot2 Specification 2.0, 3.1). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "image/multiboot_private.h"

#define MAGIC UINT32_C(0xe85250d6)
#define MAGIC_BYTES 16 /* magic, architecture, header_length, checksum */
#define ARCHITECTURE_I386 0

#define TAG_ALIGNMENT 8
#define TAG_BYTES 8 /* type, flags, size */
#define TAG_END 0
#define TAG_OPTIONAL 1

#define LOAD_WHOLE_FILE UINT32_C(0xffffffff) /* as load_addr */

#define PREFERENCE_LOWEST 1
#define PREFERENCE_HIGHEST 2

/* ---- what is known of each tag ---- */

struct tag {
    const uint8_t *bytes; /* size_bytes of them are in the header */
    struct image_multiboot2_tag facts;
};

typedef int tag_reader(const struct tag *tag, struct image_multiboot2 *header,
                       struct error *err);

static int read_requests(const struct tag *tag, struct image_multiboot2 *header,
                         struct error *err)
{
    for (uint32_t at = TAG_BYTES; at + 4 <= tag->facts.size_bytes; at += 4) {
        if (header->request_count == IMAGE_MULTIBOOT2_MAX_REQUESTS)
            return error_set(err, -ENOEXEC,
                             "more than %d requests for information; husk reads no more",
                             IMAGE_MULTIBOOT2_MAX_REQUESTS);
        header->requests[header->request_count++] = (struct image_multiboot2_request){
            .type = load_le32(tag->bytes + at),
            .optional = tag->facts.optional,
        };
    }
    return 0;
}

static int read_addresses(const struct tag *tag, struct image_multiboot2 *header,
                          struct error *err)
{
    (void)err;
    header->has_addresses = true;
    header->addresses = (struct image_multiboot_addresses){
        .header_addr = load_le32(tag->bytes + 8),
        .load_addr = load_le32(tag->bytes + 12),
        .load_end_addr = load_le32(tag->bytes + 16),
        .bss_end_addr = load_le32(tag->bytes + 20),
    };
    return 0;
}

static int read_entry(const struct tag *tag, struct image_multiboot2 *header,
                      struct error *err)
{
    (void)err;
    header->has_entry = true;
    header->entry_addr = load_le32(tag->bytes + 8);
    return 0;
}

static int read_console(const struct tag *tag, struct image_multiboot2 *header,
                        struct error *err)
{
    (void)err;
    header->console_flags = load_le32(tag->bytes + 8);
    header->console_optional = tag->facts.optional;
    return 0;
}

static int read_video(const struct tag *tag, struct image_multiboot2 *header,
                      struct error *err)
{
    (void)err;
    header->has_video = true;
    header->video = (struct image_multiboot_video){
        .width = load_le32(tag->bytes + 8),
        .height = load_le32(tag->bytes + 12),
        .depth = load_le32(tag->bytes + 16),
    };
    return 0;
}

static enum image_multiboot2_preference preference_from_number(uint32_t number)
{
    if (number == PREFERENCE_LOWEST)
        return IMAGE_MULTIBOOT2_LOWEST;
    return number == PREFERENCE_HIGHEST ? IMAGE_MULTIBOOT2_HIGHEST
                                        : IMAGE_MULTIBOOT2_ANYWHERE;
}

static int read_relocation(const struct tag *tag, struct image_multiboot2 *header,
                           struct error *err)
{
    struct image_multiboot2_relocation *relocation = &header->relocation;

    header->relocatable = true;
    relocation->min_addr = load_le32(tag->bytes + 8);
    relocation->max_addr = load_le32(tag->bytes + 12);
    relocation->alignment = load_le32(tag->bytes + 16);
    relocation->preference = preference_from_number(load_le32(tag->bytes + 20));
    if (relocation->min_addr > relocation->max_addr)
        return error_set(err, -ENOEXEC,
                         "min_addr 0x%" PRIx32 " is above max_addr 0x%" PRIx32,
                         relocation->min_addr, relocation->max_addr);
    if (relocation->alignment == 0)
        relocation->alignment = 1;
    if (!is_aligned(relocation->alignment, relocation->alignment))
        return error_set(err, -ENOEXEC, "align 0x%" PRIx32 " is no power of two",
                         relocation->alignment);
    return 0;
}

static const struct tag_kind {
    const char *name;
    uint32_t least_bytes;
    tag_reader *read; /* NULL: that it is there is all it says */
} tag_kinds[] = {
    [1] = {"information request", 8, read_requests},
    [2] = {"address", 24, read_addresses},
    [3] = {"entry address", 12, read_entry},
    [4] = {"console flags", 12, read_console},
    [5] = {"framebuffer", 20, read_video},
    [6] = {"module alignment", 8, NULL},
    [7] = {"EFI boot services", 8, NULL},
    [8] = {"EFI i386 entry address", 12, NULL},
    [9] = {"EFI amd64 entry address", 12, NULL},
    [10] = {"relocatable", 24, read_relocation},
};

static const struct tag_kind *tag_kind_find(uint16_t type)
{
    if (type >= ARRAY_SIZE(tag_kinds) || tag_kinds[type].name == NULL)
        return NULL;
    return &tag_kinds[type];
}

const char *image_multiboot2_tag_name(uint16_t type)
{
    const struct tag_kind *kind = tag_kind_find(type);

    return kind == NULL ? NULL : kind->name;
}

const char *image_multiboot2_info_name(uint32_t type)
{
    static const char *const names[] = {
        [1] = "command line",
        [2] = "boot loader name",
        [3] = "modules",
        [4] = "basic memory information",
        [5] = "BIOS boot device",
        [6] = "memory map",
        [7] = "VBE information",
        [8] = "framebuffer information",
        [9] = "ELF sections",
        [10] = "APM table",
        [11] = "EFI 32-bit system table",
        [12] = "EFI 64-bit system table",
        [13] = "SMBIOS tables",
        [14] = "old ACPI RSDP",
        [15] = "new ACPI RSDP",
        [16] = "network information",
        [17] = "EFI memory map",
        [18] = "EFI boot services not terminated",
        [19] = "EFI 32-bit image handle",
        [20] = "EFI 64-bit image handle",
        [21] = "image load base",
    };

    return type < ARRAY_SIZE(names) ? names[type] : NULL;
}

/* ---- the list of tags ---- */

static int take_tag(const struct tag *tag, struct image_multiboot2 *header,
                    struct error *err)
{
    const struct tag_kind *kind = tag_kind_find(tag->facts.type);

    if (header->tag_count == IMAGE_MULTIBOOT2_MAX_TAGS)
        return error_set(err, -ENOEXEC, "more than %d tags; husk reads no more",
                         IMAGE_MULTIBOOT2_MAX_TAGS);
    header->tags[header->tag_count++] = tag->facts;
    if (kind == NULL)
        return 0;
    if (tag->facts.size_bytes < kind->least_bytes)
        return error_set(
            err, -ENOEXEC, "tag %u (%s) has %" PRIu32 " bytes; it needs %" PRIu32,
            tag->facts.type, kind->name, tag->facts.size_bytes, kind->least_bytes);
    if (kind->read == NULL || kind->read(tag, header, err) == 0)
        return 0;
    return error_prefix(err, "tag %u (%s)", tag->facts.type, kind->name);
}

/* `bytes` is the whole header, which lies in the file's head. A list that ends with the
 * header needs no end tag: GRUB takes it as well. */
static int read_tags(const uint8_t *bytes, struct image_multiboot2 *header,
                     struct error *err)
{
    uint64_t at = MAGIC_BYTES;

    while (range_within(at, TAG_BYTES, header->header_bytes)) {
        struct tag tag = {
            .bytes = bytes + at,
            .facts =
                {
                    .type = load_le16(bytes + at),
                    .optional = (load_le16(bytes + at + 2) & TAG_OPTIONAL) != 0,
                    .size_bytes = load_le32(bytes + at + 4),
                },
        };

        if (tag.facts.type == TAG_END)
            return 0;
        if (tag.facts.size_bytes < TAG_BYTES ||
            !range_within(at, tag.facts.size_bytes, header->header_bytes))
            return error_set(err, -ENOEXEC,
                             "tag %u at byte %" PRIu64 " of the header has %" PRIu32
                             " bytes; the header has %" PRIu32,
                             tag.facts.type, at, tag.facts.size_bytes,
                             header->header_bytes);
        if (take_tag(&tag, header, err) < 0)
            return err->code;
        at += align_up(tag.facts.size_bytes, TAG_ALIGNMENT);
    }
    return 0;
}

/* Where the addresses place the file: only once it is known where it is entered. */
static int read_segment(const struct multiboot_place *place,
                        struct image_multiboot2 *header, struct error *err)
{
    struct image_multiboot_addresses addresses = header->addresses;

    if (!header->has_addresses)
        return 0;
    if (!header->has_entry)
        return error_set(err, -ENOEXEC,
                         "tag 2 (address) goes without tag 3 (entry address)");
    if (addresses.load_addr == LOAD_WHOLE_FILE) {
        if (addresses.header_addr < place->offset)
            return error_set(err, -ENOEXEC,
                             "header_addr 0x%" PRIx32
                             " is below the header's place in the file, 0x%zx, which "
                             "would begin below address 0",
                             addresses.header_addr, place->offset);
        addresses.load_addr = addresses.header_addr - (uint32_t)place->offset;
    }
    return image_multiboot_segment(&addresses, place->offset, place->file_bytes,
                                   header->entry_addr, &header->segment, err);
}

/* Apart, since image_multiboot2_read is called for each place of the search, and a struct
 * error is large. */
static void read_contents(const struct multiboot_place *place,
                          struct image_multiboot2 *header)
{
    struct error err = ERROR_NONE;

    if (read_tags(place->bytes + place->offset, header, &err) < 0 ||
        read_segment(place, header, &err) < 0)
        (void)snprintf(header->problem, sizeof(header->problem), "%.*s",
                       (int)sizeof(header->problem) - 1, err.text);
}

bool image_multiboot2_read(const struct multiboot_place *place,
                           struct image_multiboot2 *header)
{
    const uint8_t *bytes = place->bytes + place->offset;
    uint32_t architecture;
    uint32_t header_bytes;

    if (!range_within(place->offset, MAGIC_BYTES, place->limit) ||
        load_le32(bytes) != MAGIC)
        return false;
    architecture = load_le32(bytes + 4);
    header_bytes = load_le32(bytes + 8);
    if (MAGIC + architecture + header_bytes + load_le32(bytes + 12) != 0)
        return false;
    if (architecture != ARCHITECTURE_I386 || header_bytes < MAGIC_BYTES ||
        !range_within(place->offset, header_bytes, place->limit))
        return false;
    *header = (struct image_multiboot2){
        .present = true,
        .header_offset = place->offset,
        .header_bytes = header_bytes,
    };
    read_contents(place, header);
    return true;
}
