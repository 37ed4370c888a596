/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main loop: libevent's base, plus the one thing it lacks, a way for other threads to
 * have a function called on the loop's thread.
 */
#ifndef HUSK_BASE_LOOP_H
#define HUSK_BASE_LOOP_H

#include <stdbool.h>

#include "base/error.h"

struct event_base;
struct loop;

typedef void loop_function(void *context);

int loop_create(struct loop **loop, struct error *err) MUST_CHECK;
void loop_destroy(struct loop *loop); /* accepts NULL; not while running */

/* For direct use of libevent on the loop's thread (fds, timers, signals, evhttp). */
struct event_base *loop_event_base(struct loop *loop);

/* Runs until loop_stop(). */
int loop_run(struct loop *loop, struct error *err) MUST_CHECK;

/* Any thread. Ends loop_run after the functions already posted. */
void loop_stop(struct loop *loop);

/* A function that other threads can have called on the loop's thread. Posts that come
 * before it has run are merged into one call (like an interrupt line), so nothing is
 * allocated. `post` is owned by the caller and must be finished on the loop's thread
 * while no other thread can post any more. */
struct loop_post {
    struct loop *loop;
    loop_function *function;
    void *context;
    struct event *event;
};
int loop_post_init(struct loop_post *post, struct loop *loop, loop_function *function,
                   void *context, struct error *err) MUST_CHECK;
void loop_post_finish(struct loop_post *post);
void loop_post(struct loop_post *post); /* any thread */

#endif
