/* SPDX-License-Identifier: Apache-2.0 */
/* Time that somebody lets pass; see virtual_clock.h. A machine has a handful of timers.
 */
#include "base/virtual_clock.h"

#include <stddef.h>

#include "base/clock.h"

static uint64_t virtual_now_ns(const struct machine_clock *clock)
{
    return ((const struct virtual_clock *)clock)->now_ns;
}

static struct timespec virtual_time_of_day(const struct machine_clock *clock)
{
    uint64_t now_ns = virtual_now_ns(clock);

    return (struct timespec){
        .tv_sec = (time_t)(VIRTUAL_CLOCK_EPOCH_S + (int64_t)(now_ns / NS_PER_SECOND)),
        .tv_nsec = (long)(now_ns % NS_PER_SECOND),
    };
}

static int virtual_timer_init(struct machine_timer *timer, struct error *err)
{
    struct virtual_clock *clock = (struct virtual_clock *)timer->clock;

    (void)err;
    timer->deadline_ns = MACHINE_TIMER_OFF;
    timer->next = clock->timers;
    clock->timers = timer;
    return 0;
}

static void virtual_timer_finish(struct machine_timer *timer)
{
    struct machine_timer **link = &((struct virtual_clock *)timer->clock)->timers;

    while (*link != timer)
        link = &(*link)->next;
    *link = timer->next;
}

static void virtual_timer_set(struct machine_timer *timer, uint64_t deadline_ns)
{
    timer->deadline_ns = deadline_ns;
}

void virtual_clock_init(struct virtual_clock *clock)
{
    static const struct machine_clock_ops ops = {
        .now_ns = virtual_now_ns,
        .time_of_day = virtual_time_of_day,
        .timer_init = virtual_timer_init,
        .timer_finish = virtual_timer_finish,
        .timer_set = virtual_timer_set,
    };

    *clock = (struct virtual_clock){.clock = {.ops = &ops}};
}

/* NULL: none is set. Among equal ones the one that was made last. */
static struct machine_timer *earliest(const struct virtual_clock *clock)
{
    struct machine_timer *first = NULL;

    for (struct machine_timer *timer = clock->timers; timer != NULL; timer = timer->next)
        if (timer->deadline_ns != MACHINE_TIMER_OFF &&
            (first == NULL || timer->deadline_ns < first->deadline_ns))
            first = timer;
    return first;
}

uint64_t virtual_clock_deadline_ns(const struct virtual_clock *clock)
{
    const struct machine_timer *first = earliest(clock);

    return first == NULL ? MACHINE_TIMER_OFF : first->deadline_ns;
}

void virtual_clock_advance(struct virtual_clock *clock, uint64_t now_ns)
{
    struct machine_timer *due;

    clock->now_ns = now_ns;
    while ((due = earliest(clock)) != NULL && due->deadline_ns <= now_ns) {
        due->deadline_ns = MACHINE_TIMER_OFF;
        due->function(due->context);
    }
}
