/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop; see loop.h. */
#include "base/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <stdlib.h>

struct loop {
    struct event_base *base;
    struct loop_post stop; /* made in advance: stopping must not need memory */
};

static void end_loop(void *context)
{
    struct loop *loop = context;

    (void)event_base_loopbreak(loop->base);
}

/* poll rather than epoll: standard input may be a regular file, which epoll refuses. The
 * loop watches a dozen descriptors, where the two cost the same. */
static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config == NULL)
        return NULL;
    if (event_config_require_features(config, EV_FEATURE_FDS) == 0)
        base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

int loop_create(struct loop **loop, struct error *err)
{
    struct loop *created = calloc(1, sizeof(*created));

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for the main loop");
    /* Before the base is made, which thereby gets its locks and its wake-up descriptor.
     */
    if (evthread_use_pthreads() == 0)
        created->base = new_base();
    if (created->base == NULL) {
        free(created);
        return error_set(err, -EIO, "cannot set up the main loop (poll)");
    }
    if (loop_post_init(&created->stop, created, end_loop, created, err) < 0) {
        event_base_free(created->base);
        free(created);
        return err->code;
    }
    *loop = created;
    return 0;
}

void loop_destroy(struct loop *loop)
{
    if (loop == NULL)
        return;
    loop_post_finish(&loop->stop);
    event_base_free(loop->base);
    free(loop);
}

struct event_base *loop_event_base(struct loop *loop)
{
    return loop->base;
}

int loop_run(struct loop *loop, struct error *err)
{
    if (event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0)
        return error_set(err, -EIO, "the main loop failed");
    return 0;
}

void loop_stop(struct loop *loop)
{
    loop_post(&loop->stop); /* active events run in the order of their posts */
}

static void run_post(evutil_socket_t fd, short what, void *context)
{
    struct loop_post *post = context;

    (void)fd;
    (void)what;
    post->function(post->context);
}

int loop_post_init(struct loop_post *post, struct loop *loop, loop_function *function,
                   void *context, struct error *err)
{
    *post = (struct loop_post){.loop = loop, .function = function, .context = context};
    post->event = event_new(loop->base, -1, EV_PERSIST, run_post, post);
    if (post->event == NULL)
        return error_set(err, -ENOMEM, "out of memory for the main loop");
    return 0;
}

void loop_post_finish(struct loop_post *post)
{
    if (post->event != NULL)
        event_free(post->event);
    post->event = NULL;
}

void loop_post(struct loop_post *post)
{
    /* With libevent's locks on, activating an event is thread-safe and wakes the loop. An
     * event that is already active stays active once. */
    event_active(post->event, EV_TIMEOUT, 0);
}
