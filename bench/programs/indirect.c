/* SPDX-License-Identifier: Apache-2.0 */
/* Calls through pointers whose order has no pattern, as of objects of many classes. */
#include "programs.h"

#define CALLS 4096
#define ROUNDS 2000

typedef uint64_t step(uint64_t value);

static uint64_t step_add(uint64_t value)
{
    return value + 0x1234567;
}

static uint64_t step_rotate(uint64_t value)
{
    return value << 9 | value >> 55;
}

static uint64_t step_fold(uint64_t value)
{
    return value ^ value >> 7;
}

static uint64_t step_scale(uint64_t value)
{
    return value * 5;
}

static uint64_t step_flip(uint64_t value)
{
    return ~value;
}

static uint64_t step_swap(uint64_t value)
{
    return __builtin_bswap64(value);
}

static step *const steps[] = {step_add,   step_rotate, step_fold,
                              step_scale, step_flip,   step_swap};
static step *order[CALLS];

void prepare_indirect(void)
{
    uint64_t state = RANDOM_SEED;

    for (size_t i = 0; i < CALLS; i++)
        order[i] = steps[random_next(&state) % (sizeof(steps) / sizeof(*steps))];
}

uint64_t run_indirect(void)
{
    uint64_t value = 1;

    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < CALLS; i++)
            value = order[i](value);
    return value;
}
