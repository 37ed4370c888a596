/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time that a machine's devices live in, and timers in it: an interface, so that
 * devices do not know whose time that is. The host's is here; virtual_clock.h has one
 * that somebody else lets pass.
 */
#ifndef HUSK_BASE_MACHINE_CLOCK_H
#define HUSK_BASE_MACHINE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "base/loop.h"
#include "base/timer.h"

/* No time at all. */
#define MACHINE_TIMER_OFF UINT64_MAX

struct machine_clock;
struct machine_timer;

struct machine_clock_ops {
    uint64_t (*now_ns)(const struct machine_clock *clock);
    struct timespec (*time_of_day)(const struct machine_clock *clock);
    int (*timer_init)(struct machine_timer *timer, struct error *err);
    void (*timer_finish)(struct machine_timer *timer);
    void (*timer_set)(struct machine_timer *timer, uint64_t deadline_ns);
};

/* The first member of each implementation. */
struct machine_clock {
    const struct machine_clock_ops *ops;
};

/* Owned by the caller, who keeps it in place from init to finish. */
struct machine_timer {
    struct machine_clock *clock; /* NULL: not in use */
    void (*function)(void *context);
    void *context;
    union {
        struct loop_timer loop_timer; /* host_clock */
        struct {                      /* virtual_clock */
            uint64_t deadline_ns;
            struct machine_timer *next;
        };
    };
};

/* Time that never runs backwards, from a start of its own. Any thread. */
static inline uint64_t machine_clock_now_ns(const struct machine_clock *clock)
{
    return clock->ops->now_ns(clock);
}

/* UTC since 1970; somebody may set it back. Any thread. */
static inline struct timespec machine_clock_time_of_day(const struct machine_clock *clock)
{
    return clock->ops->time_of_day(clock);
}

/* Both on the loop's thread; finish while no other thread can set it any more. */
int machine_timer_init(struct machine_timer *timer, struct machine_clock *clock,
                       void (*function)(void *context), void *context,
                       struct error *err) MUST_CHECK;
void machine_timer_finish(struct machine_timer *timer); /* accepts an all-zero struct */

/* Has `function` called once when the clock has reached `deadline_ns`, or soon if that is
 * past; replaces an earlier deadline. MACHINE_TIMER_OFF: not at all. Takes no lock, so a
 * device may hold its own. Any thread that the clock allows.
 *
 * The call comes with no lock held, on a thread of the clock's choice. One that has
 * already begun is not waited for: the function must look, under the lock that the timer
 * is set under, whether its time has come. */
static inline void machine_timer_set(struct machine_timer *timer, uint64_t deadline_ns)
{
    timer->clock->ops->timer_set(timer, deadline_ns);
}

/* ---- the host's time: CLOCK_MONOTONIC and CLOCK_REALTIME, timers on the loop's thread,
 * set by any ---- */

struct host_clock {
    struct machine_clock clock;
    struct loop *loop; /* borrowed */
};

void host_clock_init(struct host_clock *clock, struct loop *loop);

#endif
