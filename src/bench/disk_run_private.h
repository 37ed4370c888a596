/* SPDX-License-Identifier: Apache-2.0 */
/* One run of disk_measure.sh, on the host or in a guest. */
#ifndef HUSK_BENCH_DISK_RUN_PRIVATE_H
#define HUSK_BENCH_DISK_RUN_PRIVATE_H

#include "bench/bench.h"
#include "bench/disk_output_private.h"

/* Where it is measured. */
enum disk_place { DISK_ON_HOST, DISK_IN_HUSK, DISK_IN_PEER };

struct disk_subject {
    enum disk_place place;
    const char *program; /* as in a report */
    const char *way;
    const char *accel;
    const char *beside;
    const char *engine; /* husk's; the peer's aio= */
    const char *cache;  /* the peer's cache= */
};

struct disk_setup {
    const struct bench_options *options;
    const char *directory; /* empty but for the files below; what runs leave is removed */
    const char *image;
    const char *kernel;
    const char *initramfs;
    uint64_t size_mib; /* of what is read and written */
    /* Called when the next measurement begins; NULL: not. */
    void (*progress)(void *context, const char *measurement);
    void *context;
};

/* What a job costs the host. Negative: unknown. */
struct disk_cost {
    double processor_seconds; /* of the whole process, guest included */
    double exits;             /* of vCPUs to husk */
};

struct disk_figures {
    struct disk_job_figures jobs[DISK_JOB_COUNT];
    struct disk_cost costs[DISK_JOB_COUNT];
    struct disk_step_figures steps[DISK_STEP_COUNT];
};

int disk_run(const struct disk_setup *setup, const struct disk_subject *subject,
             struct disk_figures *figures, struct error *err) MUST_CHECK;

#endif
