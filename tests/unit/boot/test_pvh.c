/* SPDX-License-Identifier: Apache-2.0 */
/* Entry by PVH: what start_info says, and the processor's state. */
#include "fixture.h"

#include <string.h>

static const uint8_t *bytes_of(const struct fixture *fixture, const char *what)
{
    const struct boot_range *range = fixture_find(fixture, what);

    assert_int_equal(range->kind, BOOT_GENERATED);
    return range->bytes;
}

static void start_info_is_version_1_and_points_to_everything(void **state)
{
    struct fixture fixture;
    const uint8_t *info;
    (void)state;

    fixture_elf(&fixture);
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->protocol, BOOT_PVH);
    assert_int_equal(fixture_find(&fixture, "PVH start_info")->gpa, 0x6000);
    info = bytes_of(&fixture, "PVH start_info");
    assert_int_equal(load_le32(info), 0x336ec578);
    assert_int_equal(load_le32(info + 4), 1);
    assert_int_equal(load_le32(info + 8), 0);
    assert_int_equal(load_le32(info + 12), 0);       /* modules */
    assert_int_equal(load_le64(info + 16), 0);       /* their list */
    assert_int_equal(load_le64(info + 24), 0x20000); /* command line */
    assert_int_equal(load_le64(info + 32), 0xe0000); /* RSDP */
    assert_int_equal(load_le64(info + 40), 0x7000);  /* memory map */
    assert_int_equal(load_le32(info + 48), fixture.plan->e820_count);
    assert_int_equal(load_le32(info + 52), 0);
    assert_string_equal((const char *)bytes_of(&fixture, "command line"),
                        "console=ttyS0");
    fixture_close(&fixture);
}

static void module_0_is_the_initrd(void **state)
{
    struct fixture fixture;
    const uint8_t *info;
    (void)state;

    fixture_elf(&fixture);
    fixture_add_initrd(&fixture, "initrd", 5000);
    fixture_build(&fixture);
    info = bytes_of(&fixture, "PVH start_info");
    assert_int_equal(load_le32(info + 12), 1);
    assert_int_equal(load_le64(info + 16), 0x6040);
    assert_int_equal(load_le64(info + 0x40), 64 * MIB - 0x2000);
    assert_int_equal(load_le64(info + 0x48), 5000);
    assert_int_equal(load_le64(info + 0x50), 0);
    assert_int_equal(load_le64(info + 0x58), 0);
    fixture_close(&fixture);
}

static void memory_map_is_the_e820(void **state)
{
    struct fixture fixture;
    const uint8_t *map;
    (void)state;

    fixture_elf(&fixture);
    fixture_build(&fixture);
    map = bytes_of(&fixture, "PVH memory map");
    for (size_t i = 0; i < fixture.plan->e820_count; i++) {
        assert_int_equal(load_le64(map + 24 * i), fixture.plan->e820[i].gpa);
        assert_int_equal(load_le64(map + 24 * i + 8), fixture.plan->e820[i].size_bytes);
        assert_int_equal(load_le32(map + 24 * i + 16), fixture.plan->e820[i].type);
        assert_int_equal(load_le32(map + 24 * i + 20), 0);
    }
    fixture_close(&fixture);
}

static void enters_in_flat_32_bit_mode(void **state)
{
    struct fixture fixture;
    const struct cpu_state *entry;
    const uint8_t *gdt;
    (void)state;

    fixture_elf(&fixture);
    fixture_build(&fixture);
    entry = &fixture.plan->entry;
    assert_int_equal(entry->rip, 0x100040);
    assert_int_equal(entry->registers[X86_RBX], 0x6000);
    assert_int_equal(entry->cr0, X86_CR0_PE | X86_CR0_ET);
    assert_int_equal(entry->cr4, 0);
    assert_int_equal(entry->rflags, X86_FLAGS_FIXED);
    assert_int_equal(entry->segments[X86_TR].limit, 0x67);
    assert_int_equal(entry->gdt.base, fixture_find(&fixture, "GDT")->gpa);
    gdt = bytes_of(&fixture, "GDT");
    assert_int_equal(load_le64(gdt + 0x10), UINT64_C(0x00cf9b000000ffff));
    fixture_close(&fixture);
}

static void a_kernel_from_a_bzimage_keeps_that_files_limits(void **state)
{
    struct fixture fixture;
    char cmdline[2049];
    (void)state;

    fixture_bzimage(&fixture);
    fixture_add_unpacked(&fixture);
    fixture.inputs.image.bzimage.initrd_last_byte = 0x1ffffff;
    fixture_add_initrd(&fixture, "initrd", 0x1000);
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->protocol, BOOT_PVH);
    assert_int_equal(fixture.plan->file_count, 3);
    assert_int_equal(fixture_range(&fixture, 0x100000)->file, 1);
    assert_int_equal(fixture.plan->files[1].role, BOOT_FILE_UNPACKED);
    assert_int_equal(fixture_find(&fixture, "initrd 0")->gpa, 0x1fff000);
    boot_plan_destroy(fixture.plan);
    fixture.plan = NULL;

    memset(cmdline, 'a', 2048);
    cmdline[2048] = '\0';
    fixture.options.cmdline = cmdline;
    fixture_refuses(&fixture, "the kernel command line has 2048 bytes, but this kernel "
                              "takes at most 2047");
    fixture_close(&fixture);
}

static void refuses_a_command_line_beyond_what_husk_passes(void **state)
{
    struct fixture fixture;
    char cmdline[4098];
    (void)state;

    memset(cmdline, 'a', 4097);
    cmdline[4097] = '\0';
    fixture_elf(&fixture);
    fixture.options.cmdline = cmdline;
    fixture_refuses(&fixture,
                    "the kernel command line has 4097 bytes, but husk passes at "
                    "most 4096 to a kernel that states no limit");
    fixture_close(&fixture);

    cmdline[4096] = '\0';
    fixture_elf(&fixture);
    fixture.options.cmdline = cmdline;
    fixture_build(&fixture);
    assert_int_equal(fixture_find(&fixture, "command line")->size_bytes, 4097);
    fixture_close(&fixture);
}

static void a_32_bit_kernel_finds_its_initrd_below_896_mib(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.memory_bytes = 2 * GIB;
    fixture.inputs.image.format = IMAGE_ELF32;
    fixture.inputs.image.elf.machine = 3;
    fixture_add_initrd(&fixture, "initrd", 0x1000);
    fixture_build(&fixture);
    assert_int_equal(fixture_find(&fixture, "initrd 0")->gpa, 0x37fff000);
    fixture_close(&fixture);
}

static void refuses_an_entry_outside_all_segments(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.inputs.image.elf.pvh_entry = 0x102800;
    fixture_refuses(&fixture,
                    "kernel vmlinux: its entry point 0x102800 lies in no segment");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_info_is_version_1_and_points_to_everything),
        cmocka_unit_test(module_0_is_the_initrd),
        cmocka_unit_test(memory_map_is_the_e820),
        cmocka_unit_test(enters_in_flat_32_bit_mode),
        cmocka_unit_test(a_kernel_from_a_bzimage_keeps_that_files_limits),
        cmocka_unit_test(refuses_a_command_line_beyond_what_husk_passes),
        cmocka_unit_test(a_32_bit_kernel_finds_its_initrd_below_896_mib),
        cmocka_unit_test(refuses_an_entry_outside_all_segments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
