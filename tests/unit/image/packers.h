/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed streams as Linux's build makes them, for the tests of image_unpack. */
#ifndef HUSK_TESTS_IMAGE_PACKERS_H
#define HUSK_TESTS_IMAGE_PACKERS_H

#include <stddef.h>
#include <stdint.h>

#include "image/image.h"

/* What 16 MiB may take, packed. */
#define PACKED_BYTES_MAX ((size_t)17 << 20)

/* Packs `size` bytes into `packed`, without the size that Linux appends. Returns the
 * packed bytes. Every codec that can carries a checksum of the content. */
size_t pack(enum image_codec codec, const uint8_t *bytes, size_t size, uint8_t *packed);

#endif
