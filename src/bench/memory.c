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
#include "bench/benches_private.h"
#include "bench/directory_private.h"
#include "bench/files_private.h"
#include "bench/grid_private.h"
#include "bench/husk_json_private.h"
#include "bench/session_private.h"
#include "bench/smaps_private.h"

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

/* What husk puts its memory down to, by the names of `husk stat`. Of others, as "pmem",
 * there is nothing here; they would be in the rest. */
static const char *const kinds[] = {"guest_ram", "kernel_file", "initrd", "common_pages",
                                    "code",      "program",     "monitor"};
#define KINDS ARRAY_SIZE(kinds)

enum measure {
    MEASURE_USS,
    MEASURE_PSS,
    MEASURE_RSS,
    MEASURE_USS_RAM,
    MEASURE_USS_CODE,
    MEASURE_USS_PROGRAM,
    MEASURE_USS_OTHER,
    MEASURE_IDLE,
    MEASURE_USS_KIND, /* of each kind, in the order of `kinds` */
    MEASURE_USS_REST = MEASURE_USS_KIND + KINDS,
    MEASURE_PSS_KIND,
    MEASURE_PSS_REST = MEASURE_PSS_KIND + KINDS,
    MEASURE_COUNT
};

static const struct bench_measure measures[MEASURE_COUNT] = {
    [MEASURE_USS] = {"USS", "MiB"},
    [MEASURE_PSS] = {"PSS", "MiB"},
    [MEASURE_RSS] = {"RSS", "MiB"},
    [MEASURE_USS_RAM] = {"USS, guest memory", "MiB"},
    [MEASURE_USS_CODE] = {"USS, code", "MiB"},
    [MEASURE_USS_PROGRAM] = {"USS, program", "MiB"},
    [MEASURE_USS_OTHER] = {"USS, the rest", "MiB"},
    [MEASURE_IDLE] = {"idle processor", "%"},
    [MEASURE_USS_KIND] = {"USS of guest_ram", "MiB"},
    {"USS of kernel_file", "MiB"},
    {"USS of initrd", "MiB"},
    {"USS of common_pages", "MiB"},
    {"USS of code", "MiB"},
    {"USS of program", "MiB"},
    {"USS of monitor", "MiB"},
    [MEASURE_USS_REST] = {"USS of no kind", "MiB"},
    [MEASURE_PSS_KIND] = {"PSS of guest_ram", "MiB"},
    {"PSS of kernel_file", "MiB"},
    {"PSS of initrd", "MiB"},
    {"PSS of common_pages", "MiB"},
    {"PSS of code", "MiB"},
    {"PSS of program", "MiB"},
    {"PSS of monitor", "MiB"},
    [MEASURE_PSS_REST] = {"PSS of no kind", "MiB"},
};

static const struct bench_way ways[] = {
    {"run", NULL, NULL},
    {"q35", "q35", NULL},
    /* With ACPI its TCG offers this kernel nothing to calibrate the TSC by. */
    {"microvm", "microvm,acpi=off", NULL},
};

struct memory_bench {
    const struct bench_options *options;
    const size_t *instances; /* of each set */
    const char *sets[BENCH_MAX_INSTANCE_COUNTS];
    struct bench_grid grid;
    char *kernel; /* vmlinux; paths, owned */
    char *initramfs;
    char *directory;
    char *cache; /* as a word of the environment */
};

static const size_t default_instances[] = {1, 2, 4, 8, 16};

/* ---- the sets ---- */

#define SET_NAME_BYTES 16

/* "1 instance", "16 instances"; the texts are the report's. */
static int name_sets(struct memory_bench *bench, struct bench_report *report,
                     struct error *err)
{
    report->texts = calloc(bench->grid.set_count, SET_NAME_BYTES);
    if (report->texts == NULL)
        return error_set(err, ENOMEM, "out of memory for the rows");
    for (size_t i = 0; i < bench->grid.set_count; i++) {
        char *name = report->texts + i * SET_NAME_BYTES;

        (void)snprintf(name, SET_NAME_BYTES, "%zu instance%s", bench->instances[i],
                       bench->instances[i] == 1 ? "" : "s");
        bench->sets[i] = name;
    }
    return 0;
}

static int make_grid(struct memory_bench *bench, struct bench_report *report,
                     struct error *err)
{
    const struct bench_options *options = bench->options;
    bool are_named = options->instance_count > 0;

    bench->instances = are_named ? options->instances : default_instances;
    bench->grid = (struct bench_grid){
        .sets = bench->sets,
        .set_count = are_named ? options->instance_count : ARRAY_SIZE(default_instances),
        .ways = ways,
        .way_count = ARRAY_SIZE(ways),
        .measures = measures,
        .measure_count = MEASURE_COUNT,
    };
    return name_sets(bench, report, err);
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

struct instance {
    char name[48]; /* husk's --name */
    struct bench_session session;
};

/* Those of one subject. */
struct crowd {
    const struct memory_bench *bench;
    struct bench_cell cell;
    size_t count;
    struct instance *instances; /* owned */
};

static bool is_husk(const struct crowd *crowd)
{
    return crowd->cell.way->type == NULL;
}

static int start_one(const struct crowd *crowd, size_t index, struct error *err)
{
    const struct memory_bench *bench = crowd->bench;
    struct instance *instance = &crowd->instances[index];
    const char *const named[] = {"--name", instance->name, NULL};
    struct bench_arguments arguments = {.count = 0};
    struct bench_machine machine = {.memory_mib = MEMORY_MIB,
                                    .kernel = bench->kernel,
                                    .initramfs = bench->initramfs,
                                    .cmdline = KERNEL_ARGUMENTS};

    (void)snprintf(instance->name, sizeof(instance->name), "bench-memory-%ld-%zu",
                   (long)getpid(), index);
    bench_grid_choose(&crowd->cell, bench->options, &machine);
    if (is_husk(crowd))
        machine.options = named;
    bench_arguments_append(&arguments, (const char *[]){bench->cache, NULL});
    bench_arguments_append_machine(&arguments, &machine);
    return bench_session_open(&instance->session, arguments.words,
                              bench->options->interrupt_fd, err);
}

static int start_all(const struct crowd *crowd, struct error *err)
{
    char line[BENCH_LINE_BYTES];

    for (size_t i = 0; i < crowd->count; i++)
        if (start_one(crowd, i, err) < 0)
            return err->code;
    for (size_t i = 0; i < crowd->count; i++)
        if (bench_session_expect(&crowd->instances[i].session, USER_LINE, BOOT_TIMEOUT_MS,
                                 line, err) < 0)
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

static double processor_seconds(const struct crowd *crowd)
{
    double sum = 0;

    for (size_t i = 0; i < crowd->count; i++)
        sum += bench_child_processor_seconds(&crowd->instances[i].session.child);
    return sum;
}

static int measure_idle(const struct crowd *crowd, double *values, struct error *err)
{
    double before = processor_seconds(crowd);
    double used;

    if (leave_alone(&crowd->instances[0].session, IDLE_MS, err) < 0)
        return err->code;
    used = processor_seconds(crowd) - before;
    values[MEASURE_IDLE] = 100 * used * 1000 / IDLE_MS / (double)crowd->count;
    return 0;
}

static int measure_memory(const struct crowd *crowd, double *values, struct error *err)
{
    struct smaps_sum sum = {.rss_bytes = 0};
    double share = (double)MIB * (double)crowd->count;

    for (size_t i = 0; i < crowd->count; i++)
        if (smaps_add(crowd->instances[i].session.child.pid, MEMORY_BYTES, &sum, err) < 0)
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

/* Adds what one instance says of itself. False: it says nothing. */
static bool add_kinds(const struct crowd *crowd, size_t index, double uss[KINDS],
                      double pss[KINDS])
{
    json_t *document =
        husk_json_stat(crowd->bench->options, crowd->instances[index].name);
    const json_t *all = json_object_get(json_object_get(document, "process"), "kinds");
    bool is_known = all != NULL;

    for (size_t i = 0; i < KINDS; i++) {
        const json_t *kind = json_object_get(all, kinds[i]);

        uss[i] += json_number_value(json_object_get(kind, "private_bytes"));
        pss[i] += json_number_value(json_object_get(kind, "pss_bytes"));
    }
    json_decref(document);
    return is_known;
}

/* Sets what the kinds are, behind that what `total` has more than they have together. */
static void set_kinds(double *values, const double bytes[KINDS], double share,
                      double total)
{
    for (size_t i = 0; i < KINDS; i++) {
        values[i] = bytes[i] / share;
        total -= values[i];
    }
    values[KINDS] = total > 0 ? total : 0;
}

/* After the totals, which being asked would add to. */
static void measure_kinds(const struct crowd *crowd, double *values)
{
    double share = (double)MIB * (double)crowd->count;
    double uss[KINDS] = {0};
    double pss[KINDS] = {0};

    for (size_t i = 0; i < crowd->count; i++)
        if (!add_kinds(crowd, i, uss, pss))
            return;
    set_kinds(values + MEASURE_USS_KIND, uss, share, values[MEASURE_USS]);
    set_kinds(values + MEASURE_PSS_KIND, pss, share, values[MEASURE_PSS]);
}

static int run_subject(void *context, size_t index, double *values, struct error *err)
{
    const struct memory_bench *bench = context;
    const struct bench_cell cell = bench_grid_cell(&bench->grid, bench->options, index);
    struct crowd crowd = {
        .bench = bench, .cell = cell, .count = bench->instances[cell.set]};

    crowd.instances = calloc(crowd.count, sizeof(*crowd.instances));
    if (crowd.instances == NULL)
        return error_set(err, ENOMEM, "out of memory for %zu instances", crowd.count);
    if (start_all(&crowd, err) == 0 &&
        leave_alone(&crowd.instances[0].session, SETTLE_MS, err) == 0 &&
        measure_idle(&crowd, values, err) == 0 &&
        measure_memory(&crowd, values, err) == 0 && is_husk(&crowd))
        measure_kinds(&crowd, values);
    for (size_t i = 0; i < crowd.count; i++)
        bench_session_close(&crowd.instances[i].session);
    free(crowd.instances);
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
    if (make_grid(&bench, report, err) == 0 && make_files(&bench, err) == 0 &&
        bench_grid_init(&bench.grid, options, report, &subjects, err) == 0)
        bench_subjects_rounds(&subjects, run_subject, &bench);
    bench_subjects_finish(&subjects);
    remove_files(&bench);
    return err->code;
}
