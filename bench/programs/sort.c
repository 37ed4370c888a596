/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's qsort: calls through a pointer, and branches that nobody foresees. */
#include <stdlib.h>
#include <string.h>

#include "programs.h"

#define COUNT 150000
#define ROUNDS 2

static uint64_t unsorted[COUNT];
static uint64_t numbers[COUNT];

static int compare(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;

    return (*a > *b) - (*a < *b);
}

void prepare_sort(void)
{
    uint64_t state = RANDOM_SEED;

    for (size_t i = 0; i < COUNT; i++)
        unsorted[i] = random_next(&state);
}

uint64_t run_sort(void)
{
    uint64_t sum = 0;

    for (int round = 0; round < ROUNDS; round++) {
        memcpy(numbers, unsorted, sizeof(numbers));
        qsort(numbers, COUNT, sizeof(*numbers), compare);
        sum += numbers[(size_t)round * COUNT / ROUNDS];
    }
    return sum;
}
