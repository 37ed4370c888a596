/* SPDX-License-Identifier: Apache-2.0 */
/* Multi-precision multiplication as cryptography does it: 64-bit products and carries. */
#include "programs.h"

#define WORDS UINT64_C(32) /* 2048 bits */
#define ROUNDS 18000

/* product = left * right, by the schoolbook. */
static void multiply(uint64_t *product, const uint64_t *left, const uint64_t *right)
{
    for (size_t i = 0; i < 2 * WORDS; i++)
        product[i] = 0;
    for (size_t i = 0; i < WORDS; i++) {
        uint64_t carry = 0;

        for (size_t j = 0; j < WORDS; j++) {
            unsigned __int128 sum =
                (unsigned __int128)left[i] * right[j] + product[i + j] + carry;

            product[i + j] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
        product[i + WORDS] = carry;
    }
}

uint64_t run_multiply(void)
{
    uint64_t state = RANDOM_SEED;
    uint64_t number[WORDS];
    uint64_t product[2 * WORDS];

    for (size_t i = 0; i < WORDS; i++)
        number[i] = random_next(&state);
    for (int round = 0; round < ROUNDS; round++) {
        multiply(product, number, number);
        /* The middle half; its lowest bit keeps it from becoming zero. */
        for (size_t i = 0; i < WORDS; i++)
            number[i] = product[i + WORDS / 2];
        number[0] |= 1;
    }
    return checksum(number, sizeof(number));
}
