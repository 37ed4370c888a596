/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernel formats, and the way a file finds its row. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "image/image_private.h"

#define FIRMWARE_ALIGNMENT (4 * KIB)

/* Raw code has no marks of its own; image_describe_firmware is told that it is one. */
static const struct image_format_ops firmware_ops = {.name = "firmware"};

/* In the order they are tried: a kernel with a Multiboot header in an ELF is an ELF. */
static const struct image_format_ops *const formats[] = {
    [IMAGE_ELF32] = &image_elf32_ops,     [IMAGE_ELF64] = &image_elf64_ops,
    [IMAGE_BZIMAGE] = &image_bzimage_ops, [IMAGE_MULTIBOOT] = &image_multiboot_ops,
    [IMAGE_FIRMWARE] = &firmware_ops,     [IMAGE_COMPRESSED] = &image_compressed_ops,
};

const char *image_format_name(enum image_format format)
{
    return formats[format]->name;
}

int image_head_read(const struct source *source, struct image_head *head,
                    struct error *err)
{
    head->size = min_u64(source->size_bytes, sizeof(head->bytes));
    return source_read(source, 0, head->bytes, head->size, err);
}

bool image_head_has(const struct image_head *head, size_t offset, const void *bytes,
                    size_t size)
{
    return range_within(offset, size, head->size) &&
           memcmp(head->bytes + offset, bytes, size) == 0;
}

int image_refuse(const struct source *source, const struct image *image,
                 struct error *err)
{
    const struct image_guess_row *guess = image_guess_find(source);

    if (guess != NULL && guess->advice != NULL)
        return error_set(err, -ENOEXEC, "is %s, not a kernel; %s", guess->what,
                         guess->advice);
    if (guess != NULL)
        return error_set(err, -ENOEXEC, "is %s, not a kernel", guess->what);
    if (image->multiboot1.present)
        return error_set(err, -ENOEXEC,
                         "has a Multiboot 1 header at byte %" PRIu64
                         " but is no ELF file, and without address fields (flag 16) "
                         "nothing says where to load it",
                         image->multiboot1.header_offset);
    if (image->multiboot2.present)
        return error_set(err, -ENOEXEC,
                         "has a Multiboot 2 header at byte %" PRIu64
                         " but is no ELF file, and without an address tag (type 2) "
                         "nothing says where to load it",
                         image->multiboot2.header_offset);
    return error_set(err, -ENOEXEC,
                     "is no kernel known to husk: neither an ELF file nor a Linux "
                     "bzImage, and no Multiboot header lies in its first %d bytes "
                     "(Multiboot 1) or %d bytes (Multiboot 2)",
                     IMAGE_MULTIBOOT1_SEARCH_BYTES, IMAGE_MULTIBOOT2_SEARCH_BYTES);
}

bool image_format_find(const struct image_head *head, struct image *image)
{
    image_multiboot_scan(head, image);
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        if (formats[i]->matches == NULL || !formats[i]->matches(head, image))
            continue;
        image->format = (enum image_format)i;
        return true;
    }
    return false;
}

int image_describe(const struct source *source, struct image *image, struct error *err)
{
    struct image_head head;
    int status;

    *image = (struct image){.file_bytes = source->size_bytes};
    if (source->size_bytes == 0)
        return error_set(err, -ENOEXEC, "is empty");
    status = image_head_read(source, &head, err);
    if (status < 0)
        return status;
    if (!image_format_find(&head, image))
        return image_refuse(source, image, err);
    return formats[image->format]->describe(source, &head, image, err);
}

int image_describe_firmware(const struct source *source, struct image *image,
                            struct error *err)
{
    *image = (struct image){
        .format = IMAGE_FIRMWARE,
        .file_bytes = source->size_bytes,
    };
    if (source->size_bytes == 0)
        return error_set(err, -ENOEXEC, "is empty");
    if (!is_aligned(source->size_bytes, FIRMWARE_ALIGNMENT))
        return error_set(err, -ENOEXEC,
                         "firmware has %" PRIu64 " bytes, which is no multiple of 4096",
                         source->size_bytes);
    if (source->size_bytes > IMAGE_FIRMWARE_LIMIT)
        return error_set(err, -EFBIG,
                         "firmware has %" PRIu64 " bytes; at most %" PRIu64
                         " fit below 4 GiB",
                         source->size_bytes, IMAGE_FIRMWARE_LIMIT);
    return 0;
}
