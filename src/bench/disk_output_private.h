/* SPDX-License-Identifier: Apache-2.0 */
/* What disk_measure.sh prints: lines of fio, of bonnie++, and marks of its own around
 * each measurement ("husk-bench begin NAME", "husk-bench end NAME"). */
#ifndef HUSK_BENCH_DISK_OUTPUT_PRIVATE_H
#define HUSK_BENCH_DISK_OUTPUT_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

/* fio's jobs. */
enum disk_job {
    DISK_JOB_SEQUENTIAL_READ,
    DISK_JOB_SEQUENTIAL_WRITE,
    DISK_JOB_RANDOM_READ_1, /* at queue depth 1 */
    DISK_JOB_RANDOM_READ_32,
    DISK_JOB_RANDOM_WRITE_1,
    DISK_JOB_RANDOM_WRITE_32,
    DISK_JOB_FSYNC, /* a write of 4 KiB and fdatasync(2) */
    DISK_JOB_COUNT,
};

/* What bonnie++ measures: KiB or seeks a second, and the longest time of one step. */
enum disk_step {
    DISK_STEP_WRITE,
    DISK_STEP_REWRITE,
    DISK_STEP_READ,
    DISK_STEP_SEEK,
    DISK_STEP_COUNT,
};

struct disk_job_figures {
    bool known;
    double requests;
    double seconds;
    double bytes;
    double processor_seconds; /* of fio itself */
};

/* Negative: not told. */
struct disk_step_figures {
    double rate; /* bonnie++ tells none of what took less than half a second */
    double latency_us;
};

enum disk_mark { DISK_MARK_NONE, DISK_MARK_BEGIN, DISK_MARK_END, DISK_MARK_DONE };

/* Says what mark `line` is, and in *name, within `line`, which measurement's. */
enum disk_mark disk_parse_mark(const char *line, const char **name);

const char *disk_job_name(enum disk_job job);

/* DISK_JOB_COUNT: it is no job's name. */
enum disk_job disk_parse_job_name(const char *name);

/* True if `line` is what fio says of a job, in its terse format of version 3; *job and
 * *figures are then set. */
bool disk_parse_fio(const char *line, enum disk_job *job,
                    struct disk_job_figures *figures);

/* True if `line` is what bonnie++ says, as CSV. */
bool disk_parse_bonnie(const char *line, struct disk_step_figures steps[DISK_STEP_COUNT]);

#endif
