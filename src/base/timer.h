/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A one-shot deadline in the main loop: any thread sets it, the function is called on the
 * loop's thread.
 *
 * Behind it is a timerfd, so arming takes no lock (a caller may hold any) and allocates
 * nothing, and a timer that is not armed costs nothing.
 */
#ifndef HUSK_BASE_TIMER_H
#define HUSK_BASE_TIMER_H

#include <stdint.h>

#include "base/error.h"
#include "base/loop.h"

/* Owned by the caller, who keeps it in place from init to finish. */
struct loop_timer {
    loop_function *function;
    void *context;
    int fd; /* timerfd */
    struct event *event;
};

/* Both on the loop's thread; finish while no other thread can arm it any more. */
int loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_function *function,
                    void *context, struct error *err) MUST_CHECK;
void loop_timer_finish(struct loop_timer *timer); /* accepts an all-zero struct */

/* Has `function` called once when clock_monotonic_ns() has reached `deadline_ns`, or at
 * once if that is past; replaces an earlier deadline. Any thread.
 *
 * A call that has already begun is not waited for: whoever arms or disarms under a lock
 * of its own must, in the function, look under that lock whether the time has come. */
void loop_timer_arm(struct loop_timer *timer, uint64_t deadline_ns);
void loop_timer_disarm(struct loop_timer *timer);

#endif
