/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes of files are mapped, which are copied, and for what reason. */
#include "fixture.h"

#include <string.h>

static struct image_segment *segment(struct fixture *fixture)
{
    return &fixture->inputs.image.elf.segments[0];
}

static void maps_whole_pages_and_copies_the_tail(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture_build(&fixture);
    assert_range(fixture_range(&fixture, 0x100000), 0x100000, 0x1000, BOOT_MAP, NULL);
    assert_int_equal(fixture_range(&fixture, 0x100000)->file_offset, 0x1000);
    assert_range(fixture_range(&fixture, 0x101000), 0x101000, 0x800, BOOT_COPY,
                 "ends inside a page, and only whole pages can be mapped");
    assert_int_equal(fixture_range(&fixture, 0x101000)->file_offset, 0x2000);
    assert_range(fixture_range(&fixture, 0x101800), 0x101800, 0x1000, BOOT_ZERO, NULL);
    assert_string_equal(fixture_range(&fixture, 0x101800)->what, "kernel segment 0, bss");
    assert_int_equal(fixture.plan->bytes.mapped, 0x1000);
    assert_int_equal(fixture.plan->bytes.copied, 0x800);
    assert_int_equal(fixture.plan->bytes.zeroed, 0x1000);
    fixture_close(&fixture);
}

static void copies_the_head_of_a_segment_that_starts_inside_a_page(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    *segment(&fixture) = (struct image_segment){0x100010, 0x1010, 0x1ff0, 0x1ff0};
    fixture_build(&fixture);
    assert_range(fixture_range(&fixture, 0x100010), 0x100010, 0xff0, BOOT_COPY,
                 "starts inside a page, and only whole pages can be mapped");
    assert_range(fixture_range(&fixture, 0x101000), 0x101000, 0x1000, BOOT_MAP, NULL);
    assert_int_equal(fixture_range(&fixture, 0x101000)->file_offset, 0x2000);
    assert_int_equal(fixture.plan->bytes.mapped, 0x1000);
    assert_int_equal(fixture.plan->bytes.copied, 0xff0);
    fixture_close(&fixture);
}

static void copies_what_fills_no_page(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    *segment(&fixture) = (struct image_segment){0x100010, 0x1010, 0x1000, 0x1000};
    fixture_build(&fixture);
    assert_range(fixture_range(&fixture, 0x100010), 0x100010, 0x1000, BOOT_COPY,
                 "fills no whole page, and only whole pages can be mapped");
    assert_int_equal(fixture.plan->bytes.mapped, 0);
    fixture_close(&fixture);
}

static void copies_a_segment_whose_offset_and_address_disagree(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    segment(&fixture)->file_offset = 0x1200;
    fixture_build(&fixture);
    assert_range(
        fixture_range(&fixture, 0x100000), 0x100000, 0x1800, BOOT_COPY,
        "file offset 0x1200 and address 0x100000 differ modulo the page size of 4096");
    fixture_close(&fixture);
}

static void copies_a_file_that_cannot_be_mapped_for_its_reason(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.inputs.kernel.mode = INPUT_READ;
    strcpy(fixture.inputs.kernel.reason, "mmap refused: Permission denied");
    fixture_build(&fixture);
    assert_range(fixture_range(&fixture, 0x100000), 0x100000, 0x1800, BOOT_COPY,
                 "mmap refused: Permission denied");
    fixture_close(&fixture);
}

static void copies_everything_into_huge_pages(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture_add_initrd(&fixture, "initrd", 0x1000);
    fixture.options.huge_pages = true;
    fixture_build(&fixture);
    assert_range(fixture_range(&fixture, 0x100000), 0x100000, 0x1800, BOOT_COPY,
                 "RAM of --huge-pages cannot hold pages of files");
    assert_int_equal(fixture.plan->bytes.mapped, 0);
    assert_int_equal(fixture.plan->bytes.copied, 0x2800);
    fixture_close(&fixture);
}

static void has_no_bss_range_for_a_segment_without_bss(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    segment(&fixture)->memory_bytes = segment(&fixture)->file_bytes;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->bytes.zeroed, 0);
    fixture_close(&fixture);
}

static void keeps_ranges_sorted_and_apart(void **state)
{
    struct fixture fixture;
    const struct boot_plan *plan;
    (void)state;

    fixture_elf(&fixture);
    fixture_add_initrd(&fixture, "initrd", 5000);
    fixture_build(&fixture);
    plan = fixture.plan;
    assert_true(plan->range_count > 6);
    for (size_t i = 1; i < plan->range_count; i++)
        assert_true(plan->ranges[i - 1].gpa + plan->ranges[i - 1].size_bytes <=
                    plan->ranges[i].gpa);
    fixture_close(&fixture);
}

static void moves_its_own_structures_out_of_a_low_kernels_way(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    *segment(&fixture) = (struct image_segment){0x6000, 0x1000, 0x1800, 0x2000};
    fixture.inputs.image.elf.pvh_entry = 0x6000;
    fixture_build(&fixture);
    assert_int_equal(fixture_find(&fixture, "GDT")->gpa, 0x1000);
    assert_int_equal(fixture_find(&fixture, "PVH memory map")->gpa, 0x1030);
    assert_int_equal(fixture_find(&fixture, "PVH start_info")->gpa, 0x10c0);
    assert_int_equal(fixture_find(&fixture, "command line")->gpa, 0x20000);
    assert_int_equal(fixture.plan->entry.registers[X86_RBX], 0x10c0);
    fixture_close(&fixture);
}

static void refuses_a_segment_over_the_reserved_area(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    *segment(&fixture) = (struct image_segment){0x9f000, 0x1000, 0x1000, 0x1000};
    fixture.inputs.image.elf.pvh_entry = 0x9f000;
    fixture_refuses(&fixture, "kernel vmlinux: segment 0 (0x9f000 to 0x9ffff) touches "
                              "0x9fc00 to 0xfffff, which is reserved on a PC");
    fixture_close(&fixture);
}

static void refuses_overlapping_segments(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.inputs.image.elf.segment_count = 2;
    fixture.inputs.image.elf.segments[1] =
        (struct image_segment){0x102000, 0x1000, 0x1000, 0x1000};
    fixture_refuses(&fixture, "kernel vmlinux: kernel segment 1 (0x102000 to 0x102fff) "
                              "overlaps kernel segment 0, bss (0x101800 to 0x1027ff)");
    fixture_close(&fixture);
}

static void refuses_bytes_behind_the_end_of_the_file(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    segment(&fixture)->file_offset = 0x2000;
    fixture_refuses(&fixture,
                    "kernel vmlinux: kernel segment 0: the file ends at byte 12288, but "
                    "6144 bytes at offset 8192 are needed");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_whole_pages_and_copies_the_tail),
        cmocka_unit_test(copies_the_head_of_a_segment_that_starts_inside_a_page),
        cmocka_unit_test(copies_what_fills_no_page),
        cmocka_unit_test(copies_a_segment_whose_offset_and_address_disagree),
        cmocka_unit_test(copies_a_file_that_cannot_be_mapped_for_its_reason),
        cmocka_unit_test(copies_everything_into_huge_pages),
        cmocka_unit_test(has_no_bss_range_for_a_segment_without_bss),
        cmocka_unit_test(keeps_ranges_sorted_and_apart),
        cmocka_unit_test(moves_its_own_structures_out_of_a_low_kernels_way),
        cmocka_unit_test(refuses_a_segment_over_the_reserved_area),
        cmocka_unit_test(refuses_overlapping_segments),
        cmocka_unit_test(refuses_bytes_behind_the_end_of_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
