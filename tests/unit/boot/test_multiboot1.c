/* SPDX-License-Identifier: Apache-2.0 */
/* What a Multiboot 1 kernel is handed: every field, and what is refused. */
#include "fixture.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a kernel, and what it finds ---- */

static void open_kernel(struct fixture *fixture, uint32_t flags)
{
    fixture_elf(fixture);
    fixture->inputs.image.format = IMAGE_ELF32;
    fixture->inputs.image.elf.machine = EM_386;
    fixture->inputs.image.elf.has_pvh = false;
    fixture->inputs.image.multiboot1 = (struct image_multiboot1){
        .present = true, .header_offset = 0x1000, .flags = flags};
}

static uint32_t word(const struct fixture *fixture, uint64_t gpa)
{
    return load_le32(fixture_bytes(fixture, gpa, 4));
}

static const char *text(const struct fixture *fixture, uint64_t gpa)
{
    return (const char *)fixture_bytes(fixture, gpa, 1);
}

static uint64_t information(const struct fixture *fixture)
{
    return fixture->plan->entry.registers[X86_RBX];
}

static uint32_t field(const struct fixture *fixture, uint32_t offset)
{
    return word(fixture, information(fixture) + offset);
}

static void refuses(struct fixture *fixture, const char *sentence)
{
    fixture_refuses(fixture, sentence);
    fixture_close(fixture);
}

/* ---- entry ---- */

static void enters_in_flat_32_bit_mode_with_magic_and_information(void **state)
{
    struct fixture fixture;
    const struct cpu_state *entry;
    (void)state;

    open_kernel(&fixture, 0);
    fixture_build(&fixture);
    entry = &fixture.plan->entry;
    assert_int_equal(fixture.plan->protocol, BOOT_MULTIBOOT1);
    assert_int_equal(entry->registers[X86_RAX], 0x2badb002);
    assert_int_equal(entry->registers[X86_RBX], 0x10000);
    assert_int_equal(entry->rip, 0x100000);
    assert_int_equal(entry->cr0, X86_CR0_PE | X86_CR0_ET);
    assert_int_equal(entry->rflags, X86_FLAGS_FIXED);
    assert_int_equal(entry->segments[X86_CS].limit, 0xffffffff);
    assert_int_equal(entry->segments[X86_CS].base, 0);
    assert_true(entry->segments[X86_CS].db);
    assert_int_equal(entry->segments[X86_SS].limit, 0xffffffff);
    assert_int_equal(entry->gdt.base, 0x1000);
    fixture_close(&fixture);
}

static void address_fields_come_before_an_elfs_headers(void **state)
{
    struct fixture fixture;
    struct image_multiboot1 *header = &fixture.inputs.image.multiboot1;
    (void)state;

    open_kernel(&fixture, 1u << 16);
    header->has_addresses = true;
    header->entry_addr = 0x200010;
    header->segment = (struct image_segment){.gpa = 0x200000,
                                             .file_offset = 0x1000,
                                             .file_bytes = 0x2000,
                                             .memory_bytes = 0x5000};
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->entry.rip, 0x200010);
    assert_range(fixture_find(&fixture, "kernel segment 0"), 0x200000, 0x2000, BOOT_MAP,
                 NULL);
    assert_range(fixture_find(&fixture, "kernel segment 0, bss"), 0x202000, 0x3000,
                 BOOT_ZERO, NULL);
    assert_int_equal(field(&fixture, 0), 0x24d); /* no sections: it is no ELF to us */
    fixture_close(&fixture);
}

/* ---- the information ---- */

static void tells_memory_command_line_and_loader(void **state)
{
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture, 3);
    fixture.options.cmdline = "console=ttyS0 quiet x=1";
    fixture.options.cmdline_default_bytes = strlen("console=ttyS0 ");
    fixture_build(&fixture);
    assert_int_equal(field(&fixture, 0), 0x24d);
    assert_int_equal(field(&fixture, 4), 639);
    assert_int_equal(field(&fixture, 8), 63 * 1024);
    assert_int_equal(field(&fixture, 12), 0);
    assert_string_equal(text(&fixture, field(&fixture, 16)), "vmlinux quiet x=1");
    assert_string_equal(fixture.plan->cmdline, "vmlinux quiet x=1");
    assert_int_equal(field(&fixture, 20), 0);
    assert_memory_equal(text(&fixture, field(&fixture, 64)), "husk ", 5);
    for (uint32_t offset = 68; offset < 116; offset += 4)
        assert_int_equal(field(&fixture, offset), 0); /* APM, VBE, framebuffer */
    fixture_close(&fixture);
}

static void the_path_is_all_of_an_empty_command_line(void **state)
{
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture, 0);
    fixture.options.cmdline = "console=ttyS0";
    fixture.options.cmdline_default_bytes = strlen("console=ttyS0");
    fixture_build(&fixture);
    assert_string_equal(text(&fixture, field(&fixture, 16)), "vmlinux");
    fixture_close(&fixture);
}

static void upper_memory_ends_at_the_first_hole(void **state)
{
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture, 2);
    fixture.options.memory_bytes = 8 * GIB;
    fixture_build(&fixture);
    assert_int_equal(field(&fixture, 8), 3 * 1024 * 1024 - 1024);
    fixture_close(&fixture);
}

static void the_memory_map_is_that_of_the_plan(void **state)
{
    struct fixture fixture;
    const struct boot_plan *plan;
    uint64_t at;
    (void)state;

    open_kernel(&fixture, 2);
    fixture_build(&fixture);
    plan = fixture.plan;
    assert_int_equal(field(&fixture, 44), plan->e820_count * 24);
    at = field(&fixture, 48);
    for (size_t i = 0; i < plan->e820_count; i++, at += 24) {
        const uint8_t *entry = fixture_bytes(&fixture, at, 24);

        assert_int_equal(load_le32(entry), 20);
        assert_int_equal(load_le64(entry + 4), plan->e820[i].gpa);
        assert_int_equal(load_le64(entry + 12), plan->e820[i].size_bytes);
        assert_int_equal(load_le32(entry + 20), plan->e820[i].type);
    }
    fixture_close(&fixture);
}

static void modules_lie_behind_the_kernel_on_pages_of_their_own(void **state)
{
    struct fixture fixture;
    uint64_t list;
    (void)state;

    open_kernel(&fixture, 1);
    fixture_add_initrd(&fixture, "a.mod", 0x1800);
    fixture_add_initrd(&fixture, "b.mod", 0x10);
    fixture.inputs.module_strings[0] = strdup("a.mod first args");
    fixture_build(&fixture);
    assert_int_equal(field(&fixture, 20), 2);
    list = field(&fixture, 24);
    assert_int_equal(word(&fixture, list), 0x103000);
    assert_int_equal(word(&fixture, list + 4), 0x104800);
    assert_string_equal(text(&fixture, word(&fixture, list + 8)), "a.mod first args");
    assert_int_equal(word(&fixture, list + 12), 0);
    assert_int_equal(word(&fixture, list + 16), 0x105000);
    assert_int_equal(word(&fixture, list + 20), 0x105010);
    assert_string_equal(text(&fixture, word(&fixture, list + 24)), "b.mod");
    assert_range(fixture_range(&fixture, 0x103000), 0x103000, 0x1000, BOOT_MAP, NULL);
    assert_range(fixture_range(&fixture, 0x104000), 0x104000, 0x800, BOOT_COPY,
                 "ends inside a page, and only whole pages can be mapped");
    assert_int_equal(fixture.plan->files[1].role, BOOT_FILE_MODULE);
    assert_string_equal(fixture.plan->files[1].string, "a.mod first args");
    fixture_close(&fixture);
}

static void modules_go_below_a_kernel_that_ends_where_ram_does(void **state)
{
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture, 1);
    fixture.inputs.image.elf.segments[0].gpa = 64 * MIB - 0x3000;
    fixture.inputs.image.elf.entry_physical = 64 * MIB - 0x3000;
    fixture_add_initrd(&fixture, "a.mod", 0x1000);
    fixture_build(&fixture);
    assert_int_equal(word(&fixture, field(&fixture, 24)), 0x100000);
    fixture_close(&fixture);
}

/* ---- places ---- */

static void the_information_is_never_where_the_kernel_is(void **state)
{
    struct fixture fixture;
    struct image_elf *elf = &fixture.inputs.image.elf;
    (void)state;

    open_kernel(&fixture, 0);
    elf->segments[0] = (struct image_segment){
        .gpa = 0x1000, .file_offset = 0, .file_bytes = 0x3000, .memory_bytes = 0x20000};
    elf->entry_physical = 0x1000;
    fixture_build(&fixture);
    assert_int_equal(information(&fixture), 0x21000);
    assert_true(fixture.plan->entry.gdt.base >= 0x21000);
    fixture_close(&fixture);
}

static void a_kernel_in_the_first_page_displaces_what_a_bios_leaves_there(void **state)
{
    struct fixture fixture;
    struct image_elf *elf = &fixture.inputs.image.elf;
    (void)state;

    open_kernel(&fixture, 0);
    fixture_build(&fixture);
    assert_int_equal(load_le16(fixture_bytes(&fixture, 0x413, 2)), 639);
    assert_int_equal(load_le16(fixture_bytes(&fixture, 0x40e, 2)), 0x9fc0);
    assert_int_equal(word(&fixture, UINT64_C(0x10) * 4), 0xf000ff53); /* INT 10h */
    assert_int_equal(*fixture_bytes(&fixture, 0xfff53 + 8, 1), 0xcf); /* IRET */
    fixture_close(&fixture);

    open_kernel(&fixture, 0);
    elf->segments[0] = (struct image_segment){
        .gpa = 0x400, .file_offset = 0, .file_bytes = 0x100, .memory_bytes = 0x100};
    elf->entry_physical = 0x400;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->ranges[0].gpa, 0x400);
    fixture_close(&fixture);
}

/* ---- ELF sections ---- */

/* Puts a table of four at the file's end: none, .text (loaded), .symtab and .strtab. */
static void add_sections(struct fixture *fixture)
{
    const Elf32_Shdr rows[] = {
        {.sh_type = SHT_NULL},
        {.sh_type = SHT_PROGBITS,
         .sh_flags = SHF_ALLOC,
         .sh_addr = 0x100000,
         .sh_offset = 0x1000,
         .sh_size = 0x1800},
        {.sh_type = SHT_SYMTAB, .sh_offset = 0x2804, .sh_size = 0x40},
        {.sh_type = SHT_STRTAB, .sh_offset = 0x2844, .sh_size = 0x1c},
    };

    assert_int_equal(pwrite(fixture->inputs.kernel.fd, rows, sizeof(rows), 0x2900),
                     sizeof(rows));
    fixture->inputs.image.elf.sections = (struct image_elf_sections){
        .file_offset = 0x2900, .row_bytes = 40, .count = 4, .names_index = 3};
}

static void symbols_are_placed_and_their_headers_say_where(void **state)
{
    struct fixture fixture;
    uint64_t table;
    (void)state;

    open_kernel(&fixture, 0);
    add_sections(&fixture);
    fixture_build(&fixture);
    assert_int_equal(field(&fixture, 0), 0x26d);
    assert_int_equal(field(&fixture, 28), 4);
    assert_int_equal(field(&fixture, 32), 40);
    assert_int_equal(field(&fixture, 40), 3);
    table = field(&fixture, 36);
    assert_int_equal(word(&fixture, table + 12), 0);
    assert_int_equal(word(&fixture, table + 40 + 12), 0x100000);
    assert_int_equal(word(&fixture, table + 80 + 12), 0x103804); /* as in its page */
    assert_int_equal(word(&fixture, table + 120 + 12), 0x103844);
    assert_range(fixture_find(&fixture, "ELF sections"), 0x103804, 0x5c, BOOT_COPY,
                 "fills no whole page, and only whole pages can be mapped");
    fixture_close(&fixture);
}

static void sections_outside_the_file_are_left_where_they_are(void **state)
{
    struct fixture fixture;
    const uint32_t size = 0x7fffffff;
    (void)state;

    open_kernel(&fixture, 0);
    add_sections(&fixture);
    assert_int_equal(pwrite(fixture.inputs.kernel.fd, &size, 4, 0x2900 + 80 + 20), 4);
    assert_int_equal(pwrite(fixture.inputs.kernel.fd, &size, 4, 0x2900 + 120 + 16), 4);
    fixture_build(&fixture);
    assert_int_equal(field(&fixture, 28), 4);
    assert_int_equal(word(&fixture, field(&fixture, 36) + 80 + 12), 0);
    assert_int_equal(word(&fixture, field(&fixture, 36) + 120 + 12), 0);
    fixture_close(&fixture);
}

/* ---- notes and refusals ---- */

static void a_wish_for_a_display_is_noted_and_answered_with_text(void **state)
{
    struct fixture fixture;
    struct image_multiboot1 *header = &fixture.inputs.image.multiboot1;
    (void)state;

    open_kernel(&fixture, 4);
    header->has_video = true;
    header->video = (struct image_multiboot_video){1024, 768, 32};
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->note_count, 1);
    assert_string_equal(fixture.plan->notes[0],
                        "the kernel asks for a graphics mode of 1024x768 pixels and is "
                        "told of 80x25 text at 0xb8000, which nobody sees: husk's "
                        "machine has no display");
    assert_int_equal(field(&fixture, 0) & 1 << 12, 1 << 12);
    assert_int_equal(field(&fixture, 88), 0xb8000);
    assert_int_equal(field(&fixture, 92), 0);
    assert_int_equal(field(&fixture, 96), 160);
    assert_int_equal(field(&fixture, 100), 80);
    assert_int_equal(field(&fixture, 104), 25);
    assert_int_equal(field(&fixture, 108), 16 | 2 << 8);
    fixture_close(&fixture);

    open_kernel(&fixture, 4);
    header->has_video = true;
    header->video_mode_type = 1;
    header->video = (struct image_multiboot_video){80, 25, 0};
    fixture_build(&fixture);
    assert_string_equal(fixture.plan->notes[0],
                        "the kernel asks for a text mode of 80x25 characters and is "
                        "told of 80x25 text at 0xb8000, which nobody sees: husk's "
                        "machine has no display");
    fixture_close(&fixture);
}

static void requirements_that_nobody_knows_are_refused_by_number(void **state)
{
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture, 0x8);
    refuses(&fixture,
            "kernel vmlinux: Multiboot 1 header at offset 0x1000: requires flag 3, which "
            "the specification does not know");
    open_kernel(&fixture, 0x8027);
    refuses(&fixture,
            "kernel vmlinux: Multiboot 1 header at offset 0x1000: requires flags 5, 15, "
            "which the specification does not know");
    open_kernel(&fixture, 0xfffe0007); /* 17 to 31 are wishes */
    fixture_build(&fixture);
    fixture_close(&fixture);
}

static void a_header_with_a_problem_is_refused(void **state)
{
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture, 1u << 16);
    fixture.inputs.image.multiboot1.has_addresses = true;
    strcpy(fixture.inputs.image.multiboot1.problem,
           "load_addr 0x2 is above header_addr 0x1");
    refuses(&fixture,
            "kernel vmlinux: Multiboot 1 header at offset 0x1000: load_addr 0x2 "
            "is above header_addr 0x1");
}

static void what_no_32_bit_mode_reaches_is_refused(void **state)
{
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture, 0);
    fixture.inputs.image.elf.entry_physical = 0xffffffff80000000;
    refuses(&fixture,
            "kernel vmlinux: Multiboot 1 header at offset 0x1000: the ELF's entry point "
            "0xffffffff80000000 is above 4 GiB, where 32-bit mode does not reach");
    open_kernel(&fixture, 0);
    fixture.inputs.image.elf.entry_physical = 0x200000;
    refuses(&fixture, "kernel vmlinux: its entry point 0x200000 lies in no segment");
}

static void a_bzimage_needs_addresses(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.inputs.image.multiboot1 =
        (struct image_multiboot1){.present = true, .header_offset = 0x800};
    fixture.options.protocol = BOOT_MULTIBOOT1;
    refuses(&fixture, "kernel vmlinuz: Multiboot 1 header at offset 0x800: goes with a "
                      "bzImage, and places it nowhere: only an ELF file can do without "
                      "addresses");
}

static void modules_that_do_not_fit_name_the_memory_that_would_do(void **state)
{
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture, 0);
    fixture.options.memory_bytes = 2 * MIB;
    fixture_add_initrd(&fixture, "a.mod", 0x1000);
    fixture_add_initrd(&fixture, "b.mod", 0x200000);
    refuses(&fixture, "2 modules beside the kernel: needs at least 4 MiB of memory, -m "
                      "gives 2 MiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enters_in_flat_32_bit_mode_with_magic_and_information),
        cmocka_unit_test(address_fields_come_before_an_elfs_headers),
        cmocka_unit_test(tells_memory_command_line_and_loader),
        cmocka_unit_test(the_path_is_all_of_an_empty_command_line),
        cmocka_unit_test(upper_memory_ends_at_the_first_hole),
        cmocka_unit_test(the_memory_map_is_that_of_the_plan),
        cmocka_unit_test(modules_lie_behind_the_kernel_on_pages_of_their_own),
        cmocka_unit_test(modules_go_below_a_kernel_that_ends_where_ram_does),
        cmocka_unit_test(the_information_is_never_where_the_kernel_is),
        cmocka_unit_test(a_kernel_in_the_first_page_displaces_what_a_bios_leaves_there),
        cmocka_unit_test(symbols_are_placed_and_their_headers_say_where),
        cmocka_unit_test(sections_outside_the_file_are_left_where_they_are),
        cmocka_unit_test(a_wish_for_a_display_is_noted_and_answered_with_text),
        cmocka_unit_test(requirements_that_nobody_knows_are_refused_by_number),
        cmocka_unit_test(a_header_with_a_problem_is_refused),
        cmocka_unit_test(what_no_32_bit_mode_reaches_is_refused),
        cmocka_unit_test(a_bzimage_needs_addresses),
        cmocka_unit_test(modules_that_do_not_fit_name_the_memory_that_would_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
