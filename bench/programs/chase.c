/* SPDX-License-Identifier: Apache-2.0 */
/* Loads that each need the one before, all over 4 and over 32 MiB: caches and TLBs. */
#include "programs.h"

#define LINE_BYTES 64
#define LINES_4M ((4 << 20) / LINE_BYTES)
#define LINES_32M ((32 << 20) / LINE_BYTES)
#define STEPS_4M 500000
#define STEPS_32M 300000

struct line {
    uint32_t next;
    uint8_t rest[LINE_BYTES - sizeof(uint32_t)];
};

static struct line lines[LINES_32M];

/* One ring through all of them, in an order without a pattern (Sattolo's shuffle). */
static void prepare(uint32_t count)
{
    uint64_t state = RANDOM_SEED;

    for (uint32_t i = 0; i < count; i++)
        lines[i].next = i;
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t other = (uint32_t)(random_next(&state) % i);
        uint32_t next = lines[i].next;

        lines[i].next = lines[other].next;
        lines[other].next = next;
    }
}

static uint64_t chase(uint32_t steps)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < steps; i++)
        at = lines[at].next;
    return at;
}

void prepare_chase_4m(void)
{
    prepare(LINES_4M);
}

uint64_t run_chase_4m(void)
{
    return chase(STEPS_4M);
}

void prepare_chase_32m(void)
{
    prepare(LINES_32M);
}

uint64_t run_chase_32m(void)
{
    return chase(STEPS_32M);
}
