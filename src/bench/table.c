/* SPDX-License-Identifier: Apache-2.0 */
/* A report as text: a table for each accelerator and thing that was started. */
#include <inttypes.h>
#include <string.h>

#include "bench/bench.h"

#define MAX_PEER_WAYS 8

struct columns {
    const char *peer_ways[MAX_PEER_WAYS];
    size_t peer_way_count;
    bool counters; /* husk told them */
};

static struct columns choose_columns(const struct bench_report *report)
{
    struct columns columns = {.counters = false};

    columns.peer_way_count = bench_peer_ways(report, columns.peer_ways, MAX_PEER_WAYS);
    for (size_t i = 0; i < report->row_count; i++)
        columns.counters |= report->rows[i].counters.known;
    return columns;
}

static void print_heading(const struct columns *columns, const struct bench_row *row,
                          FILE *stream)
{
    (void)fprintf(stream, "\n%s\n%-32s %-5s %4s %9s %9s %9s", row->group, "", "accel",
                  "runs", "median", "mean", "deviation");
    for (size_t i = 0; i < columns->peer_way_count; i++)
        (void)fprintf(stream, " %9s", columns->peer_ways[i]);
    if (columns->counters)
        (void)fprintf(stream, " %10s %12s %10s", "port exits", "fw_cfg bytes",
                      "DMA bytes");
    (void)fputc('\n', stream);
}

static void print_ratios(const struct columns *columns, const struct bench_report *report,
                         const struct bench_row *row, FILE *stream)
{
    for (size_t i = 0; i < columns->peer_way_count; i++) {
        double ratio = bench_ratio(report, row, columns->peer_ways[i]);

        if (ratio < 0)
            (void)fprintf(stream, " %9s", "-");
        else
            (void)fprintf(stream, " %8.2fx", ratio);
    }
}

static void print_row(const struct columns *columns, const struct bench_report *report,
                      const struct bench_row *row, FILE *stream)
{
    struct bench_statistics statistics;
    char name[64];

    (void)snprintf(name, sizeof(name), "%s %s", row->program, row->way);
    (void)fprintf(stream, "%-32s %-5s %4zu", name, row->accel, row->sample_count);
    if (row->sample_count == 0) {
        (void)fprintf(stream, "  %s\n",
                      row->failure[0] == '\0' ? "not measured" : row->failure);
        return;
    }
    statistics = bench_statistics(row->samples, row->sample_count);
    (void)fprintf(stream, " %9.2f %9.2f %9.2f", statistics.median, statistics.mean,
                  statistics.deviation);
    print_ratios(columns, report, row, stream);
    if (row->counters.known)
        (void)fprintf(stream, " %10" PRIu64 " %12" PRIu64 " %10" PRIu64,
                      row->counters.port_exits, row->counters.fw_cfg_port_bytes,
                      row->counters.fw_cfg_dma_bytes);
    (void)fputc('\n', stream);
    if (row->failure[0] != '\0')
        (void)fprintf(stream, "  then: %s\n", row->failure);
}

static bool is_same_table(const struct bench_row *left, const struct bench_row *right)
{
    return strcmp(left->group, right->group) == 0 &&
           strcmp(left->beside, right->beside) == 0;
}

void bench_print_table(const struct bench_report *report, FILE *stream)
{
    const struct columns columns = choose_columns(report);
    const struct bench_row *rows = report->rows;

    (void)fprintf(stream, "%s: %s\n", report->bench, report->measure);
    if (columns.peer_way_count > 0)
        (void)fprintf(stream,
                      "2x below a peer's row: that one's median is twice as long\n");
    for (size_t i = 0; i < report->row_count; i++) {
        if (i == 0 || !is_same_table(&rows[i - 1], &rows[i]))
            print_heading(&columns, &rows[i], stream);
        print_row(&columns, report, &rows[i], stream);
    }
    if (report->interrupted)
        (void)fprintf(stream, "\ninterrupted before all of %zu runs\n", report->runs);
}
