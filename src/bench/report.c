/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a report, and the rounds in which they get their samples. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report_private.h"

/* A run that takes longer tells little more if it is repeated often: the error of
 * measurement is small beside it. It is for peers on a KVM that emulates. */
#define SLOW_MS 5000.0
#define SLOW_RUNS 2

/* Longer than any. */
#define NAME_BYTES 512

static const char *name_of(const struct bench_row *row, char name[NAME_BYTES])
{
    (void)snprintf(name, NAME_BYTES, "%s%s%s, %s%s%s, %s",
                   row->set == NULL ? "" : row->set, row->set == NULL ? "" : ", ",
                   row->group, row->program, row->way[0] == '\0' ? "" : " ", row->way,
                   row->accel);
    return name;
}

bool bench_row_is_wanted(const struct bench_options *options, const struct bench_row *row)
{
    char name[NAME_BYTES];

    return options->only == NULL || strstr(name_of(row, name), options->only) != NULL;
}

int bench_report_add(struct bench_report *report, const struct bench_row *row,
                     struct error *err)
{
    struct bench_row *rows =
        reallocarray(report->rows, report->row_count + 1, sizeof(*rows));
    double *samples = calloc(report->runs, sizeof(*samples));

    if (rows != NULL)
        report->rows = rows;
    if (rows == NULL || samples == NULL) {
        free(samples);
        return error_set(err, ENOMEM, "out of memory for the results");
    }
    rows[report->row_count] = *row;
    rows[report->row_count].samples = samples;
    report->row_count++;
    return 0;
}

void bench_report_finish(struct bench_report *report)
{
    for (size_t i = 0; i < report->row_count; i++)
        free(report->rows[i].samples);
    free(report->rows);
    free(report->texts);
    *report = (struct bench_report){.rows = NULL};
}

/* ---- rounds ---- */

static bool is_done(const struct bench_report *report, const struct bench_row *row)
{
    if (row->failure[0] != '\0' || row->sample_count >= report->runs)
        return true;
    return row->sample_count >= SLOW_RUNS && row->samples[0] > SLOW_MS;
}

static void tell_progress(const struct bench_options *options,
                          const struct bench_report *report, size_t round, size_t index)
{
    char name[NAME_BYTES];

    if (options->progress == NULL)
        return;
    options->progress(options->context, round * report->row_count + index,
                      report->runs * report->row_count,
                      name_of(&report->rows[index], name));
}

/* 0, or -EINTR. */
static int sample_row(struct bench_row *row, size_t index, bench_sample *sample,
                      void *context)
{
    struct error failure = ERROR_NONE;
    double value = 0;
    int status = sample(context, index, &value, &failure);

    if (status == -EINTR)
        return status;
    if (status < 0)
        (void)snprintf(row->failure, sizeof(row->failure), "%s", failure.text);
    else
        row->samples[row->sample_count++] = value;
    return 0;
}

void bench_rounds(const struct bench_options *options, struct bench_report *report,
                  bench_sample *sample, void *context)
{
    for (size_t round = 0; round < report->runs; round++) {
        for (size_t i = 0; i < report->row_count; i++) {
            if (is_done(report, &report->rows[i]))
                continue;
            tell_progress(options, report, round, i);
            if (sample_row(&report->rows[i], i, sample, context) < 0) {
                report->interrupted = true;
                return;
            }
        }
    }
}
