/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time; see clock.h. */
#include "base/clock.h"

#include <time.h>

#include "base/check.h"

static uint64_t start_ns; /* written once by main() before any thread exists */

uint64_t clock_monotonic_ns(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

void clock_mark_start(void)
{
    start_ns = clock_monotonic_ns();
}

uint64_t clock_start_ns(void)
{
    return start_ns;
}
