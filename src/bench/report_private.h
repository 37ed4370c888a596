/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a report: its rows first, then their samples round by round. */
#ifndef HUSK_BENCH_REPORT_PRIVATE_H
#define HUSK_BENCH_REPORT_PRIVATE_H

#include "bench/bench.h"

/* Whether the options let it be measured. */
bool bench_row_is_wanted(const struct bench_options *options,
                         const struct bench_row *row);

/* Appends a row with the texts and flags of *row, with room for the report's runs. */
int bench_report_add(struct bench_report *report, const struct bench_row *row,
                     struct error *err) MUST_CHECK;

/* Takes one sample of report->rows[index] into *value. What it fails with becomes the
 * row's failure, except -EINTR. */
typedef int bench_sample(void *context, size_t index, double *value, struct error *err);

/* Runs all rows in turn, as often as the report's runs say; one that has failed is not
 * run again, and one that takes long only SLOW_RUNS times. Sets report->interrupted. */
void bench_rounds(const struct bench_options *options, struct bench_report *report,
                  bench_sample *sample, void *context);

#endif
