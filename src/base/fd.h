/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors: close on scope exit, whole reads and writes. Any thread. */
#ifndef HUSK_BASE_FD_H
#define HUSK_BASE_FD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Closes *fd if it is not negative and sets it to -1. errno is kept. */
void fd_close(int *fd);

/* `CLEANUP_FD int fd = open(...)`: closed when the scope is left. */
#define CLEANUP_FD __attribute__((cleanup(fd_close)))

/* Gives the descriptor away: returns *fd and sets it to -1. */
int fd_take(int *fd);

/* Reads exactly `size_bytes` at `offset`; a shorter file is -ENODATA. Retries EINTR. Sets
 * no text: returns 0 or a negative errno for the caller to word. */
int fd_read_at(int fd, uint64_t offset, void *buffer, size_t size_bytes) MUST_CHECK;

/* Writes all bytes at the descriptor's position, waiting for room even if it is
 * non-blocking. Retries EINTR. 0 or negative errno. */
int fd_write_all(int fd, const void *buffer, size_t size_bytes) MUST_CHECK;

/* Appends all bytes that `from` still gives to `to`, waiting for them even if `from` is
 * non-blocking. Puts the count into *copied_bytes.
 * -EOVERFLOW when more than `limit_bytes` come. 0 or negative errno. */
int fd_copy_stream(int from, int to, uint64_t limit_bytes,
                   uint64_t *copied_bytes) MUST_CHECK;

/* Occupies those of the descriptors 0 to 2 that are closed, so that nothing opened later
 * becomes standard input or output. Using them still fails with EBADF. */
void fd_guard_standard(void);

#endif
