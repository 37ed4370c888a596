/* SPDX-License-Identifier: Apache-2.0 */
/* Which way into a kernel is taken, why, and what is said when there is none. */
#include "fixture.h"

#include <string.h>

static void takes(struct fixture *fixture, enum boot_protocol protocol,
                  const char *reason)
{
    fixture_build(fixture);
    assert_int_equal(fixture->plan->protocol, protocol);
    assert_string_equal(fixture->plan->protocol_reason, reason);
    fixture_close(fixture);
}

static void refuses(struct fixture *fixture, const char *sentence)
{
    fixture_refuses(fixture, sentence);
    fixture_close(fixture);
}

static void names_are_those_of_the_option(void **state)
{
    (void)state;
    assert_string_equal(boot_protocol_name(BOOT_AUTO), "auto");
    assert_string_equal(boot_protocol_name(BOOT_PVH), "pvh");
    assert_string_equal(boot_protocol_name(BOOT_LINUX64), "linux64");
    assert_string_equal(boot_protocol_name(BOOT_LINUX32), "linux32");
    assert_string_equal(boot_protocol_name(BOOT_MULTIBOOT1), "multiboot1");
    assert_string_equal(boot_protocol_name(BOOT_MULTIBOOT2), "multiboot2");
    assert_string_equal(boot_protocol_name(BOOT_FIRMWARE), "firmware");
}

static void auto_takes_pvh_where_there_is_a_note(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    takes(&fixture, BOOT_PVH, "the ELF64 has a PVH entry note");

    fixture_bzimage(&fixture);
    fixture_add_unpacked(&fixture);
    takes(&fixture, BOOT_PVH, "the ELF64 inside the bzImage has a PVH entry note");
}

static void auto_leaves_unpacking_to_a_bzimage_without_note(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture_add_unpacked(&fixture);
    fixture.inputs.unpacked_image.elf.has_pvh = false;
    takes(&fixture, BOOT_LINUX64,
          "the kernel inside the bzImage has no PVH entry note; the bzImage has a 64-bit "
          "entry");

    fixture_bzimage(&fixture);
    fixture.inputs.image.bzimage.xloadflags = 0;
    takes(&fixture, BOOT_LINUX32,
          "the bzImage has no payload in a known compression; the bzImage has no 64-bit "
          "entry");
}

static void an_elf64_without_note_is_told_the_other_protocol(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.inputs.image.elf.has_pvh = false;
    refuses(
        &fixture,
        "kernel vmlinux: is an ELF64 without PVH entry note (owner \"Xen\", type 18), "
        "and no Multiboot header is in its first 8192 (version 1) or 32768 (version 2) "
        "bytes; if its entry point follows the Linux 64-bit boot protocol, say "
        "--protocol linux64");
}

static void an_elf32_without_note_has_no_way_in(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.inputs.image.format = IMAGE_ELF32;
    fixture.inputs.image.elf.machine = 3;
    fixture.inputs.image.elf.has_pvh = false;
    refuses(
        &fixture,
        "kernel vmlinux: is an ELF32 without PVH entry note (owner \"Xen\", type 18), "
        "and no Multiboot header is in its first 8192 (version 1) or 32768 (version 2) "
        "bytes; there is no known way in");
}

static void a_flat_multiboot_image_has_no_other_way_in(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.inputs.image.format = IMAGE_MULTIBOOT;
    fixture.options.protocol = BOOT_PVH;
    refuses(&fixture,
            "kernel vmlinux: is a flat file that only its Multiboot header says "
            "how to load; --protocol pvh needs an ELF file");

    fixture_elf(&fixture);
    fixture.inputs.image.format = IMAGE_MULTIBOOT;
    fixture.options.protocol = BOOT_LINUX64;
    refuses(&fixture,
            "kernel vmlinux: is a flat file that only its Multiboot header says how to "
            "load; --protocol linux64 needs an ELF64 for x86-64 or a bzImage");

    fixture_elf(&fixture);
    fixture.inputs.image.format = IMAGE_MULTIBOOT;
    fixture.options.protocol = BOOT_LINUX32;
    refuses(&fixture,
            "kernel vmlinux: is a flat file that only its Multiboot header says "
            "how to load; --protocol linux32 needs a bzImage");
}

static void add_headers(struct fixture *fixture)
{
    fixture_elf(fixture);
    fixture->inputs.image.multiboot1 =
        (struct image_multiboot1){.present = true, .header_offset = 0x1000};
    fixture->inputs.image.multiboot2 =
        (struct image_multiboot2){.present = true, .header_offset = 0x1010};
}

static void of_several_headers_auto_takes_the_best_that_can_be_obeyed(void **state)
{
    struct fixture fixture;
    struct image *image = &fixture.inputs.image;
    (void)state;

    add_headers(&fixture);
    takes(&fixture, BOOT_MULTIBOOT2, "the ELF64 has a Multiboot 2 header");

    add_headers(&fixture);
    image->multiboot2.present = false;
    takes(&fixture, BOOT_MULTIBOOT1, "the ELF64 has a Multiboot 1 header");

    add_headers(&fixture);
    image->multiboot2.tag_count = 1;
    image->multiboot2.tags[0].type = 77;
    takes(&fixture, BOOT_MULTIBOOT1,
          "the ELF64 has a Multiboot 1 header; Multiboot 2 header at offset 0x1010: "
          "requires tag 77, which the specification does not know");

    add_headers(&fixture);
    image->multiboot2.present = false;
    image->multiboot1.flags = 0x10;
    takes(&fixture, BOOT_PVH,
          "the ELF64 has a PVH entry note; Multiboot 1 header at offset 0x1000: requires "
          "flag 4, which the specification does not know");

    add_headers(&fixture);
    image->multiboot1.flags = 0x10;
    image->elf.has_pvh = false;
    strcpy(image->multiboot2.problem, "more than 32 tags; husk reads no more");
    refuses(&fixture, "kernel vmlinux: Multiboot 2 header at offset 0x1010: more than 32 "
                      "tags; husk reads no more");
}

static void a_named_protocol_overrides_the_order(void **state)
{
    struct fixture fixture;
    (void)state;

    add_headers(&fixture);
    fixture.options.protocol = BOOT_MULTIBOOT1;
    takes(&fixture, BOOT_MULTIBOOT1, "--protocol multiboot1");

    add_headers(&fixture);
    fixture.options.protocol = BOOT_PVH;
    takes(&fixture, BOOT_PVH, "--protocol pvh");

    add_headers(&fixture);
    fixture.options.protocol = BOOT_PVH;
    fixture.inputs.image.elf.has_pvh = false;
    refuses(&fixture,
            "kernel vmlinux: is an ELF64 without PVH entry note (owner \"Xen\", "
            "type 18); leave --protocol out to enter it by Multiboot");
}

static void a_named_multiboot_needs_its_header(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.protocol = BOOT_MULTIBOOT1;
    refuses(&fixture,
            "kernel vmlinux: has no Multiboot 1 header in its first 8192 bytes");

    fixture_elf(&fixture);
    fixture.options.protocol = BOOT_MULTIBOOT2;
    refuses(&fixture,
            "kernel vmlinux: has no Multiboot 2 header in its first 32768 bytes");
}

static void a_named_protocol_is_taken_and_named(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.protocol = BOOT_PVH;
    takes(&fixture, BOOT_PVH, "--protocol pvh");

    fixture_elf(&fixture);
    fixture.options.protocol = BOOT_LINUX64;
    takes(&fixture, BOOT_LINUX64, "--protocol linux64");

    fixture_bzimage(&fixture);
    fixture.options.protocol = BOOT_LINUX32;
    takes(&fixture, BOOT_LINUX32, "--protocol linux32");
}

static void a_named_protocol_that_the_kernel_lacks_is_refused(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.options.protocol = BOOT_LINUX64;
    fixture.inputs.image.bzimage.xloadflags = 0x7e;
    refuses(&fixture, "kernel vmlinuz: has no 64-bit entry (xloadflags 0x007e, bit 0 "
                      "clear); use --protocol linux32");

    fixture_bzimage(&fixture);
    fixture.options.protocol = BOOT_PVH;
    refuses(&fixture, "kernel vmlinuz: is a bzImage without a payload in a known "
                      "compression, so it cannot be entered by PVH");

    fixture_bzimage(&fixture);
    fixture_add_unpacked(&fixture);
    fixture.inputs.unpacked_image.elf.has_pvh = false;
    fixture.options.protocol = BOOT_PVH;
    refuses(&fixture, "kernel vmlinuz: is a bzImage whose kernel has no PVH entry note "
                      "(owner \"Xen\", type 18); leave --protocol out to use its own "
                      "decompressor");

    fixture_elf(&fixture);
    fixture.options.protocol = BOOT_LINUX32;
    refuses(&fixture, "kernel vmlinux: is an ELF64; --protocol linux32 needs a bzImage");

    fixture_elf(&fixture);
    fixture.options.protocol = BOOT_LINUX64;
    fixture.inputs.image.format = IMAGE_ELF32;
    fixture.inputs.image.elf.machine = 3;
    refuses(&fixture,
            "kernel vmlinux: is an ELF32 for machine 3; --protocol linux64 needs "
            "an ELF64 for x86-64 (machine 62) or a bzImage");
}

static void a_kernel_is_no_firmware(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.protocol = BOOT_FIRMWARE;
    refuses(&fixture,
            "kernel vmlinux: is a kernel; --protocol firmware needs --firmware");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_the_option),
        cmocka_unit_test(auto_takes_pvh_where_there_is_a_note),
        cmocka_unit_test(auto_leaves_unpacking_to_a_bzimage_without_note),
        cmocka_unit_test(an_elf64_without_note_is_told_the_other_protocol),
        cmocka_unit_test(an_elf32_without_note_has_no_way_in),
        cmocka_unit_test(a_flat_multiboot_image_has_no_other_way_in),
        cmocka_unit_test(of_several_headers_auto_takes_the_best_that_can_be_obeyed),
        cmocka_unit_test(a_named_protocol_overrides_the_order),
        cmocka_unit_test(a_named_multiboot_needs_its_header),
        cmocka_unit_test(a_named_protocol_is_taken_and_named),
        cmocka_unit_test(a_named_protocol_that_the_kernel_lacks_is_refused),
        cmocka_unit_test(a_kernel_is_no_firmware),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
