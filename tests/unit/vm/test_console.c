/* SPDX-License-Identifier: Apache-2.0 */
/* The console hub: readers get everything in order, none holds up the guest or another.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "vm/console.h"

static struct console *make_console(int output_fd)
{
    struct console *console = NULL;
    struct error err = ERROR_NONE;

    assert_int_equal(console_create(output_fd, NULL, &console, &err), 0);
    return console;
}

static void output_text(struct console *console, const char *text)
{
    console_output(console, (const uint8_t *)text, strlen(text));
}

static void read_exactly(int fd, char *to, size_t size)
{
    while (size > 0) {
        ssize_t got = read(fd, to, size);

        assert_true(got > 0);
        to += got;
        size -= (size_t)got;
    }
}

static void output_reaches_the_reader_in_order(void **state)
{
    int ends[2];
    struct console *console;
    char got[11];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    console = make_console(ends[1]);
    output_text(console, "hello ");
    output_text(console, "guest");
    read_exactly(ends[0], got, sizeof(got));
    assert_memory_equal(got, "hello guest", sizeof(got));
    console_destroy(console);
    close(ends[0]);
    close(ends[1]);
}

static void reader_that_takes_nothing_loses_the_oldest_and_is_told(void **state)
{
    static uint8_t block[64 * 1024];
    const size_t blocks = 3 * CONSOLE_RING_BYTES / sizeof(block);
    int ends[2];
    struct console *console;
    static char got[4 * CONSOLE_RING_BYTES];
    size_t used = 0;
    ssize_t count;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    console = make_console(ends[1]);
    memset(block, 'x', sizeof(block));
    for (size_t i = 0; i < blocks; i++)
        console_output(console, block, sizeof(block)); /* returns: nobody waits */
    output_text(console, "the end");
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    while (used < 7 || memcmp(got + used - 7, "the end", 7) != 0) {
        count = read(ends[0], got + used, sizeof(got) - 1 - used);
        if (count > 0)
            used += (size_t)count;
    }
    got[used] = '\0';
    assert_non_null(strstr(got, "bytes of console output lost]"));
    assert_true(used < blocks * sizeof(block));
    console_destroy(console);
    close(ends[0]);
    close(ends[1]);
}

static void late_reader_gets_the_backlog_first(void **state)
{
    struct console *console = make_console(-1);
    struct error err = ERROR_NONE;
    int ends[2];
    char got[8];

    (void)state;
    output_text(console, "long ago, recent");
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(console_attach(console, ends[1], 6, &err), 0);
    output_text(console, "ly");
    read_exactly(ends[0], got, sizeof(got));
    assert_memory_equal(got, "recently", sizeof(got));
    console_destroy(console); /* closes ends[1] */
    close(ends[0]);
}

static void reader_that_goes_away_frees_its_place(void **state)
{
    struct console *console = make_console(-1);
    struct error err = ERROR_NONE;

    (void)state;
    for (int i = 0; i < 100; i++) {
        int ends[2];
        char got;

        assert_int_equal(pipe(ends), 0);
        assert_int_equal(console_attach(console, ends[1], 0, &err), 0);
        output_text(console, "1");
        read_exactly(ends[0], &got, 1);
        close(ends[0]);
        output_text(console, "2"); /* EPIPE ends that reader */
        console_drain(console);
    }
    console_destroy(console);
}

/* Readers of a silent guest do not notice that their other end was closed. */
static void silent_readers_that_went_away_make_room(void **state)
{
    struct console *console = make_console(-1);
    struct error err = ERROR_NONE;
    int ends[2];
    char got;

    (void)state;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(console_attach(console, ends[1], 0, &err), 0);
        if (i < 39)
            close(ends[0]);
    }
    output_text(console, "!");
    read_exactly(ends[0], &got, 1);
    assert_int_equal(got, '!');
    console_destroy(console);
    close(ends[0]);
}

static void drain_does_not_wait_for_a_reader_that_is_stuck(void **state)
{
    static uint8_t block[256 * 1024];
    struct console *console;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    console = make_console(ends[1]);
    console_output(console, block, sizeof(block)); /* more than a pipe holds */
    console_destroy(console);                      /* returns */
    close(ends[0]);
    close(ends[1]);
}

struct seen_lines {
    char text[4][64];
    atomic_int count;
};

static void note_line(void *context, const char *text)
{
    struct seen_lines *seen = context;
    int index = atomic_load(&seen->count);

    strncpy(seen->text[index], text, sizeof(seen->text[index]) - 1);
    atomic_store(&seen->count, index + 1);
}

static void watcher_gets_lines_without_endings(void **state)
{
    struct console *console = make_console(-1);
    struct seen_lines seen = {.count = 0};
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(console_watch_lines(console, note_line, &seen, &err), 0);
    output_text(console, "one\r\ntw");
    output_text(console, "o\n\nunfinished");
    console_drain(console);
    assert_int_equal(atomic_load(&seen.count), 3);
    assert_string_equal(seen.text[0], "one");
    assert_string_equal(seen.text[1], "two");
    assert_string_equal(seen.text[2], "");
    console_destroy(console);
}

/* A guest's end that has room for three bytes at a time. */
struct guest_end {
    uint8_t bytes[16];
    size_t used;
    size_t room;
};

static size_t feed(void *context, const uint8_t *bytes, size_t size)
{
    struct guest_end *guest = context;
    size_t taken = size < guest->room ? size : guest->room;

    memcpy(guest->bytes + guest->used, bytes, taken);
    guest->used += taken;
    guest->room -= taken;
    return taken;
}

static void note_slowly(void *context, const char *text)
{
    (void)usleep(20000);
    note_line(context, text);
}

static void watcher_is_not_called_after_the_close(void **state)
{
    struct console *console = make_console(-1);
    struct seen_lines seen = {.count = 0};
    struct error err = ERROR_NONE;
    int count;

    (void)state;
    assert_int_equal(console_watch_lines(console, note_slowly, &seen, &err), 0);
    output_text(console, "one\ntwo\nthree\n");
    console_close(console);
    count = atomic_load(&seen.count);
    assert_int_equal(count, 3);
    console_close(console); /* again, as console_destroy does */
    console_destroy(console);
}

static void input_waits_until_the_guest_has_room(void **state)
{
    struct console *console = make_console(-1);
    struct guest_end guest = {.room = 3};

    (void)state;
    assert_int_equal(console_input(console, (const uint8_t *)"ab", 2),
                     2); /* nobody yet */
    console_connect(console, feed, &guest);
    assert_int_equal(guest.used, 2);
    assert_int_equal(console_input(console, (const uint8_t *)"cdef", 4), 4);
    assert_int_equal(guest.used, 3);
    guest.room = 3;
    console_room(console);
    assert_int_equal(guest.used, 6);
    assert_memory_equal(guest.bytes, "abcdef", 6);
    console_destroy(console);
}

static void input_beyond_the_queue_is_refused(void **state)
{
    static const uint8_t block[65536 + 10];
    struct console *console = make_console(-1);

    (void)state;
    assert_int_equal(console_input(console, block, sizeof(block)), 65536);
    assert_int_equal(console_input(console, block, 1), 0);
    console_destroy(console);
}

static void log_that_cannot_be_opened_is_named(void **state)
{
    struct console *console = NULL;
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(console_create(-1, "/nonexistent/log", &console, &err), -2);
    assert_string_equal(err.text,
                        "log /nonexistent/log: cannot open for writing: No such "
                        "file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_reaches_the_reader_in_order),
        cmocka_unit_test(reader_that_takes_nothing_loses_the_oldest_and_is_told),
        cmocka_unit_test(late_reader_gets_the_backlog_first),
        cmocka_unit_test(reader_that_goes_away_frees_its_place),
        cmocka_unit_test(silent_readers_that_went_away_make_room),
        cmocka_unit_test(drain_does_not_wait_for_a_reader_that_is_stuck),
        cmocka_unit_test(watcher_gets_lines_without_endings),
        cmocka_unit_test(watcher_is_not_called_after_the_close),
        cmocka_unit_test(input_waits_until_the_guest_has_room),
        cmocka_unit_test(input_beyond_the_queue_is_refused),
        cmocka_unit_test(log_that_cannot_be_opened_is_named),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
