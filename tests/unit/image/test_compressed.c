/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are compressed as a whole: told from everything else that is compressed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "builders.h"
#include "packers.h"

/* Several times what is unpacked at once. */
#define CONTENT_BYTES ((size_t)4 << 20)

/* What is packed, and the packed file. */
static struct {
    uint8_t content[CONTENT_BYTES];
    uint8_t file[PACKED_BYTES_MAX];
} buffers;

/* Packs a file that begins with these bytes and goes on with zeros. */
static size_t pack_content(enum image_codec codec, const void *head, size_t head_bytes)
{
    memset(buffers.content, 0, sizeof(buffers.content));
    memcpy(buffers.content, head, head_bytes);
    return pack(codec, buffers.content, sizeof(buffers.content), buffers.file);
}

static size_t pack_elf(enum image_codec codec)
{
    struct elf32_file elf;

    elf32_file_init(&elf);
    return pack_content(codec, &elf, sizeof(elf));
}

static void tells_an_elf_in_every_codec(void **state)
{
    (void)state;
    for (enum image_codec codec = IMAGE_CODEC_GZIP; codec <= IMAGE_CODEC_LZ4_FRAME;
         codec++) {
        size_t size_bytes = pack_elf(codec);
        struct image image;

        assert_described(buffers.file, size_bytes, &image);
        assert_int_equal(image.format, IMAGE_COMPRESSED);
        assert_int_equal(image.payload.codec, codec);
        assert_int_equal(image.payload.offset, 0);
        assert_int_equal(image.payload.size_bytes, size_bytes);
        assert_int_equal(image.payload.unpacked_bytes, 0);
    }
}

static void tells_a_flat_multiboot_kernel(void **state)
{
    static const uint32_t header[] = {
        0x1badb002, 0x10000,  -(0x1badb002u + 0x10000), /* magic, flag 16, checksum */
        0x100000,   0x100000, 0,                        /* header, load, load end */
        0,          0x100020,                           /* bss end, entry */
    };
    size_t size_bytes;
    struct image image;

    (void)state;
    size_bytes = pack_content(IMAGE_CODEC_GZIP, header, sizeof(header));
    assert_described(buffers.file, size_bytes, &image);
    assert_int_equal(image.format, IMAGE_COMPRESSED);
    assert_false(image.multiboot1.present); /* it is that of the file inside */
}

static void tells_a_bzimage(void **state)
{
    struct bzimage_file bzimage;
    size_t size_bytes;
    struct image image;

    (void)state;
    bzimage_file_init(&bzimage);
    size_bytes = pack_content(IMAGE_CODEC_XZ, bzimage.bytes, sizeof(bzimage.bytes));
    assert_described(buffers.file, size_bytes, &image);
    assert_int_equal(image.format, IMAGE_COMPRESSED);
}

static void refuses_what_holds_no_kernel(void **state)
{
    size_t size_bytes;

    (void)state;
    size_bytes = pack_content(IMAGE_CODEC_GZIP, "070701", 6);
    assert_refused(buffers.file, size_bytes,
                   "is gzip-compressed data, not a kernel; unpack it first");
    size_bytes = pack_content(IMAGE_CODEC_ZSTD, "", 0);
    assert_refused(buffers.file, size_bytes,
                   "is zstd-compressed data, not a kernel; unpack it first");
}

static void refuses_a_kernel_that_is_compressed_twice(void **state)
{
    uint8_t *once = malloc(PACKED_BYTES_MAX);
    size_t size_bytes = pack_elf(IMAGE_CODEC_XZ);

    (void)state;
    assert_non_null(once);
    memcpy(once, buffers.file, size_bytes);
    size_bytes = pack(IMAGE_CODEC_GZIP, once, size_bytes, buffers.file);
    assert_refused(buffers.file, size_bytes,
                   "is gzip-compressed data, not a kernel; unpack it first");
    free(once);
}

/* Whoever unpacks it all finds the damage; here it is still a kernel. */
static void damage_behind_the_head_is_not_looked_for(void **state)
{
    size_t size_bytes = pack_elf(IMAGE_CODEC_GZIP);
    struct image image;

    (void)state;
    buffers.file[size_bytes - 8] ^= 1; /* gzip's CRC */
    assert_described(buffers.file, size_bytes, &image);
    assert_int_equal(image.format, IMAGE_COMPRESSED);
}

static void every_truncation_is_a_kernel_or_refused(void **state)
{
    size_t whole_bytes = pack_elf(IMAGE_CODEC_ZSTD);

    (void)state;
    for (size_t size_bytes = 1; size_bytes < whole_bytes; size_bytes++) {
        struct source source = source_from_memory(buffers.file, size_bytes);
        struct error err = ERROR_NONE;
        struct image image;

        if (image_describe(&source, &image, &err) < 0)
            assert_true(err.text[0] != '\0');
        else
            assert_int_equal(image.format, IMAGE_COMPRESSED);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_an_elf_in_every_codec),
        cmocka_unit_test(tells_a_flat_multiboot_kernel),
        cmocka_unit_test(tells_a_bzimage),
        cmocka_unit_test(refuses_what_holds_no_kernel),
        cmocka_unit_test(refuses_a_kernel_that_is_compressed_twice),
        cmocka_unit_test(damage_behind_the_head_is_not_looked_for),
        cmocka_unit_test(every_truncation_is_a_kernel_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
