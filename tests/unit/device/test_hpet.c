/* SPDX-License-Identifier: Apache-2.0 */
/* The HPET: its counter, comparators in each mode, lines, legacy replacement, and
 * accesses that are none. Numbers and offsets are those of the specification (1.0a). */
#include "recorder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "device/hpet_private.h"

#define HPET UINT64_C(0xfed00000)
#define CAPABILITIES 0x00
#define CONFIG 0x10
#define STATUS 0x20
#define COUNTER 0xf0
#define TIMER(n) (0x100 + 0x20 * (n))
#define COMPARATOR(n) (TIMER(n) + 8)

#define ENABLE 0x1
#define LEGACY 0x2
#define LEVEL 0x2
#define INTERRUPT 0x4
#define PERIODIC 0x8
#define SET_VALUE 0x40
#define WIDTH_32 0x100
#define ROUTE(line) ((uint64_t)(line) << 9)

#define TIMER_LINE 0
#define RTC_LINE 8
#define LINE 10
#define OTHER_LINE 11
#define TICK_NS 10

struct fixture {
    struct virtual_clock clock;
    struct hpet hpet;
    struct bus mmio;
    bool levels[RECORDER_LINES];
    unsigned rises[RECORDER_LINES];
    bool is_replaced;
    unsigned replacements;
};

static void note_line(void *context, uint32_t line, bool level)
{
    struct fixture *fixture = context;

    assert_true(line < RECORDER_LINES);
    assert_true(fixture->levels[line] != level);
    fixture->levels[line] = level;
    fixture->rises[line] += level;
}

static void note_replacement(void *context, bool replaced)
{
    struct fixture *fixture = context;

    assert_true(fixture->is_replaced != replaced);
    assert_false(fixture->levels[TIMER_LINE]);
    fixture->is_replaced = replaced;
    fixture->replacements++;
}

static struct fixture *make(bool can_replace)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct error err = ERROR_NONE;

    assert_non_null(fixture);
    virtual_clock_init(&fixture->clock);
    virtual_clock_set(&fixture->clock, 7000000003);
    bus_init(&fixture->mmio, "MMIO");
    assert_int_equal(hpet_init(&fixture->hpet,
                               &(struct hpet_options){
                                   .clock = &fixture->clock.clock,
                                   .set_irq = note_line,
                                   .replace_timer = can_replace ? note_replacement : NULL,
                                   .irq_context = fixture,
                               },
                               &err),
                     0);
    assert_int_equal(hpet_attach(&fixture->hpet, &fixture->mmio, &err), 0);
    return fixture;
}

static int set_up(void **state)
{
    *state = make(true);
    return 0;
}

static int set_up_without_replacement(void **state)
{
    *state = make(false);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    hpet_finish(&fixture->hpet);
    free(fixture);
    return 0;
}

static uint64_t load(struct fixture *fixture, uint64_t offset)
{
    return bus_read(&fixture->mmio, HPET + offset, 8);
}

static uint64_t load_half(struct fixture *fixture, uint64_t offset)
{
    return bus_read(&fixture->mmio, HPET + offset, 4);
}

static void store(struct fixture *fixture, uint64_t offset, uint64_t value)
{
    bus_write(&fixture->mmio, HPET + offset, 8, value);
}

static void store_half(struct fixture *fixture, uint64_t offset, uint64_t value)
{
    bus_write(&fixture->mmio, HPET + offset, 4, value);
}

static void pass_ticks(struct fixture *fixture, uint64_t ticks)
{
    virtual_clock_advance(&fixture->clock, fixture->clock.now_ns + ticks * TICK_NS);
}

/* ---- the counter ---- */

static void says_what_it_is(void **state)
{
    struct fixture *fixture = *state;

    /* 10 ns in fs; vendor 0x8086, legacy replacement, 64 bits, 3 comparators, rev. 1. */
    assert_int_equal(load(fixture, CAPABILITIES), UINT64_C(0x009896808086a201));
    store(fixture, CAPABILITIES, 0);
    assert_int_equal(load_half(fixture, CAPABILITIES), 0x8086a201);
    assert_int_equal(load_half(fixture, CAPABILITIES + 4), 10000000);
    /* Lines 10 and 11, 64 bits, periodic; no delivery by messages. */
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(load(fixture, TIMER(i)), UINT64_C(0x00000c0000000030));
        assert_int_equal(load(fixture, COMPARATOR(i)), UINT64_MAX);
    }
}

static void counter_stands_until_it_is_enabled(void **state)
{
    struct fixture *fixture = *state;

    pass_ticks(fixture, 1000);
    assert_int_equal(load(fixture, COUNTER), 0);
    store(fixture, CONFIG, ENABLE);
    pass_ticks(fixture, 123);
    assert_int_equal(load(fixture, COUNTER), 123);
    store(fixture, CONFIG, 0);
    pass_ticks(fixture, 1000);
    assert_int_equal(load(fixture, COUNTER), 123);
    store(fixture, CONFIG, ENABLE);
    pass_ticks(fixture, 7);
    assert_int_equal(load(fixture, COUNTER), 130);
}

static void enabling_again_leaves_the_counter_alone(void **state)
{
    struct fixture *fixture = *state;

    store(fixture, CONFIG, ENABLE);
    for (unsigned i = 0; i < 10; i++) {
        virtual_clock_advance(&fixture->clock, fixture->clock.now_ns + 9);
        store(fixture, CONFIG, ENABLE);
    }
    assert_int_equal(load(fixture, COUNTER), 9);
}

static void counter_is_written_as_a_whole_or_by_halves(void **state)
{
    struct fixture *fixture = *state;

    store(fixture, COUNTER, UINT64_C(0x1122334455667788));
    assert_int_equal(load(fixture, COUNTER), UINT64_C(0x1122334455667788));
    store_half(fixture, COUNTER + 4, 0xaabbccdd);
    store_half(fixture, COUNTER, 0xffffffff);
    assert_int_equal(load(fixture, COUNTER), UINT64_C(0xaabbccddffffffff));
    store(fixture, CONFIG, ENABLE);
    pass_ticks(fixture, 2);
    assert_int_equal(load_half(fixture, COUNTER), 1);
    assert_int_equal(load_half(fixture, COUNTER + 4), 0xaabbccde);
}

/* ---- comparators ---- */

static void start(struct fixture *fixture, unsigned number, uint64_t config,
                  uint64_t comparator)
{
    store(fixture, TIMER(number), config | INTERRUPT);
    store(fixture, COMPARATOR(number), comparator);
    store(fixture, CONFIG, ENABLE);
}

static void one_shot_interrupts_once_when_the_counter_arrives(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 0, ROUTE(LINE), 1000);
    pass_ticks(fixture, 999);
    assert_int_equal(fixture->rises[LINE], 0);
    pass_ticks(fixture, 1);
    assert_int_equal(fixture->rises[LINE], 1);
    assert_false(fixture->levels[LINE]);
    assert_int_equal(load(fixture, STATUS), 0);
    assert_int_equal(load(fixture, COMPARATOR(0)), 1000);
    pass_ticks(fixture, UINT64_C(1) << 40);
    assert_int_equal(fixture->rises[LINE], 1);
}

static void value_behind_the_counter_waits_for_a_turn_of_32_bits(void **state)
{
    struct fixture *fixture = *state;

    store(fixture, COUNTER, UINT64_C(0x500000010));
    start(fixture, 1, ROUTE(LINE) | WIDTH_32, UINT64_C(0x70000000f));
    assert_int_equal(load(fixture, COMPARATOR(1)), 0xf);
    pass_ticks(fixture, UINT32_MAX - 1);
    assert_int_equal(fixture->rises[LINE], 0);
    pass_ticks(fixture, 1);
    assert_int_equal(fixture->rises[LINE], 1);
    pass_ticks(fixture, UINT64_C(1) << 32);
    assert_int_equal(fixture->rises[LINE], 2);
}

static void set_value_gives_a_periodic_one_its_first_value(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 0, ROUTE(LINE) | PERIODIC | SET_VALUE, 50000);
    assert_int_equal(load(fixture, TIMER(0)) & SET_VALUE, 0);
    store(fixture, COMPARATOR(0), 20000);
    assert_int_equal(load(fixture, COMPARATOR(0)), 50000);
    pass_ticks(fixture, 49999);
    assert_int_equal(fixture->rises[LINE], 0);
    pass_ticks(fixture, 1);
    assert_int_equal(fixture->rises[LINE], 1);
    assert_int_equal(load(fixture, COMPARATOR(0)), 70000);
    pass_ticks(fixture, 20000);
    assert_int_equal(fixture->rises[LINE], 2);
    assert_int_equal(load(fixture, COMPARATOR(0)), 90000);
}

static void set_value_holds_for_one_write(void **state)
{
    struct fixture *fixture = *state;

    store(fixture, TIMER(2), PERIODIC | SET_VALUE);
    store_half(fixture, COMPARATOR(2), 0x11111111);
    store_half(fixture, COMPARATOR(2) + 4, 0x22222222);
    assert_int_equal(load(fixture, COMPARATOR(2)), UINT64_C(0xffffffff11111111));
    store_half(fixture, TIMER(2), PERIODIC | SET_VALUE);
    store_half(fixture, COMPARATOR(2) + 4, 0x33333333);
    assert_int_equal(load(fixture, COMPARATOR(2)), UINT64_C(0x3333333311111111));
    store(fixture, TIMER(2), SET_VALUE);
    assert_int_equal(load_half(fixture, TIMER(2)), 0x30);
}

static void late_periods_are_one_interrupt_and_keep_the_phase(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 0, ROUTE(LINE) | PERIODIC | SET_VALUE, 20000);
    virtual_clock_set(&fixture->clock, fixture->clock.now_ns + UINT64_C(75000) * TICK_NS);
    assert_int_equal(load(fixture, COMPARATOR(0)), 80000);
    assert_int_equal(fixture->rises[LINE], 1);
    pass_ticks(fixture, 5000);
    assert_int_equal(fixture->rises[LINE], 2);
}

static void tiny_period_does_not_keep_the_host_busy(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 0, ROUTE(LINE) | PERIODIC | SET_VALUE, 1);
    pass_ticks(fixture, 100000);
    assert_in_range(fixture->rises[LINE], 1, 10);
}

static void period_of_32_bits_turns_over(void **state)
{
    struct fixture *fixture = *state;

    store(fixture, COUNTER, 0xffff0000);
    start(fixture, 0, ROUTE(LINE) | PERIODIC | SET_VALUE | WIDTH_32, 0xffffff00);
    store(fixture, COMPARATOR(0), 0x10000);
    pass_ticks(fixture, 0xff00);
    assert_int_equal(fixture->rises[LINE], 1);
    assert_int_equal(load(fixture, COMPARATOR(0)), 0xff00);
    pass_ticks(fixture, 0x10000);
    assert_int_equal(fixture->rises[LINE], 2);
}

static void level_stays_up_until_its_status_is_cleared(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 1, ROUTE(LINE) | LEVEL, 100);
    pass_ticks(fixture, 100);
    assert_true(fixture->levels[LINE]);
    assert_int_equal(load(fixture, STATUS), 0x2);
    store(fixture, STATUS, 0x5);
    assert_true(fixture->levels[LINE]);
    store_half(fixture, STATUS, 0x2);
    assert_false(fixture->levels[LINE]);
    assert_int_equal(load(fixture, STATUS), 0);
}

static void status_comes_also_without_an_interrupt(void **state)
{
    struct fixture *fixture = *state;

    store(fixture, TIMER(2), ROUTE(LINE) | LEVEL);
    store(fixture, COMPARATOR(2), 100);
    store(fixture, CONFIG, ENABLE);
    pass_ticks(fixture, 100);
    assert_int_equal(load(fixture, STATUS), 0x4);
    assert_false(fixture->levels[LINE]);
    store(fixture, TIMER(2), ROUTE(LINE) | LEVEL | INTERRUPT);
    assert_true(fixture->levels[LINE]);
    store(fixture, CONFIG, 0);
    assert_false(fixture->levels[LINE]);
    assert_int_equal(load(fixture, STATUS), 0x4);
    store(fixture, TIMER(2), ROUTE(LINE) | INTERRUPT);
    assert_int_equal(load(fixture, STATUS), 0);
}

static void comparators_share_a_line(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 0, ROUTE(LINE) | LEVEL, 100);
    start(fixture, 1, ROUTE(LINE) | LEVEL, 200);
    start(fixture, 2, ROUTE(LINE), 300); /* its pulse is not seen on a line that is up */
    pass_ticks(fixture, 300);
    assert_int_equal(load(fixture, STATUS), 0x3);
    store(fixture, STATUS, 0x1);
    assert_true(fixture->levels[LINE]);
    store(fixture, STATUS, 0x2);
    assert_false(fixture->levels[LINE]);
    assert_int_equal(fixture->rises[LINE], 1);
}

static void line_that_is_not_offered_is_not_taken(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 0, ROUTE(3), 100);
    pass_ticks(fixture, 100);
    assert_int_equal(load_half(fixture, TIMER(0)), 0x34);
    store(fixture, TIMER(0), ROUTE(OTHER_LINE) | INTERRUPT | LEVEL);
    store(fixture, TIMER(0), ROUTE(31) | INTERRUPT | LEVEL);
    assert_int_equal(load_half(fixture, TIMER(0)), 0x1636);
    store(fixture, COMPARATOR(0), 200);
    pass_ticks(fixture, 100);
    for (unsigned line = 0; line < RECORDER_LINES; line++)
        assert_int_equal(fixture->levels[line], line == OTHER_LINE);
}

/* ---- legacy replacement ---- */

static void replacement_moves_two_comparators(void **state)
{
    struct fixture *fixture = *state;

    for (unsigned i = 0; i < 3; i++) {
        store(fixture, TIMER(i), ROUTE(LINE) | INTERRUPT);
        store(fixture, COMPARATOR(i), 100 + i);
    }
    store(fixture, CONFIG, LEGACY);
    assert_false(fixture->is_replaced);
    store(fixture, CONFIG, LEGACY | ENABLE);
    assert_true(fixture->is_replaced);
    pass_ticks(fixture, 100);
    assert_int_equal(fixture->rises[TIMER_LINE], 1);
    pass_ticks(fixture, 1);
    assert_int_equal(fixture->rises[RTC_LINE], 1);
    assert_int_equal(fixture->rises[LINE], 0);
    pass_ticks(fixture, 1);
    assert_int_equal(fixture->rises[LINE], 1);
    store(fixture, CONFIG, ENABLE);
    assert_false(fixture->is_replaced);
    assert_int_equal(fixture->replacements, 2);
}

static void replaced_clock_has_no_line(void **state)
{
    struct fixture *fixture = *state;

    hpet_set_rtc_line(&fixture->hpet, RTC_LINE, true);
    assert_true(fixture->levels[RTC_LINE]);
    store(fixture, CONFIG, LEGACY | ENABLE);
    assert_false(fixture->levels[RTC_LINE]);
    hpet_set_rtc_line(&fixture->hpet, RTC_LINE, false);
    hpet_set_rtc_line(&fixture->hpet, RTC_LINE, true);
    assert_int_equal(fixture->rises[RTC_LINE], 1);
    store(fixture, CONFIG, ENABLE);
    assert_true(fixture->levels[RTC_LINE]);
}

static void line_falls_before_it_is_given_back(void **state)
{
    struct fixture *fixture = *state;

    store(fixture, TIMER(0), ROUTE(LINE) | INTERRUPT | LEVEL);
    store(fixture, COMPARATOR(0), 100);
    store(fixture, CONFIG, LEGACY | ENABLE);
    pass_ticks(fixture, 100);
    assert_true(fixture->levels[TIMER_LINE]);
    store(fixture, CONFIG, ENABLE); /* note_replacement() looks */
    assert_false(fixture->levels[TIMER_LINE]);
    assert_true(fixture->levels[LINE]);
}

static void without_replacement_there_is_no_bit_for_it(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(load_half(fixture, CAPABILITIES), 0x80862201);
    store(fixture, CONFIG, UINT64_MAX);
    assert_int_equal(load(fixture, CONFIG), ENABLE);
}

/* ---- guests that do not keep to the rules ---- */

static void only_proper_accesses_are_answered(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        uint64_t offset;
        unsigned size;
    } improper[] = {{CONFIG, 1}, {CONFIG, 2}, {CONFIG + 1, 4}, {CONFIG + 4, 8}};

    store(fixture, COUNTER, UINT64_MAX);
    for (size_t i = 0; i < sizeof(improper) / sizeof(improper[0]); i++) {
        bus_write(&fixture->mmio, HPET + improper[i].offset, improper[i].size,
                  UINT64_MAX);
        assert_int_equal(load(fixture, CONFIG), 0);
        assert_int_equal(
            bus_read(&fixture->mmio, HPET + improper[i].offset, improper[i].size), 0);
    }
    assert_int_equal(bus_read(&fixture->mmio, HPET + COUNTER, 2), 0);
}

static void what_is_not_there_reads_as_0(void **state)
{
    struct fixture *fixture = *state;

    for (uint64_t offset = 0; offset < 0x400; offset += 8) {
        bool is_register = offset == CAPABILITIES || offset == COUNTER ||
                           (offset >= TIMER(0) && offset < TIMER(3) && offset % 32 <= 8);

        store(fixture, offset, offset == CONFIG ? 0 : UINT64_MAX);
        assert_int_equal(load(fixture, offset) != 0, is_register);
    }
    assert_int_equal(load(fixture, 0x400), UINT64_MAX);
}

static void largest_values_overflow_nothing(void **state)
{
    struct fixture *fixture = *state;

    store(fixture, COUNTER, UINT64_MAX);
    for (unsigned i = 0; i < 3; i++) {
        store(fixture, TIMER(i), UINT64_MAX);
        store(fixture, COMPARATOR(i), UINT64_MAX);
    }
    assert_int_equal(load_half(fixture, TIMER(0)), 0x13e);
    store(fixture, CONFIG, UINT64_MAX);
    pass_ticks(fixture, UINT64_C(1) << 33);
    assert_int_equal(load(fixture, STATUS), 0x7);
    assert_int_equal(load(fixture, COUNTER), (UINT64_C(1) << 33) - 1);
}

static void reset_takes_all_back(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 0, ROUTE(LINE) | LEVEL, 100);
    store(fixture, CONFIG, ENABLE | LEGACY);
    pass_ticks(fixture, 100);
    assert_true(fixture->levels[TIMER_LINE]);
    hpet_reset(&fixture->hpet);
    assert_false(fixture->levels[TIMER_LINE]);
    assert_false(fixture->is_replaced);
    assert_int_equal(load(fixture, CONFIG), 0);
    assert_int_equal(load(fixture, STATUS), 0);
    assert_int_equal(load(fixture, COUNTER), 0);
    assert_int_equal(load(fixture, TIMER(0)), UINT64_C(0x00000c0000000030));
    assert_int_equal(load(fixture, COMPARATOR(0)), UINT64_MAX);
    assert_int_equal(virtual_clock_deadline_ns(&fixture->clock), MACHINE_TIMER_OFF);
}

/* ---- in a chipset ---- */

static void chipset_has_one_only_if_asked(void **state)
{
    struct recorder recorder = {.console_size = 0};
    struct chipset_options options = recorder_options(&recorder);
    (void)state;

    recorder_create_with(&recorder, &options);
    assert_int_equal(bus_read(&recorder.mmio, HPET, 4), 0xffffffff);
    recorder_destroy(&recorder);
    options.hpet = true;
    recorder_create_with(&recorder, &options);
    assert_int_equal(bus_read(&recorder.mmio, HPET, 4), 0x80862201);
    recorder_destroy(&recorder);
}

/* The clock's line is its own also where an HPET stands in between. */
static void chipset_clock_interrupts_through_it(void **state)
{
    struct recorder recorder = {.console_size = 0};
    struct chipset_options options = recorder_options(&recorder);
    (void)state;

    options.hpet = true;
    recorder_create_with(&recorder, &options);
    port_out(&recorder, 0x70, 0x0a); /* the crystal runs */
    port_out(&recorder, 0x71, 0x26);
    port_out(&recorder, 0x70, 0x0b); /* interrupt at each second */
    port_out(&recorder, 0x71, 0x12);
    virtual_clock_advance(&recorder.clock, 1000000000);
    assert_true(recorder.irq_levels[RTC_LINE]);
    chipset_reset(recorder.chipset);
    assert_false(recorder.irq_levels[RTC_LINE]);
    recorder_destroy(&recorder);
}

#define HPET_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HPET_TEST(says_what_it_is),
        HPET_TEST(counter_stands_until_it_is_enabled),
        HPET_TEST(enabling_again_leaves_the_counter_alone),
        HPET_TEST(counter_is_written_as_a_whole_or_by_halves),
        HPET_TEST(one_shot_interrupts_once_when_the_counter_arrives),
        HPET_TEST(value_behind_the_counter_waits_for_a_turn_of_32_bits),
        HPET_TEST(set_value_gives_a_periodic_one_its_first_value),
        HPET_TEST(set_value_holds_for_one_write),
        HPET_TEST(late_periods_are_one_interrupt_and_keep_the_phase),
        HPET_TEST(tiny_period_does_not_keep_the_host_busy),
        HPET_TEST(period_of_32_bits_turns_over),
        HPET_TEST(level_stays_up_until_its_status_is_cleared),
        HPET_TEST(status_comes_also_without_an_interrupt),
        HPET_TEST(comparators_share_a_line),
        HPET_TEST(line_that_is_not_offered_is_not_taken),
        HPET_TEST(replacement_moves_two_comparators),
        HPET_TEST(replaced_clock_has_no_line),
        HPET_TEST(line_falls_before_it_is_given_back),
        cmocka_unit_test_setup_teardown(without_replacement_there_is_no_bit_for_it,
                                        set_up_without_replacement, tear_down),
        HPET_TEST(only_proper_accesses_are_answered),
        HPET_TEST(what_is_not_there_reads_as_0),
        HPET_TEST(largest_values_overflow_nothing),
        HPET_TEST(reset_takes_all_back),
        cmocka_unit_test(chipset_has_one_only_if_asked),
        cmocka_unit_test(chipset_clock_interrupts_through_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
