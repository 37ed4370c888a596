/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of memory: the processor's string instructions, and what the C library does
 * without them (it chooses its way by CPUID). */
#include <string.h>

#include "programs.h"

/* The blocks are neither a power of two nor a whole page apart: loads would wait for
 * stores to the same place of another page. */
#define BLOCK_BYTES ((244 << 10) + 2048)
#define MOVS_ROUNDS 2000
#define STOS_ROUNDS 2800
#define MEMCPY_ROUNDS 4000
#define STRLEN_ROUNDS 8000

static uint8_t from[BLOCK_BYTES];
static uint8_t to[BLOCK_BYTES];

void prepare_strings(void)
{
    uint64_t state = RANDOM_SEED;

    for (size_t i = 0; i < BLOCK_BYTES; i++)
        from[i] = (uint8_t)(random_next(&state) % 255 + 1);
    memset(to, 1, sizeof(to));
}

static void rep_movs(void *destination, const void *source, size_t count)
{
    __asm__ volatile("rep movsb"
                     : "+D"(destination), "+S"(source), "+c"(count)
                     :
                     : "memory");
}

static void rep_stos(void *destination, uint8_t value, size_t count)
{
    __asm__ volatile("rep stosb"
                     : "+D"(destination), "+c"(count)
                     : "a"(value)
                     : "memory");
}

uint64_t run_rep_movs(void)
{
    for (size_t round = 0; round < MOVS_ROUNDS; round++)
        rep_movs(to + round % 64, from, BLOCK_BYTES - 64);
    return checksum(to, sizeof(to));
}

uint64_t run_rep_stos(void)
{
    for (size_t round = 0; round < STOS_ROUNDS; round++)
        rep_stos(to + round % 64, (uint8_t)round, BLOCK_BYTES - 64);
    return checksum(to, sizeof(to));
}

/* By a pointer that the compiler cannot see through. */
uint64_t run_memcpy(void)
{
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;

    for (size_t round = 0; round < MEMCPY_ROUNDS; round++)
        (void)copy(to + round % 64, from, BLOCK_BYTES - 64);
    return checksum(to, sizeof(to));
}

uint64_t run_strlen(void)
{
    size_t (*volatile length)(const char *) = strlen;
    uint64_t sum = 0;

    from[BLOCK_BYTES - 1] = '\0';
    for (size_t round = 0; round < STRLEN_ROUNDS; round++)
        sum += length((const char *)from + round % 64);
    return sum;
}
