/* SPDX-License-Identifier: Apache-2.0 */
/* A report as a table in which each group is a line and each way of running it a column:
 * the times, as multiples of the host's own, and at the end how they compare. */
#include <string.h>

#include "bench/bench.h"

#define MAX_COLUMNS 16
#define NAME_WIDTH 20
#define TIME_WIDTH 9
#define FACTOR_WIDTH 9
#define PAIR_WIDTH 11

struct matrix {
    const struct bench_report *report;
    const struct bench_row *columns[MAX_COLUMNS]; /* the first row of each */
    size_t column_count;
};

static bool is_same_way(const struct bench_row *left, const struct bench_row *right)
{
    return strcmp(left->program, right->program) == 0 &&
           strcmp(left->way, right->way) == 0 && strcmp(left->beside, right->beside) == 0;
}

static bool is_native(const struct bench_row *row)
{
    return strcmp(row->way, BENCH_NATIVE_WAY) == 0;
}

/* The columns of the table for one of husk's accelerators. */
static void choose_columns(struct matrix *matrix, const char *beside)
{
    matrix->column_count = 0;
    for (size_t i = 0; i < matrix->report->row_count; i++) {
        const struct bench_row *row = &matrix->report->rows[i];
        bool is_known = strcmp(row->beside, beside) != 0;

        for (size_t j = 0; j < matrix->column_count; j++)
            is_known |= is_same_way(matrix->columns[j], row);
        if (!is_known && matrix->column_count < MAX_COLUMNS)
            matrix->columns[matrix->column_count++] = row;
    }
}

/* The row of a column for what `line` is of; NULL: it was left out. */
static const struct bench_row *find_cell(const struct matrix *matrix,
                                         const struct bench_row *column,
                                         const struct bench_row *line)
{
    for (size_t i = 0; i < matrix->report->row_count; i++) {
        const struct bench_row *row = &matrix->report->rows[i];

        if (is_same_way(column, row) && bench_is_comparable(row, line))
            return row;
    }
    return NULL;
}

/* ---- the heading ---- */

/* Calls `print` for each pair of a column of husk's and one of the peer's. */
typedef void print_pair(const struct matrix *matrix, const struct bench_row *husk,
                        const struct bench_row *peer, const struct bench_row *line,
                        FILE *stream);

static void print_pairs(const struct matrix *matrix, print_pair *print,
                        const struct bench_row *line, FILE *stream)
{
    for (size_t i = 0; i < matrix->column_count; i++)
        for (size_t j = 0; j < matrix->column_count; j++)
            if (!matrix->columns[i]->is_peer && matrix->columns[j]->is_peer &&
                !is_native(matrix->columns[j]))
                print(matrix, matrix->columns[i], matrix->columns[j], line, stream);
}

static void print_pair_program(const struct matrix *matrix, const struct bench_row *husk,
                               const struct bench_row *peer, const struct bench_row *line,
                               FILE *stream)
{
    (void)matrix, (void)husk, (void)line;
    (void)fprintf(stream, " %*s", PAIR_WIDTH, peer->way);
}

static void print_pair_way(const struct matrix *matrix, const struct bench_row *husk,
                           const struct bench_row *peer, const struct bench_row *line,
                           FILE *stream)
{
    char text[PAIR_WIDTH + 1];

    (void)matrix, (void)peer, (void)line;
    (void)snprintf(text, sizeof(text), "/%s", husk->way[0] == '\0' ? "husk" : husk->way);
    (void)fprintf(stream, " %*s", PAIR_WIDTH, text);
}

static int width_of(const struct bench_row *column)
{
    return is_native(column) ? TIME_WIDTH : TIME_WIDTH + FACTOR_WIDTH + 1;
}

static void print_heading(const struct matrix *matrix, const char *beside, FILE *stream)
{
    (void)fprintf(stream, "\n%-*s", NAME_WIDTH, beside);
    for (size_t i = 0; i < matrix->column_count; i++)
        (void)fprintf(stream, " %*s", width_of(matrix->columns[i]),
                      matrix->columns[i]->program);
    print_pairs(matrix, print_pair_program, NULL, stream);
    (void)fprintf(stream, "\n%-*s", NAME_WIDTH, "");
    for (size_t i = 0; i < matrix->column_count; i++)
        (void)fprintf(stream, " %*s", width_of(matrix->columns[i]),
                      matrix->columns[i]->way);
    print_pairs(matrix, print_pair_way, NULL, stream);
    (void)fputc('\n', stream);
}

/* ---- its lines ---- */

static void print_factor(double factor, int width, FILE *stream)
{
    if (factor < 0)
        (void)fprintf(stream, " %*s", width, "-");
    else
        (void)fprintf(stream, " %*.2fx", width - 1, factor);
}

/* How many times as long as natively, if natively takes `ratio` times as long. */
static void print_multiple(double ratio, FILE *stream)
{
    print_factor(ratio < 0 ? ratio : 1 / ratio, FACTOR_WIDTH, stream);
}

static void print_pair_ratio(const struct matrix *matrix, const struct bench_row *husk,
                             const struct bench_row *peer, const struct bench_row *line,
                             FILE *stream)
{
    const struct bench_row *row = find_cell(matrix, husk, line);

    print_factor(row == NULL ? -1 : bench_ratio(matrix->report, row, peer->way),
                 PAIR_WIDTH, stream);
}

/* What stands behind a time. */
static void print_remark(const struct matrix *matrix, const struct bench_row *row,
                         FILE *stream)
{
    bool is_measured = row != NULL && row->sample_count > 0;
    char text[32];

    if (matrix->report->has_means) {
        print_multiple(is_measured ? bench_ratio(matrix->report, row, BENCH_NATIVE_WAY)
                                   : -1,
                       stream);
        return;
    }
    (void)snprintf(
        text, sizeof(text), "+-%.2f",
        is_measured ? bench_statistics(row->samples, row->sample_count).deviation : 0);
    (void)fprintf(stream, " %*s", FACTOR_WIDTH, is_measured ? text : "");
}

static void print_cell(const struct matrix *matrix, const struct bench_row *column,
                       const struct bench_row *line, FILE *stream)
{
    const struct bench_row *row = find_cell(matrix, column, line);

    if (row != NULL && row->sample_count > 0)
        (void)fprintf(stream, " %*.2f", TIME_WIDTH,
                      bench_statistics(row->samples, row->sample_count).median);
    else
        (void)fprintf(stream, " %*s", TIME_WIDTH,
                      row != NULL && row->failure[0] != '\0' ? "failed" : "-");
    if (!is_native(column))
        print_remark(matrix, row, stream);
}

static void print_line(const struct matrix *matrix, const struct bench_row *line,
                       FILE *stream)
{
    (void)fprintf(stream, "  %-*s", NAME_WIDTH - 2, line->group);
    for (size_t i = 0; i < matrix->column_count; i++)
        print_cell(matrix, matrix->columns[i], line, stream);
    print_pairs(matrix, print_pair_ratio, line, stream);
    (void)fputc('\n', stream);
}

/* Of `column`, but for the set of another row. */
static double set_ratio(const struct matrix *matrix, const struct bench_row *column,
                        const struct bench_row *line, const char *way)
{
    struct bench_row row = *column;
    size_t count;

    row.set = line->set;
    return bench_set_ratio(matrix->report, &row, way, &count);
}

static void print_pair_mean(const struct matrix *matrix, const struct bench_row *husk,
                            const struct bench_row *peer, const struct bench_row *line,
                            FILE *stream)
{
    print_factor(set_ratio(matrix, husk, line, peer->way), PAIR_WIDTH, stream);
}

/* Of the set that ends with `line`. */
static void print_means(const struct matrix *matrix, const struct bench_row *line,
                        FILE *stream)
{
    if (!matrix->report->has_means || line == NULL)
        return;
    (void)fprintf(stream, "  %-*s", NAME_WIDTH - 2, "geometric mean");
    for (size_t i = 0; i < matrix->column_count; i++) {
        const struct bench_row *column = matrix->columns[i];

        (void)fprintf(stream, " %*s", TIME_WIDTH, "");
        if (!is_native(column))
            print_multiple(set_ratio(matrix, column, line, BENCH_NATIVE_WAY), stream);
    }
    print_pairs(matrix, print_pair_mean, line, stream);
    (void)fputc('\n', stream);
}

static void print_matrix(struct matrix *matrix, const char *beside, FILE *stream)
{
    const struct bench_report *report = matrix->report;
    const struct bench_row *previous = NULL;

    choose_columns(matrix, beside);
    print_heading(matrix, beside, stream);
    for (size_t i = 0; i < report->row_count; i++) {
        const struct bench_row *row = &report->rows[i];

        if (strcmp(row->beside, beside) != 0 ||
            (previous != NULL && bench_is_comparable(previous, row)))
            continue;
        if (previous == NULL || strcmp(previous->set, row->set) != 0) {
            print_means(matrix, previous, stream);
            (void)fprintf(stream, "%s\n", row->set);
        }
        print_line(matrix, row, stream);
        previous = row;
    }
    print_means(matrix, previous, stream);
}

/* ---- the whole ---- */

/* One failure may be that of several rows. */
static bool is_told_already(const struct bench_report *report, size_t index)
{
    const struct bench_row *row = &report->rows[index];

    for (size_t i = 0; i < index; i++)
        if (is_same_way(&report->rows[i], row) &&
            strcmp(report->rows[i].set, row->set) == 0 &&
            strcmp(report->rows[i].failure, row->failure) == 0)
            return true;
    return false;
}

static void print_failures(const struct bench_report *report, FILE *stream)
{
    for (size_t i = 0; i < report->row_count; i++) {
        const struct bench_row *row = &report->rows[i];

        if (row->failure[0] != '\0' && !is_told_already(report, i))
            (void)fprintf(stream, "\n%s, %s, %s%s%s, %s: %s\n", row->set, row->group,
                          row->program, row->way[0] == '\0' ? "" : " ", row->way,
                          row->accel, row->failure);
    }
}

static bool is_first_beside(const struct bench_report *report, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(report->rows[i].beside, report->rows[index].beside) == 0)
            return false;
    return true;
}

void bench_print_matrix(const struct bench_report *report, FILE *stream)
{
    struct matrix matrix = {.report = report};

    (void)fprintf(stream,
                  "%s: %s; medians of %zu runs\n%s; in the last columns 2x: the "
                  "peer took twice as long as husk\n",
                  report->bench, report->measure, report->runs,
                  report->has_means ? "2x: twice as long as natively"
                                    : "+-: standard deviation");
    for (size_t i = 0; i < report->row_count; i++)
        if (is_first_beside(report, i))
            print_matrix(&matrix, report->rows[i].beside, stream);
    print_failures(report, stream);
    if (report->interrupted)
        (void)fprintf(stream, "\ninterrupted before all of %zu runs\n", report->runs);
}
