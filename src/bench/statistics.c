/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of several runs of the same thing, and of two things. */
#include <emmintrin.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "bench/bench.h"

/* By the instruction: the mathematical library would be one more for the loader to find
 * at each start of husk. */
static double square_root(double value)
{
    const __m128d operand = _mm_set_sd(value);

    return _mm_cvtsd_f64(_mm_sqrt_sd(operand, operand));
}

static int compare(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

static double median_of(const double *samples, size_t count)
{
    double sorted[BENCH_MAX_RUNS];

    memcpy(sorted, samples, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare);
    if (count % 2 == 1)
        return sorted[count / 2];
    return (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static double mean_of(const double *samples, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += samples[i];
    return sum / (double)count;
}

static double deviation_of(const double *samples, size_t count, double mean)
{
    double sum = 0;

    if (count < 2)
        return 0;
    for (size_t i = 0; i < count; i++)
        sum += (samples[i] - mean) * (samples[i] - mean);
    return square_root(sum / (double)(count - 1));
}

struct bench_statistics bench_statistics(const double *samples, size_t count)
{
    struct bench_statistics statistics;

    CHECK(count > 0 && count <= BENCH_MAX_RUNS);
    statistics.median = median_of(samples, count);
    statistics.mean = mean_of(samples, count);
    statistics.deviation = deviation_of(samples, count, statistics.mean);
    return statistics;
}

/* ---- two rows ---- */

static bool is_same_text(const char *left, const char *right)
{
    return left == right || (left != NULL && right != NULL && strcmp(left, right) == 0);
}

bool bench_is_comparable(const struct bench_row *left, const struct bench_row *right)
{
    return is_same_text(left->set, right->set) &&
           strcmp(left->group, right->group) == 0 &&
           strcmp(left->beside, right->beside) == 0;
}

static const struct bench_row *find_peer_row(const struct bench_report *report,
                                             const struct bench_row *row, const char *way)
{
    for (size_t i = 0; i < report->row_count; i++) {
        const struct bench_row *other = &report->rows[i];

        if (other->is_peer && strcmp(other->way, way) == 0 &&
            bench_is_comparable(other, row))
            return other;
    }
    return NULL;
}

double bench_ratio(const struct bench_report *report, const struct bench_row *row,
                   const char *way)
{
    const struct bench_row *other = find_peer_row(report, row, way);
    double median;
    double other_median;

    if (other == NULL || other->sample_count == 0 || row->sample_count == 0)
        return -1;
    median = median_of(row->samples, row->sample_count);
    other_median = median_of(other->samples, other->sample_count);
    if (median <= 0 || other_median <= 0)
        return -1;
    return row->more_is_better ? median / other_median : other_median / median;
}

static double power(double value, size_t exponent)
{
    double product = 1;

    for (size_t i = 0; i < exponent; i++)
        product *= value;
    return product;
}

/* The positive number whose power is `value`, found by halves. */
static double root(double value, size_t degree)
{
    double low = 0;
    double high = value > 1 ? value : 1;

    for (;;) {
        double middle = low + (high - low) / 2;

        if (middle <= low || middle >= high)
            return middle;
        if (power(middle, degree) > value)
            high = middle;
        else
            low = middle;
    }
}

static bool is_same_set(const struct bench_row *left, const struct bench_row *right)
{
    return left->set != NULL && is_same_text(left->set, right->set) &&
           strcmp(left->program, right->program) == 0 &&
           strcmp(left->way, right->way) == 0 && strcmp(left->beside, right->beside) == 0;
}

double bench_set_ratio(const struct bench_report *report, const struct bench_row *row,
                       const char *way, size_t *count)
{
    double product = 1;

    *count = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        double ratio = is_same_set(row, &report->rows[i])
                           ? bench_ratio(report, &report->rows[i], way)
                           : -1;

        if (ratio < 0)
            continue;
        product *= ratio;
        (*count)++;
    }
    return *count == 0 ? -1 : root(product, *count);
}

static bool is_among(const char *word, const char **words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

size_t bench_peer_ways(const struct bench_report *report, const char **ways, size_t room)
{
    size_t count = 0;

    for (size_t i = 0; i < report->row_count && count < room; i++)
        if (report->rows[i].is_peer && !is_among(report->rows[i].way, ways, count))
            ways[count++] = report->rows[i].way;
    return count;
}
