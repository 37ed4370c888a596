/* SPDX-License-Identifier: Apache-2.0 */
/* The machine a plan is for: RAM, memory map, limits, firmware. */
#include "fixture.h"

static void assert_e820(const struct boot_plan *plan, const struct boot_e820 *expected,
                        size_t count)
{
    assert_int_equal(plan->e820_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(plan->e820[i].gpa, expected[i].gpa);
        assert_int_equal(plan->e820[i].size_bytes, expected[i].size_bytes);
        assert_int_equal(plan->e820[i].type, expected[i].type);
    }
}

static void small_memory_is_one_span_below_the_hole(void **state)
{
    static const struct boot_e820 expected[] = {
        {0, 0x9fc00, BOOT_E820_RAM},
        {0x9fc00, 0x60400, BOOT_E820_RESERVED},
        {0x100000, 0x3f00000, BOOT_E820_RAM},
        {0xe0000000, 0x100000, BOOT_E820_RESERVED},
        {0xfeffc000, 0x1004000, BOOT_E820_RESERVED},
    };
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->span_count, 1);
    assert_int_equal(fixture.plan->spans[0].gpa, 0);
    assert_int_equal(fixture.plan->spans[0].size_bytes, 64 * MIB);
    assert_e820(fixture.plan, expected, ARRAY_SIZE(expected));
    fixture_close(&fixture);
}

static void memory_above_3_gib_continues_at_4_gib(void **state)
{
    static const struct boot_e820 expected[] = {
        {0, 0x9fc00, BOOT_E820_RAM},
        {0x9fc00, 0x60400, BOOT_E820_RESERVED},
        {0x100000, 0xbff00000, BOOT_E820_RAM},
        {0xe0000000, 0x100000, BOOT_E820_RESERVED},
        {0xfeffc000, 0x1004000, BOOT_E820_RESERVED},
        {0x100000000, 0x1000, BOOT_E820_RAM},
    };
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.memory_bytes = 3 * GIB + 0x1000;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->span_count, 2);
    assert_int_equal(fixture.plan->spans[0].size_bytes, 3 * GIB);
    assert_int_equal(fixture.plan->spans[1].gpa, 4 * GIB);
    assert_int_equal(fixture.plan->spans[1].size_bytes, 0x1000);
    assert_e820(fixture.plan, expected, ARRAY_SIZE(expected));
    fixture_close(&fixture);
}

static void refuses_machines_that_cannot_be(void **state)
{
    static const struct {
        uint64_t memory_bytes;
        uint32_t cpu_count;
        const char *sentence;
    } cases[] = {
        {2 * MIB - 4096, 1, "-m gives 2044 KiB of memory; a guest needs at least 2 MiB"},
        {1025 * GIB, 1, "-m gives 1025 GiB of memory; husk's limit is 1024 GiB"},
        {64 * MIB + 1, 1,
         "-m gives 67108865 bytes of memory; it must be a multiple of 4096"},
        {64 * MIB, 0, "0 CPUs; a guest has 1 to 255"},
        {64 * MIB, 256, "256 CPUs; a guest has 1 to 255"},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture fixture;

        fixture_elf(&fixture);
        fixture.options.memory_bytes = cases[i].memory_bytes;
        fixture.options.cpu_count = cases[i].cpu_count;
        fixture_refuses(&fixture, cases[i].sentence);
        fixture_close(&fixture);
    }
}

static void a_kernel_larger_than_ram_names_the_size_it_needs(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.memory_bytes = 16 * MIB;
    fixture.inputs.image.elf.segments[0].memory_bytes = 66 * MIB;
    fixture_refuses(&fixture, "kernel vmlinux: needs at least 67 MiB of memory, -m gives "
                              "16 MiB");
    fixture_close(&fixture);
}

static void a_kernel_above_3_gib_is_told_that_no_memory_will_do(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.memory_bytes = 8 * GIB;
    fixture.inputs.image.elf.segments[0].gpa = 4 * GIB;
    fixture.inputs.image.elf.pvh_entry = 0;
    fixture.options.protocol = BOOT_LINUX64;
    fixture.inputs.image.elf.entry_physical = 4 * GIB;
    fixture_refuses(
        &fixture, "kernel vmlinux: needs RAM up to address 0x100002800, but below 4 GiB "
                  "a guest has at most 3072 MiB");
    fixture_close(&fixture);
}

static void fits_into_the_smallest_memory(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.memory_bytes = 2 * MIB;
    fixture.options.cpu_count = 255;
    fixture_build(&fixture);
    fixture_close(&fixture);
}

static void firmware_ends_at_4_gib_and_at_1_mib(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_firmware(&fixture, 0x40000);
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->protocol, BOOT_FIRMWARE);
    assert_string_equal(fixture.plan->protocol_reason, "firmware was given");
    assert_int_equal(fixture.plan->span_count, 2);
    assert_int_equal(fixture.plan->spans[1].gpa, 0xfffc0000);
    assert_int_equal(fixture.plan->spans[1].size_bytes, 0x40000);
    assert_range(fixture_range(&fixture, 0xfffc0000), 0xfffc0000, 0x40000, BOOT_MAP,
                 NULL);
    assert_range(fixture_range(&fixture, 0xe0000), 0xe0000, 0x20000, BOOT_MAP, NULL);
    assert_int_equal(fixture_range(&fixture, 0xe0000)->file_offset, 0x20000);
    assert_int_equal(fixture.plan->range_count, 2);
    assert_int_equal(fixture.plan->entry.segments[X86_CS].base, 0xffff0000);
    assert_int_equal(fixture.plan->entry.rip, 0xfff0);
    fixture_close(&fixture);
}

static void small_firmware_is_whole_in_both_places(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_firmware(&fixture, 0x1000);
    fixture.options.memory_bytes = 5 * GIB;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->span_count, 3);
    assert_range(fixture_range(&fixture, 0xfffff000), 0xfffff000, 0x1000, BOOT_MAP, NULL);
    assert_range(fixture_range(&fixture, 0xff000), 0xff000, 0x1000, BOOT_MAP, NULL);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_memory_is_one_span_below_the_hole),
        cmocka_unit_test(memory_above_3_gib_continues_at_4_gib),
        cmocka_unit_test(refuses_machines_that_cannot_be),
        cmocka_unit_test(a_kernel_larger_than_ram_names_the_size_it_needs),
        cmocka_unit_test(a_kernel_above_3_gib_is_told_that_no_memory_will_do),
        cmocka_unit_test(fits_into_the_smallest_memory),
        cmocka_unit_test(firmware_ends_at_4_gib_and_at_1_mib),
        cmocka_unit_test(small_firmware_is_whole_in_both_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
