/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of any clock, and the host's; see machine_clock.h. */
#include "base/machine_clock.h"

#include "base/check.h"
#include "base/clock.h"

int machine_timer_init(struct machine_timer *timer, struct machine_clock *clock,
                       void (*function)(void *context), void *context, struct error *err)
{
    int code;

    *timer =
        (struct machine_timer){.clock = clock, .function = function, .context = context};
    code = clock->ops->timer_init(timer, err);
    if (code < 0)
        timer->clock = NULL;
    return code;
}

void machine_timer_finish(struct machine_timer *timer)
{
    if (timer->clock == NULL)
        return;
    timer->clock->ops->timer_finish(timer);
    timer->clock = NULL;
}

/* ---- the host's
 * --------------------------------------------------------------------------- */

static uint64_t host_now_ns(const struct machine_clock *clock)
{
    (void)clock;
    return clock_monotonic_ns();
}

static struct timespec host_time_of_day(const struct machine_clock *clock)
{
    struct timespec now;

    (void)clock;
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return now;
}

static int host_timer_init(struct machine_timer *timer, struct error *err)
{
    const struct host_clock *host = (const struct host_clock *)timer->clock;

    return loop_timer_init(&timer->loop_timer, host->loop, timer->function,
                           timer->context, err);
}

static void host_timer_finish(struct machine_timer *timer)
{
    loop_timer_finish(&timer->loop_timer);
}

static void host_timer_set(struct machine_timer *timer, uint64_t deadline_ns)
{
    if (deadline_ns == MACHINE_TIMER_OFF)
        loop_timer_disarm(&timer->loop_timer);
    else
        loop_timer_arm(&timer->loop_timer, deadline_ns);
}

void host_clock_init(struct host_clock *clock, struct loop *loop)
{
    static const struct machine_clock_ops ops = {
        .now_ns = host_now_ns,
        .time_of_day = host_time_of_day,
        .timer_init = host_timer_init,
        .timer_finish = host_timer_finish,
        .timer_set = host_timer_set,
    };

    *clock = (struct host_clock){.clock = {.ops = &ops}, .loop = loop};
}
