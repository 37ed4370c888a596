/* SPDX-License-Identifier: Apache-2.0 */
/* Starting what measures a disk, and listening to it; see disk_run_private.h. */
#include "bench/disk_run_private.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/arguments_private.h"
#include "bench/child_private.h"
#include "bench/disk_image_private.h"
#include "bench/husk_json_private.h"

/* What says nothing of its end for so long is given up. */
#define TIMEOUT_MS UINT64_C(600000)

/* For a power-off. */
#define END_TIMEOUT_MS UINT64_C(10000)

/* How long each of fio's jobs runs. */
#define JOB_SECONDS "1"

/* The kernel and twice the initramfs, which is unpacked to half of it at most. */
#define MEMORY_MIB "384"

#define KERNEL_ARGUMENTS "console=ttyS0 quiet loglevel=0"

/* What arguments are made of. */
#define NAME_BYTES ((size_t)2 * PATH_MAX)
struct texts {
    char image[NAME_BYTES];
    char disk[NAME_BYTES + 128];
    char name[32]; /* of the husk that runs */
    char size[32];
};

struct run {
    const struct disk_setup *setup;
    const struct disk_subject *subject;
    struct disk_figures *figures;
    struct bench_child child;
    size_t heard_bytes; /* of its output: a line that has been heard, for messages */
    struct texts texts;
    struct disk_cost begun; /* of the job that is being done: what it was before */
    bool done;
};

/* ---- what it costs ---- */

static double processor_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec time;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) < 0)
        return -1;
    return (double)time.tv_sec + (double)time.tv_nsec / (double)NS_PER_SECOND;
}

/* By asking the husk that runs. */
static double exits_of(const struct run *run)
{
    json_t *document;
    const json_t *counters;
    double exits = -1;

    if (run->subject->place != DISK_IN_HUSK)
        return -1;
    document = husk_json_stat(run->setup->options, run->texts.name);
    counters = json_object_get(document, "counters");
    if (counters != NULL)
        exits = json_number_value(json_object_get(counters, "port_exits")) +
                json_number_value(json_object_get(counters, "mmio_exits"));
    json_decref(document);
    return exits;
}

static struct disk_cost cost_so_far(const struct run *run)
{
    double seconds =
        run->subject->place == DISK_ON_HOST ? -1 : processor_seconds(run->child.pid);

    return (struct disk_cost){.processor_seconds = seconds, .exits = exits_of(run)};
}

static double difference(double before, double now)
{
    return before < 0 || now < 0 ? -1 : now - before;
}

static void begin(struct run *run, const char *name)
{
    if (run->setup->progress != NULL)
        run->setup->progress(run->setup->context, name);
    run->begun = cost_so_far(run);
}

static void end(struct run *run, const char *name)
{
    const struct disk_cost now = cost_so_far(run);
    enum disk_job job = disk_parse_job_name(name);

    if (job == DISK_JOB_COUNT)
        return;
    run->figures->costs[job] = (struct disk_cost){
        .processor_seconds =
            difference(run->begun.processor_seconds, now.processor_seconds),
        .exits = difference(run->begun.exits, now.exits),
    };
}

/* ---- what it says ---- */

static void hear_fio(struct run *run, const char *line)
{
    struct disk_job_figures figures;
    enum disk_job job;

    if (!disk_parse_fio(line, &job, &figures))
        return;
    run->figures->jobs[job] = figures;
    if (run->subject->place == DISK_ON_HOST)
        run->figures->costs[job].processor_seconds = figures.processor_seconds;
}

static void hear(struct run *run, const char *line)
{
    const char *name;

    switch (disk_parse_mark(line, &name)) {
    case DISK_MARK_BEGIN:
        begin(run, name);
        break;
    case DISK_MARK_END:
        end(run, name);
        break;
    case DISK_MARK_DONE:
        run->done = true;
        break;
    case DISK_MARK_NONE:
        if (!disk_parse_bonnie(line, run->figures->steps))
            hear_fio(run, line);
        break;
    }
}

/* Hears all whole lines that are new. The last one stays in the output, for messages. */
static void hear_lines(struct run *run)
{
    struct bench_output *output = &run->child.outputs[BENCH_STREAM_OUTPUT];
    const char *end = output->bytes + output->size_bytes;
    char *last = output->bytes;
    char *line = output->bytes + run->heard_bytes;
    char *newline;

    while ((newline = memchr(line, '\n', (size_t)(end - line))) != NULL) {
        /* A terminal in between adds a carriage return. */
        char *line_end = newline > line && newline[-1] == '\r' ? newline - 1 : newline;
        char kept = *line_end;

        *line_end = '\0';
        hear(run, line);
        *line_end = kept;
        last = line;
        line = newline + 1;
    }
    output->size_bytes = (size_t)(end - last);
    run->heard_bytes = (size_t)(line - last);
    memmove(output->bytes, last, output->size_bytes);
    /* What comes next must not push out the start of a line. */
    if (output->size_bytes > BENCH_OUTPUT_BYTES / 2)
        output->size_bytes = run->heard_bytes = 0;
    output->bytes[output->size_bytes] = '\0';
}

/* 1 at its end, or a negative errno as of bench_child_wait. */
static int listen_to_end(struct run *run)
{
    uint64_t deadline_ns = run->child.start_ns + TIMEOUT_MS * NS_PER_MS;
    int status = 0;

    while (status == 0) {
        bool was_done = run->done;

        status =
            bench_child_wait(&run->child, deadline_ns, run->setup->options->interrupt_fd);
        hear_lines(run);
        if (run->done && !was_done)
            deadline_ns = clock_monotonic_ns() + END_TIMEOUT_MS * NS_PER_MS;
    }
    return status;
}

/* ---- how it is started ---- */

static void host_arguments(struct run *run, struct bench_arguments *arguments)
{
    const struct disk_setup *setup = run->setup;
    struct texts *texts = &run->texts;

    (void)snprintf(texts->size, sizeof(texts->size), "%ju", (uintmax_t)setup->size_mib);
    bench_arguments_append(arguments, (const char *[]){"sh", "-c", disk_measure_script,
                                                       "disk_measure.sh", setup->image,
                                                       setup->directory, texts->size,
                                                       JOB_SECONDS, NULL});
}

/* A file's name within an option: to husk and to QEMU a comma ends it unless there are
 * two. */
static void write_name(const char *path, char name[NAME_BYTES])
{
    size_t used = 0;

    for (; *path != '\0' && used + 2 < NAME_BYTES; path++) {
        name[used++] = *path;
        if (*path == ',')
            name[used++] = ',';
    }
    name[used] = '\0';
}

static void append_machine(const struct run *run, const char *program, const char *type,
                           const char *const *options, struct bench_arguments *arguments)
{
    const struct bench_machine machine = {.program = program,
                                          .type = type,
                                          .accel = run->subject->accel,
                                          .memory_mib = MEMORY_MIB,
                                          .kernel = run->setup->kernel,
                                          .initramfs = run->setup->initramfs,
                                          .cmdline = KERNEL_ARGUMENTS,
                                          .options = options};

    bench_arguments_append_machine(arguments, &machine);
}

static void husk_arguments(struct run *run, struct bench_arguments *arguments)
{
    const struct disk_setup *setup = run->setup;
    struct texts *texts = &run->texts;
    const char *const options[] = {"--name", texts->name, "--disk", texts->disk, NULL};

    (void)snprintf(texts->name, sizeof(texts->name), "bench-disk-%ld", (long)getpid());
    write_name(setup->image, texts->image);
    (void)snprintf(texts->disk, sizeof(texts->disk), "%s,engine=%s", texts->image,
                   run->subject->engine);
    append_machine(run, setup->options->husk, NULL, options, arguments);
}

/* As those advise who want QEMU's disks fast: a thread for the disk, requests to the host
 * by aio=, past its page cache (cache=none) or not (cache=writeback). */
static void peer_arguments(struct run *run, struct bench_arguments *arguments)
{
    const struct disk_setup *setup = run->setup;
    struct texts *texts = &run->texts;
    const char *const options[] = {"-object", "iothread,id=disks",
                                   "-drive",  texts->disk,
                                   "-device", "virtio-blk-pci,drive=disk,iothread=disks",
                                   NULL};

    write_name(setup->image, texts->image);
    (void)snprintf(texts->disk, sizeof(texts->disk),
                   "if=none,id=disk,format=raw,file=%s,cache=%s,aio=%s", texts->image,
                   run->subject->cache, run->subject->engine);
    append_machine(run, setup->options->peer, "q35", options, arguments);
}

static int prepare_image(const struct disk_setup *setup, struct error *err)
{
    char arguments[64];

    (void)snprintf(arguments, sizeof(arguments), "/dev/vda /mnt %ju " JOB_SECONDS,
                   (uintmax_t)setup->size_mib);
    return disk_image_prepare(setup->image, arguments, err);
}

static struct disk_figures nothing_known(void)
{
    struct disk_figures figures;

    for (size_t i = 0; i < DISK_JOB_COUNT; i++) {
        figures.jobs[i] = (struct disk_job_figures){.known = false};
        figures.costs[i] = (struct disk_cost){.processor_seconds = -1, .exits = -1};
    }
    for (size_t i = 0; i < DISK_STEP_COUNT; i++)
        figures.steps[i] = (struct disk_step_figures){.rate = -1, .latency_us = -1};
    return figures;
}

/* fio may fail in one job alone. */
static int check_figures(const struct disk_figures *figures, struct error *err)
{
    for (enum disk_job job = 0; job < DISK_JOB_COUNT; job++)
        if (!figures->jobs[job].known)
            return error_set(err, EIO, "fio has no figures of its job %s",
                             disk_job_name(job));
    return 0;
}

int disk_run(const struct disk_setup *setup, const struct disk_subject *subject,
             struct disk_figures *figures, struct error *err)
{
    static void (*const arguments_of[])(struct run *, struct bench_arguments *) = {
        [DISK_ON_HOST] = host_arguments,
        [DISK_IN_HUSK] = husk_arguments,
        [DISK_IN_PEER] = peer_arguments,
    };
    struct run run = {.setup = setup, .subject = subject, .figures = figures};
    struct bench_arguments arguments = {.count = 0};
    int status;

    *figures = nothing_known();
    if (prepare_image(setup, err) < 0)
        return err->code;
    arguments_of[subject->place](&run, &arguments);
    status = bench_child_start(&run.child, arguments.words, false, err);
    if (status == 0)
        status = listen_to_end(&run);
    bench_child_end(&run.child, status < 0);
    hear_lines(&run);
    if (err->code == 0 && (status == -EINTR || !run.done))
        (void)bench_child_fail(&run.child, status, "end", TIMEOUT_MS, err);
    return err->code == 0 ? check_figures(figures, err) : err->code;
}
