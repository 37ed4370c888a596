/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that is compressed as a whole, as xen.gz is: told by what its first bytes
 * unpack to. What else is compressed (an initrd, an archive) is no kernel.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "image/image_private.h"

static bool matches(const struct image_head *head, const struct image *image)
{
    (void)image;
    return image_codec_detect(head->bytes, head->size) != IMAGE_CODEC_NONE;
}

/* Ends the unpacking once the head is full: a stream is never unpacked whole here. */
static int fill_head(void *context, const void *bytes, size_t size, struct error *err)
{
    struct image_head *head = context;
    size_t part = min_u64(size, sizeof(head->bytes) - head->size);

    memcpy(head->bytes + head->size, bytes, part);
    head->size += part;
    if (head->size < sizeof(head->bytes))
        return 0;
    return error_set(err, -ECANCELED, "the head is full");
}

/* Damage behind the head is left to whoever unpacks it all. */
static void read_inner_head(const struct source *source, enum image_codec codec,
                            struct image_head *head)
{
    struct error ignored = ERROR_NONE;
    int status;

    head->size = 0;
    status = image_unpack(source, 0, source->size_bytes, codec, 0, UINT64_MAX, fill_head,
                          head, &ignored);
    (void)status;
}

static int describe(const struct source *source, const struct image_head *head,
                    struct image *image, struct error *err)
{
    struct image inner = {.format = IMAGE_COMPRESSED};
    struct image_head inner_head;

    image->payload = (struct image_payload){
        .size_bytes = source->size_bytes,
        .codec = image_codec_detect(head->bytes, head->size),
    };
    read_inner_head(source, image->payload.codec, &inner_head);
    if (!image_format_find(&inner_head, &inner) || inner.format == IMAGE_COMPRESSED)
        return image_refuse(source, image, err);
    return 0;
}

const struct image_format_ops image_compressed_ops = {
    .name = "compressed kernel",
    .matches = matches,
    .describe = describe,
};
