/* SPDX-License-Identifier: Apache-2.0 */
/* REP INS: whatever is read in one call, a program sees element after element. */
#include "system_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "accel/soft/instruction_private.h"
#include "base/bytes.h"

#define PORT 0x511
#define RAM_BYTES (16 * MIB)

GUEST(input_bytes, 32, "rep insb\n" GUEST_STOP);
GUEST(input_words, 32, "rep insw\n" GUEST_STOP);
GUEST(input_dwords, 32, "rep insl\n" GUEST_STOP);
GUEST(input_real, 16, "rep insb\n" GUEST_STOP);
GUEST(input_long, 64, "rep insb\n" GUEST_STOP);

/* ---- a port that gives 1, 4, 7, ... byte after byte ---- */

static unsigned calls;
static uint64_t bytes_given;

static uint8_t byte_of(uint64_t number)
{
    return (uint8_t)(number * 3 + 1);
}

static void give(uint8_t *data, size_t size)
{
    calls++;
    for (size_t i = 0; i < size; i++)
        data[i] = byte_of(bytes_given++);
}

static void counting_port(void *context, uint32_t cpu_index, uint16_t port, unsigned size,
                          bool write, void *data)
{
    struct soft_fixture *fixture = context;

    (void)cpu_index;
    if (port == GUEST_STOP_PORT) {
        soft_cpu_attend(&fixture->cpu, ATTENTION_KICK);
        return;
    }
    assert_int_equal(port, PORT);
    assert_false(write);
    give(data, size);
}

static void counting_string(void *context, uint32_t cpu_index, uint16_t port,
                            unsigned size, uint32_t count, void *data)
{
    (void)context;
    (void)cpu_index;
    assert_int_equal(port, PORT);
    give(data, (size_t)size * count);
}

static void prepare(struct soft_fixture *fixture, bool by_string, uint64_t to,
                    uint64_t count)
{
    struct soft_cpu *cpu = &fixture->cpu;

    calls = 0;
    bytes_given = 0;
    fixture->machine.port = counting_port;
    fixture->machine.port_read_string = by_string ? counting_string : NULL;
    cpu->r[X86_RDX] = PORT;
    cpu->r[X86_RDI] = to;
    cpu->r[X86_RCX] = count;
}

/* The bytes in order at `to`, and what was there on both sides of them. */
static void assert_input(struct soft_fixture *fixture, uint64_t to, uint64_t size)
{
    uint8_t *bytes = memory_slice(fixture->memory, to - 1, size + 2);

    assert_non_null(bytes);
    assert_int_equal(bytes[0], 0);
    for (uint64_t i = 0; i < size; i++)
        assert_int_equal(bytes[1 + i], byte_of(i));
    assert_int_equal(bytes[1 + size], 0);
    assert_int_equal(bytes_given, size);
}

/* ---- what both ways give ---- */

struct way {
    const uint8_t *code;
    size_t code_bytes;
    unsigned size;
};

static void run_both_ways(struct soft_fixture *fixture, const struct way *way,
                          uint64_t to, uint64_t count)
{
    for (unsigned by_string = 0; by_string < 2; by_string++) {
        uint64_t size = count * way->size;
        void *target = memory_slice(fixture->memory, to - 1, size + 2);

        assert_non_null(target);
        memset(target, 0, size + 2);
        guest_protected(fixture);
        guest_load(fixture, way->code, way->code_bytes);
        prepare(fixture, by_string != 0, to, count);
        assert_int_equal(guest_run(fixture), GUEST_STOPPED);
        assert_input(fixture, to, size);
        assert_int_equal(fixture->cpu.r[X86_RCX], 0);
        assert_int_equal(fixture->cpu.r[X86_RDI], to + size);
        if (by_string == 0)
            assert_int_equal(calls, count);
    }
}

#define WAY(name, size)                                                                  \
    {                                                                                    \
        (name), (size_t)((uintptr_t)(name##_end) - (uintptr_t)(name)), (size)            \
    }

static void every_size_and_place_gives_the_same(void **state)
{
    const struct way ways[] = {WAY(input_bytes, 1), WAY(input_words, 2),
                               WAY(input_dwords, 4)};
    static const uint64_t places[] = {0x200000, 0x200001, 0x200ffd, 0x200fff};
    static const uint64_t counts[] = {1, 2, 3, 1000, 5000};

    for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
        for (size_t j = 0; j < ARRAY_SIZE(places); j++)
            for (size_t k = 0; k < ARRAY_SIZE(counts); k++)
                run_both_ways(*state, &ways[i], places[j], counts[k]);
}

static void a_page_costs_two_calls_at_most(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, input_bytes);
    prepare(fixture, true, 0x200000, 16 * X86_PAGE_BYTES);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_input(fixture, 0x200000, 16 * X86_PAGE_BYTES);
    assert_true(calls <= 32);
}

static void real_and_long_mode_read_strings_too(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_real(fixture);
    GUEST_LOAD(fixture, input_real);
    fixture->cpu.segments[X86_ES].selector = 0x2345;
    fixture->cpu.segments[X86_ES].base = 0x23450;
    prepare(fixture, true, 0x0003, 0x3000);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_input(fixture, 0x23453, 0x3000);
    assert_true(calls <= 8);

    guest_long(fixture);
    GUEST_LOAD(fixture, input_long);
    prepare(fixture, true, 0x300003, 0x3000);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_input(fixture, 0x300003, 0x3000);
    assert_true(calls <= 8);
}

/* ---- where a chunk must end ---- */

static void sixteen_bits_of_offset_wrap_in_the_segment(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    const uint8_t *bytes = memory_slice(fixture->memory, 0, 0x20000);

    guest_real(fixture);
    GUEST_LOAD(fixture, input_real);
    /* The segment's end is in the middle of a page. */
    cpu->segments[X86_ES].base = 0x800;
    prepare(fixture, true, 0xfff0, 0x20);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    for (unsigned i = 0; i < 0x10; i++) {
        assert_int_equal(bytes[0x107f0 + i], byte_of(i));
        assert_int_equal(bytes[0x800 + i], byte_of(0x10 + i));
    }
    assert_int_equal(bytes[0x10800], 0);
    assert_int_equal(cpu->r[X86_RDI], 0x10);
}

static void segment_limit_stops_behind_what_fits(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    GUEST_LOAD(fixture, input_words);
    cpu->segments[X86_ES].limit = 0x200813; /* ten words from 0x200800 on */
    soft_cpu_update_mode(cpu);
    prepare(fixture, true, 0x200800, 0x40);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_input(fixture, 0x200800, 20);
    assert_int_equal(cpu->r[X86_RCX], 0x40 - 10);
    assert_int_equal(cpu->r[X86_RDI], 0x200814);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE);
}

static void what_is_no_ram_gets_single_elements(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, input_words);
    prepare(fixture, true, RAM_BYTES - 8, 6);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(bytes_given, 12);
    assert_int_equal(fixture->mmio_gpa, RAM_BYTES + 2);
    assert_int_equal(fixture->mmio_size, 2);
    assert_int_equal(fixture->mmio_value, byte_of(10) | byte_of(11) << 8);
}

static void downwards_each_element_is_a_call(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    const uint8_t *bytes = memory_slice(fixture->memory, 0x200000, 8);

    guest_protected(fixture);
    GUEST_LOAD(fixture, input_words);
    cpu->direction = true;
    prepare(fixture, true, 0x200004, 3);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_memory_equal(bytes, ((const uint8_t[]){13, 16, 7, 10, 1, 4, 0}), 7);
    assert_int_equal(cpu->r[X86_RDI], 0x1ffffe);
    assert_int_equal(calls, 3);
}

static void code_that_is_overwritten_is_run_as_it_is_then(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    /* The instruction's own page, where the stop is overwritten by what follows. */
    guest_protected(fixture);
    GUEST_LOAD(fixture, input_bytes);
    prepare(fixture, true, GUEST_CODE + 0x100, 0x80);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    cpu->rip = GUEST_CODE;
    prepare(fixture, true, GUEST_CODE + 2, 2); /* 01 04: ADD %eax, (...) for OUT */
    assert_int_equal(bytes_given, 0);
    cpu->r[X86_RAX] = 0;
    (void)guest_run(fixture);
    assert_int_equal(guest_read32(fixture, GUEST_CODE + 2) & 0xffff, 0x0401);
}

/* ---- debugging ---- */

static void single_step_traps_behind_each_element(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    GUEST_LOAD(fixture, input_bytes);
    prepare(fixture, true, 0x200000, 3);
    soft_flags_set(cpu, X86_FLAGS_TF);
    assert_int_equal(guest_run(fixture), X86_VECTOR_DB);
    assert_int_equal(guest_stack(fixture, 0), GUEST_CODE); /* it is not done yet */
    assert_int_equal(cpu->r[X86_RCX], 2);
    assert_int_equal(cpu->r[X86_RDI], 0x200001);
    assert_int_equal(bytes_given, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(every_size_and_place_gives_the_same),
        SOFT_TEST(a_page_costs_two_calls_at_most),
        SOFT_TEST(real_and_long_mode_read_strings_too),
        SOFT_TEST(sixteen_bits_of_offset_wrap_in_the_segment),
        SOFT_TEST(segment_limit_stops_behind_what_fits),
        SOFT_TEST(what_is_no_ram_gets_single_elements),
        SOFT_TEST(downwards_each_element_is_a_call),
        SOFT_TEST(code_that_is_overwritten_is_run_as_it_is_then),
        SOFT_TEST(single_step_traps_behind_each_element),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
