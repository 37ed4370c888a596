/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk bench disk: fio and bonnie++ in a guest, with each of husk's engines and beside a
 * peer, and on the host, all on the same image. The questions are those of a thread of
 * 2011 on kvmtool's disks (how fast are blocks written, rewritten, read and sought, and
 * how long does it take at worst), and what a request costs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "bench/arguments_private.h"
#include "bench/benches_private.h"
#include "bench/directory_private.h"
#include "bench/disk_image_private.h"
#include "bench/disk_run_private.h"
#include "bench/files_private.h"
#include "bench/subjects_private.h"

/* Twice what the guest leaves its page cache (tools/make-disk-bench-guest). */
#define DEFAULT_SIZE_BYTES (128 * MIB)

/* The file system in the guest has room for bonnie++'s files, its tables and its journal,
 * and what ext4 keeps for root. */
#define IMAGE_BYTES(size_bytes) ((size_bytes) + (size_bytes) / 4 + 32 * MIB)

#define US_PER_SECOND 1e6

/* ---- what is measured ---- */

enum figure {
    FIGURE_STEP_MIB, /* a second */
    FIGURE_STEP_SEEKS,
    FIGURE_STEP_MS, /* at worst */
    FIGURE_JOB_MIB, /* a second */
    FIGURE_JOB_REQUESTS,
    FIGURE_JOB_US, /* of one request: */
    FIGURE_JOB_EXITS,
    FIGURE_JOB_PROCESSOR_US,
};

static const struct measure {
    const char *name;
    const char *unit;
    bool more_is_better;
    enum figure figure;
    unsigned of; /* enum disk_step or enum disk_job */
} measures[] = {
    {"block write", "MiB/s", true, FIGURE_STEP_MIB, DISK_STEP_WRITE},
    {"block rewrite", "MiB/s", true, FIGURE_STEP_MIB, DISK_STEP_REWRITE},
    {"block read", "MiB/s", true, FIGURE_STEP_MIB, DISK_STEP_READ},
    {"random seeks", "/s", true, FIGURE_STEP_SEEKS, DISK_STEP_SEEK},
    {"longest block write", "ms", false, FIGURE_STEP_MS, DISK_STEP_WRITE},
    {"longest block rewrite", "ms", false, FIGURE_STEP_MS, DISK_STEP_REWRITE},
    {"longest block read", "ms", false, FIGURE_STEP_MS, DISK_STEP_READ},
    {"longest random seek", "ms", false, FIGURE_STEP_MS, DISK_STEP_SEEK},

    {"1M read", "MiB/s", true, FIGURE_JOB_MIB, DISK_JOB_SEQUENTIAL_READ},
    {"1M write", "MiB/s", true, FIGURE_JOB_MIB, DISK_JOB_SEQUENTIAL_WRITE},
    {"4k random read", "/s", true, FIGURE_JOB_REQUESTS, DISK_JOB_RANDOM_READ_1},
    {"4k random read, 32 deep", "/s", true, FIGURE_JOB_REQUESTS, DISK_JOB_RANDOM_READ_32},
    {"4k random write", "/s", true, FIGURE_JOB_REQUESTS, DISK_JOB_RANDOM_WRITE_1},
    {"4k random write, 32 deep", "/s", true, FIGURE_JOB_REQUESTS,
     DISK_JOB_RANDOM_WRITE_32},
    {"4k random write and fsync", "us", false, FIGURE_JOB_US, DISK_JOB_FSYNC},

    {"exits: 1M read", "each", false, FIGURE_JOB_EXITS, DISK_JOB_SEQUENTIAL_READ},
    {"exits: 1M write", "each", false, FIGURE_JOB_EXITS, DISK_JOB_SEQUENTIAL_WRITE},
    {"exits: 4k read", "each", false, FIGURE_JOB_EXITS, DISK_JOB_RANDOM_READ_1},
    {"exits: 4k read, 32 deep", "each", false, FIGURE_JOB_EXITS, DISK_JOB_RANDOM_READ_32},
    {"exits: 4k write", "each", false, FIGURE_JOB_EXITS, DISK_JOB_RANDOM_WRITE_1},
    {"exits: 4k write, 32 deep", "each", false, FIGURE_JOB_EXITS,
     DISK_JOB_RANDOM_WRITE_32},
    {"exits: 4k write and fsync", "each", false, FIGURE_JOB_EXITS, DISK_JOB_FSYNC},

    {"CPU: 1M read", "us", false, FIGURE_JOB_PROCESSOR_US, DISK_JOB_SEQUENTIAL_READ},
    {"CPU: 1M write", "us", false, FIGURE_JOB_PROCESSOR_US, DISK_JOB_SEQUENTIAL_WRITE},
    {"CPU: 4k read", "us", false, FIGURE_JOB_PROCESSOR_US, DISK_JOB_RANDOM_READ_1},
    {"CPU: 4k read, 32 deep", "us", false, FIGURE_JOB_PROCESSOR_US,
     DISK_JOB_RANDOM_READ_32},
    {"CPU: 4k write", "us", false, FIGURE_JOB_PROCESSOR_US, DISK_JOB_RANDOM_WRITE_1},
    {"CPU: 4k write, 32 deep", "us", false, FIGURE_JOB_PROCESSOR_US,
     DISK_JOB_RANDOM_WRITE_32},
    {"CPU: 4k write and fsync", "us", false, FIGURE_JOB_PROCESSOR_US, DISK_JOB_FSYNC},
};

static double step_value(const struct disk_step_figures *step, enum figure figure)
{
    if (figure == FIGURE_STEP_MS)
        return step->latency_us < 0 ? -1 : step->latency_us / 1000;
    if (step->rate < 0)
        return -1;
    return figure == FIGURE_STEP_MIB ? step->rate / KIB : step->rate;
}

static double each(double cost, const struct disk_job_figures *job)
{
    return cost < 0 ? -1 : cost / job->requests;
}

static double job_value(const struct disk_job_figures *job, const struct disk_cost *cost,
                        enum figure figure)
{
    if (!job->known)
        return -1;
    switch (figure) {
    case FIGURE_JOB_MIB:
        return job->bytes / MIB / job->seconds;
    case FIGURE_JOB_REQUESTS:
        return job->requests / job->seconds;
    case FIGURE_JOB_US:
        return each(job->seconds * US_PER_SECOND, job);
    case FIGURE_JOB_EXITS:
        return each(cost->exits, job);
    case FIGURE_JOB_PROCESSOR_US:
        return cost->processor_seconds < 0
                   ? -1
                   : each(cost->processor_seconds * US_PER_SECOND, job);
    case FIGURE_STEP_MIB:
    case FIGURE_STEP_SEEKS:
    case FIGURE_STEP_MS:
        break;
    }
    return -1;
}

/* Negative: not known. */
static double value_of(const struct measure *measure, const struct disk_figures *figures)
{
    if (measure->figure <= FIGURE_STEP_MS)
        return step_value(&figures->steps[measure->of], measure->figure);
    return job_value(&figures->jobs[measure->of], &figures->costs[measure->of],
                     measure->figure);
}

/* ---- who is measured ---- */

/* The ways that are named as the best for QEMU's disks. */
static const struct {
    const char *name;
    const char *engine;
    const char *cache;
} peer_ways[] = {
    {"threads", "threads", "writeback"},
    {"io_uring", "io_uring", "writeback"},
    {"aio", "native", "none"},
};

#define HOST_PROGRAM "host"
#define MAX_SUBJECTS (BENCH_MAX_ACCELS * (1 + BENCH_MAX_ENGINES + ARRAY_SIZE(peer_ways)))

struct disk_bench {
    const struct bench_options *options;
    struct bench_subjects subjects;
    struct disk_subject known[MAX_SUBJECTS]; /* by the index of the subject */
    size_t known_count;
    struct disk_setup setup;
    char *directory; /* owned, as the paths */
    char *image;
    char *kernel;
    char *initramfs;
};

static const char *const all_engines[] = {"sync", "threads", "mmap", "uring", "auto"};

static void add_subjects(struct disk_bench *bench, const char *accel)
{
    const struct bench_options *options = bench->options;
    const bool are_named = options->engine_count > 0;
    const char *const *engines = are_named ? options->engines : all_engines;
    size_t engine_count = are_named ? options->engine_count : ARRAY_SIZE(all_engines);
    struct disk_subject subject = {.place = DISK_ON_HOST,
                                   .program = HOST_PROGRAM,
                                   .way = BENCH_NATIVE_WAY,
                                   .accel = "none",
                                   .beside = accel};

    bench->known[bench->known_count++] = subject;
    subject.place = DISK_IN_HUSK;
    subject.program = "husk";
    subject.accel = accel;
    for (size_t i = 0; i < engine_count; i++) {
        subject.way = subject.engine = engines[i];
        bench->known[bench->known_count++] = subject;
    }
    if (options->peer == NULL)
        return;
    subject.place = DISK_IN_PEER;
    subject.program = bench_file_name(options->peer);
    subject.accel = bench_peer_accel(accel);
    for (size_t i = 0; i < ARRAY_SIZE(peer_ways); i++) {
        subject.way = peer_ways[i].name;
        subject.engine = peer_ways[i].engine;
        subject.cache = peer_ways[i].cache;
        bench->known[bench->known_count++] = subject;
    }
}

static int add_row(struct disk_bench *bench, size_t subject_index, size_t measure_index,
                   struct error *err)
{
    const struct disk_subject *subject = &bench->known[subject_index];
    const struct measure *measure = &measures[measure_index];
    const struct bench_row row = {.group = measure->name,
                                  .program = subject->program,
                                  .way = subject->way,
                                  .accel = subject->accel,
                                  .beside = subject->beside,
                                  .is_peer = subject->place != DISK_IN_HUSK,
                                  .unit = measure->unit,
                                  .more_is_better = measure->more_is_better};

    return bench_subjects_add(&bench->subjects, subject_index, measure_index, &row, err);
}

/* All of an accelerator's come together, measure by measure. */
static int add_rows(struct disk_bench *bench, struct bench_report *report,
                    struct error *err)
{
    for (size_t i = 0; i < bench->options->accel_count; i++)
        add_subjects(bench, bench->options->accels[i]);
    if (bench_subjects_init(&bench->subjects, bench->options, report, bench->known_count,
                            ARRAY_SIZE(measures), err) < 0)
        return err->code;
    for (size_t i = 0; i < bench->options->accel_count; i++)
        for (size_t j = 0; j < ARRAY_SIZE(measures); j++)
            for (size_t k = 0; k < bench->known_count; k++)
                if (bench->known[k].beside == bench->options->accels[i] &&
                    add_row(bench, k, j, err) < 0)
                    return err->code;
    return 0;
}

/* ---- the files ---- */

static int join(char **path, const char *directory, const char *name, struct error *err)
{
    if (asprintf(path, "%s/%s", directory, name) >= 0)
        return 0;
    *path = NULL;
    return error_set(err, ENOMEM, "out of memory for a file name");
}

static uint64_t size_bytes_of(const struct bench_options *options)
{
    return options->size_bytes == 0 ? DEFAULT_SIZE_BYTES : options->size_bytes;
}

static int make_files(struct disk_bench *bench, struct error *err)
{
    char *guest = bench_find_disk_guest(bench->options->guest, err);
    int status = guest == NULL ? err->code : 0;

    if (status == 0)
        status = join(&bench->kernel, guest, "vmlinuz", err);
    if (status == 0)
        status = join(&bench->initramfs, guest, "initramfs", err);
    free(guest);
    if (status < 0)
        return status;
    bench->directory = bench_directory_make(err);
    if (bench->directory == NULL ||
        join(&bench->image, bench->directory, "disk", err) < 0)
        return err->code;
    return disk_image_make(bench->image, IMAGE_BYTES(size_bytes_of(bench->options)), err);
}

static void remove_files(struct disk_bench *bench)
{
    bench_directory_remove(bench->directory);
    free(bench->image);
    free(bench->kernel);
    free(bench->initramfs);
}

/* ---- the runs ---- */

static void tell_part(void *context, const char *part)
{
    const struct disk_bench *bench = context;

    bench_subjects_tell(&bench->subjects, part);
}

static int run_subject(void *context, size_t index, double *values, struct error *err)
{
    struct disk_bench *bench = context;
    struct disk_figures figures;
    int status = disk_run(&bench->setup, &bench->known[index], &figures, err);

    for (size_t i = 0; i < ARRAY_SIZE(measures); i++)
        values[i] = value_of(&measures[i], &figures);
    return status;
}

static void run_all(struct disk_bench *bench)
{
    bench->setup = (struct disk_setup){.options = bench->options,
                                       .directory = bench->directory,
                                       .image = bench->image,
                                       .kernel = bench->kernel,
                                       .initramfs = bench->initramfs,
                                       .size_mib = size_bytes_of(bench->options) / MIB,
                                       .progress = tell_part,
                                       .context = bench};
    bench_subjects_rounds(&bench->subjects, run_subject, bench);
}

int bench_disk(const struct bench_options *options, struct bench_report *report,
               struct error *err)
{
    struct disk_bench bench = {.options = options};

    *report = (struct bench_report){
        .bench = "disk",
        .measure = "fio and bonnie++ on the host and in guests",
        .runs = options->runs,
    };
    if (add_rows(&bench, report, err) == 0 && make_files(&bench, err) == 0)
        run_all(&bench);
    remove_files(&bench);
    bench_subjects_finish(&bench.subjects);
    return err->code;
}
