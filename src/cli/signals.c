/* SPDX-License-Identifier: Apache-2.0 */
/* Watched signals; see signals.h. */
#include "cli/signals.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdbool.h>

#include "base/bytes.h"

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
_Static_assert(ARRAY_SIZE(numbers) == SIGNALS_WATCHED, "one event a signal");

static bool is_ignored(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Whoever started husk may have had them blocked, and a mask is inherited. */
static int unblock(struct error *err)
{
    sigset_t watched;

    (void)sigemptyset(&watched);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        (void)sigaddset(&watched, numbers[i]);
    if (sigprocmask(SIG_UNBLOCK, &watched, NULL) < 0)
        return error_set_errno(err, errno, "cannot unblock signals");
    return 0;
}

int signals_watch(struct signals *signals, struct loop *loop,
                  void (*function)(int number, short what, void *context), void *context,
                  struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        if (is_ignored(numbers[i]))
            continue;
        signals->events[i] =
            evsignal_new(loop_event_base(loop), numbers[i], function, context);
        if (signals->events[i] == NULL || event_add(signals->events[i], NULL) < 0)
            return error_set(err, -EIO, "cannot watch signal %d", numbers[i]);
    }
    return unblock(err);
}

void signals_finish(struct signals *signals)
{
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        if (signals->events[i] != NULL)
            event_free(signals->events[i]);
    *signals = (struct signals){.events = {NULL}};
}
