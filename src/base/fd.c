/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptor helpers; see fd.h. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

void fd_close(int *fd)
{
    int saved_errno = errno;

    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    errno = saved_errno;
}

int fd_take(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

int fd_read_at(int fd, uint64_t offset, void *buffer, size_t size_bytes)
{
    char *to = buffer;

    if (offset > INT64_MAX || size_bytes > INT64_MAX - offset)
        return -EOVERFLOW;
    while (size_bytes > 0) {
        ssize_t got = pread(fd, to, size_bytes, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return -ENODATA;
        to += got;
        offset += (uint64_t)got;
        size_bytes -= (size_t)got;
    }
    return 0;
}

/* Somebody else may have set O_NONBLOCK on the open file that we share (terminals and
 * sockets on stdin and stdout are typical). */
static void wait_until(int fd, short event)
{
    struct pollfd waiting = {.fd = fd, .events = event};

    (void)poll(&waiting, 1, -1);
}

int fd_write_all(int fd, const void *buffer, size_t size_bytes)
{
    const char *from = buffer;

    while (size_bytes > 0) {
        ssize_t put = write(fd, from, size_bytes);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN) {
            wait_until(fd, POLLOUT);
            continue;
        }
        if (put < 0)
            return -errno;
        if (put == 0)
            return -EIO; /* else a device that takes nothing keeps us here for ever */
        from += put;
        size_bytes -= (size_t)put;
    }
    return 0;
}

int fd_copy_stream(int from, int to, uint64_t limit_bytes, uint64_t *copied_bytes)
{
    char chunk[64 * 1024];

    *copied_bytes = 0;
    for (;;) {
        ssize_t got = read(from, chunk, sizeof(chunk));
        int status;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN) {
            wait_until(from, POLLIN);
            continue;
        }
        if (got < 0)
            return -errno;
        if (got == 0)
            return 0;
        if ((uint64_t)got > limit_bytes - *copied_bytes)
            return -EOVERFLOW;
        status = fd_write_all(to, chunk, (size_t)got);
        if (status < 0)
            return status;
        *copied_bytes += (uint64_t)got;
    }
}

void fd_guard_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) < 0)
            return; /* takes the lowest number that is free */
}
