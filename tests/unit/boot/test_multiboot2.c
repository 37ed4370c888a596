/* SPDX-License-Identifier: Apache-2.0 */
/* What a Multiboot 2 kernel is handed: every tag, where it is moved to, what is refused.
 */
#include "fixture.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/builder_private.h"
#include "x86/layout.h"

static void open_kernel(struct fixture *fixture)
{
    fixture_elf(fixture);
    fixture->inputs.image.elf.has_pvh = false;
    fixture->inputs.image.multiboot2 = (struct image_multiboot2){
        .present = true, .header_offset = 0x1000, .header_bytes = 24};
}

/* The tag number `index` of the information; fails the test if it is of another type. */
static const uint8_t *tag(const struct fixture *fixture, size_t index, uint32_t type,
                          uint32_t size_bytes)
{
    uint64_t at = fixture->plan->entry.registers[X86_RBX] + 8;
    const uint8_t *bytes = fixture_bytes(fixture, at, 8);

    while (index-- > 0) {
        at += align_up(load_le32(bytes + 4), 8);
        bytes = fixture_bytes(fixture, at, 8);
    }
    assert_int_equal(load_le32(bytes), type);
    assert_int_equal(load_le32(bytes + 4), size_bytes);
    return fixture_bytes(fixture, at, size_bytes);
}

static void refuses(struct fixture *fixture, const char *sentence)
{
    fixture_refuses(fixture, sentence);
    fixture_close(fixture);
}

/* ---- the information ---- */

static void every_tag_is_there_once_and_the_sum_is_right(void **state)
{
    struct fixture fixture;
    const struct boot_plan *plan;
    const uint8_t *bytes, *rsdp;
    uint64_t map_bytes;
    (void)state;

    open_kernel(&fixture);
    fixture.options.cmdline = "console=ttyS0 quiet";
    fixture.options.cmdline_default_bytes = strlen("console=ttyS0 ");
    fixture_add_initrd(&fixture, "a.mod", 0x1800);
    fixture.inputs.module_strings[0] = strdup("a.mod x");
    fixture_build(&fixture);
    plan = fixture.plan;
    map_bytes = plan->e820_count * 24;
    assert_int_equal(plan->protocol, BOOT_MULTIBOOT2);
    assert_int_equal(plan->entry.registers[X86_RAX], 0x36d76289);
    assert_int_equal(plan->entry.registers[X86_RBX], 0x10000);
    assert_int_equal(plan->entry.rip, 0x100000);

    assert_string_equal(tag(&fixture, 0, 1, 8 + 14) + 8, "vmlinux quiet");
    bytes = fixture_bytes(&fixture, 0x10000 + 8 + 24, 16);
    assert_int_equal(load_le32(bytes), 2);
    assert_memory_equal(bytes + 8, "husk ", 5);
    bytes = tag(&fixture, 2, 3, 16 + 8);
    assert_int_equal(load_le32(bytes + 8), 0x103000);
    assert_int_equal(load_le32(bytes + 12), 0x104800);
    assert_string_equal(bytes + 16, "a.mod x");
    bytes = tag(&fixture, 3, 4, 16);
    assert_int_equal(load_le32(bytes + 8), 639);
    assert_int_equal(load_le32(bytes + 12), 63 * 1024);
    bytes = tag(&fixture, 4, 6, (uint32_t)(16 + map_bytes));
    assert_int_equal(load_le32(bytes + 8), 24);
    assert_int_equal(load_le32(bytes + 12), 0);
    for (size_t i = 0; i < plan->e820_count; i++) {
        assert_int_equal(load_le64(bytes + 16 + i * 24), plan->e820[i].gpa);
        assert_int_equal(load_le64(bytes + 24 + i * 24), plan->e820[i].size_bytes);
        assert_int_equal(load_le32(bytes + 32 + i * 24), plan->e820[i].type);
        assert_int_equal(load_le32(bytes + 36 + i * 24), 0);
    }
    rsdp = fixture_bytes(&fixture, LAYOUT_ACPI_START, 36);
    bytes = tag(&fixture, 5, 14, 8 + 20) + 8;
    assert_memory_equal(bytes, rsdp, 8);
    assert_int_equal(bytes[15], 0); /* a revision without the fields behind its end */
    assert_int_equal(boot_checksum(bytes, 20), 0);
    assert_memory_equal(bytes + 16, rsdp + 16, 4);
    assert_memory_equal(tag(&fixture, 6, 15, 8 + 36) + 8, rsdp, 36);
    bytes = tag(&fixture, 7, 0, 8);
    assert_int_equal(load_le32(fixture_bytes(&fixture, 0x10000, 4)),
                     bytes + 8 - fixture_bytes(&fixture, 0x10000, 4));
    assert_int_equal(load_le32(fixture_bytes(&fixture, 0x10004, 4)), 0);
    assert_int_equal(fixture_find(&fixture, "Multiboot information")->size_bytes,
                     load_le32(fixture_bytes(&fixture, 0x10000, 4)));
    fixture_close(&fixture);
}

static void sections_are_told_with_32_bit_numbers(void **state)
{
    const Elf64_Shdr rows[] = {
        {.sh_type = SHT_NULL},
        {.sh_type = SHT_STRTAB, .sh_offset = 0x2800, .sh_size = 0x100},
    };
    struct fixture fixture;
    const uint8_t *bytes;
    (void)state;

    open_kernel(&fixture);
    assert_int_equal(pwrite(fixture.inputs.kernel.fd, rows, sizeof(rows), 0x2900),
                     sizeof(rows));
    fixture.inputs.image.elf.sections = (struct image_elf_sections){
        .file_offset = 0x2900, .row_bytes = 64, .count = 2, .names_index = 1};
    fixture_build(&fixture);
    bytes = tag(&fixture, 4, 9, 20 + sizeof(rows));
    assert_int_equal(load_le32(bytes + 8), 2);
    assert_int_equal(load_le32(bytes + 12), 64);
    assert_int_equal(load_le32(bytes + 16), 1);
    assert_int_equal(load_le64(bytes + 20 + 64 + offsetof(Elf64_Shdr, sh_addr)),
                     0x103800);
    fixture_close(&fixture);
}

static void an_entry_tag_comes_before_the_elfs_entry(void **state)
{
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture);
    fixture.inputs.image.multiboot2.has_entry = true;
    fixture.inputs.image.multiboot2.entry_addr = 0x100123;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->entry.rip, 0x100123);
    fixture_close(&fixture);
}

static void an_entry_tag_does_for_an_elf_whose_own_entry_is_out_of_reach(void **state)
{
    struct fixture fixture;
    struct image *image = &fixture.inputs.image;
    (void)state;

    open_kernel(&fixture);
    image->elf.entry_physical = image->elf.entry;
    image->multiboot2.has_entry = true;
    image->multiboot2.entry_addr = 0x100123;
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->entry.rip, 0x100123);
    fixture_close(&fixture);
}

static void an_address_tag_places_a_flat_file(void **state)
{
    struct fixture fixture;
    struct image_multiboot2 *header = &fixture.inputs.image.multiboot2;
    (void)state;

    open_kernel(&fixture);
    fixture.inputs.image.format = IMAGE_MULTIBOOT;
    header->has_addresses = true;
    header->has_entry = true;
    header->entry_addr = 0x200010;
    header->segment = (struct image_segment){.gpa = 0x200000,
                                             .file_offset = 0x1000,
                                             .file_bytes = 0x2000,
                                             .memory_bytes = 0x2000};
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->entry.rip, 0x200010);
    assert_range(fixture_range(&fixture, 0x200000), 0x200000, 0x2000, BOOT_MAP, NULL);
    assert_string_equal(fixture.plan->protocol_reason,
                        "the flat file has a Multiboot 2 header");
    fixture_close(&fixture);
}

/* ---- relocation ---- */

static void moves(const struct image_multiboot2_relocation *wish, uint64_t base)
{
    struct fixture fixture;

    open_kernel(&fixture);
    fixture.inputs.image.multiboot2.relocatable = true;
    fixture.inputs.image.multiboot2.relocation = *wish;
    fixture_build(&fixture);
    assert_int_equal(fixture_find(&fixture, "kernel segment 0")->gpa, base);
    assert_int_equal(fixture.plan->entry.rip, base);
    assert_int_equal(load_le32(tag(&fixture, 2, 21, 12) + 8), base);
    fixture_close(&fixture);
}

static void a_relocatable_kernel_goes_where_it_prefers(void **state)
{
    (void)state;
    moves(&(struct image_multiboot2_relocation){0x100000, 0xffffffff, 0x1000,
                                                IMAGE_MULTIBOOT2_ANYWHERE},
          0x100000);
    moves(&(struct image_multiboot2_relocation){0x100000, 0xffffffff, 0x200000,
                                                IMAGE_MULTIBOOT2_ANYWHERE},
          0x200000);
    moves(&(struct image_multiboot2_relocation){0x300000, 0xffffffff, 0x1000,
                                                IMAGE_MULTIBOOT2_ANYWHERE},
          0x300000);
    moves(&(struct image_multiboot2_relocation){0x280000, 0xffffffff, 0x200000,
                                                IMAGE_MULTIBOOT2_LOWEST},
          0x400000);
    moves(&(struct image_multiboot2_relocation){0x100000, 0xffffffff, 0x200000,
                                                IMAGE_MULTIBOOT2_HIGHEST},
          64 * MIB - 0x200000);
    moves(&(struct image_multiboot2_relocation){0x100000, 0x5fffff, 0x200000,
                                                IMAGE_MULTIBOOT2_HIGHEST},
          0x400000);
    moves(&(struct image_multiboot2_relocation){0x100000, 0x1027ff, 0x1000,
                                                IMAGE_MULTIBOOT2_HIGHEST},
          0x100000); /* exactly */
}

static void a_relocatable_kernel_that_fits_nowhere_is_refused(void **state)
{
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture);
    fixture.inputs.image.multiboot2.relocatable = true;
    fixture.inputs.image.multiboot2.relocation = (struct image_multiboot2_relocation){
        0x100000, 0x1027fe, 0x1000, IMAGE_MULTIBOOT2_ANYWHERE};
    refuses(&fixture,
            "kernel vmlinux: its 10240 bytes do not fit into free RAM between "
            "0x100000 and 0x1027fe (relocatable tag, alignment 0x1000); -m gives "
            "64 MiB");
}

static void moved_sections_say_where_they_are(void **state)
{
    const Elf64_Shdr rows[] = {
        {.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_addr = 0x100800},
    };
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture);
    assert_int_equal(pwrite(fixture.inputs.kernel.fd, rows, sizeof(rows), 0x2900),
                     sizeof(rows));
    fixture.inputs.image.elf.sections =
        (struct image_elf_sections){.file_offset = 0x2900, .row_bytes = 64, .count = 1};
    fixture.inputs.image.multiboot2.relocatable = true;
    fixture.inputs.image.multiboot2.relocation = (struct image_multiboot2_relocation){
        0x200000, 0xffffffff, 0x1000, IMAGE_MULTIBOOT2_LOWEST};
    fixture_build(&fixture);
    assert_int_equal(
        load_le64(tag(&fixture, 5, 9, 20 + 64) + 20 + offsetof(Elf64_Shdr, sh_addr)),
        0x200800);
    fixture_close(&fixture);
}

/* ---- refusals ---- */

static void unknown_tags_are_refused_unless_optional(void **state)
{
    struct fixture fixture;
    struct image_multiboot2 *header = &fixture.inputs.image.multiboot2;
    (void)state;

    open_kernel(&fixture);
    header->tag_count = 2;
    header->tags[0] = (struct image_multiboot2_tag){.type = 7};
    header->tags[1] = (struct image_multiboot2_tag){.type = 77};
    refuses(&fixture, "kernel vmlinux: Multiboot 2 header at offset 0x1000: requires tag "
                      "77, which the specification does not know");
    open_kernel(&fixture);
    header->tag_count = 1;
    header->tags[0] = (struct image_multiboot2_tag){.type = 77, .optional = true};
    fixture_build(&fixture);
    fixture_close(&fixture);
}

static void unknown_requests_are_refused_unless_optional(void **state)
{
    struct fixture fixture;
    struct image_multiboot2 *header = &fixture.inputs.image.multiboot2;
    (void)state;

    open_kernel(&fixture);
    header->request_count = 2;
    header->requests[0] =
        (struct image_multiboot2_request){.type = 8}; /* not to be had */
    header->requests[1] = (struct image_multiboot2_request){.type = 22};
    refuses(&fixture, "kernel vmlinux: Multiboot 2 header at offset 0x1000: requires "
                      "information of type 22, which the specification does not know");
    open_kernel(&fixture);
    header->request_count = 1;
    header->requests[0] = (struct image_multiboot2_request){.type = 22, .optional = true};
    fixture_build(&fixture);
    fixture_close(&fixture);
}

static void a_console_can_be_required_if_text_will_do(void **state)
{
    struct fixture fixture;
    struct image_multiboot2 *header = &fixture.inputs.image.multiboot2;
    (void)state;

    open_kernel(&fixture);
    header->console_flags = 1;
    refuses(&fixture, "kernel vmlinux: Multiboot 2 header at offset 0x1000: requires a "
                      "console that is no EGA text (tag 4), and husk has no other");
    open_kernel(&fixture);
    header->console_flags = 3;
    fixture_build(&fixture);
    fixture_close(&fixture);
    open_kernel(&fixture);
    header->console_flags = 1;
    header->console_optional = true;
    fixture_build(&fixture);
    fixture_close(&fixture);
    open_kernel(&fixture);
    header->console_flags = 2;
    fixture_build(&fixture);
    fixture_close(&fixture);
}

static void a_wish_for_graphics_is_noted(void **state)
{
    struct fixture fixture;
    (void)state;

    open_kernel(&fixture);
    fixture.inputs.image.multiboot2.has_video = true;
    fixture_build(&fixture);
    assert_string_equal(fixture.plan->notes[0],
                        "the kernel asks for a graphics mode and is told of 80x25 text "
                        "at 0xb8000, which nobody sees: husk's machine has no display");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tag_is_there_once_and_the_sum_is_right),
        cmocka_unit_test(sections_are_told_with_32_bit_numbers),
        cmocka_unit_test(an_entry_tag_comes_before_the_elfs_entry),
        cmocka_unit_test(an_entry_tag_does_for_an_elf_whose_own_entry_is_out_of_reach),
        cmocka_unit_test(an_address_tag_places_a_flat_file),
        cmocka_unit_test(a_relocatable_kernel_goes_where_it_prefers),
        cmocka_unit_test(a_relocatable_kernel_that_fits_nowhere_is_refused),
        cmocka_unit_test(moved_sections_say_where_they_are),
        cmocka_unit_test(unknown_tags_are_refused_unless_optional),
        cmocka_unit_test(unknown_requests_are_refused_unless_optional),
        cmocka_unit_test(a_console_can_be_required_if_text_will_do),
        cmocka_unit_test(a_wish_for_graphics_is_noted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
