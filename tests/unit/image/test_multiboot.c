/* SPDX-License-Identifier: Apache-2.0 */
/* Multiboot headers: where they count and where they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "builders.h"

#define FLAT_BYTES 40000
#define ADDRESS_FLAG (UINT32_C(1) << 16)

/* A flat file without any mark but the headers put into it. */
static uint8_t flat[FLAT_BYTES];

static int fill_flat(void **state)
{
    (void)state;
    memset(flat, 0xcc, sizeof(flat));
    return 0;
}

static void put_multiboot1(uint8_t *to, uint32_t flags)
{
    store_le32(to, 0x1badb002);
    store_le32(to + 4, flags);
    store_le32(to + 8, 0 - UINT32_C(0x1badb002) - flags);
    if ((flags & ADDRESS_FLAG) == 0)
        return;
    store_le32(to + 12, 0x100040);
    store_le32(to + 16, 0x100000);
    store_le32(to + 20, 0x104000);
    store_le32(to + 24, 0x108000);
    store_le32(to + 28, 0x100080);
}

static void put_multiboot2(uint8_t *to, uint32_t architecture, uint32_t header_bytes)
{
    store_le32(to, 0xe85250d6);
    store_le32(to + 4, architecture);
    store_le32(to + 8, header_bytes);
    store_le32(to + 12, 0 - UINT32_C(0xe85250d6) - architecture - header_bytes);
}

static const char no_kernel[] =
    "is no kernel known to husk: neither an ELF file nor a Linux bzImage, and no "
    "Multiboot header lies in its first 8192 bytes (Multiboot 1) or 32768 bytes "
    "(Multiboot 2)";

static void reads_a_flat_kernel_with_addresses(void **state)
{
    struct image image;

    (void)state;
    put_multiboot1(flat + 0x40, ADDRESS_FLAG | 3);
    assert_described(flat, sizeof(flat), &image);
    assert_int_equal(image.format, IMAGE_MULTIBOOT);
    assert_string_equal(image_format_name(image.format), "Multiboot");
    assert_true(image.multiboot1.present);
    assert_int_equal(image.multiboot1.header_offset, 0x40);
    assert_int_equal(image.multiboot1.flags, ADDRESS_FLAG | 3);
    assert_true(image.multiboot1.has_addresses);
    assert_int_equal(image.multiboot1.addresses.header_addr, 0x100040);
    assert_int_equal(image.multiboot1.addresses.load_addr, 0x100000);
    assert_int_equal(image.multiboot1.addresses.load_end_addr, 0x104000);
    assert_int_equal(image.multiboot1.addresses.bss_end_addr, 0x108000);
    assert_int_equal(image.multiboot1.entry_addr, 0x100080);
    assert_false(image.multiboot2.present);
}

static void refuses_a_flat_kernel_without_addresses(void **state)
{
    (void)state;
    put_multiboot1(flat + 0x40, 3);
    assert_refused(flat, sizeof(flat),
                   "has a Multiboot 1 header at byte 64 but is no ELF file, and without "
                   "address fields (flag 16) nothing says where to load it");
}

static void refuses_a_flat_multiboot2_kernel_without_addresses(void **state)
{
    (void)state;
    put_multiboot2(flat + 0x40, 0, 16);
    assert_refused(flat, sizeof(flat),
                   "has a Multiboot 2 header at byte 64 but is no ELF file, and without "
                   "an address tag (type 2) nothing says where to load it");
}

static void reports_both_headers_of_an_elf_file(void **state)
{
    struct elf64_file file;
    struct image image;

    (void)state;
    elf64_file_init(&file);
    put_multiboot1(file.text, 2);
    put_multiboot2(file.text + 16, 0, 24);
    assert_described(&file, sizeof(file), &image);
    assert_int_equal(image.format, IMAGE_ELF64);
    assert_true(image.multiboot1.present);
    assert_int_equal(image.multiboot1.header_offset, offsetof(struct elf64_file, text));
    assert_int_equal(image.multiboot1.flags, 2);
    assert_false(image.multiboot1.has_addresses);
    assert_true(image.multiboot2.present);
    assert_int_equal(image.multiboot2.header_offset,
                     offsetof(struct elf64_file, text) + 16);
    assert_int_equal(image.multiboot2.header_bytes, 24);
}

static void header_1_must_end_within_8192_bytes(void **state)
{
    struct image image;

    (void)state;
    put_multiboot1(flat + 8192 - 32, ADDRESS_FLAG);
    assert_described(flat, sizeof(flat), &image);
    assert_int_equal(image.multiboot1.header_offset, 8192 - 32);

    (void)fill_flat(NULL);
    put_multiboot1(flat + 8192 - 28, ADDRESS_FLAG);
    assert_refused(flat, sizeof(flat), no_kernel);

    (void)fill_flat(NULL);
    put_multiboot1(flat + 8188, 0);
    assert_refused(flat, sizeof(flat), no_kernel);

    (void)fill_flat(NULL);
    put_multiboot1(flat + 8196, 0);
    assert_refused(flat, sizeof(flat), no_kernel);
}

static void header_2_must_end_within_32768_bytes(void **state)
{
    (void)state;
    put_multiboot2(flat + 32768 - 24, 0, 24);
    assert_refused(
        flat, sizeof(flat),
        "has a Multiboot 2 header at byte 32744 but is no ELF file, and without "
        "an address tag (type 2) nothing says where to load it");
    (void)fill_flat(NULL);
    put_multiboot2(flat + 32768 - 24, 0, 32);
    assert_refused(flat, sizeof(flat), no_kernel);
    (void)fill_flat(NULL);
    put_multiboot2(flat + 32768, 0, 16);
    assert_refused(flat, sizeof(flat), no_kernel);
}

static void headers_count_only_where_aligned(void **state)
{
    struct image image;

    (void)state;
    put_multiboot1(flat + 0x42, ADDRESS_FLAG);
    put_multiboot2(flat + 0x84, 0, 16);
    assert_refused(flat, sizeof(flat), no_kernel);
    put_multiboot1(flat + 0x44, ADDRESS_FLAG);
    assert_described(flat, sizeof(flat), &image);
    assert_int_equal(image.multiboot1.header_offset, 0x44);
}

static void checksums_must_hold(void **state)
{
    struct image image;

    (void)state;
    put_multiboot1(flat, ADDRESS_FLAG);
    flat[8] ^= 1;
    put_multiboot2(flat + 64, 0, 16);
    flat[64 + 12] ^= 1;
    assert_refused(flat, sizeof(flat), no_kernel);
    put_multiboot1(flat + 128, ADDRESS_FLAG); /* the search goes on behind a bad one */
    assert_described(flat, sizeof(flat), &image);
    assert_int_equal(image.multiboot1.header_offset, 128);
}

static void header_2_of_another_architecture_does_not_count(void **state)
{
    (void)state;
    put_multiboot2(flat, 4, 16); /* MIPS */
    put_multiboot2(flat + 64, 0, 15);
    assert_refused(flat, sizeof(flat), no_kernel);
}

static void short_files_are_searched_to_their_end(void **state)
{
    struct image image;

    (void)state;
    put_multiboot1(flat, ADDRESS_FLAG);
    assert_described(flat, 32, &image);
    assert_refused(flat, 31, no_kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reads_a_flat_kernel_with_addresses, fill_flat),
        cmocka_unit_test_setup(refuses_a_flat_kernel_without_addresses, fill_flat),
        cmocka_unit_test_setup(refuses_a_flat_multiboot2_kernel_without_addresses,
                               fill_flat),
        cmocka_unit_test_setup(reports_both_headers_of_an_elf_file, fill_flat),
        cmocka_unit_test_setup(header_1_must_end_within_8192_bytes, fill_flat),
        cmocka_unit_test_setup(header_2_must_end_within_32768_bytes, fill_flat),
        cmocka_unit_test_setup(headers_count_only_where_aligned, fill_flat),
        cmocka_unit_test_setup(checksums_must_hold, fill_flat),
        cmocka_unit_test_setup(header_2_of_another_architecture_does_not_count,
                               fill_flat),
        cmocka_unit_test_setup(short_files_are_searched_to_their_end, fill_flat),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
