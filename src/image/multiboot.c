/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for Multiboot headers, what both versions have in common, and flat files,
 * which only such a header tells where to load. Facts only; what a boot makes of them is
 * decided in boot/.
 *
 * Sources: Multiboot Specification 0.6.96, Multiboot2 Specification 2.0, section 3.1 of
 * each.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/bytes.h"
#include "image/image_private.h"
#include "image/multiboot_private.h"

#define MULTIBOOT1_ALIGNMENT 4
#define MULTIBOOT2_ALIGNMENT 8

/* The first valid header counts. */

static void scan1(const struct image_head *head, struct image *image)
{
    struct multiboot_place place = {
        .bytes = head->bytes,
        .limit = min_u64(head->size, IMAGE_MULTIBOOT1_SEARCH_BYTES),
        .file_bytes = image->file_bytes,
    };

    while (place.offset < place.limit &&
           !image_multiboot1_read(&place, &image->multiboot1))
        place.offset += MULTIBOOT1_ALIGNMENT;
}

static void scan2(const struct image_head *head, struct image *image)
{
    struct multiboot_place place = {
        .bytes = head->bytes,
        .limit = min_u64(head->size, IMAGE_MULTIBOOT2_SEARCH_BYTES),
        .file_bytes = image->file_bytes,
    };

    while (place.offset < place.limit &&
           !image_multiboot2_read(&place, &image->multiboot2))
        place.offset += MULTIBOOT2_ALIGNMENT;
}

void image_multiboot_scan(const struct image_head *head, struct image *image)
{
    scan1(head, image);
    scan2(head, image);
}

/* ---- where a header places its file ---- */

/* The beginning: load_addr, and the byte of the file that belongs there. */
static int place_start(const struct image_multiboot_addresses *addresses,
                       uint64_t header_offset, struct image_segment *segment,
                       struct error *err)
{
    uint32_t distance = addresses->header_addr - addresses->load_addr;

    if (addresses->load_addr > addresses->header_addr)
        return error_set(err, -ENOEXEC,
                         "load_addr 0x%" PRIx32 " is above header_addr 0x%" PRIx32,
                         addresses->load_addr, addresses->header_addr);
    if (distance > header_offset)
        return error_set(
            err, -ENOEXEC,
            "load_addr 0x%" PRIx32 " is 0x%" PRIx32
            " bytes below header_addr, but the header lies at byte 0x%" PRIx64
            " of the file",
            addresses->load_addr, distance, header_offset);
    segment->gpa = addresses->load_addr;
    segment->file_offset = header_offset - distance;
    return 0;
}

static int place_end(const struct image_multiboot_addresses *addresses,
                     uint64_t file_bytes, struct image_segment *segment,
                     struct error *err)
{
    segment->file_bytes = file_bytes - segment->file_offset;
    if (addresses->load_end_addr == 0)
        return 0;
    if (addresses->load_end_addr < segment->gpa)
        return error_set(err, -ENOEXEC,
                         "load_end_addr 0x%" PRIx32 " is below load_addr 0x%" PRIx64,
                         addresses->load_end_addr, segment->gpa);
    if (addresses->load_end_addr - segment->gpa > segment->file_bytes)
        return error_set(
            err, -ENOEXEC,
            "load_end_addr 0x%" PRIx32 " asks for %" PRIu64
            " bytes from offset 0x%" PRIx64 ", but the file ends at byte 0x%" PRIx64,
            addresses->load_end_addr, addresses->load_end_addr - segment->gpa,
            segment->file_offset, file_bytes);
    segment->file_bytes = addresses->load_end_addr - segment->gpa;
    return 0;
}

static int place_bss(const struct image_multiboot_addresses *addresses,
                     struct image_segment *segment, struct error *err)
{
    uint64_t end = segment->gpa + segment->file_bytes;

    segment->memory_bytes = segment->file_bytes;
    if (end > (uint64_t)UINT32_MAX + 1)
        return error_set(err, -ENOEXEC,
                         "load_addr 0x%" PRIx64 " with %" PRIu64
                         " bytes of the file goes beyond 4 GiB",
                         segment->gpa, segment->file_bytes);
    if (addresses->bss_end_addr == 0)
        return 0;
    if (addresses->bss_end_addr < end)
        return error_set(err, -ENOEXEC,
                         "bss_end_addr 0x%" PRIx32
                         " is below the end of what is loaded, 0x%" PRIx64,
                         addresses->bss_end_addr, end);
    segment->memory_bytes = addresses->bss_end_addr - segment->gpa;
    return 0;
}

int image_multiboot_segment(const struct image_multiboot_addresses *addresses,
                            uint64_t header_offset, uint64_t file_bytes, uint32_t entry,
                            struct image_segment *segment, struct error *err)
{
    if (place_start(addresses, header_offset, segment, err) < 0 ||
        place_end(addresses, file_bytes, segment, err) < 0 ||
        place_bss(addresses, segment, err) < 0)
        return err->code;
    if (entry >= segment->gpa && entry - segment->gpa < segment->memory_bytes)
        return 0;
    return error_set(err, -ENOEXEC,
                     "entry_addr 0x%" PRIx32 " lies outside of what is loaded, %" PRIu64
                     " bytes from 0x%" PRIx64 " on",
                     entry, segment->memory_bytes, segment->gpa);
}

/* ---- flat files ---- */

/* Without ELF headers only addresses in a Multiboot header say where a file goes. */
static bool matches(const struct image_head *head, const struct image *image)
{
    (void)head;
    return image->multiboot1.has_addresses || image->multiboot2.has_addresses;
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
