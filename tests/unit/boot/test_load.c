/* SPDX-License-Identifier: Apache-2.0 */
/* A plan carried out: every byte is where the plan says, also after a reset. */
#include "fixture.h"

#include <string.h>
#include <unistd.h>

static struct memory *make_memory(struct fixture *fixture)
{
    const struct memory_options options = {.prefault = false};
    struct memory *memory = NULL;

    if (memory_create(fixture->plan->spans, fixture->plan->span_count, &options, &memory,
                      &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
    return memory;
}

static void load(struct fixture *fixture, struct memory *memory)
{
    if (boot_load(fixture->plan, memory, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
}

static uint8_t expected_byte(const struct boot_range *range, uint64_t at)
{
    switch (range->kind) {
    case BOOT_MAP:
    case BOOT_COPY:
        return fixture_byte(range->file_offset + at);
    case BOOT_ZERO:
        return 0;
    case BOOT_GENERATED:
        return range->bytes[at];
    }
    return 0;
}

static void assert_loaded(const struct fixture *fixture, struct memory *memory)
{
    for (size_t i = 0; i < fixture->plan->range_count; i++) {
        const struct boot_range *range = &fixture->plan->ranges[i];
        const uint8_t *bytes = memory_slice(memory, range->gpa, range->size_bytes);

        assert_non_null(bytes);
        for (uint64_t at = 0; at < range->size_bytes; at++)
            assert_int_equal(bytes[at], expected_byte(range, at));
    }
}

static void puts_every_byte_where_the_plan_says(void **state)
{
    struct fixture fixture;
    struct memory *memory;
    (void)state;

    fixture_elf(&fixture);
    fixture_add_initrd(&fixture, "initrd", 0x1801);
    fixture_build(&fixture);
    memory = make_memory(&fixture);
    load(&fixture, memory);
    assert_loaded(&fixture, memory);
    memory_destroy(memory);
    fixture_close(&fixture);
}

static void copying_gives_the_same_memory_as_mapping(void **state)
{
    struct fixture fixture;
    struct memory *memory;
    (void)state;

    fixture_elf(&fixture);
    fixture.inputs.kernel.mode = INPUT_READ;
    strcpy(fixture.inputs.kernel.reason, "--images copy");
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->bytes.mapped, 0);
    memory = make_memory(&fixture);
    load(&fixture, memory);
    assert_loaded(&fixture, memory);
    memory_destroy(memory);
    fixture_close(&fixture);
}

static void a_reset_brings_the_pristine_bytes_back(void **state)
{
    struct fixture fixture;
    struct memory *memory;
    uint8_t scribble[0x4000];
    (void)state;

    fixture_elf(&fixture);
    fixture_build(&fixture);
    memory = make_memory(&fixture);
    load(&fixture, memory);
    memset(scribble, 0xcc, sizeof(scribble));
    assert_int_equal(memory_write(memory, 0x100000, scribble, sizeof(scribble)), 0);
    assert_int_equal(memory_write(memory, 0x6000, scribble, sizeof(scribble)), 0);
    assert_int_equal(memory_reset(memory, &fixture.err), 0);
    load(&fixture, memory);
    assert_loaded(&fixture, memory);
    memory_destroy(memory);
    fixture_close(&fixture);
}

static void firmware_is_in_both_places(void **state)
{
    struct fixture fixture;
    struct memory *memory;
    (void)state;

    fixture_firmware(&fixture, 0x21000);
    fixture_build(&fixture);
    memory = make_memory(&fixture);
    load(&fixture, memory);
    assert_loaded(&fixture, memory);
    memory_destroy(memory);
    fixture_close(&fixture);
}

static void a_file_that_became_shorter_is_named(void **state)
{
    struct fixture fixture;
    struct memory *memory;
    (void)state;

    fixture_elf(&fixture);
    fixture_add_initrd(&fixture, "initrd.img", 0x2000);
    fixture_build(&fixture);
    memory = make_memory(&fixture);
    assert_int_equal(ftruncate(fixture.inputs.initrds[0].fd, 0x1000), 0);
    assert_true(boot_load(fixture.plan, memory, &fixture.err) < 0);
    assert_string_equal(fixture.err.text, "initrd initrd.img became shorter after it was "
                                          "opened: 8192 bytes then, 4096 now");
    memory_destroy(memory);
    fixture_close(&fixture);
}

static void memory_of_another_plan_is_refused(void **state)
{
    static const struct memory_span span = {0, 0x1000};
    const struct memory_options options = {.prefault = false};
    struct fixture fixture;
    struct memory *memory = NULL;
    (void)state;

    fixture_elf(&fixture);
    fixture_build(&fixture);
    assert_int_equal(memory_create(&span, 1, &options, &memory, &fixture.err), 0);
    assert_true(boot_load(fixture.plan, memory, &fixture.err) < 0);
    assert_string_equal(fixture.err.text, "GDT: 0x1000 is no guest memory");
    memory_destroy(memory);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_every_byte_where_the_plan_says),
        cmocka_unit_test(copying_gives_the_same_memory_as_mapping),
        cmocka_unit_test(a_reset_brings_the_pristine_bytes_back),
        cmocka_unit_test(firmware_is_in_both_places),
        cmocka_unit_test(a_file_that_became_shorter_is_named),
        cmocka_unit_test(memory_of_another_plan_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
