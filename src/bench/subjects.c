/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that give several figures; see subjects_private.h. */
#include "bench/subjects_private.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench/report_private.h"

#define NO_ROW SIZE_MAX
#define MAX_MEASURES 64

/* A start that fails now and then is to be seen, but shall not cost all figures. */
#define MAX_FAILURES 2

int bench_subjects_init(struct bench_subjects *subjects,
                        const struct bench_options *options, struct bench_report *report,
                        size_t subject_count, size_t measure_count, struct error *err)
{
    CHECK(measure_count <= MAX_MEASURES);
    *subjects = (struct bench_subjects){.options = options,
                                        .report = report,
                                        .subject_count = subject_count,
                                        .measure_count = measure_count};
    subjects->rows = calloc(subject_count * measure_count + 1, sizeof(*subjects->rows));
    subjects->failures = calloc(subject_count + 1, sizeof(*subjects->failures));
    if (subjects->rows == NULL || subjects->failures == NULL)
        return error_set(err, ENOMEM, "out of memory for the rows");
    for (size_t i = 0; i < subject_count * measure_count; i++)
        subjects->rows[i] = NO_ROW;
    return 0;
}

void bench_subjects_finish(struct bench_subjects *subjects)
{
    free(subjects->rows);
    free(subjects->failures);
    *subjects = (struct bench_subjects){.rows = NULL};
}

int bench_subjects_add(struct bench_subjects *subjects, size_t subject, size_t measure,
                       const struct bench_row *row, struct error *err)
{
    CHECK(subject < subjects->subject_count && measure < subjects->measure_count);
    if (!bench_row_is_wanted(subjects->options, row))
        return 0;
    subjects->rows[subject * subjects->measure_count + measure] =
        subjects->report->row_count;
    return bench_report_add(subjects->report, row, err);
}

/* NULL: it is not wanted. */
static struct bench_row *row_of(const struct bench_subjects *subjects, size_t subject,
                                size_t measure)
{
    size_t index = subjects->rows[subject * subjects->measure_count + measure];

    return index == NO_ROW ? NULL : &subjects->report->rows[index];
}

/* One that stands for the subject; NULL: none is wanted, or it has failed too often. */
static const struct bench_row *any_row(const struct bench_subjects *subjects,
                                       size_t subject)
{
    const struct bench_row *row = NULL;

    if (subjects->failures[subject] >= MAX_FAILURES)
        return NULL;
    for (size_t i = 0; row == NULL && i < subjects->measure_count; i++)
        row = row_of(subjects, subject, i);
    return row;
}

void bench_subjects_tell(const struct bench_subjects *subjects, const char *part)
{
    const struct bench_options *options = subjects->options;
    const struct bench_row *row = subjects->current;
    char text[512];

    if (options->progress == NULL)
        return;
    (void)snprintf(text, sizeof(text), "%s%s%s %s, %s%s%s",
                   row->set == NULL ? "" : row->set, row->set == NULL ? "" : ", ",
                   row->program, row->way, row->accel, part[0] == '\0' ? "" : ": ", part);
    options->progress(options->context, subjects->position,
                      subjects->report->runs * subjects->subject_count, text);
}

/* 0, or -EINTR. */
static int run_subject(struct bench_subjects *subjects, size_t subject,
                       bench_subject_run *run, void *context)
{
    double values[MAX_MEASURES];
    struct error failure = ERROR_NONE;
    int status;

    for (size_t i = 0; i < subjects->measure_count; i++)
        values[i] = -1;
    status = run(context, subject, values, &failure);
    if (status == -EINTR)
        return status;
    subjects->failures[subject] += status < 0 ? 1 : 0;
    for (size_t i = 0; i < subjects->measure_count; i++) {
        struct bench_row *row = row_of(subjects, subject, i);

        if (row != NULL && values[i] >= 0)
            row->samples[row->sample_count++] = values[i];
        if (row != NULL && status < 0)
            (void)snprintf(row->failure, sizeof(row->failure), "%s", failure.text);
    }
    return 0;
}

void bench_subjects_rounds(struct bench_subjects *subjects, bench_subject_run *run,
                           void *context)
{
    for (size_t round = 0; round < subjects->report->runs; round++) {
        for (size_t i = 0; i < subjects->subject_count; i++) {
            subjects->position = round * subjects->subject_count + i;
            subjects->current = any_row(subjects, i);
            if (subjects->current == NULL)
                continue;
            bench_subjects_tell(subjects, "");
            if (run_subject(subjects, i, run, context) < 0) {
                subjects->report->interrupted = true;
                return;
            }
        }
    }
}
