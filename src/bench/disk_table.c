/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `husk bench disk`: a line for each measure, a column for each program and
 * way. Below it stands how often as good those of husk's are as the peer's best way, and
 * as the host. */
#include <string.h>

#include "bench/benches_private.h"

#define MAX_COLUMNS 24
#define MAX_PEER_WAYS 8
#define NAME_WIDTH 34
#define COLUMN_WIDTH 10

struct columns {
    const struct bench_row *first[MAX_COLUMNS]; /* the first row of each */
    size_t count;
};

static bool is_same_column(const struct bench_row *left, const struct bench_row *right)
{
    return strcmp(left->program, right->program) == 0 &&
           strcmp(left->way, right->way) == 0 && strcmp(left->beside, right->beside) == 0;
}

static struct columns choose_columns(const struct bench_report *report,
                                     const char *beside)
{
    struct columns columns = {.count = 0};

    for (size_t i = 0; i < report->row_count; i++) {
        const struct bench_row *row = &report->rows[i];
        bool is_known = strcmp(row->beside, beside) != 0;

        for (size_t j = 0; j < columns.count; j++)
            is_known |= is_same_column(columns.first[j], row);
        if (!is_known && columns.count < MAX_COLUMNS)
            columns.first[columns.count++] = row;
    }
    return columns;
}

/* NULL: it was left out. */
static const struct bench_row *find_cell(const struct bench_report *report,
                                         const struct bench_row *column,
                                         const char *group)
{
    for (size_t i = 0; i < report->row_count; i++)
        if (is_same_column(column, &report->rows[i]) &&
            strcmp(report->rows[i].group, group) == 0)
            return &report->rows[i];
    return NULL;
}

/* ---- what stands in a column: negative, nothing ---- */

typedef double cell_value(const struct bench_report *report, const struct bench_row *row);

static double median_of(const struct bench_report *report, const struct bench_row *row)
{
    (void)report;
    return row->sample_count == 0
               ? -1
               : bench_statistics(row->samples, row->sample_count).median;
}

static double ratio_to_host(const struct bench_report *report,
                            const struct bench_row *row)
{
    return bench_ratio(report, row, BENCH_NATIVE_WAY);
}

/* The best of the peer's ways is that which the row compares worst with. */
static double ratio_to_peer(const struct bench_report *report,
                            const struct bench_row *row)
{
    const char *ways[MAX_PEER_WAYS];
    size_t count = bench_peer_ways(report, ways, MAX_PEER_WAYS);
    double least = -1;

    for (size_t i = 0; i < count; i++) {
        double ratio = bench_ratio(report, row, ways[i]);

        if (strcmp(ways[i], BENCH_NATIVE_WAY) != 0 && ratio >= 0 &&
            (least < 0 || ratio < least))
            least = ratio;
    }
    return least;
}

/* ---- the parts of a table ---- */

struct part {
    const char *title;
    bool is_comparison; /* of husk's columns alone, where there is something to compare */
    cell_value *value;
};

static bool is_shown(const struct part *part, const struct bench_row *column)
{
    return !part->is_comparison || !column->is_peer;
}

/* How many columns of the same program stand side by side. */
static size_t span_of(const struct columns *columns, size_t first)
{
    size_t end = first + 1;

    while (end < columns->count &&
           strcmp(columns->first[first]->program, columns->first[end]->program) == 0)
        end++;
    return end - first;
}

/* A program's name stands over all of its columns. */
static void print_programs(const struct columns *columns, const struct part *part,
                           FILE *stream)
{
    size_t span;

    for (size_t i = 0; i < columns->count; i += span) {
        int width;

        span = span_of(columns, i);
        width = (int)span * (COLUMN_WIDTH + 1) - 1;
        if (!is_shown(part, columns->first[i]))
            continue;
        if (span == 1)
            (void)fprintf(stream, " %*.*s", width, width, columns->first[i]->program);
        else
            (void)fprintf(stream, "    %-*.*s", width - 3, width - 3,
                          columns->first[i]->program);
    }
}

static void print_heading(const struct columns *columns, const struct part *part,
                          FILE *stream)
{
    (void)fprintf(stream, "\n%-*s", NAME_WIDTH, part->title);
    print_programs(columns, part, stream);
    (void)fprintf(stream, "\n%-*s", NAME_WIDTH, "");
    for (size_t i = 0; i < columns->count; i++)
        if (is_shown(part, columns->first[i]))
            (void)fprintf(stream, " %*s", COLUMN_WIDTH, columns->first[i]->way);
    (void)fputc('\n', stream);
}

static void print_value(const struct part *part, double value, FILE *stream)
{
    if (value < 0)
        (void)fprintf(stream, " %*s", COLUMN_WIDTH, "-");
    else if (part->is_comparison)
        (void)fprintf(stream, " %*.2fx", COLUMN_WIDTH - 1, value);
    else
        (void)fprintf(stream, " %*.*f", COLUMN_WIDTH,
                      value < 10     ? 2
                      : value < 1000 ? 1
                                     : 0,
                      value);
}

static void print_line(const struct bench_report *report, const struct columns *columns,
                       const struct part *part, const struct bench_row *first,
                       FILE *stream)
{
    double values[MAX_COLUMNS];
    bool is_empty = true;
    char name[NAME_WIDTH + 1];

    for (size_t i = 0; i < columns->count; i++) {
        const struct bench_row *row = find_cell(report, columns->first[i], first->group);

        values[i] = row == NULL ? -1 : part->value(report, row);
        is_empty &= values[i] < 0 || !is_shown(part, columns->first[i]);
    }
    if (is_empty && part->is_comparison)
        return;
    (void)snprintf(name, sizeof(name), "%s, %s", first->group, first->unit);
    (void)fprintf(stream, "%-*s", NAME_WIDTH, name);
    for (size_t i = 0; i < columns->count; i++)
        if (is_shown(part, columns->first[i]))
            print_value(part, values[i], stream);
    (void)fputc('\n', stream);
}

/* Rows that have a group in common follow each other. */
static void print_part(const struct bench_report *report, const struct columns *columns,
                       const struct part *part, const char *beside, FILE *stream)
{
    const char *group = "";

    print_heading(columns, part, stream);
    for (size_t i = 0; i < report->row_count; i++) {
        const struct bench_row *row = &report->rows[i];

        if (strcmp(row->beside, beside) != 0 || strcmp(row->group, group) == 0)
            continue;
        group = row->group;
        print_line(report, columns, part, row, stream);
    }
}

/* ---- the whole ---- */

static void print_failures(const struct bench_report *report,
                           const struct columns *columns, FILE *stream)
{
    for (size_t i = 0; i < columns->count; i++) {
        const struct bench_row *column = columns->first[i];

        if (column->failure[0] != '\0')
            (void)fprintf(stream, "%s %s: %s\n", column->program, column->way,
                          column->failure);
    }
    if (report->interrupted)
        (void)fprintf(stream, "interrupted before all of %zu runs\n", report->runs);
}

static bool has_peer(const struct columns *columns)
{
    for (size_t i = 0; i < columns->count; i++)
        if (columns->first[i]->is_peer &&
            strcmp(columns->first[i]->way, BENCH_NATIVE_WAY) != 0)
            return true;
    return false;
}

static void print_table(const struct bench_report *report, const char *beside,
                        FILE *stream)
{
    static const struct part medians = {.title = "", .value = median_of};
    static const struct part to_peer = {.title = "times as good as the peer's best",
                                        .is_comparison = true,
                                        .value = ratio_to_peer};
    static const struct part to_host = {.title = "times as good as on the host",
                                        .is_comparison = true,
                                        .value = ratio_to_host};
    const struct columns columns = choose_columns(report, beside);

    (void)fprintf(stream, "\naccelerator %s\n", beside);
    print_part(report, &columns, &medians, beside, stream);
    if (has_peer(&columns))
        print_part(report, &columns, &to_peer, beside, stream);
    print_part(report, &columns, &to_host, beside, stream);
    print_failures(report, &columns, stream);
}

void bench_print_disk_table(const struct bench_report *report, FILE *stream)
{
    const char *beside = "";

    (void)fprintf(stream, "%s: %s, medians of %zu runs\n", report->bench, report->measure,
                  report->runs);
    for (size_t i = 0; i < report->row_count; i++) {
        if (strcmp(report->rows[i].beside, beside) == 0)
            continue;
        beside = report->rows[i].beside;
        print_table(report, beside, stream);
    }
}
