/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines in the main loop: replacement, disarming, and arming from elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/timer.h"

/* Far enough that nothing reaches it. */
#define NEVER_NS (UINT64_C(1) << 62)

struct fixture {
    struct loop *loop;
    struct loop_timer first;
    struct loop_timer second;
    char order[8]; /* one letter a call */
    uint64_t called_at_ns;
    pthread_t ran_on;
    pthread_t other;
};

static void note(struct fixture *fixture, char letter)
{
    size_t used = strlen(fixture->order);

    assert_in_range(used, 0, sizeof(fixture->order) - 2);
    fixture->order[used] = letter;
    fixture->called_at_ns = clock_monotonic_ns();
    fixture->ran_on = pthread_self();
}

static void note_first(void *context)
{
    note(context, 'a');
}

static void note_second_and_stop(void *context)
{
    struct fixture *fixture = context;

    note(fixture, 'b');
    loop_stop(fixture->loop);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    struct error err = ERROR_NONE;

    fixture = (struct fixture){0};
    assert_int_equal(loop_create(&fixture.loop, &err), 0);
    assert_int_equal(
        loop_timer_init(&fixture.first, fixture.loop, note_first, &fixture, &err), 0);
    assert_int_equal(loop_timer_init(&fixture.second, fixture.loop, note_second_and_stop,
                                     &fixture, &err),
                     0);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    loop_timer_finish(&fixture->first);
    loop_timer_finish(&fixture->second);
    loop_timer_finish(&fixture->second); /* twice is harmless */
    loop_destroy(fixture->loop);
    return 0;
}

static void run(struct fixture *fixture)
{
    struct error err = ERROR_NONE;

    assert_int_equal(loop_run(fixture->loop, &err), 0);
}

static void note_first_and_arm_second(void *context)
{
    struct fixture *fixture = context;

    note(fixture, 'a');
    loop_timer_arm(&fixture->second, clock_monotonic_ns() + NS_PER_MS);
}

static void each_calls_its_own_function_once(void **state)
{
    struct fixture *fixture = *state;

    fixture->first.function = note_first_and_arm_second;
    loop_timer_arm(&fixture->first, clock_monotonic_ns() + NS_PER_MS);
    run(fixture);
    assert_string_equal(fixture->order, "ab");
}

static void never_calls_before_the_deadline(void **state)
{
    struct fixture *fixture = *state;
    uint64_t deadline_ns = clock_monotonic_ns() + 2 * NS_PER_MS;

    loop_timer_arm(&fixture->second, deadline_ns);
    run(fixture);
    assert_true(fixture->called_at_ns >= deadline_ns);
}

static void deadlines_in_the_past_come_at_once(void **state)
{
    static const uint64_t deadlines_ns[] = {0, 1};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < 2; i++) {
        loop_timer_arm(&fixture->second, deadlines_ns[i]);
        run(fixture);
    }
    assert_string_equal(fixture->order, "bb");
}

static void a_new_deadline_replaces_the_old(void **state)
{
    struct fixture *fixture = *state;

    loop_timer_arm(&fixture->second, NEVER_NS);
    loop_timer_arm(&fixture->second, 1);
    loop_timer_arm(&fixture->first, 1);
    loop_timer_arm(&fixture->first, NEVER_NS);
    run(fixture);
    assert_string_equal(fixture->order, "b");
}

static void disarmed_is_not_called_though_its_time_has_come(void **state)
{
    struct fixture *fixture = *state;

    loop_timer_arm(&fixture->first, 1);
    loop_timer_disarm(&fixture->first);
    loop_timer_arm(&fixture->second, clock_monotonic_ns() + NS_PER_MS);
    run(fixture);
    assert_string_equal(fixture->order, "b");
}

static void arm_again(void *context)
{
    struct fixture *fixture = context;

    note(fixture, 'a');
    if (strlen(fixture->order) < 3)
        loop_timer_arm(&fixture->first, 1);
    else
        loop_stop(fixture->loop);
}

static void may_be_armed_in_its_own_call(void **state)
{
    struct fixture *fixture = *state;

    fixture->first.function = arm_again;
    loop_timer_arm(&fixture->first, 1);
    run(fixture);
    assert_string_equal(fixture->order, "aaa");
}

static void *arm_second(void *context)
{
    struct fixture *fixture = context;

    for (int i = 0; i < 1000; i++) {
        loop_timer_arm(&fixture->second, NEVER_NS);
        loop_timer_disarm(&fixture->second);
    }
    loop_timer_arm(&fixture->second, 1);
    return NULL;
}

static void start_thread(void *context)
{
    struct fixture *fixture = context;

    assert_int_equal(pthread_create(&fixture->other, NULL, arm_second, fixture), 0);
}

static void another_thread_arms_and_the_loop_calls(void **state)
{
    struct fixture *fixture = *state;

    fixture->first.function = start_thread;
    loop_timer_arm(&fixture->first, 1);
    run(fixture);
    assert_int_equal(pthread_join(fixture->other, NULL), 0);
    assert_string_equal(fixture->order, "b");
    assert_true(pthread_equal(fixture->ran_on, pthread_self()));
}

static void finishes_what_was_never_made(void **state)
{
    struct loop_timer timer = {0};

    (void)state;
    loop_timer_finish(&timer);
}

#define TIMER_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TIMER_TEST(each_calls_its_own_function_once),
        TIMER_TEST(never_calls_before_the_deadline),
        TIMER_TEST(deadlines_in_the_past_come_at_once),
        TIMER_TEST(a_new_deadline_replaces_the_old),
        TIMER_TEST(disarmed_is_not_called_though_its_time_has_come),
        TIMER_TEST(may_be_armed_in_its_own_call),
        TIMER_TEST(another_thread_arms_and_the_loop_calls),
        cmocka_unit_test(finishes_what_was_never_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
