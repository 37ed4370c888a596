/* SPDX-License-Identifier: Apache-2.0 */
/* Watching a guest start; see boot_run_private.h. */
#include "bench/boot_run_private.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "bench/child_private.h"
#include "bench/husk_json_private.h"
#include "bench/smaps_private.h"

/* How long husk may take to end when it is asked to. */
#define END_TIMEOUT_MS 5000

#define MS_PER_SECOND 1e3

struct watch {
    const struct boot_command *command;
    struct bench_child child;
    double *marks;
};

static bool has(const struct watch *watch, enum bench_stream stream, const char *text)
{
    return strstr(watch->child.outputs[stream].bytes, text) != NULL;
}

static void mark(struct watch *watch, enum boot_mark which)
{
    uint64_t at_ns = watch->child.woken_ns - watch->child.start_ns;

    if (watch->marks[which] < 0)
        watch->marks[which] = (double)at_ns / (double)NS_PER_MS;
}

/* Not by what for: so the size of guest memory does not matter. */
static double uss_mib(const struct watch *watch)
{
    struct smaps_sum sum = {.rss_bytes = 0};
    struct error ignored = ERROR_NONE;
    uint64_t bytes = 0;

    if (smaps_add(watch->child.pid, UINT64_MAX, &sum, &ignored) < 0)
        return -1;
    for (int kind = 0; kind < SMAPS_KINDS; kind++)
        bytes += sum.private_bytes[kind];
    return (double)bytes / (double)MIB;
}

/* Marks what has been said since the last time. */
static void look(struct watch *watch)
{
    const struct boot_command *command = watch->command;

    if (command->running != NULL && has(watch, BENCH_STREAM_ERRORS, command->running))
        mark(watch, BOOT_INIT_END);
    if (watch->child.outputs[BENCH_STREAM_OUTPUT].size_bytes > 0)
        mark(watch, BOOT_START_KERNEL);
    if (!has(watch, BENCH_STREAM_OUTPUT, command->line))
        return;
    mark(watch, BOOT_START_USER);
    watch->marks[BOOT_PROCESSOR] =
        bench_child_processor_seconds(&watch->child) * MS_PER_SECOND;
    watch->marks[BOOT_USS] = uss_mib(watch);
}

static int watch_to_line(struct watch *watch)
{
    uint64_t deadline_ns = watch->child.start_ns + watch->command->timeout_ms * NS_PER_MS;
    int status = 0;

    while (status == 0 && watch->marks[BOOT_START_USER] < 0) {
        status =
            bench_child_wait(&watch->child, deadline_ns, watch->command->interrupt_fd);
        look(watch);
    }
    return status;
}

double boot_read_init_end(const char *text)
{
    json_t *document = husk_json_timer(text);
    const json_t *stage =
        json_object_get(json_object_get(document, "stages_ms"), "init_end");
    double at_ms = json_is_number(stage) ? json_number_value(stage) : -1;

    json_decref(document);
    return at_ms;
}

/* husk prints its boot timer when it ends. */
static void end_and_read_timer(struct watch *watch)
{
    uint64_t deadline_ns = clock_monotonic_ns() + END_TIMEOUT_MS * NS_PER_MS;
    int status = 0;

    (void)kill(watch->child.pid, SIGTERM);
    while (status == 0)
        status =
            bench_child_wait(&watch->child, deadline_ns, watch->command->interrupt_fd);
    bench_child_end(&watch->child, status < 0);
    watch->marks[BOOT_INIT_END] =
        boot_read_init_end(watch->child.outputs[BENCH_STREAM_ERRORS].bytes);
}

int boot_run(const struct boot_command *command, double marks[BOOT_MARK_COUNT],
             struct error *err)
{
    struct watch watch = {.command = command, .marks = marks};
    int status;

    if (bench_child_start(&watch.child, command->arguments, false, err) < 0) {
        bench_child_end(&watch.child, true);
        return err->code;
    }
    status = watch_to_line(&watch);
    if (marks[BOOT_START_USER] >= 0 && command->has_timer)
        end_and_read_timer(&watch);
    else
        bench_child_end(&watch.child, status <= 0);
    if (marks[BOOT_START_USER] < 0 || status == -EINTR)
        return bench_child_fail(&watch.child, status, "line of user space",
                                command->timeout_ms, err);
    return 0;
}
