/* SPDX-License-Identifier: Apache-2.0 */
/* A report as a bar chart: one panel for each accelerator and unit, in which all bars
 * have the same scale. Colours follow the reader's light or dark ground. */
#include <string.h>

#include "bench/bench.h"

/* All in pixels. */
#define WIDTH 860
#define MARGIN 16
#define LABEL_WIDTH 250
#define NUMBER_WIDTH 110
#define BAR_WIDTH (WIDTH - 2 * MARGIN - LABEL_WIDTH - NUMBER_WIDTH)
#define LINE_HEIGHT 20
#define BAR_HEIGHT 13

static const char style[] = "<style>\n"
                            "text { font: 13px sans-serif; fill: #222 }\n"
                            ".title { font-weight: bold }\n"
                            ".note { fill: #666 }\n"
                            ".husk { fill: #1b6fb3 }\n"
                            ".peer { fill: #a9a9a9 }\n"
                            "@media (prefers-color-scheme: dark) {\n"
                            "  text { fill: #ddd }\n"
                            "  .note { fill: #999 }\n"
                            "  .husk { fill: #4fa3e3 }\n"
                            "  .peer { fill: #777 }\n"
                            "}\n"
                            "</style>\n";

struct chart {
    FILE *stream;
    int y; /* base of the next line of text */
};

static void print_escaped(const char *text, FILE *stream)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            (void)fputs("&amp;", stream);
            break;
        case '<':
            (void)fputs("&lt;", stream);
            break;
        case '>':
            (void)fputs("&gt;", stream);
            break;
        default:
            (void)fputc(*text, stream);
            break;
        }
    }
}

static void print_text(const struct chart *chart, int x, const char *class,
                       const char *text)
{
    (void)fprintf(chart->stream, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, chart->y,
                  class);
    print_escaped(text, chart->stream);
    (void)fputs("</text>\n", chart->stream);
}

/* How long its bar is; negative: there is nothing to show. */
static double value_of(const struct bench_report *report, const struct bench_row *row)
{
    double ratio;

    if (row->sample_count == 0)
        return -1;
    if (!report->has_means)
        return bench_statistics(row->samples, row->sample_count).median;
    ratio = bench_ratio(report, row, BENCH_NATIVE_WAY);
    return ratio > 0 ? 1 / ratio : -1;
}

static void print_bar(const struct chart *chart, const struct bench_report *report,
                      const struct bench_row *row, double longest)
{
    const int start = MARGIN + LABEL_WIDTH;
    char text[128];
    const double value = value_of(report, row);
    double width;

    (void)snprintf(text, sizeof(text), "%s %s", row->program, row->way);
    print_text(chart, MARGIN, "row", text);
    if (value < 0) {
        print_text(chart, start, "note", "no result");
        return;
    }
    width = longest > 0 ? value / longest * BAR_WIDTH : 0;
    (void)fprintf(chart->stream,
                  "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" "
                  "class=\"%s\"/>\n",
                  start, chart->y - BAR_HEIGHT + 2, width, BAR_HEIGHT,
                  row->is_peer ? "peer" : "husk");
    (void)snprintf(text, sizeof(text), "%.2f %s", value,
                   report->has_means ? "x" : row->unit);
    print_text(chart, start + (int)width + 6, "row", text);
}

static bool is_in_panel(const struct bench_row *row, const struct bench_row *first)
{
    return strcmp(row->beside, first->beside) == 0 &&
           strcmp(row->unit, first->unit) == 0 &&
           (row->set == NULL || strcmp(row->set, first->set) == 0);
}

static bool starts_panel(const struct bench_report *report, size_t index)
{
    return index == 0 || !is_in_panel(&report->rows[index], &report->rows[index - 1]);
}

static bool starts_group(const struct bench_report *report, size_t index)
{
    return starts_panel(report, index) ||
           strcmp(report->rows[index].group, report->rows[index - 1].group) != 0;
}

/* Of the panel whose first row is `first`. */
static double longest_bar(const struct bench_report *report, size_t first)
{
    double longest = 0;

    for (size_t i = first; i < report->row_count; i++) {
        double value = value_of(report, &report->rows[i]);

        if (!is_in_panel(&report->rows[i], &report->rows[first]))
            break;
        if (value > longest)
            longest = value;
    }
    return longest;
}

static int height_of(const struct bench_report *report)
{
    int lines = 2; /* the title, and air below the last bar */

    for (size_t i = 0; i < report->row_count; i++) {
        lines += 1;
        lines += starts_group(report, i) ? 1 : 0;
        lines += starts_panel(report, i) ? 2 : 0;
    }
    return 2 * MARGIN + lines * LINE_HEIGHT;
}

static void print_panel_title(struct chart *chart, const struct bench_report *report,
                              const struct bench_row *row)
{
    char text[128];

    chart->y += LINE_HEIGHT;
    (void)snprintf(text, sizeof(text), "accelerator %s, %s%s%s", row->beside,
                   row->set == NULL ? "" : row->set, row->set == NULL ? "" : ", ",
                   report->has_means ? "multiples of the host's own time" : row->unit);
    print_text(chart, MARGIN, "title", text);
    chart->y += LINE_HEIGHT;
}

static void print_rows(struct chart *chart, const struct bench_report *report)
{
    double longest = 0;

    for (size_t i = 0; i < report->row_count; i++) {
        const struct bench_row *row = &report->rows[i];

        if (starts_panel(report, i)) {
            longest = longest_bar(report, i);
            print_panel_title(chart, report, row);
        }
        if (starts_group(report, i)) {
            print_text(chart, MARGIN, "note", row->group);
            chart->y += LINE_HEIGHT;
        }
        print_bar(chart, report, row, longest);
        chart->y += LINE_HEIGHT;
    }
}

void bench_print_svg(const struct bench_report *report, FILE *stream)
{
    struct chart chart = {.stream = stream, .y = MARGIN + LINE_HEIGHT};
    const int height = height_of(report);
    char title[256];

    (void)fprintf(stream,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                  "height=\"%d\" viewBox=\"0 0 %d %d\">\n%s",
                  WIDTH, height, WIDTH, height, style);
    (void)snprintf(title, sizeof(title), "%s: %s, median of %zu runs", report->bench,
                   report->measure, report->runs);
    print_text(&chart, MARGIN, "title", title);
    print_rows(&chart, report);
    (void)fputs("</svg>\n", stream);
}
