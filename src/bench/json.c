/* SPDX-License-Identifier: Apache-2.0 */
/* A report as one JSON document. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "bench/bench.h"

#define JSON_SCHEMA 1
#define MAX_PEER_WAYS 8

static json_t *samples_of(const struct bench_row *row)
{
    json_t *samples = json_array();

    for (size_t i = 0; i < row->sample_count; i++)
        (void)json_array_append_new(samples, json_real(row->samples[i]));
    return samples;
}

/* A null for each way without a row or samples to compare. */
static json_t *ratios_of(const struct bench_report *report, const struct bench_row *row)
{
    const char *ways[MAX_PEER_WAYS];
    size_t count = bench_peer_ways(report, ways, MAX_PEER_WAYS);
    json_t *ratios = json_object();

    for (size_t i = 0; i < count; i++) {
        double ratio = bench_ratio(report, row, ways[i]);

        (void)json_object_set_new(ratios, ways[i],
                                  ratio < 0 ? json_null() : json_real(ratio));
    }
    return ratios;
}

static json_t *counters_of(const struct bench_counters *counters)
{
    if (!counters->known)
        return json_null();
    return json_pack("{s:I, s:I, s:I}", "port_exits", (json_int_t)counters->port_exits,
                     "fw_cfg_port_bytes", (json_int_t)counters->fw_cfg_port_bytes,
                     "fw_cfg_dma_bytes", (json_int_t)counters->fw_cfg_dma_bytes);
}

static void add_statistics(json_t *object, const struct bench_row *row)
{
    struct bench_statistics statistics = {.median = 0};
    bool known = row->sample_count > 0;

    if (known)
        statistics = bench_statistics(row->samples, row->sample_count);
    (void)json_object_set_new(object, "median",
                              known ? json_real(statistics.median) : json_null());
    (void)json_object_set_new(object, "mean",
                              known ? json_real(statistics.mean) : json_null());
    (void)json_object_set_new(object, "deviation",
                              known ? json_real(statistics.deviation) : json_null());
}

static json_t *row_of(const struct bench_report *report, const struct bench_row *row)
{
    json_t *object = json_pack(
        "{s:s?, s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:b, s:o}", "set", row->set, "group",
        row->group, "program", row->program, "way", row->way, "accel", row->accel,
        "beside", row->beside, "peer", row->is_peer, "unit", row->unit, "more_is_better",
        row->more_is_better, "samples", samples_of(row));

    if (object == NULL)
        return NULL;
    add_statistics(object, row);
    (void)json_object_set_new(object, "ratios", ratios_of(report, row));
    (void)json_object_set_new(object, "counters", counters_of(&row->counters));
    (void)json_object_set_new(object, "failure",
                              row->failure[0] == '\0' ? json_null()
                                                      : json_string(row->failure));
    return object;
}

/* Of the set of `row`, by the peer's ways. */
static json_t *set_ratios_of(const struct bench_report *report,
                             const struct bench_row *row)
{
    const char *ways[MAX_PEER_WAYS];
    size_t count = bench_peer_ways(report, ways, MAX_PEER_WAYS);
    json_t *ratios = json_object();

    for (size_t i = 0; i < count; i++) {
        size_t rows;
        double ratio = bench_set_ratio(report, row, ways[i], &rows);

        (void)json_object_set_new(ratios, ways[i],
                                  ratio < 0 ? json_null() : json_real(ratio));
    }
    return ratios;
}

static bool is_first_of_set(const struct bench_report *report, size_t index)
{
    const struct bench_row *row = &report->rows[index];

    for (size_t i = 0; i < index; i++) {
        const struct bench_row *other = &report->rows[i];

        if (other->set != NULL && strcmp(other->set, row->set) == 0 &&
            strcmp(other->program, row->program) == 0 &&
            strcmp(other->way, row->way) == 0 && strcmp(other->beside, row->beside) == 0)
            return false;
    }
    return true;
}

/* Geometric means, if there are any. */
static json_t *means_of(const struct bench_report *report)
{
    json_t *means = json_array();

    for (size_t i = 0; i < report->row_count; i++) {
        const struct bench_row *row = &report->rows[i];

        if (report->has_means && row->set != NULL && is_first_of_set(report, i))
            (void)json_array_append_new(
                means,
                json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "set", row->set, "program",
                          row->program, "way", row->way, "accel", row->accel, "beside",
                          row->beside, "ratios", set_ratios_of(report, row)));
    }
    return means;
}

/* Null if the rows have not all the same. */
static json_t *common_unit(const struct bench_report *report)
{
    for (size_t i = 1; i < report->row_count; i++)
        if (strcmp(report->rows[i].unit, report->rows[0].unit) != 0)
            return json_null();
    return report->row_count == 0 ? json_null() : json_string(report->rows[0].unit);
}

/* NULL if one cannot be built. */
static json_t *rows_of(const struct bench_report *report)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < report->row_count; i++) {
        if (json_array_append_new(rows, row_of(report, &report->rows[i])) < 0) {
            json_decref(rows);
            return NULL;
        }
    }
    return rows;
}

int bench_print_json(const struct bench_report *report, FILE *stream, struct error *err)
{
    json_t *document = json_pack(
        "{s:i, s:s, s:s, s:o, s:I, s:b, s:o, s:o}", "schema", JSON_SCHEMA, "bench",
        report->bench, "measure", report->measure, "unit", common_unit(report), "runs",
        (json_int_t)report->runs, "interrupted", report->interrupted, "rows",
        rows_of(report), "means", means_of(report));
    int status =
        document == NULL ? -1 : json_dumpf(document, stream, JSON_REAL_PRECISION(6));

    json_decref(document);
    if (status < 0)
        return error_set(err, EIO,
                         "cannot print JSON (out of memory, or a name that is "
                         "not UTF-8)");
    (void)fputc('\n', stream);
    return 0;
}
