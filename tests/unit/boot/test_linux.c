/* SPDX-License-Identifier: Apache-2.0 */
/* Entry by the Linux boot protocol: boot_params, placement, long mode and 32-bit mode. */
#include "fixture.h"

#include <string.h>

static const uint8_t *bytes_of(const struct fixture *fixture, const char *what)
{
    const struct boot_range *range = fixture_find(fixture, what);

    assert_int_equal(range->kind, BOOT_GENERATED);
    return range->bytes;
}

static void maps_the_protected_mode_part_at_the_preferred_address(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->protocol, BOOT_LINUX64);
    assert_range(fixture_range(&fixture, 0x1000000), 0x1000000, 0x4000, BOOT_MAP, NULL);
    assert_int_equal(fixture_range(&fixture, 0x1000000)->file_offset, 0x1000);
    fixture_close(&fixture);
}

static void copies_a_part_that_starts_at_an_odd_sector(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.inputs.image.bzimage.setup_bytes = 0xe00;
    fixture.inputs.image.bzimage.kernel_bytes = 0x4200;
    fixture_build(&fixture);
    assert_range(
        fixture_range(&fixture, 0x1000000), 0x1000000, 0x4200, BOOT_COPY,
        "file offset 0xe00 and address 0x1000000 differ modulo the page size of 4096");
    fixture_close(&fixture);
}

static void rounds_the_load_address_up_to_the_alignment(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.inputs.image.bzimage.preferred_gpa = 0x1000001;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->entry.rip, 0x1200200);
    fixture_close(&fixture);
}

static void loads_a_kernel_that_cannot_move_at_1_mib(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.inputs.image.bzimage.relocatable = false;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->entry.rip, 0x100200);
    fixture_close(&fixture);
}

static void boot_params_holds_the_header_and_nothing_behind_it(void **state)
{
    struct fixture fixture;
    const uint8_t *params;
    (void)state;

    fixture_bzimage(&fixture);
    fixture_add_initrd(&fixture, "initrd", 0x1800);
    fixture_build(&fixture);
    params = bytes_of(&fixture, "boot_params");
    assert_int_equal(params[0x1f1], fixture_byte(0x1f1));
    assert_int_equal(params[0x20f], fixture_byte(0x20f));
    assert_int_equal(params[0x210], 0xff); /* type_of_loader */
    assert_int_equal(params[0x211], fixture_byte(0x211));
    assert_int_equal(load_le32(params + 0x214), 0x1000000);         /* code32_start */
    assert_int_equal(load_le32(params + 0x218), 64 * MIB - 0x2000); /* ramdisk_image */
    assert_int_equal(load_le32(params + 0x21c), 0x1800);            /* ramdisk_size */
    assert_int_equal(load_le32(params + 0x228), 0x20000);           /* cmd_line_ptr */
    assert_int_equal(params[0x26b], fixture_byte(0x26b));
    for (size_t i = 0x26c; i < 0x2d0; i++)
        assert_int_equal(params[i], 0);
    for (size_t i = 0; i < 0x1f1; i++)
        if ((i < 0x70 || i >= 0x78) && i != 0x1e8)
            assert_int_equal(params[i], 0);
    assert_int_equal(load_le64(params + 0x70), 0xe0000); /* acpi_rsdp_addr */
    fixture_close(&fixture);
}

static void a_header_that_claims_too_much_is_cut_before_the_loaders_fields(void **state)
{
    struct fixture fixture;
    const uint8_t *params;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.inputs.image.bzimage.header_end = 0x301;
    fixture_build(&fixture);
    params = bytes_of(&fixture, "boot_params");
    assert_int_equal(params[0x28f], fixture_byte(0x28f));
    for (size_t i = 0x290; i < 0x2d0; i++)
        assert_int_equal(params[i], 0);
    assert_int_equal(load_le64(params + 0x2d0), 0);
    assert_int_equal(load_le64(params + 0x2d8), 0x9fc00);
    fixture_close(&fixture);
}

static void boot_params_lists_the_e820(void **state)
{
    struct fixture fixture;
    const uint8_t *params;
    (void)state;

    fixture_bzimage(&fixture);
    fixture_build(&fixture);
    params = bytes_of(&fixture, "boot_params");
    assert_int_equal(params[0x1e8], fixture.plan->e820_count);
    for (size_t i = 0; i < fixture.plan->e820_count; i++) {
        const uint8_t *entry = params + 0x2d0 + 20 * i;

        assert_int_equal(load_le64(entry), fixture.plan->e820[i].gpa);
        assert_int_equal(load_le64(entry + 8), fixture.plan->e820[i].size_bytes);
        assert_int_equal(load_le32(entry + 16), fixture.plan->e820[i].type);
    }
    fixture_close(&fixture);
}

static void enters_at_0x200_in_long_mode(void **state)
{
    struct fixture fixture;
    const struct cpu_state *entry;
    const uint8_t *tables, *gdt;
    (void)state;

    fixture_bzimage(&fixture);
    fixture_build(&fixture);
    entry = &fixture.plan->entry;
    assert_int_equal(entry->rip, 0x1000200);
    assert_int_equal(entry->registers[X86_RSI], 0x7000);
    assert_int_equal(entry->registers[X86_RSP], 0x8ff0);
    assert_int_equal(entry->efer, X86_EFER_LME | X86_EFER_LMA);
    assert_int_equal(entry->cr3, 0x9000);
    assert_true(entry->segments[X86_CS].long_mode);
    gdt = bytes_of(&fixture, "GDT");
    assert_int_equal(load_le64(gdt + 0x10), UINT64_C(0x00af9b000000ffff));
    tables = bytes_of(&fixture, "page tables");
    assert_int_equal(load_le64(tables), 0xa003);
    assert_int_equal(load_le64(tables + 8), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(load_le64(tables + 0x1000 + 8 * i), 0xb003 + 0x1000 * i);
    assert_int_equal(load_le64(tables + 0x1020), 0);
    for (uint64_t i = 0; i < 2048; i++)
        assert_int_equal(load_le64(tables + 0x2000 + 8 * i), i * 0x200000 + 0x83);
    fixture_close(&fixture);
}

static void enters_at_its_start_in_32_bit_mode_without_the_xloadflags_bit(void **state)
{
    struct fixture fixture;
    const struct cpu_state *entry;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.inputs.image.bzimage.xloadflags = 0x7e;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->protocol, BOOT_LINUX32);
    entry = &fixture.plan->entry;
    assert_int_equal(entry->rip, 0x1000000);
    assert_int_equal(entry->registers[X86_RSI], 0x7000);
    assert_int_equal(entry->registers[X86_RBX], 0);
    assert_int_equal(entry->registers[X86_RBP], 0);
    assert_int_equal(entry->registers[X86_RDI], 0);
    assert_int_equal(entry->cr0, X86_CR0_PE | X86_CR0_ET);
    assert_int_equal(entry->efer, 0);
    fixture_close(&fixture);
}

static void notes_what_may_be_a_boot_loader_that_only_looks_like_linux(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.inputs.image.bzimage.version = 0x0207;
    fixture.inputs.image.bzimage.xloadflags = 0;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->note_count, 1);
    assert_string_equal(fixture.plan->notes[0],
                        "the bzImage has boot protocol 2.07: if it is a boot loader and "
                        "not Linux, it needs a BIOS below it (--firmware)");
    fixture_close(&fixture);
    fixture_bzimage(&fixture);
    fixture.inputs.image.bzimage.version = 0x0208;
    fixture.inputs.image.bzimage.xloadflags = 0;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->note_count, 0);
    fixture_close(&fixture);
}

static void keeps_everything_out_of_init_size(void **state)
{
    struct fixture fixture;
    const struct boot_plan *plan;
    (void)state;

    /* 31 MiB of working memory at 16 MiB leave 1 MiB above, too little for the initrd. */
    fixture_bzimage(&fixture);
    fixture.options.memory_bytes = 48 * MIB;
    fixture.inputs.image.bzimage.init_bytes = 31 * MIB;
    fixture_add_initrd(&fixture, "initrd", 2 * MIB);
    fixture_build(&fixture);
    assert_int_equal(fixture_find(&fixture, "initrd 0")->gpa, 14 * MIB);
    plan = fixture.plan;
    for (size_t i = 0; i < plan->range_count; i++)
        if (plan->ranges[i].file != 0 || plan->ranges[i].kind != BOOT_MAP)
            assert_false(ranges_overlap(plan->ranges[i].gpa, plan->ranges[i].size_bytes,
                                        16 * MIB, 31 * MIB));
    fixture_close(&fixture);
}

static void keeps_clear_of_where_a_fixed_kernel_moves_to(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.options.memory_bytes = 48 * MIB;
    fixture.inputs.image.bzimage.relocatable = false;
    fixture.inputs.image.bzimage.init_bytes = 31 * MIB;
    fixture_add_initrd(&fixture, "initrd", 2 * MIB);
    fixture_build(&fixture);
    assert_int_equal(fixture_find(&fixture, "initrd 0")->gpa, 14 * MIB);
    fixture_close(&fixture);
}

static void names_the_memory_that_init_size_needs(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.options.memory_bytes = 48 * MIB;
    fixture.inputs.image.bzimage.init_bytes = 32 * MIB + 1;
    fixture_refuses(&fixture, "kernel vmlinuz: needs at least 49 MiB of memory, -m gives "
                              "48 MiB");
    fixture_close(&fixture);
}

static void refuses_a_preferred_address_above_ram(void **state)
{
    static const uint64_t addresses[] = {0xc0000001, 0xfffffffffff00000};
    static const char *const sentences[] = {
        "kernel vmlinuz: pref_address 0xc0000001 leads above 0xc0000000, where RAM below "
        "4 GiB ends at the latest",
        "kernel vmlinuz: pref_address 0xfffffffffff00000 leads above 0xc0000000, where "
        "RAM "
        "below 4 GiB ends at the latest",
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        struct fixture fixture;

        fixture_bzimage(&fixture);
        fixture.inputs.image.bzimage.preferred_gpa = addresses[i];
        fixture_refuses(&fixture, sentences[i]);
        fixture_close(&fixture);
    }
}

static void refuses_a_command_line_longer_than_the_kernels_limit(void **state)
{
    struct fixture fixture;
    char cmdline[257];
    (void)state;

    memset(cmdline, 'x', 256);
    cmdline[256] = '\0';
    fixture_bzimage(&fixture);
    fixture.inputs.image.bzimage.cmdline_limit = 255;
    fixture.options.cmdline = cmdline;
    fixture_refuses(&fixture, "the kernel command line has 256 bytes, but this kernel "
                              "takes at most 255");
    fixture_close(&fixture);
}

static void enters_an_elf64_with_boot_params(void **state)
{
    struct fixture fixture;
    const uint8_t *params;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.protocol = BOOT_LINUX64;
    fixture.inputs.image.elf.has_pvh = false;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->protocol, BOOT_LINUX64);
    assert_int_equal(fixture.plan->entry.rip, 0x100000);
    assert_int_equal(fixture.plan->entry.registers[X86_RSI], 0x7000);
    params = bytes_of(&fixture, "boot_params");
    assert_int_equal(load_le16(params + 0x1fe), 0xaa55);
    assert_memory_equal(params + 0x202, "HdrS", 4);
    assert_int_equal(load_le16(params + 0x206), 0x020f);
    assert_int_equal(params[0x210], 0xff);
    assert_int_equal(params[0x211], 1);
    assert_int_equal(load_le32(params + 0x228), 0x20000);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_the_protected_mode_part_at_the_preferred_address),
        cmocka_unit_test(copies_a_part_that_starts_at_an_odd_sector),
        cmocka_unit_test(rounds_the_load_address_up_to_the_alignment),
        cmocka_unit_test(loads_a_kernel_that_cannot_move_at_1_mib),
        cmocka_unit_test(boot_params_holds_the_header_and_nothing_behind_it),
        cmocka_unit_test(a_header_that_claims_too_much_is_cut_before_the_loaders_fields),
        cmocka_unit_test(boot_params_lists_the_e820),
        cmocka_unit_test(enters_at_0x200_in_long_mode),
        cmocka_unit_test(enters_at_its_start_in_32_bit_mode_without_the_xloadflags_bit),
        cmocka_unit_test(notes_what_may_be_a_boot_loader_that_only_looks_like_linux),
        cmocka_unit_test(keeps_everything_out_of_init_size),
        cmocka_unit_test(keeps_clear_of_where_a_fixed_kernel_moves_to),
        cmocka_unit_test(names_the_memory_that_init_size_needs),
        cmocka_unit_test(refuses_a_preferred_address_above_ram),
        cmocka_unit_test(refuses_a_command_line_longer_than_the_kernels_limit),
        cmocka_unit_test(enters_an_elf64_with_boot_params),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
