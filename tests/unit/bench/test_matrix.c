/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in sets: their geometric means, and the table of factors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "bench/bench.h"

static double ten[] = {10};
static double twenty[] = {20};
static double forty[] = {40};
static double eighty[] = {80};

#define NATIVE(set_name, group_name, values)                                             \
    {                                                                                    \
        .set = (set_name), .group = (group_name), .program = "host", .way = "native",    \
        .accel = "none", .beside = "soft", .is_peer = true, .unit = "ms",                \
        .samples = (values), .sample_count = 1                                           \
    }
#define HUSK(set_name, group_name, values)                                               \
    {                                                                                    \
        .set = (set_name), .group = (group_name), .program = "husk", .way = "",          \
        .accel = "soft", .beside = "soft", .unit = "ms", .samples = (values),            \
        .sample_count = 1                                                                \
    }
#define PEER(set_name, group_name, values)                                               \
    {                                                                                    \
        .set = (set_name), .group = (group_name), .program = "qemu", .way = "q35",       \
        .accel = "tcg", .beside = "soft", .is_peer = true, .unit = "ms",                 \
        .samples = (values), .sample_count = 1                                           \
    }

static struct bench_row rows[] = {
    NATIVE("integer", "sort", ten),
    HUSK("integer", "sort", twenty),
    PEER("integer", "sort", eighty),
    NATIVE("integer", "calls", ten),
    HUSK("integer", "calls", eighty),
    PEER("integer", "calls", eighty),
    NATIVE("system", "fault", ten),
    HUSK("system", "fault", forty),
    {.set = "system",
     .group = "fault",
     .program = "qemu",
     .way = "q35",
     .accel = "tcg",
     .beside = "soft",
     .is_peer = true,
     .unit = "ms",
     .failure = "no answer within 120.0 s"},
};
static const struct bench_report report = {.bench = "cpu",
                                           .measure = "time, in ms",
                                           .runs = 1,
                                           .has_means = true,
                                           .rows = rows,
                                           .row_count = ARRAY_SIZE(rows)};

/* Rounded: a root is found by halves. */
static long thousandths(double value)
{
    return (long)(value * 1000 + 0.5);
}

static void mean_of_a_set_is_geometric(void **state)
{
    size_t count;

    (void)state;
    /* 10/20 and 10/80 */
    assert_int_equal(thousandths(bench_set_ratio(&report, &rows[1], "native", &count)),
                     250);
    assert_int_equal(count, 2);
    /* 80/20 and 80/80 */
    assert_int_equal(thousandths(bench_set_ratio(&report, &rows[1], "q35", &count)),
                     2000);
    /* 10/80 twice */
    assert_int_equal(thousandths(bench_set_ratio(&report, &rows[2], "native", &count)),
                     125);
}

static void mean_leaves_out_what_failed_and_is_negative_if_nothing_is_left(void **state)
{
    struct bench_row row = rows[1];
    size_t count;

    (void)state;
    assert_true(bench_set_ratio(&report, &rows[7], "q35", &count) < 0);
    assert_int_equal(count, 0);
    row.set = "strings";
    assert_true(bench_set_ratio(&report, &row, "native", &count) < 0);
    row.set = NULL;
    assert_true(bench_set_ratio(&report, &row, "native", &count) < 0);
}

static void table_has_times_factors_means_and_reasons(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    (void)state;
    assert_non_null(stream);
    bench_print_matrix(&report, stream);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(
        text,
        "cpu: time, in ms; medians of 1 runs\n"
        "2x: twice as long as natively; in the last columns 2x: the peer took twice as "
        "long as husk\n"
        "\n"
        "soft                      host                husk                qemu         "
        "q35\n"
        "                        native                                     q35       "
        "/husk\n"
        "integer\n"
        "  sort                   10.00     20.00     2.00x     80.00     8.00x       "
        "4.00x\n"
        "  calls                  10.00     80.00     8.00x     80.00     8.00x       "
        "1.00x\n"
        "  geometric mean                             4.00x               8.00x       "
        "2.00x\n"
        "system\n"
        "  fault                  10.00     40.00     4.00x    failed         -          "
        " "
        "-\n"
        "  geometric mean                             4.00x                   -          "
        " "
        "-\n"
        "\n"
        "system, fault, qemu q35, tcg: no answer within 120.0 s\n");
    free(text);
}

static void json_has_the_means(void **state)
{
    struct error err = ERROR_NONE;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    json_t *document;
    const json_t *means;
    char *mean;

    (void)state;
    assert_non_null(stream);
    assert_int_equal(bench_print_json(&report, stream, &err), 0);
    assert_int_equal(fclose(stream), 0);
    document = json_loads(text, 0, NULL);
    free(text);
    means = json_object_get(document, "means");
    assert_int_equal(json_array_size(means), 6); /* two sets, three programs */
    mean = json_dumps(json_array_get(means, 1), JSON_REAL_PRECISION(6));
    assert_string_equal(mean, "{\"set\": \"integer\", \"program\": \"husk\", \"way\": "
                              "\"\", \"accel\": \"soft\", \"beside\": \"soft\", "
                              "\"ratios\": {\"native\": 0.25, \"q35\": 2.0}}");
    free(mean);
    json_decref(document);
}

static void chart_has_multiples_and_a_panel_for_each_set(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    (void)state;
    assert_non_null(stream);
    bench_print_svg(&report, stream);
    assert_int_equal(fclose(stream), 0);
    assert_non_null(strstr(text, ">accelerator soft, integer, multiples of the host's"));
    assert_non_null(strstr(text, ">accelerator soft, system, multiples of the host's"));
    /* 2 of at most 8 times as long in one panel, 4 of 4 in the other. */
    assert_non_null(strstr(text, "width=\"117.0\" height=\"13\" class=\"husk\"/>"));
    assert_non_null(strstr(text, ">2.00 x</text>"));
    assert_non_null(strstr(text, "width=\"468.0\" height=\"13\" class=\"husk\"/>"));
    assert_non_null(strstr(text, ">no result</text>"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_of_a_set_is_geometric),
        cmocka_unit_test(mean_leaves_out_what_failed_and_is_negative_if_nothing_is_left),
        cmocka_unit_test(table_has_times_factors_means_and_reasons),
        cmocka_unit_test(json_has_the_means),
        cmocka_unit_test(chart_has_multiples_and_a_panel_for_each_set),
    };

    return cmocka_run_group_tests_name("bench/matrix", tests, NULL, NULL);
}
