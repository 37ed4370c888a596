/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a child's line; see process_private.h. */
#include "bench/process_private.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

struct watch {
    struct bench_child child;
    uint64_t deadline_ns;
    uint64_t line_ns; /* on CLOCK_MONOTONIC; 0: it has not come */
};

static void look_for_line(const struct bench_command *command, struct watch *watch,
                          uint64_t now_ns)
{
    const struct bench_output *output = &watch->child.outputs[BENCH_STREAM_OUTPUT];

    if (watch->line_ns != 0 || memmem(output->bytes, output->size_bytes, command->line,
                                      strlen(command->line)) == NULL)
        return;
    watch->line_ns = now_ns;
    watch->deadline_ns = now_ns + command->end_timeout_ms * NS_PER_MS;
}

/* 1 at its end, or a negative errno as of bench_child_wait. */
static int watch_to_end(const struct bench_command *command, struct watch *watch)
{
    int status = 0;

    watch->deadline_ns = watch->child.start_ns + command->timeout_ms * NS_PER_MS;
    while (status == 0) {
        status =
            bench_child_wait(&watch->child, watch->deadline_ns, command->interrupt_fd);
        look_for_line(command, watch, watch->child.woken_ns);
    }
    return status;
}

static void describe(const struct watch *watch, struct bench_process *process)
{
    const struct bench_child *child = &watch->child;

    if (watch->line_ns != 0)
        process->line_ns = watch->line_ns - child->start_ns;
    if (child->start_ns != 0)
        process->end_ns = child->end_ns - child->start_ns;
    process->was_killed = child->was_killed;
    process->wait_status = child->wait_status;
    process->usage = child->usage;
    process->output = child->outputs[BENCH_STREAM_OUTPUT];
    process->errors = child->outputs[BENCH_STREAM_ERRORS];
}

int bench_process_run(const struct bench_command *command, struct bench_process *process,
                      struct error *err)
{
    struct watch watch = {.line_ns = 0};
    int status;

    *process = (struct bench_process){.line_ns = 0};
    status = bench_child_start(&watch.child, command->arguments, false, err);
    if (status == 0)
        status = watch_to_end(command, &watch);
    bench_child_end(&watch.child, status < 0);
    look_for_line(command, &watch, watch.child.end_ns);
    describe(&watch, process);
    if (err->code == 0 && (watch.line_ns == 0 || status == -EINTR))
        (void)bench_child_fail(&watch.child, status, "line", command->timeout_ms, err);
    return err->code;
}
