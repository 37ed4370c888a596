/* SPDX-License-Identifier: Apache-2.0 */
/* A child (child_private.h) of which one line is waited for: when it came, and how the
 * process ended. */
#ifndef HUSK_BENCH_PROCESS_PRIVATE_H
#define HUSK_BENCH_PROCESS_PRIVATE_H

#include "bench/child_private.h"

struct bench_command {
    const char *const *arguments; /* NULL-terminated; the first is looked for in PATH */
    const char *line;             /* what to wait for on its standard output */
    uint64_t timeout_ms;          /* for that */
    uint64_t end_timeout_ms;      /* how long it may then go on before it is killed */
    int interrupt_fd;             /* readable: kill it and return -EINTR; -1: none */
};

struct bench_process {
    uint64_t line_ns; /* from the call of execve to the end of the line */
    uint64_t end_ns;  /* to the end of the process */
    bool was_killed;  /* it had not ended by itself */
    int wait_status;
    struct rusage usage;
    struct bench_output output;
    struct bench_output errors;
};

/* Its standard input is empty. Fails if it cannot be started, or ends or times out before
 * the line came; the text says which, with the last line of its standard error. *process
 * is filled as far as known. */
int bench_process_run(const struct bench_command *command, struct bench_process *process,
                      struct error *err) MUST_CHECK;

#endif
