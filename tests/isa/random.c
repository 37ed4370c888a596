/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that are likely to matter; see random.h. */
#include "random.h"

#include <string.h>

void random_bytes(struct random *random, void *to, size_t size)
{
    uint8_t *bytes = to;

    while (size >= 8) {
        uint64_t value = random_u64(random);

        memcpy(bytes, &value, 8);
        bytes += 8;
        size -= 8;
    }
    if (size > 0) {
        uint64_t value = random_u64(random);

        memcpy(bytes, &value, size);
    }
}

uint64_t random_integer(struct random *random)
{
    static const uint8_t widths[] = {7, 8, 15, 16, 31, 32, 63, 64};
    uint64_t value = random_u64(random);
    uint64_t edge;

    switch (random_below(random, 8)) {
    case 0:
        return (uint64_t)random_below(random, 5) - 2;
    case 1:
        return UINT64_C(1) << random_below(random, 64);
    case 2:
        edge = widths[random_below(random, sizeof(widths))];
        edge = edge == 64 ? 0 : UINT64_C(1) << edge;
        return edge + random_below(random, 3) - 1;
    case 3: /* sign-extended: the upper half says as much as the lower */
        return (uint64_t)(int64_t)(int32_t)value >> random_below(random, 33);
    default:
        return value;
    }
}

/* ---- floating point ---- */

/* Bit patterns that decide something: zeros, ones, the ends of the normal and denormal
 * ranges, infinity, quiet and signalling NaNs, what rounds, and ends of integers. */
static const uint32_t singles[] = {
    0x00000000, 0x3f800000, 0x40000000, 0x3f000000, 0x00000001, 0x007fffff,
    0x00800000, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x7f800001, 0x7fffffff,
    0x4effffff, 0x4f000000, 0x5effffff, 0x5f000000, 0x3fc00000, 0x4b000001,
};
static const uint64_t doubles[] = {
    0x0000000000000000, 0x3ff0000000000000, 0x4000000000000000, 0x3fe0000000000000,
    0x0000000000000001, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
    0x7ff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001, 0x7fffffffffffffff,
    0x41dfffffffc00000, 0x41e0000000000000, 0x43dfffffffffffff, 0x43e0000000000000,
    0x3ff8000000000000, 0x4330000000000001,
};

static uint32_t random_single(struct random *random)
{
    uint32_t sign = (uint32_t)random_below(random, 2) << 31;

    if (random_chance(random, 2))
        return singles[random_below(random, sizeof(singles) / sizeof(singles[0]))] | sign;
    if (random_chance(random, 2)) /* a moderate exponent */
        return sign | (112 + random_below(random, 30)) << 23 |
               (uint32_t)(random_u64(random) & 0x7fffff);
    return (uint32_t)random_u64(random);
}

static uint64_t random_double(struct random *random)
{
    uint64_t sign = (uint64_t)random_below(random, 2) << 63;

    if (random_chance(random, 2))
        return doubles[random_below(random, sizeof(doubles) / sizeof(doubles[0]))] | sign;
    if (random_chance(random, 2))
        return sign | (uint64_t)(1000 + random_below(random, 60)) << 52 |
               (random_u64(random) & 0xfffffffffffff);
    return random_u64(random);
}

static void random_lanes(struct random *random, uint8_t bytes[16], size_t size)
{
    for (size_t i = 0; i < 16; i += size) {
        uint64_t value = random_integer(random);

        memcpy(bytes + i, &value, size);
    }
}

void random_vector(struct random *random, uint8_t bytes[16])
{
    switch (random_below(random, 8)) {
    case 0:
    case 1:
        for (size_t i = 0; i < 16; i += 4) {
            uint32_t value = random_single(random);

            memcpy(bytes + i, &value, 4);
        }
        return;
    case 2:
    case 3:
        for (size_t i = 0; i < 16; i += 8) {
            uint64_t value = random_double(random);

            memcpy(bytes + i, &value, 8);
        }
        return;
    case 4:
        random_lanes(random, bytes, 1);
        return;
    case 5:
        random_lanes(random, bytes, 2);
        return;
    case 6:
        random_lanes(random, bytes, 4);
        return;
    default:
        random_lanes(random, bytes, 8);
        return;
    }
}

/* Sign and exponent, then a mantissa with an explicit integer bit (SDM vol. 1, table
 * 4-3): also the encodings that processors no longer make. */
void random_extended(struct random *random, uint8_t bytes[16])
{
    static const uint16_t exponents[] = {0,      1,      0x3ffe, 0x3fff,
                                         0x4000, 0x403e, 0x7ffe, 0x7fff};
    uint64_t mantissa = random_u64(random);
    uint16_t exponent = (uint16_t)(0x3fff - 70 + random_below(random, 140));

    if (random_chance(random, 2))
        exponent =
            exponents[random_below(random, sizeof(exponents) / sizeof(exponents[0]))];
    if (random_chance(random, 4))
        mantissa = random_integer(random);
    if (random_chance(random, 8))
        mantissa = UINT64_C(1) << 63 | (uint64_t)random_below(random, 2) << 62;
    if (exponent != 0 && !random_chance(random, 16))
        mantissa |= UINT64_C(1) << 63;
    exponent |= (uint16_t)(random_below(random, 2) << 15);
    memset(bytes, 0, 16);
    memcpy(bytes, &mantissa, 8);
    memcpy(bytes + 8, &exponent, 2);
}
