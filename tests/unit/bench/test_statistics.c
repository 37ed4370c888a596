/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of several samples, and of two rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "bench/bench.h"

/* ---- one row ---- */

static void median_is_the_one_in_the_middle(void **state)
{
    const double samples[] = {9, 1, 5, 100, 2};

    (void)state;
    assert_true(bench_statistics(samples, ARRAY_SIZE(samples)).median == 5);
}

static void median_of_an_even_number_lies_between_two(void **state)
{
    const double samples[] = {9, 1, 5, 2};

    (void)state;
    assert_true(bench_statistics(samples, ARRAY_SIZE(samples)).median == 3.5);
}

static void mean_and_deviation_are_those_of_a_sample(void **state)
{
    /* Sum of squares about the mean of 5 is 32; 32 / 8 is 4. */
    const double samples[] = {1, 5, 5, 5, 5, 5, 5, 5, 9};
    struct bench_statistics statistics = bench_statistics(samples, ARRAY_SIZE(samples));

    (void)state;
    assert_true(statistics.mean == 5);
    assert_true(statistics.deviation == 2);
}

static void a_single_sample_has_no_deviation(void **state)
{
    const double samples[] = {7.25};
    struct bench_statistics statistics = bench_statistics(samples, 1);

    (void)state;
    assert_true(statistics.median == 7.25);
    assert_true(statistics.mean == 7.25);
    assert_true(statistics.deviation == 0);
}

static void samples_stay_in_their_order(void **state)
{
    const double samples[] = {3, 1, 2};

    (void)state;
    (void)bench_statistics(samples, ARRAY_SIZE(samples));
    assert_true(samples[0] == 3 && samples[1] == 1 && samples[2] == 2);
}

static void takes_as_many_samples_as_there_can_be_runs(void **state)
{
    static double samples[BENCH_MAX_RUNS];

    (void)state;
    for (size_t i = 0; i < BENCH_MAX_RUNS; i++)
        samples[i] = (double)(BENCH_MAX_RUNS - i);
    assert_true(bench_statistics(samples, BENCH_MAX_RUNS).median ==
                (BENCH_MAX_RUNS + 1) / 2.0);
}

/* ---- two rows ---- */

static double slow[] = {30, 10, 20};
static double fast[] = {4, 5, 6};

static struct bench_row rows[] = {
    {.group = "small",
     .way = "placed",
     .beside = "soft",
     .unit = "ms",
     .samples = fast,
     .sample_count = 3},
    {.group = "small",
     .way = "q35",
     .beside = "soft",
     .unit = "ms",
     .is_peer = true,
     .samples = slow,
     .sample_count = 3},
    {.group = "small", .way = "microvm", .beside = "soft", .is_peer = true},
    {.group = "large",
     .way = "placed",
     .beside = "soft",
     .unit = "ms",
     .samples = fast,
     .sample_count = 3},
    {.group = "large",
     .way = "microvm",
     .beside = "kvm",
     .unit = "ms",
     .is_peer = true,
     .samples = slow,
     .sample_count = 3},
    {.group = "large", .way = "firmware", .beside = "soft", .unit = "ms"},
};
static const struct bench_report report = {.rows = rows, .row_count = ARRAY_SIZE(rows)};

static void ratio_is_of_the_peers_median_to_the_rows(void **state)
{
    (void)state;
    assert_true(bench_ratio(&report, &rows[0], "q35") == 4);
}

static void a_peer_compared_with_itself_is_as_fast(void **state)
{
    (void)state;
    assert_true(bench_ratio(&report, &rows[1], "q35") == 1);
}

static void
a_ratio_of_what_is_better_if_there_is_more_says_how_many_times_as_much(void **state)
{
    struct bench_row more[] = {rows[0], rows[1]};
    const struct bench_report of_more = {.rows = more, .row_count = ARRAY_SIZE(more)};

    (void)state;
    more[0].more_is_better = true;
    assert_true(bench_ratio(&of_more, &more[0], "q35") == 0.25);
}

static void nothing_is_a_multiple_of_zero(void **state)
{
    double zero[] = {0};
    struct bench_row some[] = {rows[0], rows[1]};
    const struct bench_report of_some = {.rows = some, .row_count = ARRAY_SIZE(some)};

    (void)state;
    some[0].samples = zero;
    some[0].sample_count = 1;
    assert_true(bench_ratio(&of_some, &some[0], "q35") < 0);
    some[1].samples = zero;
    some[1].sample_count = 1;
    assert_true(bench_ratio(&of_some, &some[0], "q35") < 0);
    some[0].more_is_better = true;
    assert_true(bench_ratio(&of_some, &some[0], "q35") < 0);
}

static void there_is_no_ratio_without_samples_on_both_sides(void **state)
{
    (void)state;
    assert_true(bench_ratio(&report, &rows[0], "microvm") < 0);
    assert_true(bench_ratio(&report, &rows[5], "q35") < 0);
}

static void other_things_and_other_accelerators_are_not_compared(void **state)
{
    (void)state;
    assert_true(bench_ratio(&report, &rows[3], "q35") < 0);
    assert_true(bench_ratio(&report, &rows[3], "microvm") < 0);
}

static void peers_ways_are_named_once_and_in_order(void **state)
{
    const char *ways[4];

    (void)state;
    assert_int_equal(bench_peer_ways(&report, ways, ARRAY_SIZE(ways)), 2);
    assert_string_equal(ways[0], "q35");
    assert_string_equal(ways[1], "microvm");
    assert_int_equal(bench_peer_ways(&report, ways, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_is_the_one_in_the_middle),
        cmocka_unit_test(median_of_an_even_number_lies_between_two),
        cmocka_unit_test(mean_and_deviation_are_those_of_a_sample),
        cmocka_unit_test(a_single_sample_has_no_deviation),
        cmocka_unit_test(samples_stay_in_their_order),
        cmocka_unit_test(takes_as_many_samples_as_there_can_be_runs),
        cmocka_unit_test(ratio_is_of_the_peers_median_to_the_rows),
        cmocka_unit_test(a_peer_compared_with_itself_is_as_fast),
        cmocka_unit_test(
            a_ratio_of_what_is_better_if_there_is_more_says_how_many_times_as_much),
        cmocka_unit_test(nothing_is_a_multiple_of_zero),
        cmocka_unit_test(there_is_no_ratio_without_samples_on_both_sides),
        cmocka_unit_test(other_things_and_other_accelerators_are_not_compared),
        cmocka_unit_test(peers_ways_are_named_once_and_in_order),
    };

    return cmocka_run_group_tests_name("bench/statistics", tests, NULL, NULL);
}
