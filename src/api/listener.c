/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket in an instance's directory. */
#include "api/listener_private.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/log.h"

#define BACKLOG 16

static void accept_again(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    (void)evconnlistener_enable(context);
}

/* Out of descriptors, accept() fails at once and again, for the connection stays in the
 * backlog: without a pause the loop would do nothing else. */
static void on_accept_failed(struct evconnlistener *listener, void *context)
{
    static const struct timeval pause_time = {.tv_sec = 1};

    (void)context; /* evhttp's */
    log_warn("cannot accept a connection for now: %s", strerror(errno));
    if (evconnlistener_disable(listener) == 0)
        (void)event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT,
                              accept_again, listener, &pause_time);
}

static int open_socket(const struct instance *instance, const char *name, int *fd,
                       struct error *err)
{
    struct sockaddr_un address;
    CLEANUP_FD int created = -1;

    if (instance_socket_address(instance_directory(instance), name, &address, err) < 0)
        return err->code;
    created = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (created < 0)
        return error_set_errno(err, errno, "cannot create a socket");
    /* Nobody can connect before listen(), so the mode is right from the start. */
    if (bind(created, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        chmod(address.sun_path, 0600) < 0 || listen(created, BACKLOG) < 0)
        return error_set_errno(err, errno, "cannot listen on %s", address.sun_path);
    *fd = fd_take(&created);
    return 0;
}

struct evconnlistener *listener_open(struct loop *loop, const struct instance *instance,
                                     const char *name, evconnlistener_cb accepted,
                                     void *context, struct error *err)
{
    struct evconnlistener *listener;
    CLEANUP_FD int fd = -1;

    if (open_socket(instance, name, &fd, err) < 0)
        return NULL;
    listener = evconnlistener_new(loop_event_base(loop), accepted, context,
                                  LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (listener == NULL) {
        error_set(err, -ENOMEM, "out of memory for %s", name);
        return NULL;
    }
    (void)fd_take(&fd); /* the listener's from here */
    evconnlistener_set_error_cb(listener, on_accept_failed);
    return listener;
}
