/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions with LOCK, as mutexes and reference counts have them. */
#include <stdatomic.h>
#include <stdbool.h>

#include "programs.h"

#define COUNTERS 64
#define ROUNDS 3000000

static _Atomic uint64_t counters[COUNTERS];

uint64_t run_atomics(void)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t before = atomic_fetch_add(&counters[i % COUNTERS], i);

        sum += atomic_exchange(&counters[(i + 7) % COUNTERS], before);
        if (!atomic_compare_exchange_strong(&counters[i % COUNTERS], &before, sum))
            sum ^= before;
    }
    return sum;
}
