/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop: posts from other threads, their merging, and stopping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <pthread.h>
#include <string.h>

#include "base/loop.h"

struct fixture {
    struct loop *loop;
    struct loop_post first;
    struct loop_post second;
    char order[16]; /* one letter a call */
    pthread_t ran_on;
};

static void note(struct fixture *fixture, char letter)
{
    size_t used = strlen(fixture->order);

    assert_in_range(used, 0, sizeof(fixture->order) - 2);
    fixture->order[used] = letter;
    fixture->ran_on = pthread_self();
}

static void note_first(void *context)
{
    note(context, 'a');
}

static void note_second(void *context)
{
    note(context, 'b');
}

static int make_loop(void **state)
{
    static struct fixture fixture;
    struct error err = ERROR_NONE;

    fixture = (struct fixture){0};
    assert_int_equal(loop_create(&fixture.loop, &err), 0);
    assert_int_equal(
        loop_post_init(&fixture.first, fixture.loop, note_first, &fixture, &err), 0);
    assert_int_equal(
        loop_post_init(&fixture.second, fixture.loop, note_second, &fixture, &err), 0);
    *state = &fixture;
    return 0;
}

static int free_loop(void **state)
{
    struct fixture *fixture = *state;

    loop_post_finish(&fixture->first);
    loop_post_finish(&fixture->second);
    loop_post_finish(&fixture->second); /* twice is harmless */
    loop_destroy(fixture->loop);
    return 0;
}

static void run(struct fixture *fixture)
{
    struct error err = ERROR_NONE;

    assert_int_equal(loop_run(fixture->loop, &err), 0);
}

static void posts_run_in_order_and_before_the_stop(void **state)
{
    struct fixture *fixture = *state;

    loop_post(&fixture->second);
    loop_post(&fixture->first);
    loop_stop(fixture->loop);
    run(fixture);
    assert_string_equal(fixture->order, "ba");
}

static void posts_before_the_call_are_merged(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < 1000; i++)
        loop_post(&fixture->first);
    loop_stop(fixture->loop);
    run(fixture);
    assert_string_equal(fixture->order, "a");
}

static void loop_runs_again_after_a_stop(void **state)
{
    struct fixture *fixture = *state;

    loop_stop(fixture->loop);
    loop_stop(fixture->loop);
    run(fixture);
    loop_post(&fixture->first);
    loop_stop(fixture->loop);
    run(fixture);
    assert_string_equal(fixture->order, "a");
}

static void *post_and_stop(void *context)
{
    struct fixture *fixture = context;

    loop_post(&fixture->first);
    loop_stop(fixture->loop);
    return NULL;
}

static void start_thread(evutil_socket_t fd, short what, void *context)
{
    pthread_t *thread = ((void **)context)[0];

    (void)fd;
    (void)what;
    assert_int_equal(pthread_create(thread, NULL, post_and_stop, ((void **)context)[1]),
                     0);
}

/* The thread starts when the loop is already waiting, so it must be woken. */
static void post_of_another_thread_wakes_the_loop_and_runs_on_it(void **state)
{
    struct fixture *fixture = *state;
    const struct timeval at_once = {0};
    pthread_t thread;
    void *context[] = {&thread, fixture};

    assert_int_equal(event_base_once(loop_event_base(fixture->loop), -1, EV_TIMEOUT,
                                     start_thread, context, &at_once),
                     0);
    run(fixture);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(fixture->order, "a");
    assert_true(pthread_equal(fixture->ran_on, pthread_self()));
}

static void post_again(void *context)
{
    struct fixture *fixture = context;

    note(fixture, 'a');
    if (strlen(fixture->order) < 3)
        loop_post(&fixture->first);
    else
        loop_stop(fixture->loop);
}

static void post_from_inside_its_own_call_runs_again(void **state)
{
    struct fixture *fixture = *state;

    fixture->first.function = post_again;
    loop_post(&fixture->first);
    run(fixture);
    assert_string_equal(fixture->order, "aaa");
}

static void destroys_nothing(void **state)
{
    (void)state;
    loop_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(posts_run_in_order_and_before_the_stop, make_loop,
                                        free_loop),
        cmocka_unit_test_setup_teardown(posts_before_the_call_are_merged, make_loop,
                                        free_loop),
        cmocka_unit_test_setup_teardown(loop_runs_again_after_a_stop, make_loop,
                                        free_loop),
        cmocka_unit_test_setup_teardown(
            post_of_another_thread_wakes_the_loop_and_runs_on_it, make_loop, free_loop),
        cmocka_unit_test_setup_teardown(post_from_inside_its_own_call_runs_again,
                                        make_loop, free_loop),
        cmocka_unit_test(destroys_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
