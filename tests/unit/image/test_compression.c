/* SPDX-License-Identifier: Apache-2.0 */
/* image_unpack: every codec gives back what went in, and nothing bad gets through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "packers.h"

#define NO_LIMIT UINT64_MAX

/* More than one block of lzo (256 KiB), one chunk of output (1 MiB) and, packed, of input
 * (256 KiB). */
#define CONTENT_BYTES ((size_t)1200 << 10)
/* More than one block of lz4. */
#define LARGE_BYTES ((size_t)9 << 20)
/* Small enough for a try with each byte changed. */
#define SMALL_BYTES 3000

/* A stream with room before it, as in a file, and the size behind it. */
#define STREAM_OFFSET 100

struct buffers {
    uint8_t *content; /* LARGE_BYTES */
    uint8_t *file;    /* STREAM_OFFSET + PACKED_BYTES_MAX */
    uint8_t *unpacked;
    size_t unpacked_bytes;
};

static struct buffers buffers;

/* Half text-like, half noise: packs, but not to nothing. */
static void fill_content(uint8_t *to, size_t size)
{
    uint32_t random = 12345;

    for (size_t i = 0; i < size; i++) {
        random = random * 1664525 + 1013904223;
        to[i] = (i & 512) != 0 ? (uint8_t)(random >> 24)
                               : (uint8_t)("call mov ret"[(random >> 24) % 12]);
    }
}

static int allocate(void **state)
{
    (void)state;
    buffers.content = malloc(LARGE_BYTES);
    buffers.file = malloc(STREAM_OFFSET + PACKED_BYTES_MAX + 4);
    buffers.unpacked = malloc(LARGE_BYTES);
    if (buffers.content == NULL || buffers.file == NULL || buffers.unpacked == NULL)
        return -1;
    fill_content(buffers.content, LARGE_BYTES);
    memset(buffers.file, 0xee, STREAM_OFFSET);
    return 0;
}

static int release(void **state)
{
    (void)state;
    free(buffers.content);
    free(buffers.file);
    free(buffers.unpacked);
    return 0;
}

static int collect(void *context, const void *bytes, size_t size, struct error *err)
{
    (void)context;
    (void)err;
    assert_true(range_within(buffers.unpacked_bytes, size, LARGE_BYTES));
    memcpy(buffers.unpacked + buffers.unpacked_bytes, bytes, size);
    buffers.unpacked_bytes += size;
    return 0;
}

/* Unpacks `size` bytes at STREAM_OFFSET of a file that ends there. */
static int unpack(enum image_codec codec, size_t size, uint64_t expected, uint64_t limit,
                  struct error *err)
{
    struct source source = source_from_memory(buffers.file, STREAM_OFFSET + size);

    *err = ERROR_NONE;
    buffers.unpacked_bytes = 0;
    return image_unpack(&source, STREAM_OFFSET, size, codec, expected, limit, collect,
                        NULL, err);
}

static size_t pack_file(enum image_codec codec, size_t content_bytes)
{
    return pack(codec, buffers.content, content_bytes, buffers.file + STREAM_OFFSET);
}

/* Appends the size as Linux's build does; gzip gets none. */
static size_t append_size(enum image_codec codec, size_t packed_bytes, size_t content)
{
    if (codec == IMAGE_CODEC_GZIP)
        return packed_bytes;
    store_le32(buffers.file + STREAM_OFFSET + packed_bytes, (uint32_t)content);
    return packed_bytes + 4;
}

static void assert_unpacks(enum image_codec codec, size_t size, uint64_t expected,
                           size_t content_bytes)
{
    struct error err;

    if (unpack(codec, size, expected, NO_LIMIT, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(buffers.unpacked_bytes, content_bytes);
    assert_memory_equal(buffers.unpacked, buffers.content, content_bytes);
}

static void assert_fails(enum image_codec codec, size_t size, uint64_t expected,
                         uint64_t limit, int code, const char *sentence)
{
    struct error err;

    assert_int_equal(unpack(codec, size, expected, limit, &err), code);
    assert_string_equal(err.text, sentence);
}

static void every_codec_gives_back_the_content(void **state)
{
    (void)state;
    for (enum image_codec codec = IMAGE_CODEC_GZIP; codec <= IMAGE_CODEC_LZ4_FRAME;
         codec++) {
        size_t packed_bytes = pack_file(codec, CONTENT_BYTES);

        assert_int_equal(image_codec_detect(buffers.file + STREAM_OFFSET, 16), codec);
        assert_unpacks(codec, packed_bytes, 0, CONTENT_BYTES);
        packed_bytes = append_size(codec, packed_bytes, CONTENT_BYTES);
        assert_unpacks(codec, packed_bytes, CONTENT_BYTES, CONTENT_BYTES);
    }
}

static void lz4_of_several_blocks_is_unpacked(void **state)
{
    size_t packed_bytes = pack_file(IMAGE_CODEC_LZ4, LARGE_BYTES);

    (void)state;
    packed_bytes = append_size(IMAGE_CODEC_LZ4, packed_bytes, LARGE_BYTES);
    assert_unpacks(IMAGE_CODEC_LZ4, packed_bytes, LARGE_BYTES, LARGE_BYTES);
}

static void output_of_exactly_the_limit_is_allowed(void **state)
{
    size_t packed_bytes = pack_file(IMAGE_CODEC_GZIP, SMALL_BYTES);
    struct error err;

    (void)state;
    assert_int_equal(unpack(IMAGE_CODEC_GZIP, packed_bytes, 0, SMALL_BYTES, &err), 0);
    assert_fails(IMAGE_CODEC_GZIP, packed_bytes, 0, SMALL_BYTES - 1, -EFBIG,
                 "gzip stream holds more than 2999 bytes, the most that is unpacked");
}

static void output_must_have_the_promised_size(void **state)
{
    size_t packed_bytes = pack_file(IMAGE_CODEC_ZSTD, SMALL_BYTES);

    (void)state;
    assert_fails(IMAGE_CODEC_ZSTD, packed_bytes, SMALL_BYTES - 1, NO_LIMIT, -EILSEQ,
                 "zstd stream holds more than the 2999 bytes it promises");
    assert_fails(IMAGE_CODEC_ZSTD, packed_bytes, SMALL_BYTES + 1, NO_LIMIT, -EILSEQ,
                 "zstd stream holds 3000 bytes, but 3001 were promised");
}

static void only_the_size_may_follow_a_stream(void **state)
{
    size_t packed_bytes = pack_file(IMAGE_CODEC_GZIP, SMALL_BYTES);
    char sentence[200];

    (void)state;
    memset(buffers.file + STREAM_OFFSET + packed_bytes, 1, 8);
    (void)snprintf(sentence, sizeof(sentence),
                   "5 bytes follow the gzip stream at byte %zu; only the 4 of its "
                   "unpacked size may",
                   STREAM_OFFSET + packed_bytes);
    assert_fails(IMAGE_CODEC_GZIP, packed_bytes + 5, 0, NO_LIMIT, -EILSEQ, sentence);
    assert_fails(IMAGE_CODEC_GZIP, packed_bytes + 4, 0, NO_LIMIT, -EILSEQ,
                 "gzip stream holds 3000 bytes, but the size behind it says 16843009");
}

static int refuse(void *context, const void *bytes, size_t size, struct error *err)
{
    (void)context;
    (void)bytes;
    (void)size;
    return error_set(err, -ENOSPC, "disk full");
}

static void a_failing_sink_stops_it(void **state)
{
    (void)state;
    for (enum image_codec codec = IMAGE_CODEC_GZIP; codec <= IMAGE_CODEC_LZ4_FRAME;
         codec++) {
        size_t packed_bytes = pack_file(codec, SMALL_BYTES);
        struct source source =
            source_from_memory(buffers.file, STREAM_OFFSET + packed_bytes);
        struct error err = ERROR_NONE;

        assert_int_equal(image_unpack(&source, STREAM_OFFSET, packed_bytes, codec, 0,
                                      NO_LIMIT, refuse, NULL, &err),
                         -ENOSPC);
        assert_string_equal(err.text, "disk full");
    }
}

static void a_stream_outside_the_file_is_refused(void **state)
{
    struct source source = source_from_memory(buffers.file, 200);
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(image_unpack(&source, UINT64_MAX, 10, IMAGE_CODEC_XZ, 0, NO_LIMIT,
                                  collect, NULL, &err),
                     -ERANGE);
    assert_string_equal(err.text, "xz stream of 10 bytes at byte 18446744073709551615 "
                                  "does not lie in the file, which ends at byte 200");
    err = ERROR_NONE;
    assert_int_equal(
        image_unpack(&source, 0, 10, IMAGE_CODEC_NONE, 0, NO_LIMIT, collect, NULL, &err),
        -ENOTSUP);
    assert_string_equal(err.text, "payload is not compressed in any known way");
}

/* ---- damage: one changed byte, one sentence */

static const struct {
    enum image_codec codec;
    uint32_t offset; /* from the stream's start */
    uint8_t value;
    const char *sentence;
} damages[] = {
    {IMAGE_CODEC_GZIP, 2, 9,
     "gzip stream is damaged at byte 104: unknown compression method"},
    {IMAGE_CODEC_LZ4, 7, 0x7f,
     "lz4 stream is damaged at byte 104: impossible block size"},
    {IMAGE_CODEC_LZO, 9, 0x08,
     "lzo stream is damaged at byte 100: header version is older than 0.940"},
    {IMAGE_CODEC_LZO, 15, 4,
     "lzo stream is damaged at byte 100: unknown compression method"},
    {IMAGE_CODEC_LZO, 19, 4,
     "lzo stream is damaged at byte 100: extra field, parts or filter, which kernels do "
     "not use"},
    {IMAGE_CODEC_LZO, 25, 1,
     "lzo stream is damaged at byte 100: header checksum does not match"},
    {IMAGE_CODEC_LZO, 39, 5, "lzo stream is damaged at byte 138: impossible block size"},
    {IMAGE_CODEC_LZO, 46, 0x5a,
     "lzo stream is damaged at byte 138: block checksum does not match"},
    {IMAGE_CODEC_XZ, 6, 1, "xz stream is damaged at byte 112: corrupt data"},
};

static void each_damage_is_named_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
        size_t packed_bytes = pack_file(damages[i].codec, SMALL_BYTES);

        buffers.file[STREAM_OFFSET + damages[i].offset] = damages[i].value;
        assert_fails(damages[i].codec, packed_bytes, 0, NO_LIMIT, -EILSEQ,
                     damages[i].sentence);
    }
}

/* Streams of which no byte can change without notice, because they carry checksums. */
static bool has_checksum(enum image_codec codec)
{
    return codec != IMAGE_CODEC_LZMA && codec != IMAGE_CODEC_LZ4;
}

/* A changed byte ends in a sentence, or (in a field that says nothing about the content,
 * like gzip's time) in the same content. */
static void no_changed_byte_goes_unnoticed(void **state)
{
    (void)state;
    for (enum image_codec codec = IMAGE_CODEC_GZIP; codec <= IMAGE_CODEC_LZ4_FRAME;
         codec++) {
        size_t packed_bytes = pack_file(codec, SMALL_BYTES);

        for (size_t i = 0; i < packed_bytes; i += 7) {
            struct error err;

            buffers.file[STREAM_OFFSET + i] ^= 0xff;
            if (unpack(codec, packed_bytes, SMALL_BYTES, NO_LIMIT, &err) < 0) {
                assert_true(err.text[0] != '\0');
            } else if (has_checksum(codec)) {
                assert_int_equal(buffers.unpacked_bytes, SMALL_BYTES);
                assert_memory_equal(buffers.unpacked, buffers.content, SMALL_BYTES);
            }
            buffers.file[STREAM_OFFSET + i] ^= 0xff;
        }
    }
}

static void no_truncation_goes_unnoticed(void **state)
{
    (void)state;
    for (enum image_codec codec = IMAGE_CODEC_GZIP; codec <= IMAGE_CODEC_LZ4_FRAME;
         codec++) {
        size_t packed_bytes = pack_file(codec, SMALL_BYTES);

        for (size_t size = 0; size < packed_bytes; size += 11) {
            struct error err;

            assert_true(unpack(codec, size, SMALL_BYTES, NO_LIMIT, &err) < 0);
            assert_true(err.text[0] != '\0');
        }
    }
}

static void truncation_is_named_with_its_place(void **state)
{
    (void)state;
    for (enum image_codec codec = IMAGE_CODEC_GZIP; codec <= IMAGE_CODEC_LZ4_FRAME;
         codec++) {
        size_t packed_bytes = pack_file(codec, SMALL_BYTES);
        char sentence[200];

        (void)snprintf(
            sentence, sizeof(sentence),
            "%s stream is truncated: it goes on where its bytes end, at byte %zu",
            image_codec_name(codec), STREAM_OFFSET + packed_bytes - 10);
        assert_fails(codec, packed_bytes - 10, SMALL_BYTES, NO_LIMIT, -ENODATA, sentence);
    }
}

/* A dictionary size of 4 GiB in the header must not be allocated. */
static void lzma_that_wants_too_much_memory_is_refused(void **state)
{
    size_t packed_bytes = pack_file(IMAGE_CODEC_LZMA, SMALL_BYTES);

    (void)state;
    memset(buffers.file + STREAM_OFFSET + 1, 0xff, 4);
    assert_fails(IMAGE_CODEC_LZMA, packed_bytes, 0, NO_LIMIT, -EILSEQ,
                 "lzma stream is damaged at byte 113: needs more than 256 MiB of memory");
}

static void a_mark_alone_is_detected_a_part_of_it_is_not(void **state)
{
    static const uint8_t xz[] = {0xfd, '7', 'z', 'X', 'Z', 0x00};

    (void)state;
    assert_int_equal(image_codec_detect(xz, sizeof(xz)), IMAGE_CODEC_XZ);
    assert_int_equal(image_codec_detect(xz, sizeof(xz) - 1), IMAGE_CODEC_NONE);
    assert_int_equal(image_codec_detect(xz, 0), IMAGE_CODEC_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_gives_back_the_content),
        cmocka_unit_test(lz4_of_several_blocks_is_unpacked),
        cmocka_unit_test(output_of_exactly_the_limit_is_allowed),
        cmocka_unit_test(output_must_have_the_promised_size),
        cmocka_unit_test(only_the_size_may_follow_a_stream),
        cmocka_unit_test(a_failing_sink_stops_it),
        cmocka_unit_test(a_stream_outside_the_file_is_refused),
        cmocka_unit_test(each_damage_is_named_with_its_place),
        cmocka_unit_test(no_changed_byte_goes_unnoticed),
        cmocka_unit_test(no_truncation_goes_unnoticed),
        cmocka_unit_test(truncation_is_named_with_its_place),
        cmocka_unit_test(lzma_that_wants_too_much_memory_is_refused),
        cmocka_unit_test(a_mark_alone_is_detected_a_part_of_it_is_not),
    };

    return cmocka_run_group_tests(tests, allocate, release);
}
