/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codecs whose library unpacks one block and leaves the container to its caller.
 *
 * Sources: LZ4 doc/lz4_Frame_format.md ("Legacy frame"), lzop's conf.h and lzop.c for the
 * container, Linux lib/decompress_unlz4.c and decompress_unlzo.c for what kernels use.
 */
#include <errno.h>
#include <lz4.h>
#include <lzo/lzo1x.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/bytes.h"
#include "image/compression_private.h"

/* Input and output of one block. */
struct block {
    uint8_t *packed;
    uint8_t *unpacked;
};

static void block_free(struct block *block)
{
    free(block->packed);
    free(block->unpacked);
}

static int block_allocate(struct block *block, size_t packed_bytes, size_t unpacked_bytes,
                          struct error *err)
{
    block->packed = malloc(packed_bytes);
    block->unpacked = malloc(unpacked_bytes);
    if (block->packed == NULL || block->unpacked == NULL)
        return error_set(err, -ENOMEM, "out of memory for unpacking");
    return 0;
}

/* ---- LZ4 legacy frame: magic, then blocks of {size, bytes} up to the end of the file */

#define LZ4_MAGIC_BYTES 4
#define LZ4_UNPACKED_BLOCK_BYTES (8 << 20)
#define LZ4_PACKED_BLOCK_BYTES LZ4_COMPRESSBOUND(LZ4_UNPACKED_BLOCK_BYTES)

static int unpack_lz4_block(struct unpacking *unpacking, struct block *block,
                            struct error *err)
{
    uint64_t start = unpacking->position;
    uint8_t size[4];
    uint32_t packed_bytes;
    int unpacked_bytes;
    int status = unpacking_take(unpacking, size, sizeof(size), err);

    if (status < 0)
        return status;
    packed_bytes = load_le32(size);
    if (packed_bytes == 0 || packed_bytes > LZ4_PACKED_BLOCK_BYTES)
        return unpacking_damaged(unpacking, start, "impossible block size", err);
    status = unpacking_take(unpacking, block->packed, packed_bytes, err);
    if (status < 0)
        return status;
    unpacked_bytes =
        LZ4_decompress_safe((const char *)block->packed, (char *)block->unpacked,
                            (int)packed_bytes, LZ4_UNPACKED_BLOCK_BYTES);
    if (unpacked_bytes < 0)
        return unpacking_damaged(unpacking, start, "corrupt block", err);
    return unpacking_emit(unpacking, block->unpacked, (size_t)unpacked_bytes, err);
}

/* The frame has no end mark. What is too short for a block is the size that Linux
 * appends; as a block size it would lead astray. */
static int unpack_lz4_blocks(struct unpacking *unpacking, struct block *block,
                             struct error *err)
{
    int status = 0;

    while (status == 0 && unpacking_left(unpacking) > sizeof(uint32_t))
        status = unpack_lz4_block(unpacking, block, err);
    return status;
}

int unpack_lz4(struct unpacking *unpacking, struct error *err)
{
    struct block block = {.packed = NULL};
    uint8_t magic[LZ4_MAGIC_BYTES]; /* image_codec_detect has seen it */
    int status = unpacking_take(unpacking, magic, sizeof(magic), err);

    if (status < 0)
        return status;
    status =
        block_allocate(&block, LZ4_PACKED_BLOCK_BYTES, LZ4_UNPACKED_BLOCK_BYTES, err);
    if (status == 0)
        status = unpack_lz4_blocks(unpacking, &block, err);
    block_free(&block);
    return status;
}

/* ---- LZO as lzop packs it: header, then blocks of {sizes, checksums, bytes}, then 0 */

#define LZOP_MAGIC_BYTES 9
#define LZOP_FIXED_BYTES 25          /* from the version to the length of the name */
#define LZOP_OLDEST_VERSION 0x0940   /* first with the fields below */
#define LZOP_BLOCK_BYTES (256 << 10) /* LZO_BLOCK_SIZE of Linux */

/* Offsets in the fixed part; all fields are big-endian. */
#define LZOP_VERSION 0
#define LZOP_METHOD 6
#define LZOP_FLAGS 8
#define LZOP_NAME_LENGTH 24

/* LZO1X-1, LZO1X-1(15), LZO1X-999: one decoder for all */
#define LZOP_FIRST_METHOD 1
#define LZOP_LAST_METHOD 3

#define LZOP_ADLER32_UNPACKED 0x1
#define LZOP_ADLER32_PACKED 0x2
#define LZOP_EXTRA_FIELD 0x40
#define LZOP_CRC32_UNPACKED 0x100
#define LZOP_CRC32_PACKED 0x200
#define LZOP_MULTIPART 0x400
#define LZOP_FILTER 0x800
#define LZOP_HEADER_CRC32 0x1000

static int take_be32(struct unpacking *unpacking, uint32_t *value, struct error *err)
{
    uint8_t bytes[4];
    int status = unpacking_take(unpacking, bytes, sizeof(bytes), err);

    if (status == 0)
        *value = load_be32(bytes);
    return status;
}

static const char *lzop_header_problem(const uint8_t *fixed)
{
    uint32_t flags = load_be32(fixed + LZOP_FLAGS);

    if (__builtin_bswap16(load_le16(fixed + LZOP_VERSION)) < LZOP_OLDEST_VERSION)
        return "header version is older than 0.940";
    if (fixed[LZOP_METHOD] < LZOP_FIRST_METHOD || fixed[LZOP_METHOD] > LZOP_LAST_METHOD)
        return "unknown compression method";
    if ((flags & (LZOP_EXTRA_FIELD | LZOP_MULTIPART | LZOP_FILTER)) != 0)
        return "extra field, parts or filter, which kernels do not use";
    return NULL;
}

static int take_lzop_header(struct unpacking *unpacking, uint32_t *flags,
                            struct error *err)
{
    uint64_t start = unpacking->position;
    uint8_t magic[LZOP_MAGIC_BYTES]; /* image_codec_detect has seen it */
    uint8_t header[LZOP_FIXED_BYTES + UINT8_MAX] = {0};
    size_t header_bytes = LZOP_FIXED_BYTES;
    const char *problem;
    uint32_t checksum = 0;
    int status = unpacking_take(unpacking, magic, sizeof(magic), err);

    if (status == 0)
        status = unpacking_take(unpacking, header, LZOP_FIXED_BYTES, err);
    if (status < 0)
        return status;
    problem = lzop_header_problem(header);
    if (problem != NULL)
        return unpacking_damaged(unpacking, start, problem, err);
    header_bytes += header[LZOP_NAME_LENGTH];
    status = unpacking_take(unpacking, header + LZOP_FIXED_BYTES,
                            header[LZOP_NAME_LENGTH], err);
    if (status == 0)
        status = take_be32(unpacking, &checksum, err);
    if (status < 0)
        return status;
    *flags = load_be32(header + LZOP_FLAGS);
    if (checksum != ((*flags & LZOP_HEADER_CRC32) != 0
                         ? crc32_z(0, header, header_bytes)
                         : adler32_z(1, header, header_bytes)))
        return unpacking_damaged(unpacking, start, "header checksum does not match", err);
    return 0;
}

/* Sizes and checksums in front of a block's bytes. */
struct lzop_block {
    uint32_t unpacked_bytes; /* 0: end of the stream */
    uint32_t packed_bytes;   /* == unpacked_bytes: stored */
    uint32_t adler32;        /* of the unpacked bytes, if flagged */
    uint32_t crc32;          /* the same */
};

static int take_lzop_block(struct unpacking *unpacking, uint32_t flags,
                           struct lzop_block *block, struct error *err)
{
    uint64_t start = unpacking->position;
    uint32_t ignored; /* of the packed bytes: says no more than the two others */
    bool packed;
    int status = take_be32(unpacking, &block->unpacked_bytes, err);

    if (status < 0 || block->unpacked_bytes == 0)
        return status;
    status = take_be32(unpacking, &block->packed_bytes, err);
    if (status < 0)
        return status;
    if (block->unpacked_bytes > LZOP_BLOCK_BYTES || block->packed_bytes == 0 ||
        block->packed_bytes > block->unpacked_bytes)
        return unpacking_damaged(unpacking, start, "impossible block size", err);
    packed = block->packed_bytes < block->unpacked_bytes;
    if ((flags & LZOP_ADLER32_UNPACKED) != 0)
        status = take_be32(unpacking, &block->adler32, err);
    if (status == 0 && (flags & LZOP_CRC32_UNPACKED) != 0)
        status = take_be32(unpacking, &block->crc32, err);
    if (status == 0 && packed && (flags & LZOP_ADLER32_PACKED) != 0)
        status = take_be32(unpacking, &ignored, err);
    if (status == 0 && packed && (flags & LZOP_CRC32_PACKED) != 0)
        status = take_be32(unpacking, &ignored, err);
    return status;
}

/* Unpacks the bytes of a block; the result is where *bytes points. */
static const char *lzop_block_problem(const struct lzop_block *header, uint32_t flags,
                                      const struct block *block, const uint8_t **bytes)
{
    lzo_uint unpacked_bytes = header->unpacked_bytes;

    *bytes = block->packed;
    if (header->packed_bytes < header->unpacked_bytes) {
        *bytes = block->unpacked;
        if (lzo1x_decompress_safe(block->packed, header->packed_bytes, block->unpacked,
                                  &unpacked_bytes, NULL) != LZO_E_OK ||
            unpacked_bytes != header->unpacked_bytes)
            return "corrupt block";
    }
    if ((flags & LZOP_ADLER32_UNPACKED) != 0 &&
        adler32_z(1, *bytes, unpacked_bytes) != header->adler32)
        return "block checksum does not match";
    if ((flags & LZOP_CRC32_UNPACKED) != 0 &&
        crc32_z(0, *bytes, unpacked_bytes) != header->crc32)
        return "block checksum does not match";
    return NULL;
}

static int unpack_lzop_block(struct unpacking *unpacking, uint32_t flags,
                             struct block *block, bool *ended, struct error *err)
{
    uint64_t start = unpacking->position;
    struct lzop_block header = {.unpacked_bytes = 0};
    const uint8_t *bytes;
    const char *problem;
    int status = take_lzop_block(unpacking, flags, &header, err);

    *ended = header.unpacked_bytes == 0;
    if (status < 0 || *ended)
        return status;
    status = unpacking_take(unpacking, block->packed, header.packed_bytes, err);
    if (status < 0)
        return status;
    problem = lzop_block_problem(&header, flags, block, &bytes);
    if (problem != NULL)
        return unpacking_damaged(unpacking, start, problem, err);
    return unpacking_emit(unpacking, bytes, header.unpacked_bytes, err);
}

static int unpack_lzop_blocks(struct unpacking *unpacking, uint32_t flags,
                              struct block *block, struct error *err)
{
    bool ended = false;
    int status = 0;

    while (status == 0 && !ended)
        status = unpack_lzop_block(unpacking, flags, block, &ended, err);
    return status;
}

int unpack_lzo(struct unpacking *unpacking, struct error *err)
{
    struct block block = {.packed = NULL};
    uint32_t flags = 0;
    int status = take_lzop_header(unpacking, &flags, err);

    if (status < 0)
        return status;
    status = block_allocate(&block, LZOP_BLOCK_BYTES, LZOP_BLOCK_BYTES, err);
    if (status == 0)
        status = unpack_lzop_blocks(unpacking, flags, &block, err);
    block_free(&block);
    return status;
}
