/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads and writes, streams, and who closes what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

static int file_with(const char *text)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    return fd;
}

static void closes_once_and_keeps_errno(void **state)
{
    int fd = file_with("");
    int number = fd;

    (void)state;
    errno = ENOTTY;
    fd_close(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(fcntl(number, F_GETFD), -1);
    errno = ENOTTY;
    fd_close(&fd);
    assert_int_equal(errno, ENOTTY);
}

static void take_gives_the_descriptor_away(void **state)
{
    int number;
    int taken;

    (void)state;
    {
        CLEANUP_FD int fd = file_with("");

        number = fd;
        taken = fd_take(&fd);
        assert_int_equal(fd, -1);
    }
    assert_int_equal(taken, number);
    assert_true(fcntl(taken, F_GETFD) >= 0);
    fd_close(&taken);
}

static void scope_exit_closes(void **state)
{
    int number;

    (void)state;
    {
        CLEANUP_FD int fd = file_with("");

        number = fd;
    }
    assert_int_equal(fcntl(number, F_GETFD), -1);
}

static void reads_exactly_or_says_no_data(void **state)
{
    CLEANUP_FD int fd = file_with("0123456789");
    char to[8] = "";

    (void)state;
    assert_int_equal(fd_read_at(fd, 2, to, 4), 0);
    assert_string_equal(to, "2345");
    assert_int_equal(fd_read_at(fd, 8, to, 2), 0);
    assert_int_equal(fd_read_at(fd, 8, to, 3), -ENODATA);
    assert_int_equal(fd_read_at(fd, 100, to, 1), -ENODATA);
    assert_int_equal(fd_read_at(fd, 100, to, 0), 0);
    assert_int_equal(fd_read_at(-1, 0, to, 1), -EBADF);
}

static void refuses_offsets_that_off_t_cannot_hold(void **state)
{
    CLEANUP_FD int fd = file_with("0123456789");
    char to[8];

    (void)state;
    assert_int_equal(fd_read_at(fd, UINT64_MAX, to, 1), -EOVERFLOW);
    assert_int_equal(fd_read_at(fd, INT64_MAX, to, 1), -EOVERFLOW);
}

static void write_reports_a_full_device(void **state)
{
    CLEANUP_FD int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, "x", 1), -ENOSPC);
}

static void copies_a_stream_up_to_its_limit(void **state)
{
    CLEANUP_FD int to = file_with("");
    int ends[2];
    uint64_t copied = 99;
    char text[8] = "";

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fd_write_all(ends[1], "abcdef", 6), 0);
    fd_close(&ends[1]);
    assert_int_equal(fd_copy_stream(ends[0], to, 6, &copied), 0);
    assert_int_equal(copied, 6);
    assert_int_equal(fd_read_at(to, 0, text, 6), 0);
    assert_string_equal(text, "abcdef");
    fd_close(&ends[0]);
}

static void refuses_a_stream_beyond_its_limit(void **state)
{
    CLEANUP_FD int to = file_with("");
    int ends[2];
    uint64_t copied;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fd_write_all(ends[1], "abcdef", 6), 0);
    fd_close(&ends[1]);
    assert_int_equal(fd_copy_stream(ends[0], to, 5, &copied), -EOVERFLOW);
    assert_int_equal(lseek(to, 0, SEEK_END), 0);
    fd_close(&ends[0]);
}

static void *write_after_a_while(void *context)
{
    int *fd = context;

    (void)usleep(20 * 1000);
    if (fd_write_all(*fd, "late", 4) < 0)
        return context;
    fd_close(fd);
    return NULL;
}

static void waits_for_a_stream_that_does_not_block(void **state)
{
    CLEANUP_FD int to = file_with("");
    int ends[2];
    uint64_t copied;
    pthread_t writer;
    void *failed;

    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_after_a_while, &ends[1]), 0);
    assert_int_equal(fd_copy_stream(ends[0], to, 100, &copied), 0);
    assert_int_equal(copied, 4);
    assert_int_equal(pthread_join(writer, &failed), 0);
    assert_null(failed);
    fd_close(&ends[0]);
}

#define MORE_THAN_A_PIPE_HOLDS (256 * 1024)

static void *read_all(void *context)
{
    static char bytes[MORE_THAN_A_PIPE_HOLDS];
    const int *fd = context;
    size_t size = 0;
    ssize_t got;

    (void)usleep(20 * 1000); /* until the pipe is full */
    while ((got = read(*fd, bytes + size, sizeof(bytes) - size)) > 0)
        size += (size_t)got;
    return size == sizeof(bytes) && bytes[size - 1] == 'x' ? NULL : context;
}

static void writes_all_to_a_pipe_that_does_not_block(void **state)
{
    static char bytes[MORE_THAN_A_PIPE_HOLDS];
    int ends[2];
    pthread_t reader;
    void *failed;

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_all, &ends[0]), 0);
    assert_int_equal(fd_write_all(ends[1], bytes, sizeof(bytes)), 0);
    assert_int_equal(pthread_join(reader, &failed), 0);
    assert_null(failed);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

/* Standard input is put back afterwards: cmocka does not use it. */
static void closed_standard_descriptors_are_never_given_out(void **state)
{
    int kept = dup(STDIN_FILENO);
    int fd;
    char byte = 'x';

    (void)state;
    assert_true(kept >= 0);
    (void)close(STDIN_FILENO);
    fd_guard_standard();
    fd = file_with("");
    assert_true(fd > STDERR_FILENO);
    assert_int_equal(read(STDIN_FILENO, &byte, 1), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(write(STDIN_FILENO, &byte, 1), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    fd_guard_standard(); /* does nothing now */
    assert_int_equal(close(kept), 0);
    fd_close(&fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closes_once_and_keeps_errno),
        cmocka_unit_test(take_gives_the_descriptor_away),
        cmocka_unit_test(scope_exit_closes),
        cmocka_unit_test(reads_exactly_or_says_no_data),
        cmocka_unit_test(refuses_offsets_that_off_t_cannot_hold),
        cmocka_unit_test(write_reports_a_full_device),
        cmocka_unit_test(copies_a_stream_up_to_its_limit),
        cmocka_unit_test(refuses_a_stream_beyond_its_limit),
        cmocka_unit_test(waits_for_a_stream_that_does_not_block),
        cmocka_unit_test(writes_all_to_a_pipe_that_does_not_block),
        cmocka_unit_test(closed_standard_descriptors_are_never_given_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
