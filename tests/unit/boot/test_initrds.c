/* SPDX-License-Identifier: Apache-2.0 */
/* Where initrds go. */
#include "fixture.h"

static void an_initrd_is_mapped_at_the_top_of_low_ram(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture_add_initrd(&fixture, "initrd", 0x1801);
    fixture_build(&fixture);
    assert_range(fixture_range(&fixture, 64 * MIB - 0x2000), 64 * MIB - 0x2000, 0x1000,
                 BOOT_MAP, NULL);
    assert_range(fixture_range(&fixture, 64 * MIB - 0x1000), 64 * MIB - 0x1000, 0x801,
                 BOOT_COPY, "ends inside a page, and only whole pages can be mapped");
    fixture_close(&fixture);
}

static void ram_above_4_gib_is_not_used(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.memory_bytes = 8 * GIB;
    fixture_add_initrd(&fixture, "initrd", 0x1000);
    fixture_build(&fixture);
    assert_int_equal(fixture_find(&fixture, "initrd 0")->gpa, 0xbffff000);
    fixture_close(&fixture);
}

static void the_bzimages_highest_byte_is_honoured(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.options.memory_bytes = 4 * GIB;
    fixture_add_initrd(&fixture, "initrd", 0x1000);
    fixture_build(&fixture);
    assert_int_equal(fixture_find(&fixture, "initrd 0")->gpa, 0x7ffff000);
    fixture_close(&fixture);
}

static void several_initrds_start_on_pages_with_zeroes_between(void **state)
{
    struct fixture fixture;
    uint64_t start = 64 * MIB - 0x4000;
    const uint8_t *info;
    (void)state;

    fixture_elf(&fixture);
    fixture_add_initrd(&fixture, "first", 0x1001);
    fixture_add_initrd(&fixture, "second", 0x1000);
    fixture_add_initrd(&fixture, "third", 0x10);
    fixture_build(&fixture);
    assert_range(fixture_range(&fixture, start), start, 0x1000, BOOT_MAP, NULL);
    assert_range(fixture_range(&fixture, start + 0x1000), start + 0x1000, 1, BOOT_COPY,
                 "ends inside a page, and only whole pages can be mapped");
    assert_range(fixture_range(&fixture, start + 0x1001), start + 0x1001, 0xfff,
                 BOOT_ZERO, NULL);
    assert_range(fixture_range(&fixture, start + 0x2000), start + 0x2000, 0x1000,
                 BOOT_MAP, NULL);
    assert_range(fixture_range(&fixture, start + 0x3000), start + 0x3000, 0x10, BOOT_COPY,
                 "fills no whole page, and only whole pages can be mapped");
    info = fixture_find(&fixture, "PVH start_info")->bytes;
    assert_int_equal(load_le32(info + 12), 1);
    assert_int_equal(load_le64(info + 0x40), start);
    assert_int_equal(load_le64(info + 0x48), 0x3010);
    fixture_close(&fixture);
}

static void an_initrd_below_the_kernel_is_better_than_none(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.inputs.image.elf.segments[0].gpa = 60 * MIB;
    fixture.inputs.image.elf.segments[0].memory_bytes = 4 * MIB;
    fixture.inputs.image.elf.pvh_entry = 60 * MIB;
    fixture_add_initrd(&fixture, "initrd", 0x1000);
    fixture_build(&fixture);
    assert_int_equal(fixture_find(&fixture, "initrd 0")->gpa, 60 * MIB - 0x1000);
    fixture_close(&fixture);
}

static void names_the_memory_that_kernel_and_initrd_need(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.memory_bytes = 4 * MIB;
    fixture_add_initrd(&fixture, "initrd.img", 3 * MIB);
    fixture_refuses(&fixture,
                    "initrd initrd.img beside the kernel: needs at least 5 MiB of "
                    "memory, -m gives 4 MiB");
    fixture_close(&fixture);

    fixture_elf(&fixture);
    fixture.options.memory_bytes = 4 * MIB;
    fixture_add_initrd(&fixture, "a", 2 * MIB);
    fixture_add_initrd(&fixture, "b", 2 * MIB);
    fixture_refuses(&fixture,
                    "2 initrds beside the kernel: needs at least 6 MiB of memory, "
                    "-m gives 4 MiB");
    fixture_close(&fixture);
}

static void names_the_kernels_limit_when_more_memory_would_not_help(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.inputs.image.bzimage.initrd_last_byte = 0x11fffff;
    fixture.inputs.image.bzimage.preferred_gpa = 0x200000;
    fixture.inputs.image.bzimage.init_bytes = 15 * MIB;
    fixture_add_initrd(&fixture, "initrd.img", 2 * MIB);
    fixture_refuses(&fixture,
                    "initrd initrd.img beside the kernel: 2097152 bytes do not fit "
                    "below address 0x1200000, where this kernel takes an initrd");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_initrd_is_mapped_at_the_top_of_low_ram),
        cmocka_unit_test(ram_above_4_gib_is_not_used),
        cmocka_unit_test(the_bzimages_highest_byte_is_honoured),
        cmocka_unit_test(several_initrds_start_on_pages_with_zeroes_between),
        cmocka_unit_test(an_initrd_below_the_kernel_is_better_than_none),
        cmocka_unit_test(names_the_memory_that_kernel_and_initrd_need),
        cmocka_unit_test(names_the_kernels_limit_when_more_memory_would_not_help),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
