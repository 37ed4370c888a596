/* SPDX-License-Identifier: Apache-2.0 */
/* A child (child_private.h) that is talked with, a line at a time. */
#ifndef HUSK_BENCH_SESSION_PRIVATE_H
#define HUSK_BENCH_SESSION_PRIVATE_H

#include "bench/child_private.h"

#define BENCH_LINE_BYTES 256

struct bench_session {
    struct bench_child child;
    bool is_open;
    int end_status;   /* once it is not: what bench_child_wait said last */
    int interrupt_fd; /* readable: bench_session_expect returns -EINTR; -1: none */
};

/* Starts it, its standard input to be written to. */
int bench_session_open(struct bench_session *session, const char *const *arguments,
                       int interrupt_fd, struct error *err) MUST_CHECK;

/* Waits for the next line that has `start` in it and takes all output up to its end.
 * `line` gets what follows `start`, cut off at its size. If none comes the session is
 * closed, and the text says why. */
int bench_session_expect(struct bench_session *session, const char *start,
                         uint64_t timeout_ms, char line[BENCH_LINE_BYTES],
                         struct error *err) MUST_CHECK;

/* Sends a line; `text` has its newline. That the child is no more shows in the answer. */
void bench_session_say(struct bench_session *session, const char *text);

/* When the line of the last bench_session_expect had come (CLOCK_MONOTONIC). */
uint64_t bench_session_line_ns(const struct bench_session *session);

/* Ends the child. Accepts an all-zero struct, and one that is closed. */
void bench_session_close(struct bench_session *session);

#endif
