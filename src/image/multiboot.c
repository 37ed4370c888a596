/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiboot headers: where one is and what it says. Facts only; what a boot makes of them
 * is decided in boot/.
 *
 * Sources: Multiboot Specification 0.6.96 section 3.1, Multiboot2 Specification 2.0
 * section 3.1.
 */
#include "base/bytes.h"
#include "image/image_private.h"

#define MULTIBOOT1_MAGIC UINT32_C(0x1badb002)
#define MULTIBOOT1_ALIGNMENT 4
#define MULTIBOOT1_BYTES 12         /* magic, flags, checksum */
#define MULTIBOOT1_ADDRESS_BYTES 32 /* and the five address fields */
#define MULTIBOOT1_HAS_ADDRESSES (UINT32_C(1) << 16)

#define MULTIBOOT2_MAGIC UINT32_C(0xe85250d6)
#define MULTIBOOT2_ALIGNMENT 8
#define MULTIBOOT2_BYTES 16 /* magic, architecture, header_length, checksum */
#define MULTIBOOT2_I386 0   /* architecture: 32-bit protected mode of i386 */

/* True if a valid header starts at `offset` and ends within `limit`. */
static bool read_multiboot1(const uint8_t *bytes, size_t offset, size_t limit,
                            struct image_multiboot *found)
{
    const uint8_t *header = bytes + offset;
    uint32_t flags;

    if (!range_within(offset, MULTIBOOT1_BYTES, limit) ||
        load_le32(header) != MULTIBOOT1_MAGIC)
        return false;
    flags = load_le32(header + 4);
    if (MULTIBOOT1_MAGIC + flags + load_le32(header + 8) != 0) /* modulo 2^32 */
        return false;
    *found = (struct image_multiboot){
        .present = true,
        .major = 1,
        .header_offset = offset,
        .flags = flags,
    };
    if ((flags & MULTIBOOT1_HAS_ADDRESSES) == 0)
        return true;
    if (!range_within(offset, MULTIBOOT1_ADDRESS_BYTES, limit))
        return false;
    found->has_addresses = true;
    found->header_addr = load_le32(header + 12);
    found->load_addr = load_le32(header + 16);
    found->load_end_addr = load_le32(header + 20);
    found->bss_end_addr = load_le32(header + 24);
    found->entry_addr = load_le32(header + 28);
    return true;
}

/* The same for Multiboot 2. */
static bool read_multiboot2(const uint8_t *bytes, size_t offset, size_t limit,
                            struct image_multiboot *found)
{
    const uint8_t *header = bytes + offset;
    uint32_t architecture;
    uint32_t header_bytes;

    if (!range_within(offset, MULTIBOOT2_BYTES, limit) ||
        load_le32(header) != MULTIBOOT2_MAGIC)
        return false;
    architecture = load_le32(header + 4);
    header_bytes = load_le32(header + 8);
    if (MULTIBOOT2_MAGIC + architecture + header_bytes + load_le32(header + 12) != 0)
        return false;
    if (architecture != MULTIBOOT2_I386 || header_bytes < MULTIBOOT2_BYTES ||
        !range_within(offset, header_bytes, limit))
        return false;
    *found = (struct image_multiboot){
        .present = true,
        .major = 2,
        .header_offset = offset,
        .header_bytes = header_bytes,
    };
    return true;
}

typedef bool multiboot_reader(const uint8_t *bytes, size_t offset, size_t limit,
                              struct image_multiboot *found);

/* The first valid header counts. */
static void scan(const struct image_head *head, size_t search_bytes, size_t alignment,
                 multiboot_reader *read_header, struct image_multiboot *result)
{
    size_t limit = min_u64(head->size, search_bytes);
    struct image_multiboot found;

    *result = (struct image_multiboot){.present = false};
    for (size_t offset = 0; offset < limit; offset += alignment) {
        if (read_header(head->bytes, offset, limit, &found)) {
            *result = found;
            return;
        }
    }
}

void image_multiboot_scan(const struct image_head *head, struct image *image)
{
    scan(head, MULTIBOOT1_SEARCH_BYTES, MULTIBOOT1_ALIGNMENT, read_multiboot1,
         &image->multiboot1);
    scan(head, MULTIBOOT2_SEARCH_BYTES, MULTIBOOT2_ALIGNMENT, read_multiboot2,
         &image->multiboot2);
}

/* Without ELF headers only the address fields say where a file is to be loaded. */
static bool matches(const struct image_head *head, const struct image *image)
{
    (void)head;
    return image->multiboot1.has_addresses;
}

/* The scan has found all there is. */
static int describe(const struct source *source, const struct image_head *head,
                    struct image *image, struct error *err)
{
    (void)source;
    (void)head;
    (void)image;
    (void)err;
    return 0;
}

const struct image_format_ops image_multiboot_ops = {
    .name = "Multiboot",
    .matches = matches,
    .describe = describe,
};
