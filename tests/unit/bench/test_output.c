/* SPDX-License-Identifier: Apache-2.0 */
/* A small report as table, JSON and SVG. */
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

static double fast[] = {4, 5, 9};
static double slow[] = {20, 30};

static struct bench_row rows[] = {
    {.group = "8 MiB & more",
     .program = "husk",
     .way = "placed",
     .accel = "soft",
     .beside = "soft",
     .unit = "ms",
     .samples = fast,
     .sample_count = 3,
     .counters = {.known = true,
                  .port_exits = 41,
                  .fw_cfg_port_bytes = 36,
                  .fw_cfg_dma_bytes = 208080}},
    {.group = "8 MiB & more",
     .program = "husk",
     .way = "firmware",
     .accel = "soft",
     .beside = "soft",
     .unit = "ms",
     .failure = "no \"SeaBIOS\" <here>"},
    {.group = "8 MiB & more",
     .program = "qemu",
     .way = "q35 dma",
     .accel = "tcg",
     .beside = "soft",
     .unit = "ms",
     .is_peer = true,
     .samples = slow,
     .sample_count = 2,
     .failure = "no line within 60.0 s"},
    {
        .group = "8 MiB & more",
        .program = "husk",
        .way = "placed",
        .accel = "kvm",
        .beside = "kvm",
        .unit = "ms",
    },
};

static struct bench_report make_report(size_t row_count)
{
    return (struct bench_report){.bench = "example",
                                 .measure = "time, in ms",
                                 .runs = 3,
                                 .rows = rows,
                                 .row_count = row_count};
}

static char *text_of(const struct bench_report *report,
                     void (*print)(const struct bench_report *report, FILE *stream))
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    print(report, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static json_t *json_of(const struct bench_report *report)
{
    struct error err = ERROR_NONE;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    json_t *document;

    assert_non_null(stream);
    assert_int_equal(bench_print_json(report, stream, &err), 0);
    assert_int_equal(fclose(stream), 0);
    assert_ptr_equal(strchr(text, '\n'), text + size - 1); /* one line */
    document = json_loads(text, 0, NULL);
    free(text);
    assert_true(json_is_object(document));
    return document;
}

/* ---- table ---- */

static void table_has_statistics_ratios_and_counters_or_the_reason(void **state)
{
    struct bench_report report = make_report(ARRAY_SIZE(rows));
    char *text = text_of(&report, bench_print_table);

    (void)state;
    assert_string_equal(
        text, "example: time, in ms\n"
              "2x below a peer's row: that one's median is twice as long\n"
              "\n"
              "8 MiB & more\n"
              "                                 accel runs    median      mean deviation"
              "   q35 dma port exits fw_cfg bytes  DMA bytes\n"
              "husk placed                      soft     3      5.00      6.00      2.65"
              "     5.00x         41           36     208080\n"
              "husk firmware                    soft     0  no \"SeaBIOS\" <here>\n"
              "qemu q35 dma                     tcg      2     25.00     25.00      7.07"
              "     1.00x\n"
              "  then: no line within 60.0 s\n"
              "\n"
              "8 MiB & more\n"
              "                                 accel runs    median      mean deviation"
              "   q35 dma port exits fw_cfg bytes  DMA bytes\n"
              "husk placed                      kvm      0  not measured\n");
    free(text);
}

static void table_without_peer_and_counters_has_no_columns_for_them(void **state)
{
    struct bench_row row = rows[0];
    struct bench_report report = make_report(1);
    char *text;

    (void)state;
    row.counters.known = false;
    report.rows = &row;
    report.interrupted = true;
    text = text_of(&report, bench_print_table);
    assert_string_equal(
        text,
        "example: time, in ms\n"
        "\n"
        "8 MiB & more\n"
        "                                 accel runs    median      mean deviation\n"
        "husk placed                      soft     3      5.00      6.00      2.65\n"
        "\n"
        "interrupted before all of 3 runs\n");
    free(text);
}

/* ---- JSON ---- */

static void assert_json(const json_t *value, const char *expected)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));

    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void json_has_one_schema_for_all_benches(void **state)
{
    struct bench_report report = make_report(0);
    json_t *document = json_of(&report);

    (void)state;
    assert_json(document, "{\"schema\": 1, \"bench\": \"example\", \"measure\": "
                          "\"time, in ms\", \"unit\": null, \"runs\": 3, "
                          "\"interrupted\": false, \"rows\": [], \"means\": []}");
    json_decref(document);
}

static void json_rows_have_everything_known_and_null_for_the_rest(void **state)
{
    struct bench_report report = make_report(ARRAY_SIZE(rows));
    json_t *document = json_of(&report);
    const json_t *array = json_object_get(document, "rows");

    (void)state;
    assert_int_equal(json_array_size(array), ARRAY_SIZE(rows));
    assert_json(
        json_array_get(array, 0),
        "{\"set\": null, \"group\": \"8 MiB & more\", \"program\": \"husk\", \"way\": "
        "\"placed\", \"accel\": \"soft\", \"beside\": \"soft\", \"peer\": false, "
        "\"unit\": \"ms\", \"more_is_better\": false, \"samples\": [4.0, 5.0, "
        "9.0], \"median\": 5.0, \"mean\": 6.0, "
        "\"deviation\": 2.64575, \"ratios\": {\"q35 dma\": 5.0}, \"counters\": "
        "{\"port_exits\": 41, \"fw_cfg_port_bytes\": 36, \"fw_cfg_dma_bytes\": "
        "208080}, \"failure\": null}");
    assert_json(
        json_array_get(array, 1),
        "{\"set\": null, \"group\": \"8 MiB & more\", \"program\": \"husk\", \"way\": "
        "\"firmware\", \"accel\": \"soft\", \"beside\": \"soft\", \"peer\": "
        "false, \"unit\": \"ms\", \"more_is_better\": false, \"samples\": [], "
        "\"median\": null, \"mean\": null, "
        "\"deviation\": null, \"ratios\": {\"q35 dma\": null}, \"counters\": "
        "null, \"failure\": \"no \\\"SeaBIOS\\\" <here>\"}");
    json_decref(document);
}

static void a_name_that_is_no_utf_8_is_an_error_and_no_broken_document(void **state)
{
    struct bench_row row = rows[0];
    struct bench_report report = make_report(1);
    struct error err = ERROR_NONE;
    FILE *stream = fopen("/dev/null", "w");

    (void)state;
    row.program = "\xff";
    report.rows = &row;
    assert_non_null(stream);
    assert_true(bench_print_json(&report, stream, &err) < 0);
    assert_string_equal(err.text, "cannot print JSON (out of memory, or a name that is "
                                  "not UTF-8)");
    assert_int_equal(fclose(stream), 0);
}

/* ---- SVG ---- */

static size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

static void svg_has_a_bar_for_each_row_with_samples(void **state)
{
    struct bench_report report = make_report(ARRAY_SIZE(rows));
    char *text = text_of(&report, bench_print_svg);

    (void)state;
    assert_int_equal(occurrences(text, "<rect "), 2);
    assert_int_equal(occurrences(text, "class=\"husk\"/>"), 1);
    assert_int_equal(occurrences(text, "class=\"peer\"/>"), 1);
    assert_int_equal(occurrences(text, ">no result</text>"), 2);
    assert_int_equal(occurrences(text, ">5.00 ms</text>"), 1);
    assert_int_equal(occurrences(text, ">25.00 ms</text>"), 1);
    free(text);
}

static void svg_bars_of_one_accelerator_have_one_scale(void **state)
{
    struct bench_report report = make_report(ARRAY_SIZE(rows));
    char *text = text_of(&report, bench_print_svg);

    (void)state;
    assert_non_null(strstr(text, "width=\"93.6\" height=\"13\" class=\"husk\""));
    assert_non_null(strstr(text, "width=\"468.0\" height=\"13\" class=\"peer\""));
    assert_int_equal(occurrences(text, ">accelerator soft, ms</text>"), 1);
    assert_int_equal(occurrences(text, ">accelerator kvm, ms</text>"), 1);
    free(text);
}

static void svg_bars_of_another_unit_have_a_scale_of_their_own(void **state)
{
    struct bench_row two[] = {rows[0], rows[2]};
    struct bench_report report = make_report(ARRAY_SIZE(two));
    char *text;

    (void)state;
    two[1].unit = "MiB/s";
    report.rows = two;
    text = text_of(&report, bench_print_svg);
    assert_non_null(strstr(text, "width=\"468.0\" height=\"13\" class=\"husk\""));
    assert_non_null(strstr(text, "width=\"468.0\" height=\"13\" class=\"peer\""));
    assert_int_equal(occurrences(text, ">accelerator soft, ms</text>"), 1);
    assert_int_equal(occurrences(text, ">accelerator soft, MiB/s</text>"), 1);
    assert_int_equal(occurrences(text, ">25.00 MiB/s</text>"), 1);
    free(text);
}

static void svg_follows_the_readers_ground_and_escapes_names(void **state)
{
    struct bench_report report = make_report(1);
    char *text = text_of(&report, bench_print_svg);

    (void)state;
    assert_non_null(strstr(text, "@media (prefers-color-scheme: dark)"));
    assert_non_null(strstr(text, ">8 MiB &amp; more</text>"));
    assert_null(strstr(text, "& "));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_has_statistics_ratios_and_counters_or_the_reason),
        cmocka_unit_test(table_without_peer_and_counters_has_no_columns_for_them),
        cmocka_unit_test(json_has_one_schema_for_all_benches),
        cmocka_unit_test(json_rows_have_everything_known_and_null_for_the_rest),
        cmocka_unit_test(a_name_that_is_no_utf_8_is_an_error_and_no_broken_document),
        cmocka_unit_test(svg_has_a_bar_for_each_row_with_samples),
        cmocka_unit_test(svg_bars_of_one_accelerator_have_one_scale),
        cmocka_unit_test(svg_bars_of_another_unit_have_a_scale_of_their_own),
        cmocka_unit_test(svg_follows_the_readers_ground_and_escapes_names),
    };

    return cmocka_run_group_tests_name("bench/output", tests, NULL, NULL);
}
