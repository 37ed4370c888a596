/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics: levels, line ends, foreign text, the rate gate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

struct capture {
    int saved_stderr;
    int file;
    char text[4096];
};

static struct capture capture;

static int start_capture(void **state)
{
    capture.saved_stderr = dup(STDERR_FILENO);
    capture.file = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(capture.file >= 0);
    assert_true(dup2(capture.file, STDERR_FILENO) >= 0);
    *state = &capture;
    return 0;
}

static int end_capture(void **state)
{
    (void)state;
    (void)dup2(capture.saved_stderr, STDERR_FILENO);
    fd_close(&capture.saved_stderr);
    fd_close(&capture.file);
    log_set_level(LOG_WARN);
    log_set_raw_terminal(false);
    return 0;
}

static const char *captured(void)
{
    off_t size = lseek(capture.file, 0, SEEK_END);

    assert_in_range(size, 0, sizeof(capture.text) - 1);
    memset(capture.text, 0, sizeof(capture.text));
    assert_int_equal(fd_read_at(capture.file, 0, capture.text, (size_t)size), 0);
    return capture.text;
}

static void shows_warnings_and_hides_info_at_start(void **state)
{
    (void)state;
    assert_true(log_enabled(LOG_ERROR));
    assert_true(log_enabled(LOG_WARN));
    assert_false(log_enabled(LOG_INFO));
    log_error("bad %d", 1);
    log_warn("so so");
    log_info("hidden");
    assert_string_equal(captured(), "husk: bad 1\nhusk: so so\n");
}

static void level_lets_more_through(void **state)
{
    (void)state;
    log_set_level(LOG_INFO);
    log_info("shown");
    log_debug("hidden");
    log_set_level(LOG_DEBUG);
    log_debug("shown too");
    assert_string_equal(captured(), "husk: shown\nhusk: shown too\n");
}

static void raw_terminal_gets_carriage_returns(void **state)
{
    (void)state;
    log_set_raw_terminal(true);
    log_warn("one");
    log_set_raw_terminal(false);
    log_warn("two");
    assert_string_equal(captured(), "husk: one\r\nhusk: two\n");
}

static void foreign_control_characters_do_not_reach_the_terminal(void **state)
{
    (void)state;
    log_warn("file 'a\n\x1b[31mb\x7f', \xc3\xa4");
    assert_string_equal(captured(), "husk: file 'a??[31mb?', \xc3\xa4\n");
}

static void long_line_is_cut_and_still_ends(void **state)
{
    char text[3000];
    const char *line;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_set_raw_terminal(true);
    log_warn("%s", text);
    line = captured();
    assert_in_range(strlen(line), ERROR_TEXT_BYTES, ERROR_TEXT_BYTES + 64);
    assert_string_equal(line + strlen(line) - 3, "x\r\n");
}

static void keeps_errno(void **state)
{
    (void)state;
    (void)close(STDERR_FILENO);
    errno = ENOTTY;
    log_warn("nobody reads this");
    assert_int_equal(errno, ENOTTY);
    assert_string_equal(captured(), "");
}

static void gate_opens_once_a_second(void **state)
{
    static struct log_gate gate;
    static struct log_gate other;

    (void)state;
    assert_true(log_gate_open(&gate));
    assert_true(log_gate_open(&other));
    gate.next_ns = UINT64_MAX; /* no clock of the host gets there while this runs */
    assert_false(log_gate_open(&gate));
    gate.next_ns = 1;
    assert_true(log_gate_open(&gate));
    assert_true(gate.next_ns > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shows_warnings_and_hides_info_at_start,
                                        start_capture, end_capture),
        cmocka_unit_test_setup_teardown(level_lets_more_through, start_capture,
                                        end_capture),
        cmocka_unit_test_setup_teardown(raw_terminal_gets_carriage_returns, start_capture,
                                        end_capture),
        cmocka_unit_test_setup_teardown(
            foreign_control_characters_do_not_reach_the_terminal, start_capture,
            end_capture),
        cmocka_unit_test_setup_teardown(long_line_is_cut_and_still_ends, start_capture,
                                        end_capture),
        cmocka_unit_test_setup_teardown(keeps_errno, start_capture, end_capture),
        cmocka_unit_test(gate_opens_once_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
