/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Multiboot 1 headers (Multiboot Specification 0.6.96, 3.1.1 to 3.1.4). */
#include <stdio.h>

#include "base/bytes.h"
#include "image/multiboot_private.h"

#define MAGIC UINT32_C(0x1badb002)

#define FLAG_VIDEO (UINT32_C(1) << 2)
#define FLAG_ADDRESSES (UINT32_C(1) << 16)

/* A header ends behind the last group of fields that its flags announce. */
#define MAGIC_BYTES 12
#define ADDRESSES_BYTES 32
#define VIDEO_BYTES 48

static size_t header_bytes(uint32_t flags)
{
    if (flags & FLAG_VIDEO)
        return VIDEO_BYTES;
    return flags & FLAG_ADDRESSES ? ADDRESSES_BYTES : MAGIC_BYTES;
}

static void read_addresses(const struct multiboot_place *place, const uint8_t *bytes,
                           struct image_multiboot1 *header)
{
    struct error err = ERROR_NONE;

    header->has_addresses = true;
    header->addresses = (struct image_multiboot_addresses){
        .header_addr = load_le32(bytes + 12),
        .load_addr = load_le32(bytes + 16),
        .load_end_addr = load_le32(bytes + 20),
        .bss_end_addr = load_le32(bytes + 24),
    };
    header->entry_addr = load_le32(bytes + 28);
    if (image_multiboot_segment(&header->addresses, place->offset, place->file_bytes,
                                header->entry_addr, &header->segment, &err) < 0)
        (void)snprintf(header->problem, sizeof(header->problem), "%.*s",
                       (int)sizeof(header->problem) - 1, err.text);
}

static void read_video(const uint8_t *bytes, struct image_multiboot1 *header)
{
    header->has_video = true;
    header->video_mode_type = load_le32(bytes + 32);
    header->video = (struct image_multiboot_video){
        .width = load_le32(bytes + 36),
        .height = load_le32(bytes + 40),
        .depth = load_le32(bytes + 44),
    };
}

bool image_multiboot1_read(const struct multiboot_place *place,
                           struct image_multiboot1 *header)
{
    const uint8_t *bytes = place->bytes + place->offset;
    uint32_t flags;

    if (!range_within(place->offset, MAGIC_BYTES, place->limit) ||
        load_le32(bytes) != MAGIC)
        return false;
    flags = load_le32(bytes + 4);
    if (MAGIC + flags + load_le32(bytes + 8) != 0) /* modulo 2^32 */
        return false;
    if (!range_within(place->offset, header_bytes(flags), place->limit))
        return false;
    *header = (struct image_multiboot1){
        .present = true,
        .header_offset = place->offset,
        .flags = flags,
    };
    if (flags & FLAG_ADDRESSES)
        read_addresses(place, bytes, header);
    if (flags & FLAG_VIDEO)
        read_video(bytes, header);
    return true;
}
