/* SPDX-License-Identifier: Apache-2.0 */
/* Children that answer, or do not: shell scripts play them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/session_private.h"

/* Only a fault makes a child that is meant to speak wait so long. */
#define PATIENCE_MS 60000

static struct bench_session session;
static struct error err;
static char line[BENCH_LINE_BYTES];

static void open_script(const char *script)
{
    const char *const arguments[] = {"/bin/sh", "-c", script, NULL};

    session = (struct bench_session){.is_open = false};
    err = ERROR_NONE;
    assert_int_equal(bench_session_open(&session, arguments, -1, &err), 0);
    assert_true(session.is_open);
}

static int expect(const char *start)
{
    return bench_session_expect(&session, start, PATIENCE_MS, line, &err);
}

static void questions_and_answers_take_turns(void **state)
{
    (void)state;
    open_script("echo ready; while read word; do echo noise; echo got $word; done");
    assert_int_equal(expect("ready"), 0);
    assert_string_equal(line, "");
    for (int i = 0; i < 3; i++) {
        bench_session_say(&session, "one\n");
        assert_int_equal(expect("got "), 0);
        assert_string_equal(line, "one");
    }
    assert_true(session.is_open);
    bench_session_close(&session);
    assert_false(session.is_open);
}

static void several_lines_that_come_at_once_are_taken_one_by_one(void **state)
{
    (void)state;
    open_script("printf 'a 1\\r\\nb\\na 2\\nc'; read word; echo ' 3'; read word");
    assert_int_equal(expect("a "), 0);
    assert_string_equal(line, "1"); /* as a serial port ends it */
    assert_int_equal(expect("a "), 0);
    assert_string_equal(line, "2");
    bench_session_say(&session, "go on\n");
    assert_int_equal(expect("c "), 0);
    assert_string_equal(line, "3");
    bench_session_close(&session);
}

static void a_line_without_end_is_cut_off(void **state)
{
    (void)state;
    open_script("printf 'a '; head -c 5000 /dev/zero | tr '\\0' x; echo");
    assert_int_equal(expect("a "), 0);
    assert_int_equal(strlen(line), BENCH_LINE_BYTES - 1);
    bench_session_close(&session);
}

static void what_was_said_last_counts_and_then_the_end_is_told(void **state)
{
    (void)state;
    open_script("read word; echo a 1; echo a 2; echo it broke >&2; exit 3");
    bench_session_say(&session, "go on\n");
    assert_int_equal(expect("a "), 0);
    assert_int_equal(expect("a "), 0);
    assert_string_equal(line, "2");
    assert_int_equal(expect("a "), -EIO);
    assert_string_equal(err.text, "ended with 3 before its answer: it broke");
    assert_false(session.is_open);
    bench_session_say(&session, "is anybody there?\n");
    err = ERROR_NONE;
    assert_int_equal(expect("a "), -EIO);
    bench_session_close(&session);
}

static void who_does_not_answer_is_ended(void **state)
{
    (void)state;
    open_script("echo working; exec sleep 1000");
    assert_int_equal(bench_session_expect(&session, "done", 100, line, &err), -ETIME);
    assert_string_equal(err.text, "no answer within 0.1 s, having said 'working'");
    assert_false(session.is_open);
}

static void an_interrupt_ends_the_child(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    open_script("exec sleep 1000");
    session.interrupt_fd = ends[0];
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(expect("done"), -EINTR);
    assert_false(session.is_open);
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
}

static void a_program_that_is_not_there_is_told_by_name(void **state)
{
    const char *const arguments[] = {"/no/such/monitor", NULL};

    (void)state;
    err = ERROR_NONE;
    assert_int_equal(bench_session_open(&session, arguments, -1, &err), -ENOENT);
    assert_string_equal(err.text,
                        "cannot start /no/such/monitor: No such file or directory");
    assert_false(session.is_open);
    bench_session_close(&session);
}

static void the_time_of_a_line_is_when_it_came(void **state)
{
    uint64_t before_ns = clock_monotonic_ns();

    (void)state;
    open_script("echo a; exec sleep 1000");
    assert_int_equal(expect("a"), 0);
    assert_true(bench_session_line_ns(&session) > before_ns);
    assert_true(bench_session_line_ns(&session) <= clock_monotonic_ns());
    bench_session_close(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_and_answers_take_turns),
        cmocka_unit_test(several_lines_that_come_at_once_are_taken_one_by_one),
        cmocka_unit_test(a_line_without_end_is_cut_off),
        cmocka_unit_test(what_was_said_last_counts_and_then_the_end_is_told),
        cmocka_unit_test(who_does_not_answer_is_ended),
        cmocka_unit_test(an_interrupt_ends_the_child),
        cmocka_unit_test(a_program_that_is_not_there_is_told_by_name),
        cmocka_unit_test(the_time_of_a_line_is_when_it_came),
    };

    return cmocka_run_group_tests_name("bench/session", tests, NULL, NULL);
}
