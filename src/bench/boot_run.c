/* SPDX-License-Identifier: Apache-2.0 */
/* Watching a guest start; see boot_run_private.h. */
#include "bench/boot_run_private.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "bench/child_private.h"
#include "bench/husk_json_private.h"

/* How long husk may take to end when it is asked to. */
#define END_TIMEOUT_MS 5000

#define MS_PER_SECOND 1e3

struct watch {
    const struct boot_command *command;
    struct bench_child child;
    double *marks_ms;
};

static bool has(const struct watch *watch, enum bench_stream stream, const char *text)
{
    return strstr(watch->child.outputs[stream].bytes, text) != NULL;
}

static void mark(struct watch *watch, enum boot_mark which)
{
    uint64_t at_ns = watch->child.woken_ns - watch->child.start_ns;

    if (watch->marks_ms[which] < 0)
        watch->marks_ms[which] = (double)at_ns / (double)NS_PER_MS;
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
    watch->marks_ms[BOOT_PROCESSOR] =
        bench_child_processor_seconds(&watch->child) * MS_PER_SECOND;
}

static int watch_to_line(struct watch *watch)
{
    uint64_t deadline_ns = watch->child.start_ns + watch->command->timeout_ms * NS_PER_MS;
    int status = 0;

    while (status == 0 && watch->marks_ms[BOOT_START_USER] < 0) {
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
    watch->marks_ms[BOOT_INIT_END] =
        boot_read_init_end(watch->child.outputs[BENCH_STREAM_ERRORS].bytes);
}

int boot_run(const struct boot_command *command, double marks_ms[BOOT_MARK_COUNT],
             struct error *err)
{
    struct watch watch = {.command = command, .marks_ms = marks_ms};
    int status;

    if (bench_child_start(&watch.child, command->arguments, false, err) < 0) {
        bench_child_end(&watch.child, true);
        return err->code;
    }
    status = watch_to_line(&watch);
    if (marks_ms[BOOT_START_USER] >= 0 && command->has_timer)
        end_and_read_timer(&watch);
    else
        bench_child_end(&watch.child, status <= 0);
    if (marks_ms[BOOT_START_USER] < 0 || status == -EINTR)
        return bench_child_fail(&watch.child, status, "line of user space",
                                command->timeout_ms, err);
    return 0;
}
