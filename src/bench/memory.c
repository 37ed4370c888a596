/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk bench memory: what each of several instances of one stock kernel takes of the
 * host's memory and processors when all are up and idle, in husk and in a peer.
 *
 * All instances of a subject are started at once, brought to user space, and left alone
 * for a while; then they are measured, and ended. The numbers are those of one instance:
 * the sum of all, divided.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "bench/arguments_private.h"
#include "bench/benches_private.h"
#include "bench/directory_private.h"
#include "bench/files_private.h"
#include "bench/session_private.h"
#include "bench/smaps_private.h"
#include "bench/subjects_private.h"

/* Its init says this, and waits. */
#define INITRAMFS_FILE "cpu-programs.cpio"
#define USER_LINE "husk-bench ready"

#define KERNEL_ARGUMENTS "console=ttyS0 quiet panic=-1"
#define MEMORY_MIB "1024"
#define MEMORY_BYTES GIB

#define BOOT_TIMEOUT_MS 600000
#define UNPACK_TIMEOUT_MS 120000

/* husk looks at an idle guest's memory after 2, 6, 14 and 30 seconds. */
#define SETTLE_MS 40000
#define IDLE_MS 10000

enum measure {
    MEASURE_USS,
    MEASURE_PSS,
    MEASURE_RSS,
    MEASURE_USS_RAM,
    MEASURE_USS_CODE,
    MEASURE_USS_PROGRAM,
    MEASURE_USS_OTHER,
    MEASURE_IDLE,
    MEASURE_COUNT
};

static const struct {
    const char *name;
    const char *unit;
} measures[MEASURE_COUNT] = {
    [MEASURE_USS] = {"USS", "MiB"},
    [MEASURE_PSS] = {"PSS", "MiB"},
    [MEASURE_RSS] = {"RSS", "MiB"},
    [MEASURE_USS_RAM] = {"USS, guest memory", "MiB"},
    [MEASURE_USS_CODE] = {"USS, code", "MiB"},
    [MEASURE_USS_PROGRAM] = {"USS, program", "MiB"},
    [MEASURE_USS_OTHER] = {"USS, the rest", "MiB"},
    [MEASURE_IDLE] = {"idle processor", "%"},
};

static const struct way {
    const char *name;
    bool is_peer;
    const char *argument; /* of the peer's -M */
} ways[] = {
    {"run", false, NULL},
    {"q35", true, "q35"},
    /* With ACPI its TCG offers this kernel nothing to calibrate the TSC by. */
    {"microvm", true, "microvm,acpi=off"},
};

struct subject {
    size_t instances;
    const struct way *way;
    const char *accel; /* husk's */
};

#define MAX_SUBJECTS                                                                     \
    ((size_t)BENCH_MAX_ACCELS * BENCH_MAX_INSTANCE_COUNTS * ARRAY_SIZE(ways))

struct memory_bench {
    const struct bench_options *options;
    struct subject subjects[MAX_SUBJECTS];
    size_t subject_count;
    char *kernel; /* vmlinux; paths, owned */
    char *initramfs;
    char *directory;
    char *cache; /* as a word of the environment */
};

static const size_t default_instances[] = {1, 2, 4, 8, 16};

/* ---- the rows ---- */

static void add_subjects(struct memory_bench *bench, const size_t *instances,
                         size_t count)
{
    const struct bench_options *options = bench->options;

    for (size_t i = 0; i < options->accel_count; i++)
        for (size_t j = 0; j < count; j++)
            for (size_t k = 0; k < ARRAY_SIZE(ways); k++)
                if (!ways[k].is_peer || options->peer != NULL)
                    bench->subjects[bench->subject_count++] =
                        (struct subject){instances[j], &ways[k], options->accels[i]};
}

/* "16 instances"; one of a few, so they are never freed. */
static const char *set_name(size_t instances)
{
    static char names[BENCH_MAX_INSTANCES + 1][16];

    (void)snprintf(names[instances], sizeof(names[0]), "%zu instance%s", instances,
                   instances == 1 ? "" : "s");
    return names[instances];
}

static int add_row(const struct memory_bench *bench, struct bench_subjects *subjects,
                   size_t index, enum measure measure, struct error *err)
{
    const struct subject *subject = &bench->subjects[index];
    bool is_peer = subject->way->is_peer;
    const struct bench_row row = {
        .set = set_name(subject->instances),
        .group = measures[measure].name,
        .program = is_peer ? bench_file_name(bench->options->peer) : "husk",
        .way = subject->way->name,
        .accel = is_peer ? bench_peer_accel(subject->accel) : subject->accel,
        .beside = subject->accel,
        .is_peer = is_peer,
        .unit = measures[measure].unit};

    return bench_subjects_add(subjects, index, measure, &row, err);
}

/* The rows of one measure of one number of instances come together. */
static int add_rows(const struct memory_bench *bench, struct bench_subjects *subjects,
                    struct error *err)
{
    size_t ways_each = bench->options->peer == NULL ? 1 : ARRAY_SIZE(ways);

    for (size_t first = 0; first < bench->subject_count; first += ways_each)
        for (int measure = 0; measure < MEASURE_COUNT; measure++)
            for (size_t i = 0; i < ways_each; i++)
                if (add_row(bench, subjects, first + i, (enum measure)measure, err) < 0)
                    return err->code;
    return 0;
}

/* ---- the files ---- */

/* Both programs start the same vmlinux: the one that husk has unpacked. */
static int make_files(struct memory_bench *bench, struct error *err)
{
    char *packed;

    bench->initramfs = bench_find_guest(INITRAMFS_FILE, err);
    if (bench->initramfs == NULL)
        return err->code;
    bench->directory = bench_directory_make(err);
    packed = bench->directory == NULL
                 ? NULL
                 : bench_find_kernel(bench->options->kernel, "amd64", err);
    if (packed == NULL)
        return err->code;
    if (asprintf(&bench->cache, "HUSK_CACHE_DIR=%s/cache", bench->directory) < 0)
        bench->cache = NULL;
    if (bench->cache == NULL)
        error_set(err, ENOMEM, "out of memory for file names");
    else
        bench->kernel = bench_unpack_kernel(bench->options, bench->cache, packed, err);
    free(packed);
    return err->code;
}

static void remove_files(struct memory_bench *bench)
{
    bench_directory_remove(bench->directory);
    free(bench->kernel);
    free(bench->initramfs);
    free(bench->cache);
}

/* ---- instances ---- */

static int start_one(const struct memory_bench *bench, const struct subject *subject,
                     struct bench_session *session, struct error *err)
{
    struct bench_arguments arguments = {.count = 0};
    struct bench_machine machine = {.program = bench->options->husk,
                                    .accel = subject->accel,
                                    .memory_mib = MEMORY_MIB,
                                    .kernel = bench->kernel,
                                    .initramfs = bench->initramfs,
                                    .cmdline = KERNEL_ARGUMENTS};

    if (subject->way->is_peer) {
        machine.program = bench->options->peer;
        machine.type = subject->way->argument;
        machine.accel = bench_peer_accel(subject->accel);
    } else {
        bench_arguments_append(&arguments, (const char *[]){bench->cache, NULL});
    }
    bench_arguments_append_machine(&arguments, &machine);
    return bench_session_open(session, arguments.words, bench->options->interrupt_fd,
                              err);
}

static int start_all(const struct memory_bench *bench, const struct subject *subject,
                     struct bench_session *sessions, struct error *err)
{
    char line[BENCH_LINE_BYTES];

    for (size_t i = 0; i < subject->instances; i++)
        if (start_one(bench, subject, &sessions[i], err) < 0)
            return err->code;
    for (size_t i = 0; i < subject->instances; i++)
        if (bench_session_expect(&sessions[i], USER_LINE, BOOT_TIMEOUT_MS, line, err) < 0)
            return err->code;
    return 0;
}

/* Until the time is over; what they still say is not looked at. */
static int leave_alone(struct bench_session *session, uint64_t duration_ms,
                       struct error *err)
{
    uint64_t deadline_ns = clock_monotonic_ns() + duration_ms * NS_PER_MS;
    int status;

    do
        status = bench_child_wait(&session->child, deadline_ns, session->interrupt_fd);
    while (status == 0);
    if (status == -ETIME)
        return 0;
    if (status == -EINTR)
        return error_set(err, -EINTR, "interrupted");
    return error_set(err, ECHILD, "an instance has ended while it was idle");
}

/* ---- one run ---- */

static double processor_seconds(const struct bench_session *sessions, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += bench_child_processor_seconds(&sessions[i].child);
    return sum;
}

static int measure_idle(struct bench_session *sessions, const struct subject *subject,
                        double *values, struct error *err)
{
    double before = processor_seconds(sessions, subject->instances);
    double used;

    if (leave_alone(&sessions[0], IDLE_MS, err) < 0)
        return err->code;
    used = processor_seconds(sessions, subject->instances) - before;
    values[MEASURE_IDLE] = 100 * used * 1000 / IDLE_MS / (double)subject->instances;
    return 0;
}

static int measure_memory(const struct bench_session *sessions,
                          const struct subject *subject, double *values,
                          struct error *err)
{
    struct smaps_sum sum = {.rss_bytes = 0};
    double share = (double)MIB * (double)subject->instances;

    for (size_t i = 0; i < subject->instances; i++)
        if (smaps_add(sessions[i].child.pid, MEMORY_BYTES, &sum, err) < 0)
            return err->code;
    values[MEASURE_RSS] = (double)sum.rss_bytes / share;
    values[MEASURE_PSS] = (double)sum.pss_bytes / share;
    values[MEASURE_USS] = 0;
    for (int kind = 0; kind < SMAPS_KINDS; kind++) {
        double private = (double)sum.private_bytes[kind] / share;

        values[MEASURE_USS] += private;
        values[MEASURE_USS_RAM + kind] = private;
    }
    return 0;
}

static int run_subject(void *context, size_t index, double *values, struct error *err)
{
    const struct memory_bench *bench = context;
    const struct subject *subject = &bench->subjects[index];
    struct bench_session *sessions = calloc(subject->instances, sizeof(*sessions));

    if (sessions == NULL)
        return error_set(err, ENOMEM, "out of memory for %zu instances",
                         subject->instances);
    if (start_all(bench, subject, sessions, err) == 0 &&
        leave_alone(&sessions[0], SETTLE_MS, err) == 0 &&
        measure_idle(sessions, subject, values, err) == 0)
        (void)!measure_memory(sessions, subject, values, err);
    for (size_t i = 0; i < subject->instances; i++)
        bench_session_close(&sessions[i]);
    free(sessions);
    return err->code;
}

int bench_memory(const struct bench_options *options, struct bench_report *report,
                 struct error *err)
{
    struct memory_bench bench = {.options = options};
    struct bench_subjects subjects = {.rows = NULL};

    *report = (struct bench_report){
        .bench = "memory",
        .measure = "of each idle instance",
        .runs = options->runs,
    };
    if (options->instance_count > 0)
        add_subjects(&bench, options->instances, options->instance_count);
    else
        add_subjects(&bench, default_instances, ARRAY_SIZE(default_instances));
    if (make_files(&bench, err) == 0 &&
        bench_subjects_init(&subjects, options, report, bench.subject_count,
                            MEASURE_COUNT, err) == 0 &&
        add_rows(&bench, &subjects, err) == 0)
        bench_subjects_rounds(&subjects, run_subject, &bench);
    bench_subjects_finish(&subjects);
    remove_files(&bench);
    return err->code;
}
