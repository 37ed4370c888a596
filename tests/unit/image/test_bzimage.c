/* SPDX-License-Identifier: Apache-2.0 */
/* bzImages: every field at every age of the boot protocol, and damaged headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "builders.h"

/* syssize counts in these. */
#define SYSSIZE_UNIT_BYTES 16

static struct image_payload describe_version(uint16_t version,
                                             struct image_bzimage *bzimage)
{
    struct bzimage_file file;
    struct image image;

    bzimage_file_init(&file);
    store_le16(file.bytes + 0x206, version);
    assert_described(file.bytes, sizeof(file.bytes), &image);
    assert_int_equal(image.format, IMAGE_BZIMAGE);
    assert_int_equal(image.bzimage.version, version);
    *bzimage = image.bzimage;
    return image.payload;
}

static void reads_all_fields_of_2_15(void **state)
{
    struct image_bzimage bzimage;
    struct image_payload payload;

    (void)state;
    payload = describe_version(0x020f, &bzimage);
    assert_int_equal(bzimage.loadflags, 1);
    assert_int_equal(bzimage.xloadflags, 0x7f);
    assert_int_equal(bzimage.setup_bytes, 1536);
    assert_int_equal(bzimage.kernel_bytes, 1024);
    assert_int_equal(bzimage.header_end, 0x26c);
    assert_int_equal(bzimage.cmdline_limit, 2047);
    assert_int_equal(bzimage.initrd_last_byte, 0x7fffffff);
    assert_true(bzimage.relocatable);
    assert_int_equal(bzimage.alignment, 0x200000);
    assert_int_equal(bzimage.preferred_gpa, 0x1000000);
    assert_int_equal(bzimage.init_bytes, 0x20000);
    assert_int_equal(payload.offset, 1536 + 64);
    assert_int_equal(payload.size_bytes, 512);
    assert_int_equal(payload.codec, IMAGE_CODEC_XZ);
    assert_int_equal(payload.unpacked_bytes, 123456);
    assert_string_equal(bzimage.kernel_version, "6.1.0-test (a@b)");
}

static void takes_setup_sects_0_for_4(void **state)
{
    uint8_t bytes[5 * 512 + BZIMAGE_KERNEL_BYTES] = {0};
    struct bzimage_file file;
    struct image image;

    (void)state;
    bzimage_file_init(&file);
    memcpy(bytes, file.bytes, BZIMAGE_SETUP_BYTES);
    bytes[0x1f1] = 0;
    assert_described(bytes, sizeof(bytes), &image);
    assert_int_equal(image.bzimage.setup_bytes, 5 * 512);
    assert_int_equal(image.bzimage.kernel_bytes, BZIMAGE_KERNEL_BYTES);
}

static void ignores_fields_younger_than_the_protocol(void **state)
{
    struct image_bzimage before;
    struct image_bzimage since;
    struct image_payload payload;

    (void)state;
    (void)describe_version(0x0202, &before);
    (void)describe_version(0x0203, &since);
    assert_int_equal(before.initrd_last_byte, 0x37ffffff);
    assert_int_equal(since.initrd_last_byte, 0x7fffffff);

    (void)describe_version(0x0204, &before);
    (void)describe_version(0x0205, &since);
    assert_false(before.relocatable);
    assert_int_equal(before.alignment, 4096);
    assert_true(since.relocatable);
    assert_int_equal(since.alignment, 0x200000);

    (void)describe_version(0x0205, &before);
    (void)describe_version(0x0206, &since);
    assert_int_equal(before.cmdline_limit, 255);
    assert_int_equal(since.cmdline_limit, 2047);

    payload = describe_version(0x0207, &before);
    assert_int_equal(payload.size_bytes, 0);
    assert_int_equal(payload.codec, IMAGE_CODEC_NONE);
    payload = describe_version(0x0208, &since);
    assert_int_equal(payload.size_bytes, 512);

    (void)describe_version(0x0209, &before);
    (void)describe_version(0x020a, &since);
    assert_int_equal(before.preferred_gpa, 0x100000);
    assert_int_equal(before.init_bytes, 4 * BZIMAGE_KERNEL_BYTES);
    assert_int_equal(since.preferred_gpa, 0x1000000);
    assert_int_equal(since.init_bytes, 0x20000);

    (void)describe_version(0x020b, &before);
    (void)describe_version(0x020c, &since);
    assert_int_equal(before.xloadflags, 0);
    assert_int_equal(since.xloadflags, 0x7f);
}

static void reads_syssize_as_16_bits_before_2_04(void **state)
{
    struct bzimage_file file;
    struct image image;

    (void)state;
    bzimage_file_init(&file);
    store_le16(file.bytes + 0x1f6, 0xffff); /* swap_dev then */
    store_le16(file.bytes + 0x206, 0x0203);
    assert_described(file.bytes, sizeof(file.bytes), &image);
}

static void may_end_inside_the_last_unit_of_syssize(void **state)
{
    struct bzimage_file file;
    struct image image;

    (void)state;
    bzimage_file_init(&file);
    assert_described(file.bytes, sizeof(file.bytes) - (SYSSIZE_UNIT_BYTES - 1), &image);
    assert_int_equal(image.bzimage.kernel_bytes,
                     BZIMAGE_KERNEL_BYTES - (SYSSIZE_UNIT_BYTES - 1));
}

static void init_size_covers_the_kernel_itself(void **state)
{
    struct bzimage_file file;
    struct image image;

    (void)state;
    bzimage_file_init(&file);
    store_le32(file.bytes + 0x260, 16);
    assert_described(file.bytes, sizeof(file.bytes), &image);
    assert_int_equal(image.bzimage.init_bytes, BZIMAGE_KERNEL_BYTES);
}

static void does_without_a_payload(void **state)
{
    struct bzimage_file file;
    struct image image;

    (void)state;
    bzimage_file_init(&file);
    store_le32(file.bytes + 0x24c, 0);
    assert_described(file.bytes, sizeof(file.bytes), &image);
    assert_int_equal(image.payload.size_bytes, 0);
    assert_int_equal(image.payload.codec, IMAGE_CODEC_NONE);
    assert_int_equal(image.payload.unpacked_bytes, 0);
}

static void takes_no_size_from_an_unknown_payload(void **state)
{
    struct bzimage_file file;
    struct image image;

    (void)state;
    bzimage_file_init(&file);
    memset(file.bytes + BZIMAGE_SETUP_BYTES + BZIMAGE_PAYLOAD_OFFSET, 0x90, 16);
    assert_described(file.bytes, sizeof(file.bytes), &image);
    assert_int_equal(image.payload.codec, IMAGE_CODEC_NONE);
    assert_int_equal(image.payload.unpacked_bytes, 0);
}

static void shows_no_version_text_from_outside_the_setup_part(void **state)
{
    struct bzimage_file file;
    struct image image;

    (void)state;
    bzimage_file_init(&file);
    store_le16(file.bytes + 0x20e, 0);
    assert_described(file.bytes, sizeof(file.bytes), &image);
    assert_string_equal(image.bzimage.kernel_version, "");
    store_le16(file.bytes + 0x20e, BZIMAGE_SETUP_BYTES - 512);
    assert_described(file.bytes, sizeof(file.bytes), &image);
    assert_string_equal(image.bzimage.kernel_version, "");
    store_le16(file.bytes + 0x20e, BZIMAGE_SETUP_BYTES - 513);
    file.bytes[BZIMAGE_SETUP_BYTES - 1] = 'v';
    assert_described(file.bytes, sizeof(file.bytes), &image);
    assert_string_equal(image.bzimage.kernel_version, "v");
}

static void cleans_and_cuts_the_version_text(void **state)
{
    struct bzimage_file file;
    struct image image;

    (void)state;
    bzimage_file_init(&file);
    memset(file.bytes + 0x300, 'x', 200);
    file.bytes[0x301] = 0x1b;
    assert_described(file.bytes, sizeof(file.bytes), &image);
    assert_int_equal(strlen(image.bzimage.kernel_version), 127);
    assert_memory_equal(image.bzimage.kernel_version, "x?x", 3);
}

static void is_told_from_an_efi_program(void **state)
{
    struct bzimage_file file;
    struct image image;

    (void)state;
    bzimage_file_init(&file);
    memcpy(file.bytes, "MZ", 2); /* kernels with an EFI stub are both */
    assert_described(file.bytes, sizeof(file.bytes), &image);
    assert_int_equal(image.format, IMAGE_BZIMAGE);
}

enum { BYTE = 1, WORD = 2, LONG = 4, QUAD = 8 };

static const struct {
    uint16_t offset;
    uint8_t size;
    uint64_t value;
    const char *sentence;
} refusals[] = {
    {0x206, WORD, 0x01ff, "bzImage: boot protocol 1.255 is older than 2.00"},
    {0x211, BYTE, 0x80,
     "is a zImage (loadflags 0x80 has LOADED_HIGH clear); husk boots "
     "bzImages only"},
    {0x1f1, BYTE, 4,
     "bzImage is truncated: 2560 bytes of setup and 1024 bytes of kernel "
     "are promised, but the file ends at byte 2560"},
    {0x1f1, BYTE, 255,
     "bzImage is truncated: 131072 bytes of setup and 1024 bytes of "
     "kernel are promised, but the file ends at byte 2560"},
    {0x1f4, LONG, 65,
     "bzImage is truncated: 1536 bytes of setup and 1040 bytes of kernel "
     "are promised, but the file ends at byte 2560"},
    {0x1f4, LONG, 0xffffffff,
     "bzImage is truncated: 1536 bytes of setup and 68719476720 "
     "bytes of kernel are promised, but the file ends at byte "
     "2560"},
    {0x230, LONG, 0, "bzImage: kernel_alignment 0x0 is no power of two"},
    {0x230, LONG, 0x300000, "bzImage: kernel_alignment 0x300000 is no power of two"},
    {0x248, LONG, 513,
     "bzImage: payload_offset 513 with payload_length 512 goes beyond "
     "the 1024 bytes of kernel"},
    {0x248, LONG, 0xfffffff0,
     "bzImage: payload_offset 4294967280 with payload_length 512 "
     "goes beyond the 1024 bytes of kernel"},
    {0x24c, LONG, 961,
     "bzImage: payload_offset 64 with payload_length 961 goes beyond "
     "the 1024 bytes of kernel"},
    {0x258, QUAD, (UINT64_C(1) << 52) - 0x1ffff,
     "bzImage: pref_address 0xffffffffe0001 with init_size 0x20000 goes beyond the 52 "
     "bits "
     "of a physical address"},
    {0x1fe, WORD, 0, "bzImage: boot_flag is 0x0000, not 0xaa55"},
    {0x202, BYTE, 'h',
     "is a boot sector or a disk image with an MBR, not a kernel; copy "
     "the kernel out of it first"},
};

static void refuses_each_wrong_field_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        struct bzimage_file file;

        bzimage_file_init(&file);
        memcpy(file.bytes + refusals[i].offset, &refusals[i].value, refusals[i].size);
        assert_refused(file.bytes, sizeof(file.bytes), refusals[i].sentence);
    }
}

static void refuses_truncated_files(void **state)
{
    struct bzimage_file file;

    (void)state;
    bzimage_file_init(&file);
    assert_refused(file.bytes, 0x206,
                   "bzImage is truncated: its header needs 612 bytes, "
                   "but the file ends at byte 518");
    assert_refused(file.bytes, 0x263,
                   "bzImage is truncated: its header needs 612 bytes, "
                   "but the file ends at byte 611");
    assert_refused(file.bytes, 0x264,
                   "bzImage is truncated: 1536 bytes of setup and 1024 "
                   "bytes of kernel are promised, but the file ends at "
                   "byte 612");
    assert_refused(file.bytes, sizeof(file.bytes) - SYSSIZE_UNIT_BYTES,
                   "bzImage is truncated: 1536 bytes of setup and 1024 bytes of kernel "
                   "are promised, but the file ends at byte 2544");
}

/* No length may be read beyond; the sanitizer build checks that against the heap. */
static void refuses_every_truncation(void **state)
{
    struct bzimage_file file;

    (void)state;
    bzimage_file_init(&file);
    for (size_t size = 0; size <= sizeof(file.bytes) - SYSSIZE_UNIT_BYTES; size++) {
        uint8_t *copy = malloc(size + 1);
        struct source source = source_from_memory(copy, size);
        struct error err = ERROR_NONE;
        struct image image;

        assert_non_null(copy);
        memcpy(copy, file.bytes, size);
        assert_true(image_describe(&source, &image, &err) < 0);
        assert_true(err.text[0] != '\0');
        free(copy);
    }
}

static void keeps_promises_with_any_byte_flipped(void **state)
{
    struct bzimage_file file;

    (void)state;
    for (size_t i = 0; i < 0x270; i++) {
        struct source source = source_from_memory(file.bytes, sizeof(file.bytes));
        struct error err = ERROR_NONE;
        struct image image;

        bzimage_file_init(&file);
        file.bytes[i] ^= 0xff;
        if (image_describe(&source, &image, &err) < 0) {
            assert_true(err.text[0] != '\0');
            continue;
        }
        assert_int_equal(image.bzimage.setup_bytes + image.bzimage.kernel_bytes,
                         sizeof(file.bytes));
        assert_true(range_within(image.payload.offset, image.payload.size_bytes,
                                 sizeof(file.bytes)));
        assert_true(image.bzimage.init_bytes >= image.bzimage.kernel_bytes);
        assert_true(range_within(image.bzimage.preferred_gpa, image.bzimage.init_bytes,
                                 UINT64_C(1) << 52));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_fields_of_2_15),
        cmocka_unit_test(takes_setup_sects_0_for_4),
        cmocka_unit_test(ignores_fields_younger_than_the_protocol),
        cmocka_unit_test(reads_syssize_as_16_bits_before_2_04),
        cmocka_unit_test(may_end_inside_the_last_unit_of_syssize),
        cmocka_unit_test(init_size_covers_the_kernel_itself),
        cmocka_unit_test(does_without_a_payload),
        cmocka_unit_test(takes_no_size_from_an_unknown_payload),
        cmocka_unit_test(shows_no_version_text_from_outside_the_setup_part),
        cmocka_unit_test(cleans_and_cuts_the_version_text),
        cmocka_unit_test(is_told_from_an_efi_program),
        cmocka_unit_test(refuses_each_wrong_field_by_name),
        cmocka_unit_test(refuses_truncated_files),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(keeps_promises_with_any_byte_flipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
