/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measurements of husk beside another monitor.
 *
 * A bench is a list of rows: each is one program, started in one way, to do one thing.
 * All rows are run in turn, round by round, so that what else the host does meets all of
 * them; what can be compared is therefore the ratio of two rows, not a row of today with
 * one of yesterday. husk is measured as a user starts it, as a process of its own.
 */
#ifndef HUSK_BENCH_BENCH_H
#define HUSK_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define BENCH_MAX_RUNS 1000
#define BENCH_MAX_ACCELS 4
#define BENCH_MAX_TIERS 4
#define BENCH_MAX_ENGINES 8
#define BENCH_MAX_TOGETHER 16
#define BENCH_MAX_INSTANCE_COUNTS 8
#define BENCH_MAX_INSTANCES 256
#define BENCH_MIN_SIZE_BYTES (UINT64_C(16) << 20)
#define BENCH_MAX_SIZE_BYTES (UINT64_C(64) << 30)

struct bench_options {
    const char *husk;                     /* the program to measure */
    const char *peer;                     /* the one to compare it with; NULL: none */
    size_t runs;                          /* 1 to BENCH_MAX_RUNS */
    const char *accels[BENCH_MAX_ACCELS]; /* husk's names */
    size_t accel_count;
    const char *tiers[BENCH_MAX_TIERS]; /* values of an accelerator's option "tier" */
    size_t tier_count;                  /* 0: without that option */
    const char *kernel;                 /* stock kernel to boot; NULL: looked for */
    const char *programs;               /* names, by commas; NULL: all */
    unsigned together;   /* run programs so many times at once, too; 0: not */
    bool processor_time; /* measure that, not how long it takes by the clock */
    const char *engines[BENCH_MAX_ENGINES]; /* of disks */
    size_t engine_count;
    size_t instances[BENCH_MAX_INSTANCE_COUNTS]; /* numbers of them, each up to */
    size_t instance_count;                       /* BENCH_MAX_INSTANCES */
    const char *guest;   /* directory of a bench's guest; NULL: looked for */
    uint64_t size_bytes; /* of what is read and written; 0: as the bench likes */
    const char *only; /* leave out rows whose name does not have this in it; NULL: none */
    int interrupt_fd; /* readable: end what runs and stop measuring; -1: none */
    /* Called before each run with the row's name; NULL: not. */
    void (*progress)(void *context, size_t done, size_t total, const char *name);
    void *context;
};

/* What husk has counted in a guest. */
struct bench_counters {
    bool known;
    uint64_t port_exits;
    uint64_t fw_cfg_port_bytes;
    uint64_t fw_cfg_dma_bytes;
};

/* Texts are borrowed by the report: they live as long as the program. The name of a row
 * is "GROUP, PROGRAM WAY, ACCEL", with "SET, " in front if it is in one. */
struct bench_row {
    const char *set;     /* of groups that belong together: "integer"; NULL: none */
    const char *group;   /* what was started: "8 MiB kernel" */
    const char *program; /* "husk", or the peer's file name */
    const char *way;     /* how: "placed", "q35 dma"; "": there is but one */
    const char *accel;   /* the program's own name for it */
    const char *beside;  /* husk's accelerator with which it is compared */
    bool is_peer;
    const char *unit;    /* of the samples: "ms" */
    bool more_is_better; /* as of "MiB/s" */
    double *samples;     /* owned */
    size_t sample_count;
    struct bench_counters counters; /* of the last run */
    char failure[ERROR_TEXT_BYTES]; /* why there are no more samples; "": nothing */
};

struct bench_report {
    const char *bench;   /* its name */
    const char *measure; /* what the numbers are */
    size_t runs;         /* asked for */
    bool interrupted;
    bool has_means;         /* of the ratios in a set */
    char *texts;            /* of the rows, as far as they were made for it; owned */
    struct bench_row *rows; /* owned */
    size_t row_count;
};

typedef int bench_function(const struct bench_options *options,
                           struct bench_report *report, struct error *err);

struct bench {
    const char *name;
    const char *summary; /* one line */
    size_t runs;         /* how many there are unless told otherwise, */
    const char *accels;  /* and of which accelerators */
    /* Of the options that not every bench takes, those it does: "--kernel". Ends with
     * NULL; NULL: none. */
    const char *const *options;
    /* Fills the report. A row that cannot be measured says why and is no error. */
    bench_function *run;
    void (*print_table)(const struct bench_report *report, FILE *stream);
};

/* All of them; the last one's name is NULL. */
extern const struct bench benches[];

const struct bench *bench_find(const char *name); /* NULL: there is none */

void bench_report_finish(struct bench_report *report); /* accepts an all-zero struct */

/* ---- numbers ---- */

/* Over the samples of a row that has some. */
struct bench_statistics {
    double median;
    double mean;
    double deviation; /* standard deviation of the sample; 0 for a single one */
};
struct bench_statistics bench_statistics(const double *samples, size_t count);

/* How many times as long as `row` the row of the peer's `way` took, by their medians; how
 * many times as much `row` has, if more is better. Negative if there is no such row for
 * the same thing, one of them has no samples, or is 0. */
double bench_ratio(const struct bench_report *report, const struct bench_row *row,
                   const char *way);

/* Whether both are of the same thing: set, group and accelerator. */
bool bench_is_comparable(const struct bench_row *left, const struct bench_row *right);

/* The way of the row that others are compared with as multiples: the host's own. */
#define BENCH_NATIVE_WAY "native"

/* The geometric mean of such ratios over all rows of the set of `row` that are measured
 * the same way; *count gets how many there are. Negative if there are none. */
double bench_set_ratio(const struct bench_report *report, const struct bench_row *row,
                       const char *way, size_t *count);

/* The peer's ways in the order of their first rows; returns how many there are, at most
 * `room`. */
size_t bench_peer_ways(const struct bench_report *report, const char **ways, size_t room);

/* ---- printing ---- */

void bench_print_table(const struct bench_report *report, FILE *stream);

/* One line, {"schema":1,...} (docs/benchmarks.md). */
int bench_print_json(const struct bench_report *report, FILE *stream,
                     struct error *err) MUST_CHECK;

/* One line for each group: the times of all programs side by side, as factors, with the
 * geometric mean of each set. */
void bench_print_matrix(const struct bench_report *report, FILE *stream);

/* A bar chart of the medians, readable on light and dark ground. */
void bench_print_svg(const struct bench_report *report, FILE *stream);

#endif
