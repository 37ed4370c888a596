/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of the two Multiboot headers share (multiboot.c). */
#ifndef HUSK_IMAGE_MULTIBOOT_PRIVATE_H
#define HUSK_IMAGE_MULTIBOOT_PRIVATE_H

#include "image/image.h"

/* A place in a file's head where a header may be. */
struct multiboot_place {
    const uint8_t *bytes; /* of the head */
    size_t offset;
    size_t limit; /* the header must end here at the latest */
    uint64_t file_bytes;
};

/* True if a valid header is there; what is wrong with its fields is told in `problem`. */
bool image_multiboot1_read(const struct multiboot_place *place,
                           struct image_multiboot1 *header);
bool image_multiboot2_read(const struct multiboot_place *place,
                           struct image_multiboot2 *header);

/* What `addresses` place, for a header at `header_offset`, and whether it holds `entry`.
 */
int image_multiboot_segment(const struct image_multiboot_addresses *addresses,
                            uint64_t header_offset, uint64_t file_bytes, uint32_t entry,
                            struct image_segment *segment, struct error *err) MUST_CHECK;

#endif
