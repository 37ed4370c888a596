/* SPDX-License-Identifier: Apache-2.0 */
/* The tags of a Multiboot 2 header: what each says, and the ways a list can be broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "builders.h"

#define MAGIC UINT32_C(0xe85250d6)
#define FILE_BYTES 4096

/* An ELF whose text begins with a header; tags are appended to it. */
struct header {
    struct elf64_file file;
    uint8_t more[FILE_BYTES];
    uint32_t bytes;
};

static struct header header;

static uint8_t *at(uint32_t offset)
{
    return header.file.text + offset;
}

static int begin(void **state)
{
    (void)state;
    memset(&header, 0, sizeof(header));
    elf64_file_init(&header.file);
    header.bytes = 16;
    return 0;
}

static void put_tag(uint16_t type, uint16_t flags, uint32_t size_bytes,
                    const uint32_t *fields, size_t count)
{
    store_le16(at(header.bytes), type);
    store_le16(at(header.bytes) + 2, flags);
    store_le32(at(header.bytes) + 4, size_bytes);
    for (size_t i = 0; i < count; i++)
        store_le32(at(header.bytes) + 8 + i * 4, fields[i]);
    header.bytes += (uint32_t)align_up(max_u64(size_bytes, 8), 8);
}

#define TAG(type, flags, ...)                                                            \
    do {                                                                                 \
        const uint32_t fields[] = {__VA_ARGS__};                                         \
        put_tag(type, flags, 8 + sizeof(fields), fields, ARRAY_SIZE(fields));            \
    } while (0)

static struct image_multiboot2 describe(void)
{
    static struct image image;

    store_le32(at(0), MAGIC);
    store_le32(at(4), 0);
    store_le32(at(8), header.bytes);
    store_le32(at(12), 0 - MAGIC - header.bytes);
    assert_described(&header, sizeof(header), &image);
    assert_int_equal(image.format, IMAGE_ELF64);
    assert_true(image.multiboot2.present);
    assert_int_equal(image.multiboot2.header_bytes, header.bytes);
    return image.multiboot2;
}

static void has_problem(const char *sentence)
{
    const struct image_multiboot2 found = describe();

    assert_string_equal(found.problem, sentence);
}

static void every_tag_is_read(void **state)
{
    struct image_multiboot2 found;
    (void)state;

    TAG(1, 0, 4, 6);
    TAG(1, 1, 8);
    TAG(3, 0, 0x100020);
    TAG(4, 1, 3);
    TAG(5, 1, 1024, 768, 32);
    put_tag(6, 0, 8, NULL, 0);
    put_tag(7, 0, 8, NULL, 0);
    TAG(8, 1, 0x1000);
    TAG(9, 1, 0x2000);
    TAG(10, 0, 0x100000, 0x7fffffff, 0x200000, 2);
    put_tag(0, 0, 8, NULL, 0);
    found = describe();

    assert_string_equal(found.problem, "");
    assert_int_equal(found.tag_count, 10);
    assert_int_equal(found.tags[0].type, 1);
    assert_false(found.tags[0].optional);
    assert_int_equal(found.tags[0].size_bytes, 16);
    assert_int_equal(found.tags[9].type, 10);
    assert_int_equal(found.request_count, 3);
    assert_int_equal(found.requests[1].type, 6);
    assert_false(found.requests[1].optional);
    assert_int_equal(found.requests[2].type, 8);
    assert_true(found.requests[2].optional);
    assert_true(found.has_entry);
    assert_int_equal(found.entry_addr, 0x100020);
    assert_int_equal(found.console_flags, 3);
    assert_true(found.console_optional);
    assert_true(found.has_video);
    assert_int_equal(found.video.width, 1024);
    assert_int_equal(found.video.height, 768);
    assert_int_equal(found.video.depth, 32);
    assert_true(found.relocatable);
    assert_int_equal(found.relocation.min_addr, 0x100000);
    assert_int_equal(found.relocation.max_addr, 0x7fffffff);
    assert_int_equal(found.relocation.alignment, 0x200000);
    assert_int_equal(found.relocation.preference, IMAGE_MULTIBOOT2_HIGHEST);
    assert_false(found.has_addresses);
}

static void a_list_ends_with_its_end_tag_or_with_the_header(void **state)
{
    (void)state;
    TAG(3, 0, 0x100020);
    assert_int_equal(describe().tag_count, 1);
    put_tag(0, 0, 8, NULL, 0);
    TAG(4, 0, 1);
    assert_int_equal(describe().tag_count, 1);
    assert_int_equal(describe().console_flags, 0);
}

static void tags_of_unknown_types_are_kept(void **state)
{
    struct image_multiboot2 found;
    (void)state;

    TAG(77, 1, 1, 2, 3);
    TAG(3, 0, 0x100020);
    found = describe();
    assert_string_equal(found.problem, "");
    assert_int_equal(found.tag_count, 2);
    assert_int_equal(found.tags[0].type, 77);
    assert_true(found.tags[0].optional);
    assert_true(found.has_entry);
}

static void tags_that_leave_the_header_are_a_problem(void **state)
{
    (void)state;
    put_tag(3, 0, 7, NULL, 0);
    has_problem("tag 3 at byte 16 of the header has 7 bytes; the header has 24");
    (void)begin(NULL);
    put_tag(3, 0, 0, NULL, 0);
    has_problem("tag 3 at byte 16 of the header has 0 bytes; the header has 24");
    (void)begin(NULL);
    put_tag(1, 0, 8, NULL, 0);
    store_le32(at(16) + 4, 9);
    has_problem("tag 1 at byte 16 of the header has 9 bytes; the header has 24");
    store_le32(at(16) + 4, UINT32_MAX);
    has_problem("tag 1 at byte 16 of the header has 4294967295 bytes; the header has 24");
}

static void tags_too_short_for_their_fields_are_a_problem(void **state)
{
    static const struct {
        uint16_t type;
        uint32_t least_bytes;
        const char *name;
    } rows[] = {
        {2, 24, "address"},       {3, 12, "entry address"},
        {4, 12, "console flags"}, {5, 20, "framebuffer"},
        {10, 24, "relocatable"},  {8, 12, "EFI i386 entry address"},
    };
    char sentence[128];
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        (void)begin(NULL);
        put_tag(rows[i].type, 0, rows[i].least_bytes - 1, NULL, 0);
        (void)snprintf(sentence, sizeof(sentence),
                       "tag %u (%s) has %u bytes; it needs %u", rows[i].type,
                       rows[i].name, rows[i].least_bytes - 1, rows[i].least_bytes);
        has_problem(sentence);
    }
}

static void a_relocatable_tag_must_make_sense(void **state)
{
    (void)state;
    TAG(10, 0, 0x200000, 0x1fffff, 0x1000, 0);
    has_problem("tag 10 (relocatable): min_addr 0x200000 is above max_addr 0x1fffff");
    (void)begin(NULL);
    TAG(10, 0, 0, 0xffffffff, 0x3000, 0);
    has_problem("tag 10 (relocatable): align 0x3000 is no power of two");
    (void)begin(NULL);
    TAG(10, 0, 0, 0xffffffff, 0, 9); /* no alignment, a preference of the future */
    assert_string_equal(describe().problem, "");
    assert_int_equal(describe().relocation.alignment, 1);
    assert_int_equal(describe().relocation.preference, IMAGE_MULTIBOOT2_ANYWHERE);
}

static void too_many_are_a_problem(void **state)
{
    uint32_t types[IMAGE_MULTIBOOT2_MAX_REQUESTS + 1] = {0};
    (void)state;

    put_tag(1, 0, 8 + sizeof(types), types, ARRAY_SIZE(types));
    has_problem("tag 1 (information request): more than 64 requests for information; "
                "husk reads no more");
    (void)begin(NULL);
    for (size_t i = 0; i <= IMAGE_MULTIBOOT2_MAX_TAGS; i++)
        put_tag(6, 0, 8, NULL, 0);
    has_problem("more than 32 tags; husk reads no more");
}

static void names_are_those_of_the_specification(void **state)
{
    (void)state;
    assert_null(image_multiboot2_tag_name(0));
    assert_string_equal(image_multiboot2_tag_name(1), "information request");
    assert_string_equal(image_multiboot2_tag_name(10), "relocatable");
    assert_null(image_multiboot2_tag_name(11));
    assert_null(image_multiboot2_info_name(0));
    assert_string_equal(image_multiboot2_info_name(6), "memory map");
    assert_string_equal(image_multiboot2_info_name(21), "image load base");
    assert_null(image_multiboot2_info_name(22));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_tag_is_read, begin),
        cmocka_unit_test_setup(a_list_ends_with_its_end_tag_or_with_the_header, begin),
        cmocka_unit_test_setup(tags_of_unknown_types_are_kept, begin),
        cmocka_unit_test_setup(tags_that_leave_the_header_are_a_problem, begin),
        cmocka_unit_test_setup(tags_too_short_for_their_fields_are_a_problem, begin),
        cmocka_unit_test_setup(a_relocatable_tag_must_make_sense, begin),
        cmocka_unit_test_setup(too_many_are_a_problem, begin),
        cmocka_unit_test(names_are_those_of_the_specification),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
