/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplication of matrices of doubles, two at a time in SSE2's registers. */
#include <emmintrin.h>

#include "programs.h"

#define SIDE 128
#define ROUNDS 40

static double left[SIDE][SIDE] __attribute__((aligned(16)));
static double right[SIDE][SIDE] __attribute__((aligned(16)));
static double product[SIDE][SIDE] __attribute__((aligned(16)));

/* Small integers: all sums are exact, so their order does not matter. */
void prepare_matrix(void)
{
    uint64_t state = RANDOM_SEED;

    for (size_t i = 0; i < SIDE; i++) {
        for (size_t j = 0; j < SIDE; j++) {
            left[i][j] = (double)(random_next(&state) % 1000);
            right[i][j] = (double)(random_next(&state) % 1000);
        }
    }
}

static void add_row(double *sums, double factor, const double *row)
{
    const __m128d factors = _mm_set1_pd(factor);

    for (size_t i = 0; i < SIDE; i += 2)
        _mm_store_pd(sums + i, _mm_add_pd(_mm_load_pd(sums + i),
                                          _mm_mul_pd(factors, _mm_load_pd(row + i))));
}

uint64_t run_matrix(void)
{
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < SIDE; i++)
            for (size_t j = 0; j < SIDE; j++)
                add_row(product[i], left[i][j], right[j]);
    return checksum(product, sizeof(product));
}
