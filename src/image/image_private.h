/* SPDX-License-Identifier: Apache-2.0 */
/* What the describing files of image/ share: the head of a file and the table of formats.
 */
#ifndef HUSK_IMAGE_IMAGE_PRIVATE_H
#define HUSK_IMAGE_IMAGE_PRIVATE_H

#include "image/image.h"

#define IMAGE_HEAD_BYTES IMAGE_MULTIBOOT2_SEARCH_BYTES

/* Physical addresses of x86 have at most 52 bits (Intel SDM vol. 3, 4.1.4). */
#define IMAGE_PHYSICAL_LIMIT (UINT64_C(1) << 52)

/* The first bytes of a file, read once; formats are told by them. */
struct image_head {
    size_t size; /* < IMAGE_HEAD_BYTES only if the file is that short */
    uint8_t bytes[IMAGE_HEAD_BYTES];
};

/* Reads `head` from the start of `source` (formats.c). */
int image_head_read(const struct source *source, struct image_head *head,
                    struct error *err) MUST_CHECK;

/* True if the head has these bytes at `offset`. */
bool image_head_has(const struct image_head *head, size_t offset, const void *bytes,
                    size_t size);

/* One row a format (formats.c). */
struct image_format_ops {
    const char *name;
    /* By content of the head; the Multiboot headers in `image` are already filled in.
     * NULL: never found, only asked for. */
    bool (*matches)(const struct image_head *head, const struct image *image);
    /* Fills in the format's part of `image`. */
    int (*describe)(const struct source *source, const struct image_head *head,
                    struct image *image, struct error *err);
};

extern const struct image_format_ops image_elf32_ops;      /* elf.c */
extern const struct image_format_ops image_elf64_ops;      /* elf.c */
extern const struct image_format_ops image_bzimage_ops;    /* bzimage.c */
extern const struct image_format_ops image_multiboot_ops;  /* multiboot.c */
extern const struct image_format_ops image_compressed_ops; /* compressed.c */

/* Sets the format and the Multiboot headers of `image`; false if it is of no known format
 * (formats.c). */
bool image_format_find(const struct image_head *head, struct image *image);

/* The sentence for a file that is no kernel (formats.c). */
int image_refuse(const struct source *source, const struct image *image,
                 struct error *err);

/* Fills in multiboot1 and multiboot2 of `image` (multiboot.c). */
void image_multiboot_scan(const struct image_head *head, struct image *image);

/* What a file that is no kernel seems to be (guess.c). */
struct image_guess_row {
    const char *what;   /* "an ext4 file system" */
    const char *advice; /* "unpack it first"; NULL if there is none */
};
const struct image_guess_row *image_guess_find(const struct source *source);

#endif
