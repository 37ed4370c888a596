/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are no kernels: each kind gets its own sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "builders.h"

#define FILE_BYTES 70000
#define UNPACK "not a kernel; unpack it first"
#define COPY_OUT "not a kernel; copy the kernel out of it first"

/* One file of each kind: bytes without meaning, but for its mark. */
static const struct {
    uint32_t offset;
    uint8_t size;
    char mark[16];
    const char *sentence;
} kinds[] = {
    {0, 3, "\x1f\x8b\x08", "is gzip-compressed data, " UNPACK},
    {0, 4, "BZh9", "is bzip2-compressed data, " UNPACK},
    {0, 6,
     "\xfd"
     "7zXZ",
     "is xz-compressed data, " UNPACK},
    {0, 5, {0x5d, 0, 0, 0, 4}, "is lzma-compressed data, " UNPACK},
    {0, 9, "\x89LZO\0\r\n\x1a\n", "is lzop-compressed data, " UNPACK},
    {0, 4, "\x04\x22\x4d\x18", "is lz4-compressed data, " UNPACK},
    {0, 4, "\x02\x21\x4c\x18", "is lz4-compressed data (legacy frame), " UNPACK},
    {0, 4, "\x28\xb5\x2f\xfd", "is zstd-compressed data, " UNPACK},
    {0, 6, "070701",
     "is a cpio archive, not a kernel; a file like this is given with "
     "--initrd"},
    {257, 5, "ustar", "is a tar archive, " UNPACK},
    {0, 4, "PK\x03\x04", "is a zip archive, " UNPACK},
    {0, 14, "!<arch>\ndebian", "is a Debian package, " UNPACK},
    {0, 8, "!<arch>\n", "is an ar archive, not a kernel"},
    {0, 4, "QFI\xfb", "is a qcow2 disk image, " COPY_OUT},
    {0x8001, 5, "CD001", "is an ISO 9660 image (CD or DVD), " COPY_OUT},
    {0x438, 2, "\x53\xef", "is an ext2, ext3 or ext4 file system, " COPY_OUT},
    {0, 4, "XFSB", "is an XFS file system, " COPY_OUT},
    {0x10040, 8, "_BHRfS_M", "is a Btrfs file system, " COPY_OUT},
    {0, 4, "hsqs", "is a squashfs file system, " COPY_OUT},
    {0, 6, "LUKS\xba\xbe", "is a LUKS-encrypted volume, " COPY_OUT},
    {512, 8, "EFI PART", "is a disk image with a GPT, " COPY_OUT},
    {510, 2, "\x55\xaa", "is a boot sector or a disk image with an MBR, " COPY_OUT},
    {56, 4, "ARM\x64", "is an arm64 boot image, not a kernel; husk runs x86 kernels"},
    {0, 2, "MZ", "is a DOS, Windows or EFI program, not a kernel"},
    {0, 4, "\xcf\xfa\xed\xfe", "is a Mach-O program, not a kernel"},
    {0, 2, "#!", "is a script, not a kernel"},
};

static uint8_t file[FILE_BYTES];

static void each_kind_has_its_own_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        memset(file, 0xcc, sizeof(file));
        memcpy(file + kinds[i].offset, kinds[i].mark, kinds[i].size);
        assert_refused(file, sizeof(file), kinds[i].sentence);
    }
}

static void marks_at_the_end_of_a_file_are_found(void **state)
{
    (void)state;
    memset(file, 0xcc, sizeof(file));
    store_le64(file + 0x10040, UINT64_C(0x4d5f53665248425f)); /* _BHRfS_M */
    assert_refused(file, 0x10048, "is a Btrfs file system, " COPY_OUT);
}

static void text_and_zeros_are_told_by_their_bytes(void **state)
{
    static const char text[] = "# a list of\tkernels\r\nvmlinux\n";

    (void)state;
    assert_refused(text, sizeof(text) - 1, "is a text file, not a kernel");
    memset(file, 0, sizeof(file));
    assert_refused(file, sizeof(file), "is a file that starts with zeros, not a kernel");
}

static void an_empty_file_is_called_empty(void **state)
{
    (void)state;
    assert_refused("", 0, "is empty");
}

static void unknown_files_name_what_was_searched(void **state)
{
    static const uint8_t unknown[] = {0xde, 0xad, 0xbe, 0xef};
    struct source source = source_from_memory(unknown, sizeof(unknown));

    (void)state;
    assert_null(image_guess(&source));
    assert_refused(
        unknown, sizeof(unknown),
        "is no kernel known to husk: neither an ELF file nor a Linux bzImage, "
        "and no Multiboot header lies in its first 8192 bytes (Multiboot 1) or "
        "32768 bytes (Multiboot 2)");
}

static void guesses_kernels_too_for_other_uses(void **state)
{
    struct elf64_file elf;
    struct bzimage_file bzimage;
    struct source source;

    (void)state;
    elf64_file_init(&elf);
    source = source_from_memory(&elf, sizeof(elf));
    assert_string_equal(image_guess(&source), "an ELF file");
    bzimage_file_init(&bzimage);
    source = source_from_memory(&bzimage, sizeof(bzimage));
    assert_string_equal(image_guess(&source), "a Linux bzImage");
}

static void firmware_is_whole_pages_within_its_limit(void **state)
{
    struct source source = source_from_memory(file, 0x10000);
    struct error err = ERROR_NONE;
    struct image image;

    (void)state;
    assert_int_equal(image_describe_firmware(&source, &image, &err), 0);
    assert_int_equal(image.format, IMAGE_FIRMWARE);
    assert_int_equal(image.file_bytes, 0x10000);

    source.size_bytes = 0x10001;
    assert_true(image_describe_firmware(&source, &image, &err) < 0);
    assert_string_equal(err.text,
                        "firmware has 65537 bytes, which is no multiple of 4096");
    err = ERROR_NONE;
    source.size_bytes = IMAGE_FIRMWARE_LIMIT + 0x1000;
    assert_true(image_describe_firmware(&source, &image, &err) < 0);
    assert_string_equal(err.text,
                        "firmware has 16781312 bytes; at most 16777216 fit below 4 GiB");
    err = ERROR_NONE;
    source.size_bytes = 0;
    assert_true(image_describe_firmware(&source, &image, &err) < 0);
    assert_string_equal(err.text, "is empty");
}

static void formats_have_names(void **state)
{
    (void)state;
    assert_string_equal(image_format_name(IMAGE_ELF32), "ELF32");
    assert_string_equal(image_format_name(IMAGE_ELF64), "ELF64");
    assert_string_equal(image_format_name(IMAGE_BZIMAGE), "bzImage");
    assert_string_equal(image_format_name(IMAGE_MULTIBOOT), "Multiboot");
    assert_string_equal(image_format_name(IMAGE_FIRMWARE), "firmware");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_has_its_own_sentence),
        cmocka_unit_test(marks_at_the_end_of_a_file_are_found),
        cmocka_unit_test(text_and_zeros_are_told_by_their_bytes),
        cmocka_unit_test(an_empty_file_is_called_empty),
        cmocka_unit_test(unknown_files_name_what_was_searched),
        cmocka_unit_test(guesses_kernels_too_for_other_uses),
        cmocka_unit_test(firmware_is_whole_pages_within_its_limit),
        cmocka_unit_test(formats_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
