/* SPDX-License-Identifier: Apache-2.0 */
/* Children that say their line, do not, or are ended: shell scripts play them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/process_private.h"

/* Only a fault makes a child that is meant to speak wait so long. */
#define PATIENCE_MS 60000

static struct bench_process process;
static struct error err;

static int run_with(const char *script, uint64_t timeout_ms, uint64_t end_timeout_ms,
                    int interrupt_fd)
{
    const char *const arguments[] = {"/bin/sh", "-c", script, NULL};
    const struct bench_command command = {.arguments = arguments,
                                          .line = "up 1\n",
                                          .timeout_ms = timeout_ms,
                                          .end_timeout_ms = end_timeout_ms,
                                          .interrupt_fd = interrupt_fd};

    err = ERROR_NONE;
    return bench_process_run(&command, &process, &err);
}

static int run(const char *script)
{
    return run_with(script, PATIENCE_MS, PATIENCE_MS, -1);
}

static void takes_the_time_of_the_line_and_of_the_end(void **state)
{
    (void)state;
    assert_int_equal(run("echo up 1; echo more; exit 33"), 0);
    assert_true(process.line_ns > 0);
    assert_true(process.end_ns >= process.line_ns);
    assert_false(process.was_killed);
    assert_int_equal(WEXITSTATUS(process.wait_status), 33);
    assert_string_equal(process.output.bytes, "up 1\nmore\n");
}

static void finds_a_line_that_comes_in_pieces(void **state)
{
    (void)state;
    assert_int_equal(
        run("printf 'before\nu'; sleep 0.05; printf 'p 1'; sleep 0.05; echo"), 0);
    assert_string_equal(process.output.bytes, "before\nup 1\n");
    assert_true(process.line_ns >= 100000000);
}

static void finds_a_line_behind_much_other_output(void **state)
{
    (void)state;
    assert_int_equal(run("head -c 200000 /dev/zero | tr '\\0' x; echo; echo up 1"), 0);
    assert_int_equal(process.output.size_bytes, BENCH_OUTPUT_BYTES);
    assert_string_equal(process.output.bytes + BENCH_OUTPUT_BYTES - 6, "\nup 1\n");
}

static void half_a_line_is_none(void **state)
{
    (void)state;
    assert_int_equal(run("printf 'up 1'; exit 5"), -EIO);
    assert_string_equal(err.text, "ended with 5 before its line, having said 'up 1'");
}

static void an_early_end_is_told_with_both_last_lines(void **state)
{
    (void)state;
    assert_int_equal(
        run("echo up 2; echo first >&2; printf 'it\\033broke\\n' >&2; exit 7"), -EIO);
    assert_string_equal(err.text, "ended with 7 before its line, having said 'up 2': "
                                  "it?broke");
}

static void a_signal_is_told_by_its_number(void **state)
{
    (void)state;
    assert_int_equal(run("kill -TERM $$"), -EIO);
    assert_string_equal(err.text, "signal 15 ended it before its line");
}

static void a_program_that_is_not_there_is_told_by_name(void **state)
{
    const char *const arguments[] = {"/no/such/monitor", NULL};
    const struct bench_command command = {.arguments = arguments,
                                          .line = "x",
                                          .timeout_ms = PATIENCE_MS,
                                          .interrupt_fd = -1};

    (void)state;
    err = ERROR_NONE;
    assert_int_equal(bench_process_run(&command, &process, &err), -ENOENT);
    assert_string_equal(err.text,
                        "cannot start /no/such/monitor: No such file or directory");
}

static void who_says_nothing_is_killed_with_all_its_children(void **state)
{
    char *end;
    pid_t grandchild;

    (void)state;
    assert_int_equal(run_with("sleep 1000 & echo $!; wait", 200, PATIENCE_MS, -1),
                     -ETIME);
    assert_true(process.was_killed);
    assert_int_equal(WTERMSIG(process.wait_status), SIGKILL);
    grandchild = (pid_t)strtol(process.output.bytes, &end, 10);
    assert_true(grandchild > 1 && *end == '\n');
    assert_non_null(strstr(err.text, "no line within 0.2 s, having said '"));
    /* Killed, it may be a zombie that nobody has waited for, but it does not sleep. */
    for (int tries = 0; tries < 1000 && kill(grandchild, 0) == 0; tries++) {
        char path[64];
        char text[256] = "";
        FILE *stat;

        (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)grandchild);
        stat = fopen(path, "r");
        if (stat == NULL)
            break;
        (void)!fgets(text, sizeof(text), stat);
        assert_int_equal(fclose(stat), 0);
        if (strstr(text, ") Z") != NULL)
            break;
        (void)usleep(10000);
        assert_true(tries < 999);
    }
}

static void who_goes_on_after_its_line_is_killed_and_counts(void **state)
{
    (void)state;
    assert_int_equal(run_with("echo up 1; exec sleep 1000", PATIENCE_MS, 50, -1), 0);
    assert_true(process.was_killed);
}

static void an_interrupt_ends_the_child(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(run_with("exec sleep 1000", PATIENCE_MS, PATIENCE_MS, ends[0]),
                     -EINTR);
    assert_int_equal(WTERMSIG(process.wait_status), SIGKILL);
    assert_int_equal(close(ends[0]) + close(ends[1]), 0);
}

static void settings_do_not_reach_the_child_and_its_input_is_empty(void **state)
{
    (void)state;
    assert_int_equal(setenv("HUSK_MEMORY", "1G", 1), 0);
    assert_int_equal(setenv("HUSKY", "yes", 1), 0);
    assert_int_equal(run("cat; echo \"<$HUSK_MEMORY><$HUSKY>\"; echo up 1"), 0);
    assert_string_equal(process.output.bytes, "<><yes>\nup 1\n");
}

static void the_child_gets_signals_as_a_shell_hands_them_over(void **state)
{
    sigset_t blocked;
    sigset_t before;

    (void)state;
    /* What the test itself was started with (nohup ignores SIGHUP, say) is not the point.
     */
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
    assert_int_equal(run("grep -E '^Sig(Blk|Ign)' /proc/self/status; echo up 1"), 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    (void)signal(SIGPIPE, SIG_DFL);
    assert_non_null(strstr(process.output.bytes, "SigBlk:\t0000000000000000\n"));
    assert_non_null(strstr(process.output.bytes, "SigIgn:\t0000000000000000\n"));
}

static void no_descriptor_is_left_open(void **state)
{
    int before = dup(0);
    int after;

    (void)state;
    assert_int_equal(close(before), 0);
    (void)run("echo up 1");
    (void)run("exit 1");
    (void)run_with("exec sleep 1000", 20, 0, -1);
    after = dup(0);
    assert_int_equal(close(after), 0);
    assert_int_equal(after, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_time_of_the_line_and_of_the_end),
        cmocka_unit_test(finds_a_line_that_comes_in_pieces),
        cmocka_unit_test(finds_a_line_behind_much_other_output),
        cmocka_unit_test(half_a_line_is_none),
        cmocka_unit_test(an_early_end_is_told_with_both_last_lines),
        cmocka_unit_test(a_signal_is_told_by_its_number),
        cmocka_unit_test(a_program_that_is_not_there_is_told_by_name),
        cmocka_unit_test(who_says_nothing_is_killed_with_all_its_children),
        cmocka_unit_test(who_goes_on_after_its_line_is_killed_and_counts),
        cmocka_unit_test(an_interrupt_ends_the_child),
        cmocka_unit_test(settings_do_not_reach_the_child_and_its_input_is_empty),
        cmocka_unit_test(the_child_gets_signals_as_a_shell_hands_them_over),
        cmocka_unit_test(no_descriptor_is_left_open),
    };

    return cmocka_run_group_tests_name("bench/process", tests, NULL, NULL);
}
