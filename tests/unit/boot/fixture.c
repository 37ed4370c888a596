/* SPDX-License-Identifier: Apache-2.0 */
/* Described kernels for the tests of boot/; see fixture.h. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

uint8_t fixture_byte(uint64_t offset)
{
    return (uint8_t)(offset * 7 + offset / 256);
}

static struct input_file make_file(const char *path, size_t size_bytes)
{
    struct input_file file = {.size_bytes = size_bytes, .mode = INPUT_MAP};
    uint8_t *bytes = malloc(size_bytes);

    assert_non_null(bytes);
    for (size_t i = 0; i < size_bytes; i++)
        bytes[i] = fixture_byte(i);
    file.path = strdup(path);
    file.fd = memfd_create("fixture", MFD_CLOEXEC);
    assert_true(file.fd >= 0);
    assert_int_equal(fd_write_all(file.fd, bytes, size_bytes), 0);
    free(bytes);
    return file;
}

static void init_options(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture->options = (struct boot_options){
        .cmdline = "console=ttyS0",
        .memory_bytes = 64 * MIB,
        .cpu_count = 1,
    };
}

static struct image elf_image(void)
{
    return (struct image){
        .format = IMAGE_ELF64,
        .file_bytes = 0x3000,
        .elf =
            {
                .machine = 62,
                .entry = 0xffffffff81000000,
                .entry_physical = 0x100000,
                .segment_count = 1,
                .segments = {{.gpa = 0x100000,
                              .file_offset = 0x1000,
                              .file_bytes = 0x1800,
                              .memory_bytes = 0x2800}},
                .has_pvh = true,
                .pvh_entry = 0x100040,
                .pvh_note_bytes = 8,
            },
    };
}

void fixture_elf(struct fixture *fixture)
{
    init_options(fixture);
    fixture->inputs.has_kernel = true;
    fixture->inputs.kernel = make_file("vmlinux", 0x3000);
    fixture->inputs.image = elf_image();
}

void fixture_bzimage(struct fixture *fixture)
{
    init_options(fixture);
    fixture->inputs.has_kernel = true;
    fixture->inputs.kernel = make_file("vmlinuz", 0x5000);
    fixture->inputs.image = (struct image){
        .format = IMAGE_BZIMAGE,
        .file_bytes = 0x5000,
        .bzimage =
            {
                .version = 0x020f,
                .loadflags = 1,
                .xloadflags = 1,
                .setup_bytes = 0x1000,
                .kernel_bytes = 0x4000,
                .header_end = 0x26c,
                .cmdline_limit = 2047,
                .initrd_last_byte = 0x7fffffff,
                .relocatable = true,
                .alignment = 0x200000,
                .preferred_gpa = 0x1000000,
                .init_bytes = 0x100000,
            },
    };
}

void fixture_firmware(struct fixture *fixture, size_t size_bytes)
{
    init_options(fixture);
    fixture_add_firmware(fixture, size_bytes);
}

void fixture_add_firmware(struct fixture *fixture, size_t size_bytes)
{
    fixture->inputs.has_firmware = true;
    fixture->inputs.firmware = make_file("bios.bin", size_bytes);
    fixture->inputs.firmware_image =
        (struct image){.format = IMAGE_FIRMWARE, .file_bytes = size_bytes};
}

void fixture_add_unpacked(struct fixture *fixture)
{
    fixture->inputs.has_unpacked = true;
    fixture->inputs.unpacked = make_file("vmlinuz (unpacked)", 0x3000);
    fixture->inputs.unpacked_image = elf_image();
}

void fixture_add_initrd(struct fixture *fixture, const char *path, size_t size_bytes)
{
    size_t index = fixture->inputs.initrd_count++;

    assert_true(index < BOOT_MAX_INITRDS);
    fixture->inputs.initrds[index] = make_file(path, size_bytes);
    fixture->options.initrd_paths[index] = path;
    fixture->options.initrd_count = fixture->inputs.initrd_count;
}

void fixture_close(struct fixture *fixture)
{
    boot_plan_destroy(fixture->plan);
    boot_inputs_close(&fixture->inputs);
}

static int plan(struct fixture *fixture)
{
    if (boot_inputs_choose(&fixture->inputs, &fixture->options, &fixture->err) < 0)
        return -1;
    return boot_plan_build(&fixture->inputs, &fixture->options, &fixture->plan,
                           &fixture->err);
}

void fixture_build(struct fixture *fixture)
{
    if (plan(fixture) < 0)
        fail_msg("%s", fixture->err.text);
}

void fixture_refuses(struct fixture *fixture, const char *sentence)
{
    assert_true(plan(fixture) < 0);
    assert_string_equal(fixture->err.text, sentence);
    assert_null(fixture->plan);
}

const struct boot_range *fixture_range(const struct fixture *fixture, uint64_t gpa)
{
    for (size_t i = 0; i < fixture->plan->range_count; i++)
        if (fixture->plan->ranges[i].gpa == gpa)
            return &fixture->plan->ranges[i];
    fail_msg("no range starts at 0x%llx", (unsigned long long)gpa);
    abort();
}

const struct boot_range *fixture_find(const struct fixture *fixture, const char *what)
{
    for (size_t i = 0; i < fixture->plan->range_count; i++)
        if (strcmp(fixture->plan->ranges[i].what, what) == 0)
            return &fixture->plan->ranges[i];
    fail_msg("the plan has no '%s'", what);
    abort();
}

const uint8_t *fixture_bytes(const struct fixture *fixture, uint64_t gpa,
                             size_t size_bytes)
{
    for (size_t i = 0; i < fixture->plan->range_count; i++) {
        const struct boot_range *range = &fixture->plan->ranges[i];

        if (range->kind == BOOT_GENERATED && gpa >= range->gpa &&
            range_within(gpa - range->gpa, size_bytes, range->size_bytes))
            return range->bytes + (gpa - range->gpa);
    }
    fail_msg("nothing is generated at 0x%llx", (unsigned long long)gpa);
    abort();
}

void assert_range(const struct boot_range *range, uint64_t gpa, uint64_t size_bytes,
                  enum boot_range_kind kind, const char *reason)
{
    assert_int_equal(range->gpa, gpa);
    assert_int_equal(range->size_bytes, size_bytes);
    assert_int_equal(range->kind, kind);
    if (reason == NULL)
        assert_null(range->reason);
    else
        assert_string_equal(range->reason, reason);
}
