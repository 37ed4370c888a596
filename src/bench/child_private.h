/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program started as a child, its outputs collected. It runs in a process group of its
 * own, so that a Ctrl-C reaches husk alone, sees no HUSK_* variable, and dies with husk.
 * Who starts it decides what to wait for: process_private.h, session_private.h.
 */
#ifndef HUSK_BENCH_CHILD_PRIVATE_H
#define HUSK_BENCH_CHILD_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"

/* Of each output the last bytes are kept. */
#define BENCH_OUTPUT_BYTES 8192

struct bench_output {
    char bytes[BENCH_OUTPUT_BYTES + 1]; /* text, NUL-terminated */
    size_t size_bytes;
};

enum bench_stream { BENCH_STREAM_OUTPUT, BENCH_STREAM_ERRORS, BENCH_STREAM_COUNT };

struct bench_child {
    pid_t pid; /* 0: not started */
    int pidfd;
    int input;                       /* write end of its standard input; -1: empty */
    int streams[BENCH_STREAM_COUNT]; /* read ends; -1: at their end */
    struct bench_output outputs[BENCH_STREAM_COUNT];
    uint64_t start_ns; /* when execve was called */
    uint64_t woken_ns; /* when what was collected last could be read */
    uint64_t end_ns;   /* when it was found ended; 0: it was not */
    bool was_killed;   /* it had not ended by itself */
    int wait_status;
    struct rusage usage; /* with that of its own children; known at its end */
};

/* `arguments` end with NULL; the first is looked for in PATH, but words NAME=VALUE before
 * it are added to its environment, as in a shell. Whatever it returns, the child is to be
 * given to bench_child_end. */
int bench_child_start(struct bench_child *child, const char *const *arguments,
                      bool has_input, struct error *err) MUST_CHECK;

/* Waits until something happens and sees to it. 1: the process has ended; 0: it goes on;
 * -ETIME, or -EINTR if `interrupt_fd` (-1: none) is readable: both without text. */
int bench_child_wait(struct bench_child *child, uint64_t deadline_ns,
                     int interrupt_fd) MUST_CHECK;

/* Processor time of the child so far, that of its own children not included; negative if
 * it has ended. */
double bench_child_processor_seconds(const struct bench_child *child);

/* Waits for its end, which is near unless it is brought about `by_force`; takes what is
 * left in the pipes, and closes them. */
void bench_child_end(struct bench_child *child, bool by_force);

/* Sets *err to why `what` ("line") did not come from a child that has been ended after
 * bench_child_wait returned `status`, with the last lines of both outputs. */
int bench_child_fail(struct bench_child *child, int status, const char *what,
                     uint64_t timeout_ms, struct error *err);

#endif
