/* SPDX-License-Identifier: Apache-2.0 */
/* Packs by the same libraries that unpack; see packers.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bzlib.h>
#include <lz4.h>
#include <lz4frame.h>
#include <lzma.h>
#include <lzo/lzo1x.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/bytes.h"
#include "packers.h"

#define LZ4_BLOCK_BYTES ((size_t)8 << 20)
#define LZO_BLOCK_BYTES ((size_t)256 << 10)

static size_t pack_gzip(uint8_t *bytes, size_t size, uint8_t *packed)
{
    z_stream stream = {.next_in = bytes,
                       .avail_in = (uInt)size,
                       .next_out = packed,
                       .avail_out = (uInt)PACKED_BYTES_MAX};

    assert_int_equal(
        deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY),
        Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&stream), Z_OK);
    return stream.total_out;
}

static size_t pack_bzip2(uint8_t *bytes, size_t size, uint8_t *packed)
{
    unsigned int packed_bytes = (unsigned int)PACKED_BYTES_MAX;

    assert_int_equal(BZ2_bzBuffToBuffCompress((char *)packed, &packed_bytes,
                                              (char *)bytes, (unsigned int)size, 1, 0, 0),
                     BZ_OK);
    return packed_bytes;
}

static size_t run_lzma(lzma_stream *stream, const uint8_t *bytes, size_t size,
                       uint8_t *packed)
{
    stream->next_in = bytes;
    stream->avail_in = size;
    stream->next_out = packed;
    stream->avail_out = PACKED_BYTES_MAX;
    assert_int_equal(lzma_code(stream, LZMA_FINISH), LZMA_STREAM_END);
    lzma_end(stream);
    return stream->total_out;
}

static size_t pack_lzma(uint8_t *bytes, size_t size, uint8_t *packed)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_options_lzma options;

    assert_false(lzma_lzma_preset(&options, 1));
    assert_int_equal(lzma_alone_encoder(&stream, &options), LZMA_OK);
    return run_lzma(&stream, bytes, size, packed);
}

/* With the filters and the check of Linux's scripts/xz_wrap.sh for x86. */
static size_t pack_xz(uint8_t *bytes, size_t size, uint8_t *packed)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_options_lzma options;
    const lzma_filter filters[] = {
        {LZMA_FILTER_X86, NULL},
        {LZMA_FILTER_LZMA2, &options},
        {LZMA_VLI_UNKNOWN, NULL},
    };

    assert_false(lzma_lzma_preset(&options, 1));
    assert_int_equal(lzma_stream_encoder(&stream, filters, LZMA_CHECK_CRC32), LZMA_OK);
    return run_lzma(&stream, bytes, size, packed);
}

static size_t pack_zstd(uint8_t *bytes, size_t size, uint8_t *packed)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t packed_bytes;

    assert_non_null(context);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)));
    packed_bytes = ZSTD_compress2(context, packed, PACKED_BYTES_MAX, bytes, size);
    assert_false(ZSTD_isError(packed_bytes));
    (void)ZSTD_freeCCtx(context);
    return packed_bytes;
}

/* lz4 -l: magic, then blocks of 8 MiB. */
static size_t pack_lz4(uint8_t *bytes, size_t size, uint8_t *packed)
{
    uint8_t *to = packed + 4;

    store_le32(packed, 0x184c2102); /* magic of the legacy frame */
    for (size_t done = 0; done < size; done += LZ4_BLOCK_BYTES) {
        int block = LZ4_compress_default((const char *)bytes + done, (char *)to + 4,
                                         (int)min_u64(size - done, LZ4_BLOCK_BYTES),
                                         LZ4_COMPRESSBOUND(8 << 20));

        assert_true(block > 0);
        store_le32(to, (uint32_t)block);
        to += 4 + block;
    }
    return (size_t)(to - packed);
}

/* lz4: blocks of 64 KiB, with a checksum of the content. */
static size_t pack_lz4_frame(uint8_t *bytes, size_t size, uint8_t *packed)
{
    LZ4F_preferences_t preferences = LZ4F_INIT_PREFERENCES;
    size_t packed_bytes;

    preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
    packed_bytes =
        LZ4F_compressFrame(packed, PACKED_BYTES_MAX, bytes, size, &preferences);
    assert_false(LZ4F_isError(packed_bytes));
    return packed_bytes;
}

static uint8_t *put_be32(uint8_t *to, uint32_t value)
{
    store_le32(to, __builtin_bswap32(value));
    return to + 4;
}

/* Magic; versions 1.04, library 2.10, needed 0.940; method, level, flags (Adler-32 of the
 * content), mode, two times, name length 0, Adler-32 from the version on. */
static uint8_t *put_lzop_header(uint8_t *to)
{
    static const uint8_t header[34] = {0x89, 'L',  'Z',  'O',  0,    '\r', '\n',
                                       0x1a, '\n', 0x10, 0x40, 0x20, 0xa0, 0x09,
                                       0x40, 3,    9,    0,    0,    0,    1};

    memcpy(to, header, sizeof(header));
    return put_be32(to + sizeof(header),
                    (uint32_t)adler32(1, header + 9, sizeof(header) - 9));
}

static size_t pack_lzo(uint8_t *bytes, size_t size, uint8_t *packed)
{
    uint8_t *work = malloc(LZO1X_1_MEM_COMPRESS);
    uint8_t *to = put_lzop_header(packed);

    assert_non_null(work);
    for (size_t done = 0; done < size; done += LZO_BLOCK_BYTES) {
        size_t part = min_u64(size - done, LZO_BLOCK_BYTES);
        lzo_uint block = 0;

        assert_int_equal(lzo1x_1_compress(bytes + done, part, to + 12, &block, work),
                         LZO_E_OK);
        if (block >= part) { /* stored */
            memcpy(to + 12, bytes + done, part);
            block = part;
        }
        to = put_be32(to, (uint32_t)part);
        to = put_be32(to, (uint32_t)block);
        to = put_be32(to, (uint32_t)adler32(1, bytes + done, (uInt)part));
        to += block;
    }
    free(work);
    return (size_t)(put_be32(to, 0) - packed);
}

size_t pack(enum image_codec codec, const uint8_t *bytes, size_t size, uint8_t *packed)
{
    static size_t (*const packers[])(uint8_t *, size_t, uint8_t *) = {
        [IMAGE_CODEC_GZIP] = pack_gzip, [IMAGE_CODEC_BZIP2] = pack_bzip2,
        [IMAGE_CODEC_LZMA] = pack_lzma, [IMAGE_CODEC_XZ] = pack_xz,
        [IMAGE_CODEC_LZO] = pack_lzo,   [IMAGE_CODEC_LZ4] = pack_lz4,
        [IMAGE_CODEC_ZSTD] = pack_zstd, [IMAGE_CODEC_LZ4_FRAME] = pack_lz4_frame,
    };
    uint8_t *copy = malloc(size); /* zlib and bzip2 take no const */
    size_t packed_bytes;

    assert_non_null(copy);
    memcpy(copy, bytes, size);
    packed_bytes = packers[codec](copy, size, packed);
    free(copy);
    return packed_bytes;
}
