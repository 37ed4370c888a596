/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that stands still until it is told the time, and its timers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/virtual_clock.h"

#define TIMERS 3
#define CALLS 8

struct fixture;

struct alarm {
    struct fixture *fixture;
    struct machine_timer timer;
    uint64_t period_ns; /* 0: it does not set itself again */
};

struct fixture {
    struct virtual_clock clock;
    struct alarm alarms[TIMERS];
    size_t call_count;
    struct {
        size_t timer;
        uint64_t at_ns;
    } calls[CALLS];
};

static void note_call(void *context)
{
    struct alarm *alarm = context;
    struct fixture *fixture = alarm->fixture;
    uint64_t now_ns = machine_clock_now_ns(&fixture->clock.clock);

    assert_true(fixture->call_count < CALLS);
    fixture->calls[fixture->call_count].timer = (size_t)(alarm - fixture->alarms);
    fixture->calls[fixture->call_count++].at_ns = now_ns;
    if (alarm->period_ns != 0)
        machine_timer_set(&alarm->timer, now_ns + alarm->period_ns);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct error err = ERROR_NONE;

    assert_non_null(fixture);
    virtual_clock_init(&fixture->clock);
    for (size_t i = 0; i < TIMERS; i++) {
        fixture->alarms[i].fixture = fixture;
        assert_int_equal(machine_timer_init(&fixture->alarms[i].timer,
                                            &fixture->clock.clock, note_call,
                                            &fixture->alarms[i], &err),
                         0);
    }
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < TIMERS; i++)
        machine_timer_finish(&fixture->alarms[i].timer);
    assert_null(fixture->clock.timers);
    free(fixture);
    return 0;
}

static void assert_call(const struct fixture *fixture, size_t call, size_t timer,
                        uint64_t at_ns)
{
    assert_int_equal(fixture->calls[call].timer, timer);
    assert_int_equal(fixture->calls[call].at_ns, at_ns);
}

static void time_is_what_it_is_told(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(machine_clock_now_ns(&fixture->clock.clock), 0);
    virtual_clock_set(&fixture->clock, 12345);
    assert_int_equal(machine_clock_now_ns(&fixture->clock.clock), 12345);
}

static void time_of_day_counts_from_the_epoch(void **state)
{
    struct fixture *fixture = *state;
    struct timespec time = machine_clock_time_of_day(&fixture->clock.clock);

    assert_int_equal(time.tv_sec, 1767225600); /* date -u -d 2026-01-01 +%s */
    assert_int_equal(time.tv_nsec, 0);
    virtual_clock_set(&fixture->clock, UINT64_C(86400000000007));
    time = machine_clock_time_of_day(&fixture->clock.clock);
    assert_int_equal(time.tv_sec, 1767225600 + 86400);
    assert_int_equal(time.tv_nsec, 7);
}

static void no_timer_is_no_deadline(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(virtual_clock_deadline_ns(&fixture->clock), MACHINE_TIMER_OFF);
    virtual_clock_advance(&fixture->clock, UINT64_MAX);
    assert_int_equal(fixture->call_count, 0);
}

static void a_timer_is_called_at_its_time_and_once(void **state)
{
    struct fixture *fixture = *state;

    machine_timer_set(&fixture->alarms[0].timer, 100);
    assert_int_equal(virtual_clock_deadline_ns(&fixture->clock), 100);
    virtual_clock_advance(&fixture->clock, 99);
    assert_int_equal(fixture->call_count, 0);
    virtual_clock_advance(&fixture->clock, 100);
    assert_int_equal(fixture->call_count, 1);
    assert_call(fixture, 0, 0, 100);
    assert_int_equal(virtual_clock_deadline_ns(&fixture->clock), MACHINE_TIMER_OFF);
    virtual_clock_advance(&fixture->clock, 1000);
    assert_int_equal(fixture->call_count, 1);
}

static void the_earliest_is_called_first(void **state)
{
    struct fixture *fixture = *state;

    machine_timer_set(&fixture->alarms[0].timer, 300);
    machine_timer_set(&fixture->alarms[1].timer, 100);
    machine_timer_set(&fixture->alarms[2].timer, 200);
    assert_int_equal(virtual_clock_deadline_ns(&fixture->clock), 100);
    virtual_clock_advance(&fixture->clock, 250);
    assert_int_equal(fixture->call_count, 2);
    assert_call(fixture, 0, 1, 250);
    assert_call(fixture, 1, 2, 250);
    assert_int_equal(virtual_clock_deadline_ns(&fixture->clock), 300);
}

static void a_later_deadline_replaces_the_earlier(void **state)
{
    struct fixture *fixture = *state;

    machine_timer_set(&fixture->alarms[0].timer, 100);
    machine_timer_set(&fixture->alarms[0].timer, 200);
    virtual_clock_advance(&fixture->clock, 150);
    assert_int_equal(fixture->call_count, 0);
    machine_timer_set(&fixture->alarms[0].timer, MACHINE_TIMER_OFF);
    virtual_clock_advance(&fixture->clock, 300);
    assert_int_equal(fixture->call_count, 0);
}

static void a_deadline_in_the_past_is_due_at_the_next_look(void **state)
{
    struct fixture *fixture = *state;

    virtual_clock_set(&fixture->clock, 500);
    machine_timer_set(&fixture->alarms[0].timer, 100);
    assert_int_equal(fixture->call_count, 0);
    virtual_clock_advance(&fixture->clock, 500);
    assert_int_equal(fixture->call_count, 1);
    assert_call(fixture, 0, 0, 500);
}

static void a_timer_can_set_itself_again(void **state)
{
    struct fixture *fixture = *state;

    fixture->alarms[1].period_ns = 10;
    machine_timer_set(&fixture->alarms[1].timer, 10);
    for (uint64_t now_ns = 0; now_ns <= 30; now_ns++)
        virtual_clock_advance(&fixture->clock, now_ns);
    assert_int_equal(fixture->call_count, 3);
    assert_call(fixture, 0, 1, 10);
    assert_call(fixture, 2, 1, 30);
}

static void a_finished_timer_is_forgotten(void **state)
{
    struct fixture *fixture = *state;

    machine_timer_set(&fixture->alarms[1].timer, 100);
    machine_timer_finish(&fixture->alarms[1].timer);
    machine_timer_finish(&fixture->alarms[1].timer); /* no harm */
    assert_int_equal(virtual_clock_deadline_ns(&fixture->clock), MACHINE_TIMER_OFF);
}

#define CLOCK_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLOCK_TEST(time_is_what_it_is_told),
        CLOCK_TEST(time_of_day_counts_from_the_epoch),
        CLOCK_TEST(no_timer_is_no_deadline),
        CLOCK_TEST(a_timer_is_called_at_its_time_and_once),
        CLOCK_TEST(the_earliest_is_called_first),
        CLOCK_TEST(a_later_deadline_replaces_the_earlier),
        CLOCK_TEST(a_deadline_in_the_past_is_due_at_the_next_look),
        CLOCK_TEST(a_timer_can_set_itself_again),
        CLOCK_TEST(a_finished_timer_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
