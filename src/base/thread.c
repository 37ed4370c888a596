/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for the host; see thread.h. */
#include "base/thread.h"

#include <signal.h>

static void mask_signals(sigset_t *previous)
{
    sigset_t masked;

    (void)sigfillset(&masked);
    (void)sigdelset(&masked, SIGBUS);
    (void)sigdelset(&masked, SIGSEGV);
    (void)sigdelset(&masked, SIGILL);
    (void)sigdelset(&masked, SIGFPE);
    (void)pthread_sigmask(SIG_SETMASK, &masked, previous);
}

int thread_start(pthread_t *thread, const char *name, void *(*run)(void *context),
                 void *context)
{
    sigset_t previous;
    int status;

    mask_signals(&previous);
    status = pthread_create(thread, NULL, run, context);
    (void)pthread_sigmask(SIG_SETMASK, &previous, NULL);
    if (status == 0)
        (void)pthread_setname_np(*thread, name);
    return -status;
}
