/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed kernels: which codec, and one door to all of them with limits.
 *
 * Sources: Linux lib/decompress.c (marks), scripts/Makefile.lib (every codec but gzip
 * gets the unpacked size appended, 4 bytes little-endian).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "image/compression_private.h"

/* What Linux's build appends. gzip has the same in its own trailer. */
#define SIZE_TRAILER_BYTES 4

#define MAX_MARK_BYTES 9

struct codec {
    const char *name;
    uint8_t mark_bytes;
    uint8_t mark[MAX_MARK_BYTES];
    unpack_function *unpack;
};

static const struct codec codecs[] = {
    [IMAGE_CODEC_NONE] = {.name = "none"},
    [IMAGE_CODEC_GZIP] = {"gzip", 2, {0x1f, 0x8b}, unpack_gzip},
    [IMAGE_CODEC_BZIP2] = {"bzip2", 3, {'B', 'Z', 'h'}, unpack_bzip2},
    /* properties byte lc=3 lp=0 pb=2, then a dictionary size that is a multiple of 64 KiB
     */
    [IMAGE_CODEC_LZMA] = {"lzma", 3, {0x5d, 0x00, 0x00}, unpack_lzma},
    [IMAGE_CODEC_XZ] = {"xz", 6, {0xfd, '7', 'z', 'X', 'Z', 0x00}, unpack_xz},
    [IMAGE_CODEC_LZO] = {"lzo",
                         9,
                         {0x89, 'L', 'Z', 'O', 0, '\r', '\n', 0x1a, '\n'},
                         unpack_lzo},
    [IMAGE_CODEC_LZ4] = {"lz4", 4, {0x02, 0x21, 0x4c, 0x18}, unpack_lz4},
    [IMAGE_CODEC_ZSTD] = {"zstd", 4, {0x28, 0xb5, 0x2f, 0xfd}, unpack_zstd},
    [IMAGE_CODEC_LZ4_FRAME] = {"lz4", 4, {0x04, 0x22, 0x4d, 0x18}, unpack_lz4_frame},
};

const char *image_codec_name(enum image_codec codec)
{
    return codecs[codec].name;
}

enum image_codec image_codec_detect(const uint8_t *head, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(codecs); i++) {
        if (codecs[i].mark_bytes != 0 && codecs[i].mark_bytes <= size &&
            memcmp(codecs[i].mark, head, codecs[i].mark_bytes) == 0)
            return (enum image_codec)i;
    }
    return IMAGE_CODEC_NONE;
}

uint64_t unpacking_left(const struct unpacking *unpacking)
{
    return unpacking->end - unpacking->position;
}

int unpacking_truncated(const struct unpacking *unpacking, struct error *err)
{
    return error_set(err, -ENODATA,
                     "%s stream is truncated: it goes on where its bytes end, at byte "
                     "%" PRIu64,
                     unpacking->codec, unpacking->end);
}

int unpacking_damaged(const struct unpacking *unpacking, uint64_t position,
                      const char *problem, struct error *err)
{
    return error_set(err, -EILSEQ, "%s stream is damaged at byte %" PRIu64 ": %s",
                     unpacking->codec, position, problem);
}

int unpacking_take(struct unpacking *unpacking, void *buffer, size_t size,
                   struct error *err)
{
    int status;

    if (size > unpacking_left(unpacking))
        return unpacking_truncated(unpacking, err);
    status = source_read(unpacking->source, unpacking->position, buffer, size, err);
    if (status < 0)
        return error_prefix(err, "%s stream", unpacking->codec);
    unpacking->position += size;
    return 0;
}

int unpacking_emit(struct unpacking *unpacking, const void *bytes, size_t size,
                   struct error *err)
{
    uint64_t total = unpacking->output_bytes + size;
    int status;

    if (unpacking->expected_bytes != 0 && total > unpacking->expected_bytes)
        return error_set(err, -EILSEQ,
                         "%s stream holds more than the %" PRIu64 " bytes it promises",
                         unpacking->codec, unpacking->expected_bytes);
    if (total > unpacking->limit_bytes)
        return error_set(err, -EFBIG,
                         "%s stream holds more than %" PRIu64 " bytes, the most that is "
                         "unpacked",
                         unpacking->codec, unpacking->limit_bytes);
    if (size == 0)
        return 0;
    status = unpacking->sink(unpacking->context, bytes, size, err);
    if (status < 0)
        return status;
    unpacking->output_bytes = total;
    return 0;
}

/* Behind the stream there is nothing, or the size that Linux's build appends. */
static int check_trailer(struct unpacking *unpacking, struct error *err)
{
    uint8_t trailer[SIZE_TRAILER_BYTES];
    uint64_t left = unpacking_left(unpacking);
    int status;

    if (left == 0)
        return 0;
    if (left != sizeof(trailer))
        return error_set(err, -EILSEQ,
                         "%" PRIu64 " bytes follow the %s stream at byte %" PRIu64
                         "; only the 4 of its unpacked size may",
                         left, unpacking->codec, unpacking->position);
    status = unpacking_take(unpacking, trailer, sizeof(trailer), err);
    if (status < 0)
        return status;
    if (load_le32(trailer) != (uint32_t)unpacking->output_bytes)
        return error_set(err, -EILSEQ,
                         "%s stream holds %" PRIu64 " bytes, but the size behind it says "
                         "%" PRIu32,
                         unpacking->codec, unpacking->output_bytes, load_le32(trailer));
    return 0;
}

int image_unpack(const struct source *source, uint64_t offset, uint64_t size_bytes,
                 enum image_codec codec, uint64_t unpacked_bytes, uint64_t limit_bytes,
                 image_sink *sink, void *context, struct error *err)
{
    struct unpacking unpacking = {
        .codec = image_codec_name(codec),
        .source = source,
        .position = offset,
        .end = offset + size_bytes,
        .expected_bytes = unpacked_bytes,
        .limit_bytes = limit_bytes,
        .sink = sink,
        .context = context,
    };
    int status;

    if (codecs[codec].unpack == NULL)
        return error_set(err, -ENOTSUP, "payload is not compressed in any known way");
    if (!range_within(offset, size_bytes, source->size_bytes))
        return error_set(err, -ERANGE,
                         "%s stream of %" PRIu64 " bytes at byte %" PRIu64
                         " does not lie in the file, which ends at byte %" PRIu64,
                         unpacking.codec, size_bytes, offset, source->size_bytes);
    status = codecs[codec].unpack(&unpacking, err);
    if (status < 0)
        return status;
    status = check_trailer(&unpacking, err);
    if (status < 0)
        return status;
    if (unpacked_bytes != 0 && unpacking.output_bytes != unpacked_bytes)
        return error_set(err, -EILSEQ,
                         "%s stream holds %" PRIu64 " bytes, but %" PRIu64
                         " were promised",
                         unpacking.codec, unpacking.output_bytes, unpacked_bytes);
    return 0;
}
