/* SPDX-License-Identifier: Apache-2.0 */
/* In which order rows get their samples, and when a row gets none any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "bench/report_private.h"

struct script {
    char order[64];    /* the rows sampled, as letters */
    char progress[64]; /* "1/6 " ... of the first calls */
    size_t samples_until_interrupt;
};

/* Row 0 is quick, row 1 fails in its second round, row 2 is slow. */
static int sample(void *context, size_t index, double *sample_ms, struct error *err)
{
    struct script *script = context;
    size_t count = strlen(script->order);

    if (count == script->samples_until_interrupt)
        return error_set(err, EINTR, "interrupted");
    script->order[count] = (char)('a' + index);
    if (index == 1 && count > 2)
        return error_set(err, EIO, "it broke");
    *sample_ms = index == 2 ? 5001 : 1;
    return 0;
}

static void note_progress(void *context, size_t done, size_t total, const char *what)
{
    struct script *script = context;
    size_t used = strlen(script->progress);

    if (done < 2)
        (void)snprintf(script->progress + used, sizeof(script->progress) - used,
                       "%zu/%zu %s;", done, total, what);
}

static void measure(struct script *script, struct bench_report *report)
{
    const struct bench_options options = {.progress = note_progress, .context = script};
    struct error err = ERROR_NONE;

    *report = (struct bench_report){.runs = 4};
    for (size_t i = 0; i < 3; i++) {
        const struct bench_row row = {
            .group = "g", .program = "p", .way = i == 0 ? "v" : "w", .accel = "a"};

        assert_int_equal(bench_report_add(report, &row, &err), 0);
    }
    bench_rounds(&options, report, sample, script);
}

static void rows_are_run_in_turn_until_they_fail_or_are_slow(void **state)
{
    struct script script = {.samples_until_interrupt = SIZE_MAX};
    struct bench_report report;

    (void)state;
    measure(&script, &report);
    assert_string_equal(script.order, "abcabcaa");
    assert_int_equal(report.rows[0].sample_count, 4);
    assert_int_equal(report.rows[1].sample_count, 1);
    assert_int_equal(report.rows[2].sample_count, 2);
    assert_string_equal(report.rows[0].failure, "");
    assert_string_equal(report.rows[1].failure, "it broke");
    assert_string_equal(report.rows[2].failure, "");
    assert_false(report.interrupted);
    bench_report_finish(&report);
}

static void an_interrupt_keeps_what_there_is(void **state)
{
    struct script script = {.samples_until_interrupt = 2};
    struct bench_report report;

    (void)state;
    measure(&script, &report);
    assert_string_equal(script.order, "ab");
    assert_true(report.interrupted);
    assert_int_equal(report.rows[1].sample_count, 1);
    assert_int_equal(report.rows[2].sample_count, 0);
    assert_string_equal(report.rows[2].failure, "");
    bench_report_finish(&report);
}

static void progress_says_what_comes_next(void **state)
{
    struct script script = {.samples_until_interrupt = 2};
    struct bench_report report;

    (void)state;
    measure(&script, &report);
    assert_string_equal(script.progress, "0/12 g, p v, a;1/12 g, p w, a;");
    bench_report_finish(&report);
}

static void rows_are_wanted_by_a_part_of_their_names(void **state)
{
    const struct bench_row row = {
        .group = "8 MiB kernel", .program = "husk", .way = "placed", .accel = "soft"};
    struct bench_options options = {.only = NULL};

    (void)state;
    assert_true(bench_row_is_wanted(&options, &row));
    options.only = "kernel, husk placed, so";
    assert_true(bench_row_is_wanted(&options, &row));
    options.only = "Placed";
    assert_false(bench_row_is_wanted(&options, &row));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_run_in_turn_until_they_fail_or_are_slow),
        cmocka_unit_test(an_interrupt_keeps_what_there_is),
        cmocka_unit_test(progress_says_what_comes_next),
        cmocka_unit_test(rows_are_wanted_by_a_part_of_their_names),
    };

    return cmocka_run_group_tests_name("bench/rounds", tests, NULL, NULL);
}
