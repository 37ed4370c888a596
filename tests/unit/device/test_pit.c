/* SPDX-License-Identifier: Apache-2.0 */
/* The 8254 and port 0x61: counting in each mode, latches, interrupts of counter 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/bytes.h"
#include "base/virtual_clock.h"
#include "device/pit_private.h"

#define COUNTER0 0x40
#define COUNTER2 0x42
#define CONTROL 0x43
#define SYSTEM 0x61

struct fixture {
    struct virtual_clock clock;
    struct pit pit;
    struct bus ports;
    bool line;
    unsigned rises;
};

static void note_line(void *context, uint32_t line, bool level)
{
    struct fixture *fixture = context;

    assert_int_equal(line, 0);
    if (level && !fixture->line)
        fixture->rises++;
    fixture->line = level;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct error err = ERROR_NONE;

    assert_non_null(fixture);
    virtual_clock_init(&fixture->clock);
    virtual_clock_set(&fixture->clock, 5000000000);
    bus_init(&fixture->ports, "port");
    assert_int_equal(pit_init(&fixture->pit,
                              (struct irq_line){.set = note_line, .context = fixture},
                              &fixture->clock.clock, &err),
                     0);
    assert_int_equal(pit_attach(&fixture->pit, &fixture->ports, &err), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static uint8_t in(struct fixture *fixture, uint16_t port)
{
    return (uint8_t)bus_read(&fixture->ports, port, 1);
}

static void out(struct fixture *fixture, uint16_t port, uint8_t value)
{
    bus_write(&fixture->ports, port, 1, value);
}

static unsigned in_both(struct fixture *fixture, uint16_t port)
{
    unsigned low = in(fixture, port);

    return low | (unsigned)in(fixture, port) << 8;
}

static void out_both(struct fixture *fixture, uint16_t port, unsigned value)
{
    out(fixture, port, (uint8_t)value);
    out(fixture, port, (uint8_t)(value >> 8));
}

/* Moves time to just after `ticks` of 1/1193182 s since the test began. */
static void at_tick(struct fixture *fixture, uint64_t ticks)
{
    virtual_clock_advance(&fixture->clock,
                          5000000000 + (ticks * 1000000000 + 1193181) / 1193182);
}

static bool output2(struct fixture *fixture)
{
    return (in(fixture, SYSTEM) & 0x20) != 0;
}

/* ---- counting, on counter 2 with its gate open ---- */

static int set_up_gate_open(void **state)
{
    set_up(state);
    out(*state, SYSTEM, 0x01);
    return 0;
}

static void mode_0_rises_at_the_end_and_counts_on(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xb0);
    assert_false(output2(fixture));
    out_both(fixture, COUNTER2, 1000);
    assert_int_equal(in_both(fixture, COUNTER2), 1000);
    at_tick(fixture, 999);
    assert_int_equal(in_both(fixture, COUNTER2), 1);
    assert_false(output2(fixture));
    at_tick(fixture, 1000);
    assert_int_equal(in_both(fixture, COUNTER2), 0);
    assert_true(output2(fixture));
    at_tick(fixture, 1001);
    assert_int_equal(in_both(fixture, COUNTER2), 0xffff);
    assert_true(output2(fixture));
}

static void half_a_count_stops_mode_0(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xb0);
    out_both(fixture, COUNTER2, 1000);
    at_tick(fixture, 1000);
    assert_true(output2(fixture));
    out(fixture, COUNTER2, 0x10);
    assert_false(output2(fixture));
    at_tick(fixture, 5000);
    assert_false(output2(fixture));
    out(fixture, COUNTER2, 0);
    at_tick(fixture, 5016);
    assert_true(output2(fixture));
}

static void gate_pauses_mode_0(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xb0);
    out_both(fixture, COUNTER2, 1000);
    at_tick(fixture, 400);
    out(fixture, SYSTEM, 0x00);
    at_tick(fixture, 9000);
    assert_int_equal(in_both(fixture, COUNTER2), 600);
    out(fixture, SYSTEM, 0x01);
    at_tick(fixture, 9599);
    assert_false(output2(fixture));
    at_tick(fixture, 9601);
    assert_true(output2(fixture));
}

static void mode_1_is_started_by_the_gate(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xb2);
    assert_true(output2(fixture));
    out_both(fixture, COUNTER2, 100);
    at_tick(fixture, 50);
    assert_true(output2(fixture));
    out(fixture, SYSTEM, 0x00);
    out(fixture, SYSTEM, 0x01);
    assert_false(output2(fixture));
    at_tick(fixture, 149);
    assert_false(output2(fixture));
    out(fixture, SYSTEM, 0x00); /* does not stop it */
    out(fixture, SYSTEM, 0x01); /* starts it again */
    at_tick(fixture, 248);
    assert_false(output2(fixture));
    at_tick(fixture, 250);
    assert_true(output2(fixture));
}

static void mode_2_is_low_for_the_last_tick(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xb4);
    out_both(fixture, COUNTER2, 10);
    at_tick(fixture, 8);
    assert_int_equal(in_both(fixture, COUNTER2), 2);
    assert_true(output2(fixture));
    at_tick(fixture, 9);
    assert_int_equal(in_both(fixture, COUNTER2), 1);
    assert_false(output2(fixture));
    at_tick(fixture, 10);
    assert_int_equal(in_both(fixture, COUNTER2), 10);
    assert_true(output2(fixture));
    out(fixture, SYSTEM, 0x00);
    at_tick(fixture, 19);
    assert_true(output2(fixture)); /* high without the gate */
    out(fixture, SYSTEM, 0x01);    /* which begins a new period */
    assert_int_equal(in_both(fixture, COUNTER2), 10);
}

static void mode_3_is_half_high_and_counts_in_twos(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xb6);
    out_both(fixture, COUNTER2, 10);
    at_tick(fixture, 4);
    assert_int_equal(in_both(fixture, COUNTER2), 2);
    assert_true(output2(fixture));
    at_tick(fixture, 5);
    assert_int_equal(in_both(fixture, COUNTER2), 10);
    assert_false(output2(fixture));
    at_tick(fixture, 9);
    assert_false(output2(fixture));
    at_tick(fixture, 10);
    assert_true(output2(fixture));
}

static void mode_4_strobes_once(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xb8);
    out_both(fixture, COUNTER2, 10);
    at_tick(fixture, 9);
    assert_true(output2(fixture));
    at_tick(fixture, 10);
    assert_false(output2(fixture));
    at_tick(fixture, 11);
    assert_true(output2(fixture));
}

static void mode_5_strobes_after_the_gate(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xba);
    out_both(fixture, COUNTER2, 10);
    at_tick(fixture, 10);
    out(fixture, SYSTEM, 0x00);
    out(fixture, SYSTEM, 0x01);
    at_tick(fixture, 19);
    assert_true(output2(fixture));
    at_tick(fixture, 20);
    assert_false(output2(fixture));
}

static void count_of_zero_is_the_longest(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xb0);
    out_both(fixture, COUNTER2, 0);
    at_tick(fixture, 65535);
    assert_int_equal(in_both(fixture, COUNTER2), 1);
    assert_false(output2(fixture));
    at_tick(fixture, 65536);
    assert_true(output2(fixture));
}

static void counts_in_decimal(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xb1);
    out_both(fixture, COUNTER2, 0x1234);
    at_tick(fixture, 235);
    assert_int_equal(in_both(fixture, COUNTER2), 0x0999);
    at_tick(fixture, 1234);
    assert_true(output2(fixture));
    at_tick(fixture, 1235);
    assert_int_equal(in_both(fixture, COUNTER2), 0x9999);
}

/* ---- access ---- */

static void one_byte_accesses(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0x90); /* low */
    out(fixture, COUNTER2, 0x34);
    assert_int_equal(in(fixture, COUNTER2), 0x34);
    assert_int_equal(in(fixture, COUNTER2), 0x34);
    out(fixture, CONTROL, 0xa0); /* high */
    out(fixture, COUNTER2, 0x12);
    assert_int_equal(in(fixture, COUNTER2), 0x12);
    at_tick(fixture, 1);
    assert_int_equal(in(fixture, COUNTER2), 0x11);
}

static void latched_count_stays_until_it_is_read(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xb4);
    out_both(fixture, COUNTER2, 0x8000);
    at_tick(fixture, 0x10);
    out(fixture, CONTROL, 0x80);
    at_tick(fixture, 0x20);
    out(fixture, CONTROL, 0x80); /* the first one counts */
    assert_int_equal(in_both(fixture, COUNTER2), 0x7ff0);
    assert_int_equal(in_both(fixture, COUNTER2), 0x7fe0);
}

static void read_back_latches_status_then_count(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xb4);
    out(fixture, CONTROL, 0xe8);                   /* status of counter 2 */
    assert_int_equal(in(fixture, COUNTER2), 0xf4); /* high, no count yet */
    out_both(fixture, COUNTER2, 0x8000);
    at_tick(fixture, 0x10);
    out(fixture, CONTROL, 0xc8); /* both */
    at_tick(fixture, 0x20);
    assert_int_equal(in(fixture, COUNTER2), 0xb4);
    assert_int_equal(in_both(fixture, COUNTER2), 0x7ff0);
    assert_int_equal(in_both(fixture, COUNTER2), 0x7fe0);
    out(fixture, CONTROL, 0xf8); /* neither */
    assert_int_equal(in_both(fixture, COUNTER2), 0x7fe0);
    assert_int_equal(in(fixture, CONTROL), 0);
}

static void modes_6_and_7_are_2_and_3(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0xbc);
    out(fixture, CONTROL, 0xe8);
    assert_int_equal(in(fixture, COUNTER2), 0xf4);
    out(fixture, CONTROL, 0xbe);
    out(fixture, CONTROL, 0xe8);
    assert_int_equal(in(fixture, COUNTER2), 0xf6);
}

static void system_port_keeps_gate_and_speaker(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(in(fixture, SYSTEM) & ~0x30, 0x01);
    out(fixture, SYSTEM, 0xff);
    assert_int_equal(in(fixture, SYSTEM) & ~0x30, 0x03);
    out(fixture, SYSTEM, 0x00);
    assert_int_equal(in(fixture, SYSTEM) & ~0x30, 0x00);
}

/* Delay loops of old wait for it. */
static void refresh_bit_toggles(void **state)
{
    struct fixture *fixture = *state;
    uint8_t first = in(fixture, SYSTEM) & 0x10;

    fixture->clock.now_ns += 15085;
    assert_int_equal(in(fixture, SYSTEM) & 0x10, first ^ 0x10);
    fixture->clock.now_ns += 15085;
    assert_int_equal(in(fixture, SYSTEM) & 0x10, first);
}

/* ---- interrupts of counter 0 ---- */

static void nothing_is_armed_at_power_on(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(fixture->pit.timer.deadline_ns, MACHINE_TIMER_OFF);
    assert_false(fixture->line);
}

static void one_shot_raises_the_line_once(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0x30);
    assert_false(fixture->line);
    assert_int_equal(fixture->pit.timer.deadline_ns, MACHINE_TIMER_OFF);
    out_both(fixture, COUNTER0, 1193);
    assert_int_equal(fixture->pit.timer.deadline_ns, 5000000000 + 999848);
    at_tick(fixture, 1192);
    assert_int_equal(fixture->rises, 0);
    at_tick(fixture, 1193);
    assert_int_equal(fixture->rises, 1);
    assert_true(fixture->line);
    assert_int_equal(fixture->pit.timer.deadline_ns, MACHINE_TIMER_OFF);
    out(fixture, CONTROL, 0x30);
    assert_false(fixture->line);
}

static void rate_and_square_interrupt_each_period(void **state)
{
    static const uint8_t controls[] = {0x34, 0x36};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(controls); i++) {
        virtual_clock_set(&fixture->clock, 5000000000);
        out(fixture, CONTROL, controls[i]);
        fixture->rises = 0;
        out_both(fixture, COUNTER0, 11932);
        assert_int_equal(fixture->pit.timer.deadline_ns, 5000000000 + 10000151);
        at_tick(fixture, 11932);
        assert_int_equal(fixture->rises, 1);
        assert_int_equal(fixture->pit.timer.deadline_ns, 5000000000 + 20000302);
        at_tick(fixture, UINT64_C(2) * 11932);
        assert_int_equal(fixture->rises, 2);
    }
}

static void missed_periods_are_one_and_the_phase_is_kept(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0x34);
    out_both(fixture, COUNTER0, 11932);
    fixture->rises = 0;
    at_tick(fixture, UINT64_C(3) * 11932 + 5000);
    assert_int_equal(fixture->rises, 1);
    assert_int_equal(fixture->pit.timer.deadline_ns, 5000000000 + 40000604);
}

static void tiny_periods_do_not_keep_the_host_busy(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0x34);
    out_both(fixture, COUNTER0, 1);
    at_tick(fixture, 1);
    assert_int_equal(fixture->pit.timer.deadline_ns, fixture->clock.now_ns + 100000);
}

static void strobe_interrupts_once(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0x38);
    out_both(fixture, COUNTER0, 1000);
    fixture->rises = 0;
    at_tick(fixture, 1000);
    assert_int_equal(fixture->rises, 1);
    assert_int_equal(fixture->pit.timer.deadline_ns, MACHINE_TIMER_OFF);
}

static void modes_that_wait_for_the_gate_never_interrupt(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0x32);
    out_both(fixture, COUNTER0, 1000);
    assert_int_equal(fixture->pit.timer.deadline_ns, MACHINE_TIMER_OFF);
}

static void early_call_does_nothing(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0x30);
    out_both(fixture, COUNTER0, 1193);
    fixture->clock.now_ns += 999847;
    pit_expired(&fixture->pit);
    assert_int_equal(fixture->rises, 0);
    assert_int_equal(fixture->pit.timer.deadline_ns, 5000000000 + 999848);
}

static void reset_stops_everything(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, CONTROL, 0x34);
    out_both(fixture, COUNTER0, 1193);
    out(fixture, SYSTEM, 0x03);
    pit_reset(&fixture->pit);
    assert_int_equal(fixture->pit.timer.deadline_ns, MACHINE_TIMER_OFF);
    assert_int_equal(in(fixture, SYSTEM) & ~0x30, 0);
}

#define PIT_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
#define GATED_TEST(function)                                                             \
    cmocka_unit_test_setup_teardown(function, set_up_gate_open, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATED_TEST(mode_0_rises_at_the_end_and_counts_on),
        GATED_TEST(half_a_count_stops_mode_0),
        GATED_TEST(gate_pauses_mode_0),
        GATED_TEST(mode_1_is_started_by_the_gate),
        GATED_TEST(mode_2_is_low_for_the_last_tick),
        GATED_TEST(mode_3_is_half_high_and_counts_in_twos),
        GATED_TEST(mode_4_strobes_once),
        GATED_TEST(mode_5_strobes_after_the_gate),
        GATED_TEST(count_of_zero_is_the_longest),
        GATED_TEST(counts_in_decimal),
        GATED_TEST(one_byte_accesses),
        GATED_TEST(latched_count_stays_until_it_is_read),
        GATED_TEST(read_back_latches_status_then_count),
        GATED_TEST(modes_6_and_7_are_2_and_3),
        GATED_TEST(system_port_keeps_gate_and_speaker),
        GATED_TEST(refresh_bit_toggles),
        PIT_TEST(nothing_is_armed_at_power_on),
        PIT_TEST(one_shot_raises_the_line_once),
        PIT_TEST(rate_and_square_interrupt_each_period),
        PIT_TEST(missed_periods_are_one_and_the_phase_is_kept),
        PIT_TEST(tiny_periods_do_not_keep_the_host_busy),
        PIT_TEST(strobe_interrupts_once),
        PIT_TEST(modes_that_wait_for_the_gate_never_interrupt),
        PIT_TEST(early_call_does_nothing),
        PIT_TEST(reset_stops_everything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
