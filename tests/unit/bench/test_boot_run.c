/* SPDX-License-Identifier: Apache-2.0 */
/* The marks of a start: shell scripts play monitors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "bench/boot_run_private.h"

/* Only a fault makes a child that is meant to speak wait so long. */
#define PATIENCE_MS 60000

static double marks[BOOT_MARK_COUNT];
static struct error err;

static int run(const char *script, const char *running, uint64_t timeout_ms)
{
    const char *const arguments[] = {"/bin/sh", "-c", script, NULL};
    const struct boot_command command = {.arguments = arguments,
                                         .line = "up\n",
                                         .running = running,
                                         .has_timer = running == NULL,
                                         .timeout_ms = timeout_ms,
                                         .interrupt_fd = -1};

    err = ERROR_NONE;
    for (size_t i = 0; i < BOOT_MARK_COUNT; i++)
        marks[i] = -1;
    return boot_run(&command, marks, &err);
}

static void marks_of_a_peer_are_what_it_says_and_when(void **state)
{
    (void)state;
    assert_int_equal(run("echo it is running >&2; sleep 0.1; echo Linux; sleep 0.1;"
                         "echo up; exec sleep 1000",
                         "is running", PATIENCE_MS),
                     0);
    assert_true(marks[BOOT_INIT_END] > 0);
    assert_true(marks[BOOT_START_KERNEL] >= marks[BOOT_INIT_END] + 90);
    assert_true(marks[BOOT_START_USER] >= marks[BOOT_START_KERNEL] + 90);
    assert_true(marks[BOOT_PROCESSOR] > 0);
    assert_true(marks[BOOT_USS] > 0);
}

static void first_instruction_of_husk_is_what_its_timer_says_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(
        run("trap 'echo \"{\\\"schema\\\":1,\\\"stages_ms\\\":{\\\"init_end\\\":5.5}}\" "
            ">&2; exit 143' TERM; echo up; while :; do sleep 0.01; done",
            NULL, PATIENCE_MS),
        0);
    assert_true(marks[BOOT_INIT_END] == 5.5);
    assert_true(marks[BOOT_START_KERNEL] == marks[BOOT_START_USER]);
}

static void a_timer_that_says_nothing_is_unknown(void **state)
{
    (void)state;
    assert_true(boot_read_init_end("husk: warning") < 0);
    assert_true(boot_read_init_end("{\"schema\":1,\"stages_ms\":{\"init_end\":null}}") <
                0);
    assert_true(
        boot_read_init_end("x\n{\"schema\":1,\"stages_ms\":{\"init_end\":2}}\n") == 2);
}

static void a_guest_that_does_not_come_up_keeps_its_first_marks(void **state)
{
    (void)state;
    assert_int_equal(
        run("echo it is running >&2; echo Linux; exec sleep 1000", "is running", 300),
        -ETIME);
    assert_string_equal(err.text, "no line of user space within 0.3 s, having said "
                                  "'Linux': it is running");
    assert_true(marks[BOOT_INIT_END] > 0);
    assert_true(marks[BOOT_START_KERNEL] > 0);
    assert_true(marks[BOOT_START_USER] < 0);
    assert_true(marks[BOOT_PROCESSOR] < 0);
}

static void an_early_end_is_told(void **state)
{
    (void)state;
    assert_int_equal(run("echo 'no such machine' >&2; exit 1", "is running", PATIENCE_MS),
                     -EIO);
    assert_string_equal(err.text,
                        "ended with 1 before its line of user space: no such machine");
}

static void words_in_front_are_added_to_the_environment(void **state)
{
    const char *const arguments[] = {"HUSK_CACHE_DIR=/some/where", "/bin/sh", "-c",
                                     "test \"$HUSK_CACHE_DIR\" = /some/where && echo up",
                                     NULL};
    const struct boot_command command = {.arguments = arguments,
                                         .line = "up\n",
                                         .running = "never",
                                         .timeout_ms = PATIENCE_MS,
                                         .interrupt_fd = -1};

    (void)state;
    err = ERROR_NONE;
    marks[BOOT_START_USER] = -1;
    assert_int_equal(boot_run(&command, marks, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_of_a_peer_are_what_it_says_and_when),
        cmocka_unit_test(first_instruction_of_husk_is_what_its_timer_says_at_the_end),
        cmocka_unit_test(a_timer_that_says_nothing_is_unknown),
        cmocka_unit_test(a_guest_that_does_not_come_up_keeps_its_first_marks),
        cmocka_unit_test(an_early_end_is_told),
        cmocka_unit_test(words_in_front_are_added_to_the_environment),
    };

    return cmocka_run_group_tests_name("bench/boot_run", tests, NULL, NULL);
}
