/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of disk files: who is refused, and who is waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/file_lock.h"

static char path[] = "/tmp/husk-lock-XXXXXX";

static int open_again(void)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void assert_locks(int fd, bool to_write)
{
    struct error err = ERROR_NONE;

    assert_int_equal(file_lock(fd, to_write, "disk", &err), 0);
}

static void assert_busy(int fd, bool to_write, const char *sentence)
{
    struct error err = ERROR_NONE;

    assert_int_equal(file_lock(fd, to_write, "disk", &err), -EBUSY);
    assert_string_equal(err.text, sentence);
}

static void readers_share_and_keep_writers_out(void **state)
{
    int first = open_again();
    int second = open_again();
    int writer = open_again();

    (void)state;
    assert_locks(first, false);
    assert_locks(second, false);
    assert_busy(writer, true,
                "is in use by a reader, so it cannot be opened for writing: open it "
                "read-only or ephemeral, or give each guest a copy");
    close(first);
    close(second);
    close(writer);
}

static void a_writer_keeps_all_others_out(void **state)
{
    static const char sentence[] =
        "is in use by another writer: give each guest a copy, or open it read-only or "
        "ephemeral in all";
    int writer = open_again();
    int other = open_again();

    (void)state;
    assert_locks(writer, true);
    assert_busy(other, true, sentence);
    assert_busy(other, false, sentence);
    close(writer);
    close(other);
}

static void *give_up_soon(void *context)
{
    const struct timespec pause = {.tv_nsec = 50000000};

    (void)nanosleep(&pause, NULL);
    close(*(const int *)context);
    return NULL;
}

/* As the host's kernel does with io_uring requests of a process that was killed. */
static void a_lock_that_is_given_up_soon_is_waited_for(void **state)
{
    int ending = open_again();
    int next = open_again();
    pthread_t thread;

    (void)state;
    assert_locks(ending, true);
    assert_int_equal(pthread_create(&thread, NULL, give_up_soon, &ending), 0);
    assert_locks(next, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(next);
}

static int make_file(void **state)
{
    (void)state;
    return close(mkstemp(path));
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_share_and_keep_writers_out),
        cmocka_unit_test(a_writer_keeps_all_others_out),
        cmocka_unit_test(a_lock_that_is_given_up_soon_is_waited_for),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
