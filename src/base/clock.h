/* SPDX-License-Identifier: Apache-2.0 */
/* Time for measuring and for deadlines. Any thread. */
#ifndef HUSK_BASE_CLOCK_H
#define HUSK_BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_SECOND UINT64_C(1000000000)

/* CLOCK_MONOTONIC, in nanoseconds. */
uint64_t clock_monotonic_ns(void);

/* When this process was started by the kernel, on the clock above: field 22 of
 * /proc/self/stat counts in ticks of 10 ms, too coarse, so this is the time main() called
 * clock_mark_start(), which is within 1 ms of execve. 0 before the mark. */
void clock_mark_start(void);
uint64_t clock_start_ns(void);

#endif
