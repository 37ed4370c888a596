/* SPDX-License-Identifier: Apache-2.0 */
/* The files that `husk bench multiboot` boots: kernels and modules of any size, whose
 * every byte is there (no holes, no pages of zeroes). */
#ifndef HUSK_BENCH_GUEST_IMAGE_PRIVATE_H
#define HUSK_BENCH_GUEST_IMAGE_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"

#define GUEST_IMAGE_LEAST_BYTES (12 * KIB)
#define GUEST_IMAGE_LINE_BYTES 32

struct guest_image {
    char *path;   /* owned */
    uint32_t sum; /* what the guest finds in it */
};

/* Make `directory`/`name`, which must not exist. Sizes are multiples of 1 KiB, of
 * GUEST_IMAGE_LEAST_BYTES at least. guest_image_remove is due also after a failure. */
int guest_image_make_kernel(struct guest_image *image, const char *directory,
                            const char *name, size_t size_bytes,
                            struct error *err) MUST_CHECK;
int guest_image_make_module(struct guest_image *image, const char *directory,
                            const char *name, size_t size_bytes,
                            struct error *err) MUST_CHECK;

/* Removes the file. Accepts an all-zero struct. */
void guest_image_remove(struct guest_image *image);

/* The line, newline included, that `kernel` says if it was handed `module` (NULL: none)
 * and every byte is in its place. */
void guest_image_line(const struct guest_image *kernel, const struct guest_image *module,
                      char line[GUEST_IMAGE_LINE_BYTES]);

#endif
