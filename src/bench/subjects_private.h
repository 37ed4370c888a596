/* SPDX-License-Identifier: Apache-2.0 */
/* Benches of which one run gives several figures: each subject has a row for each
 * measure, and a run of the subject gives all of these a sample. */
#ifndef HUSK_BENCH_SUBJECTS_PRIVATE_H
#define HUSK_BENCH_SUBJECTS_PRIVATE_H

#include "bench/bench.h"

struct bench_subjects {
    const struct bench_options *options;
    struct bench_report *report;
    size_t subject_count;
    size_t measure_count;
    size_t *rows;     /* of the report, by subject and measure; owned */
    size_t *failures; /* of each subject; owned */

    /* While there are rounds: the run among all runs, and a row that stands for it. */
    size_t position;
    const struct bench_row *current;
};

int bench_subjects_init(struct bench_subjects *subjects,
                        const struct bench_options *options, struct bench_report *report,
                        size_t subject_count, size_t measure_count,
                        struct error *err) MUST_CHECK;
void bench_subjects_finish(struct bench_subjects *subjects); /* accepts all-zero */

/* Appends the row to the report if the options let it be measured. */
int bench_subjects_add(struct bench_subjects *subjects, size_t subject, size_t measure,
                       const struct bench_row *row, struct error *err) MUST_CHECK;

/* Runs a subject and sets values[] of those measures that it tells; the others are
 * negative. What it fails with becomes the failure of all its rows, except -EINTR. */
typedef int bench_subject_run(void *context, size_t subject, double *values,
                              struct error *err);

/* For a run that takes long: tells the user which part of it begins. */
void bench_subjects_tell(const struct bench_subjects *subjects, const char *part);

/* Runs all subjects in turn, as often as the report's runs say; one that has failed
 * twice, or of which no row is wanted, is not run. Sets report->interrupted. */
void bench_subjects_rounds(struct bench_subjects *subjects, bench_subject_run *run,
                           void *context);

#endif
