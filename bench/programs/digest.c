/* SPDX-License-Identifier: Apache-2.0 */
/* A digest in the manner of SHA-256: 32-bit rotations, additions and logic, all in
 * registers and a small table. */
#include "programs.h"

#define BLOCK_WORDS 16
#define SCHEDULE_WORDS 64
#define STATE_WORDS 8
#define BLOCKS 100000

static uint32_t rotate(uint32_t value, int bits)
{
    return value >> bits | value << (32 - bits);
}

/* FIPS 180-4, 6.2.2, step 1. */
static void expand(uint32_t *schedule)
{
    for (size_t i = BLOCK_WORDS; i < SCHEDULE_WORDS; i++) {
        uint32_t early = schedule[i - 15];
        uint32_t late = schedule[i - 2];

        schedule[i] = schedule[i - 16] + schedule[i - 7] +
                      (rotate(early, 7) ^ rotate(early, 18) ^ early >> 3) +
                      (rotate(late, 17) ^ rotate(late, 19) ^ late >> 10);
    }
}

/* Steps 2 to 4, but with constants of our own: nothing here is to be secure. */
static void compress(uint32_t *state, const uint32_t *schedule, const uint32_t *constants)
{
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];

    for (size_t i = 0; i < SCHEDULE_WORDS; i++) {
        uint32_t first = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                         ((e & f) ^ (~e & g)) + constants[i] + schedule[i];
        uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                          ((a & b) ^ (a & c) ^ (b & c));

        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

uint64_t run_digest(void)
{
    uint32_t state[STATE_WORDS] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint32_t schedule[SCHEDULE_WORDS];
    uint32_t constants[SCHEDULE_WORDS];
    uint64_t random = RANDOM_SEED;

    for (size_t i = 0; i < SCHEDULE_WORDS; i++)
        constants[i] = (uint32_t)random_next(&random);
    for (uint32_t block = 0; block < BLOCKS; block++) {
        for (uint32_t i = 0; i < BLOCK_WORDS; i++)
            schedule[i] = block * BLOCK_WORDS + i;
        expand(schedule);
        compress(state, schedule, constants);
    }
    return checksum(state, sizeof(state));
}
