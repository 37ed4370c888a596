/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that a seed replays, and operands that are likely to matter. */
#ifndef HUSK_ISA_RANDOM_H
#define HUSK_ISA_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

/* Sebastiano Vigna's splitmix64. */
static inline uint64_t random_u64(struct random *random)
{
    uint64_t mixed = (random->state += UINT64_C(0x9e3779b97f4a7c15));

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

/* 0 .. limit - 1. */
static inline unsigned random_below(struct random *random, unsigned limit)
{
    return (unsigned)((random_u64(random) >> 32) * limit >> 32);
}

static inline bool random_chance(struct random *random, unsigned one_in)
{
    return random_below(random, one_in) == 0;
}

void random_bytes(struct random *random, void *to, size_t size);

/* Any integer, half of them at an edge: near 0, near the ends of 8 to 64 bits, one bit.
 */
uint64_t random_integer(struct random *random);

/* 16 bytes of integers or floats of one size each; 10 bytes of an x87 register. */
void random_vector(struct random *random, uint8_t bytes[16]);
void random_extended(struct random *random, uint8_t bytes[16]);

#endif
