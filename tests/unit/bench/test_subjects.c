/* SPDX-License-Identifier: Apache-2.0 */
/* Which subjects are run when, and what their rows get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "bench/subjects_private.h"

#define SUBJECTS 3
#define MEASURES 2

struct script {
    char order[64]; /* the subjects that were run, as letters */
    char progress[64];
    size_t runs_until_interrupt;
};

/* Subject 0 tells all, subject 1 only its second figure, subject 2 fails each time after
 * its first figure. */
static int run(void *context, size_t subject, double *values, struct error *err)
{
    struct script *script = context;
    size_t count = strlen(script->order);

    if (count == script->runs_until_interrupt)
        return error_set(err, EINTR, "interrupted");
    script->order[count] = (char)('a' + subject);
    if (subject != 1)
        values[0] = 10 + (double)count;
    if (subject == 2)
        return error_set(err, EIO, "it broke");
    values[1] = 20;
    return 0;
}

static void note_progress(void *context, size_t done, size_t total, const char *what)
{
    struct script *script = context;

    if (done == 1)
        (void)snprintf(script->progress, sizeof(script->progress), "%zu/%zu %s", done,
                       total, what);
}

static void measure(struct script *script, const char *only, struct bench_report *report)
{
    const struct bench_options options = {
        .only = only, .progress = note_progress, .context = script};
    struct bench_subjects subjects;
    struct error err = ERROR_NONE;
    static const char *const names[] = {"a", "b", "c"};
    static const char *const marks[] = {"first", "second"};

    *report = (struct bench_report){.runs = 3};
    assert_int_equal(
        bench_subjects_init(&subjects, &options, report, SUBJECTS, MEASURES, &err), 0);
    for (size_t j = 0; j < MEASURES; j++)
        for (size_t i = 0; i < SUBJECTS; i++) {
            const struct bench_row row = {.set = "s",
                                          .group = marks[j],
                                          .program = "p",
                                          .way = names[i],
                                          .accel = "t"};

            assert_int_equal(bench_subjects_add(&subjects, i, j, &row, &err), 0);
        }
    bench_subjects_rounds(&subjects, run, script);
    bench_subjects_finish(&subjects);
}

static void one_run_gives_a_sample_to_each_row_that_it_tells(void **state)
{
    struct script script = {.runs_until_interrupt = SIZE_MAX};
    struct bench_report report;

    (void)state;
    measure(&script, NULL, &report);
    assert_string_equal(script.order, "abcabcab");
    assert_string_equal(script.progress, "1/9 s, p b, t");
    assert_int_equal(report.row_count, SUBJECTS * MEASURES);
    assert_int_equal(report.rows[0].sample_count, 3);
    assert_true(report.rows[0].samples[1] == 13);
    assert_int_equal(report.rows[1].sample_count, 0);
    assert_string_equal(report.rows[1].failure, "");
    assert_int_equal(report.rows[3].sample_count, 3);
    assert_int_equal(report.rows[4].sample_count, 3);
    assert_false(report.interrupted);
    bench_report_finish(&report);
}

static void who_fails_twice_is_not_run_again_and_keeps_what_it_told(void **state)
{
    struct script script = {.runs_until_interrupt = SIZE_MAX};
    struct bench_report report;

    (void)state;
    measure(&script, NULL, &report);
    assert_int_equal(report.rows[2].sample_count, 2);
    assert_int_equal(report.rows[5].sample_count, 0);
    assert_string_equal(report.rows[2].failure, "it broke");
    assert_string_equal(report.rows[5].failure, "it broke");
    bench_report_finish(&report);
}

static void a_subject_without_a_wanted_row_is_not_run(void **state)
{
    struct script script = {.runs_until_interrupt = SIZE_MAX};
    struct bench_report report;

    (void)state;
    measure(&script, "s, second, p b, t", &report);
    assert_string_equal(script.order, "bbb");
    assert_int_equal(report.row_count, 1);
    assert_int_equal(report.rows[0].sample_count, 3);
    bench_report_finish(&report);
}

static void an_interrupt_keeps_what_there_is(void **state)
{
    struct script script = {.runs_until_interrupt = 4};
    struct bench_report report;

    (void)state;
    measure(&script, NULL, &report);
    assert_string_equal(script.order, "abca");
    assert_true(report.interrupted);
    assert_int_equal(report.rows[0].sample_count, 2);
    bench_report_finish(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_run_gives_a_sample_to_each_row_that_it_tells),
        cmocka_unit_test(who_fails_twice_is_not_run_again_and_keeps_what_it_told),
        cmocka_unit_test(a_subject_without_a_wanted_row_is_not_run),
        cmocka_unit_test(an_interrupt_keeps_what_there_is),
    };

    return cmocka_run_group_tests_name("bench/subjects", tests, NULL, NULL);
}
