/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine_clock whose time stands still until somebody lets it pass: then it depends on
 * nothing but that, and a run can be repeated exactly.
 *
 * There is no lock: at any moment one thread has the clock, and so the devices that set
 * timers in it.
 */
#ifndef HUSK_BASE_VIRTUAL_CLOCK_H
#define HUSK_BASE_VIRTUAL_CLOCK_H

#include "base/machine_clock.h"

/* The time of day at 0 ns: 2026-01-01 00:00:00 UTC. */
#define VIRTUAL_CLOCK_EPOCH_S INT64_C(1767225600)

struct virtual_clock {
    struct machine_clock clock;
    uint64_t now_ns;
    struct machine_timer *timers; /* linked by `next` */
};

void virtual_clock_init(struct virtual_clock *clock); /* at 0 ns, no timers */

/* The time is `now_ns`, not before what it was. Nothing is called. */
static inline void virtual_clock_set(struct virtual_clock *clock, uint64_t now_ns)
{
    clock->now_ns = now_ns;
}

/* The earliest deadline, or MACHINE_TIMER_OFF. */
uint64_t virtual_clock_deadline_ns(const struct virtual_clock *clock);

/* Sets the time, and calls the timers whose deadline is not behind it, the earliest
 * first. */
void virtual_clock_advance(struct virtual_clock *clock, uint64_t now_ns);

#endif
