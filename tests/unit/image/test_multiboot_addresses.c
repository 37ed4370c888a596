/* SPDX-License-Identifier: Apache-2.0 */
/* Address fields of Multiboot headers: what they place, and each way they can lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "builders.h"

#define FILE_BYTES 0x200
#define HEADER_OFFSET 0x40

#define MAGIC_1 UINT32_C(0x1badb002)
#define MAGIC_2 UINT32_C(0xe85250d6)
#define FLAG_ADDRESSES (UINT32_C(1) << 16)
#define HEADER_2_BYTES 64

/* In the order of Multiboot 1's header. */
struct addresses {
    uint32_t header, load, load_end, bss_end, entry;
};

struct placed {
    uint64_t gpa, file_offset, file_bytes, memory_bytes;
};

static struct image describe1(const struct addresses *addresses)
{
    uint8_t file[FILE_BYTES] = {0};
    uint8_t *header = file + HEADER_OFFSET;
    struct image image;

    store_le32(header, MAGIC_1);
    store_le32(header + 4, FLAG_ADDRESSES);
    store_le32(header + 8, 0 - MAGIC_1 - FLAG_ADDRESSES);
    memcpy(header + 12, addresses, sizeof(*addresses));
    assert_described(file, sizeof(file), &image);
    return image;
}

static void put_tag(uint8_t *to, uint16_t type, uint32_t size_bytes)
{
    store_le16(to, type);
    store_le32(to + 4, size_bytes);
}

/* The same by an address tag and an entry address tag. */
static struct image describe2(const struct addresses *addresses)
{
    uint8_t file[FILE_BYTES] = {0};
    uint8_t *header = file + HEADER_OFFSET;
    struct image image;

    store_le32(header, MAGIC_2);
    store_le32(header + 8, HEADER_2_BYTES);
    store_le32(header + 12, 0 - MAGIC_2 - HEADER_2_BYTES);
    put_tag(header + 16, 2, 24);
    memcpy(header + 24, addresses, offsetof(struct addresses, entry));
    put_tag(header + 40, 3, 12);
    store_le32(header + 48, addresses->entry);
    put_tag(header + 56, 0, 8);
    assert_described(file, sizeof(file), &image);
    return image;
}

static void assert_places(const struct image_segment *segment, const char *problem,
                          const struct placed *expected)
{
    assert_string_equal(problem, "");
    assert_int_equal(segment->gpa, expected->gpa);
    assert_int_equal(segment->file_offset, expected->file_offset);
    assert_int_equal(segment->file_bytes, expected->file_bytes);
    assert_int_equal(segment->memory_bytes, expected->memory_bytes);
}

static void addresses_place_the_file(void **state)
{
    static const struct {
        struct addresses addresses;
        struct placed placed;
    } rows[] = {
        /* The whole file, no bss. */
        {{0x100040, 0x100000, 0, 0, 0x100000}, {0x100000, 0, 0x200, 0x200}},
        /* From the header on; the last byte is an entry as well. */
        {{0x100000, 0x100000, 0, 0, 0x1001bf}, {0x100000, 0x40, 0x1c0, 0x1c0}},
        /* A part of the file, and bss. */
        {{0x100040, 0x100010, 0x100100, 0x104000, 0x100010},
         {0x100010, 0x10, 0xf0, 0x3ff0}},
        /* To the end of the file, and bss. */
        {{0x100040, 0x100000, 0, 0x100201, 0x100000}, {0x100000, 0, 0x200, 0x201}},
        /* The end of the file and of the bss in so many words. */
        {{0x100040, 0x100000, 0x100200, 0x100200, 0x100000}, {0x100000, 0, 0x200, 0x200}},
        /* Nothing of the file, only bss. */
        {{0x100040, 0x100000, 0x100000, 0x100001, 0x100000}, {0x100000, 0, 0, 1}},
        /* At address 0, and to the last byte below 4 GiB. */
        {{0x40, 0, 0, 0, 0}, {0, 0, 0x200, 0x200}},
        {{0xfffffe40, 0xfffffe00, 0, 0, 0xffffffff}, {0xfffffe00, 0, 0x200, 0x200}},
        {{0x100040, 0x100000, 0, 0xffffffff, 0x100000}, {0x100000, 0, 0x200, 0xffefffff}},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct image one = describe1(&rows[i].addresses);
        struct image two = describe2(&rows[i].addresses);

        assert_places(&one.multiboot1.segment, one.multiboot1.problem, &rows[i].placed);
        assert_places(&two.multiboot2.segment, two.multiboot2.problem, &rows[i].placed);
        assert_int_equal(one.multiboot1.entry_addr, rows[i].addresses.entry);
        assert_int_equal(two.multiboot2.entry_addr, rows[i].addresses.entry);
    }
}

static void each_way_to_lie_has_its_sentence(void **state)
{
    static const struct {
        struct addresses addresses;
        const char *problem;
    } rows[] = {
        {{0x100040, 0x100041, 0, 0, 0x100041},
         "load_addr 0x100041 is above header_addr 0x100040"},
        {{0x100040, 0xfffff, 0, 0, 0xfffff},
         "load_addr 0xfffff is 0x41 bytes below header_addr, but the header lies at byte "
         "0x40 of the file"},
        {{0xffffffff, 0, 0, 0, 0},
         "load_addr 0x0 is 0xffffffff bytes below header_addr, but the header lies at "
         "byte 0x40 of the file"},
        {{0x100040, 0x100000, 0xfffff, 0, 0x100000},
         "load_end_addr 0xfffff is below load_addr 0x100000"},
        {{0x100040, 0x100000, 0x100201, 0, 0x100000},
         "load_end_addr 0x100201 asks for 513 bytes from offset 0x0, but the file ends "
         "at byte 0x200"},
        {{0x100040, 0x100000, 0xffffffff, 0, 0x100000},
         "load_end_addr 0xffffffff asks for 4293918719 bytes from offset 0x0, but the "
         "file ends at byte 0x200"},
        {{0x100040, 0x100000, 0x100100, 0x1000ff, 0x100000},
         "bss_end_addr 0x1000ff is below the end of what is loaded, 0x100100"},
        {{0x100040, 0x100000, 0, 0x1001ff, 0x100000},
         "bss_end_addr 0x1001ff is below the end of what is loaded, 0x100200"},
        {{0xfffffe41, 0xfffffe01, 0, 0, 0xfffffe01},
         "load_addr 0xfffffe01 with 512 bytes of the file goes beyond 4 GiB"},
        {{0x100040, 0x100000, 0, 0, 0xfffff},
         "entry_addr 0xfffff lies outside of what is loaded, 512 bytes from 0x100000 on"},
        {{0x100040, 0x100000, 0, 0, 0x100200},
         "entry_addr 0x100200 lies outside of what is loaded, 512 bytes from 0x100000 "
         "on"},
        {{0x100040, 0x100000, 0x100000, 0, 0x100000},
         "entry_addr 0x100000 lies outside of what is loaded, 0 bytes from 0x100000 on"},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct image one = describe1(&rows[i].addresses);
        struct image two = describe2(&rows[i].addresses);

        assert_true(one.multiboot1.present && one.multiboot1.has_addresses);
        assert_string_equal(one.multiboot1.problem, rows[i].problem);
        assert_true(two.multiboot2.present && two.multiboot2.has_addresses);
        assert_string_equal(two.multiboot2.problem, rows[i].problem);
    }
}

/* 3.1.5 of Multiboot 2: load_addr -1 is where the file begins. */
static void load_addr_of_all_ones_is_the_files_beginning(void **state)
{
    const struct addresses addresses = {0x100040, 0xffffffff, 0, 0, 0x100000};
    const struct addresses too_low = {0x3f, 0xffffffff, 0, 0, 0};
    const struct placed placed = {0x100000, 0, 0x200, 0x200};
    struct image image = describe2(&addresses);
    (void)state;

    assert_places(&image.multiboot2.segment, image.multiboot2.problem, &placed);
    image = describe2(&too_low);
    assert_string_equal(image.multiboot2.problem,
                        "header_addr 0x3f is below the header's place in the file, 0x40, "
                        "which would begin below address 0");
    image = describe1(&addresses);
    assert_string_equal(image.multiboot1.problem,
                        "load_addr 0xffffffff is above header_addr 0x100040");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_place_the_file),
        cmocka_unit_test(each_way_to_lie_has_its_sentence),
        cmocka_unit_test(load_addr_of_all_ones_is_the_files_beginning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
