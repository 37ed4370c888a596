/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines in the main loop; see timer.h. */
#include "base/timer.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"

static void handle_expiry(evutil_socket_t fd, short what, void *context)
{
    struct loop_timer *timer = context;
    uint64_t expirations;

    (void)what;
    /* EAGAIN: armed anew or disarmed since the loop saw it expire. */
    if (read(fd, &expirations, sizeof(expirations)) == sizeof(expirations))
        timer->function(timer->context);
}

int loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_function *function,
                    void *context, struct error *err)
{
    *timer = (struct loop_timer){
        .function = function,
        .context = context,
        .fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
    };
    if (timer->fd < 0)
        return error_set_errno(err, errno, "cannot create a timer");
    timer->event = event_new(loop_event_base(loop), timer->fd, EV_READ | EV_PERSIST,
                             handle_expiry, timer);
    if (timer->event == NULL || event_add(timer->event, NULL) < 0) {
        loop_timer_finish(timer);
        return error_set(err, -ENOMEM, "out of memory for the main loop");
    }
    return 0;
}

void loop_timer_finish(struct loop_timer *timer)
{
    if (timer->function == NULL)
        return;
    if (timer->event != NULL)
        event_free(timer->event);
    timer->event = NULL;
    fd_close(&timer->fd);
    timer->function = NULL;
}

static void set_time(struct loop_timer *timer, uint64_t deadline_ns)
{
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(deadline_ns / NS_PER_SECOND),
                     .tv_nsec = (long)(deadline_ns % NS_PER_SECOND)},
    };

    CHECK(timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &when, NULL) == 0);
}

void loop_timer_arm(struct loop_timer *timer, uint64_t deadline_ns)
{
    set_time(timer, deadline_ns == 0 ? 1 : deadline_ns); /* 0 would disarm */
}

void loop_timer_disarm(struct loop_timer *timer)
{
    set_time(timer, 0);
}
