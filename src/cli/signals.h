/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that ask husk to end or to tell something, watched on the main loop. */
#ifndef HUSK_CLI_SIGNALS_H
#define HUSK_CLI_SIGNALS_H

#include "base/error.h"
#include "base/loop.h"

#define SIGNALS_WATCHED 4

struct event;

struct signals {
    struct event *events[SIGNALS_WATCHED];
};

/* Calls `function` with the number of each INT, TERM, HUP and QUIT that arrives. What was
 * ignored at the start, as by nohup, stays ignored. To be called before other threads
 * start, which inherit the signal mask. On failure signals_finish is still due. */
int signals_watch(struct signals *signals, struct loop *loop,
                  void (*function)(int number, short what, void *context), void *context,
                  struct error *err) MUST_CHECK;

/* Accepts signals of zero bytes. */
void signals_finish(struct signals *signals);

#endif
