/* SPDX-License-Identifier: Apache-2.0 */
/*
 * console.sock. A client's output is the console's business; here its input is read and
 * passed on. Both have a descriptor of their own for the socket, so that each can end
 * without the other: a client may shut down its writing half and go on reading.
 */
#include "api/console_socket_private.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/listener_private.h"
#include "base/fd.h"
#include "base/log.h"

#define INPUT_BYTES 4096

/* While the guest has no room, what was read is offered again after this time; until then
 * nothing more is read, so the client feels it. */
static const struct timeval retry_time = {.tv_usec = 20000};

/* One client's input. */
struct console_client {
    LIST_ENTRY(console_client) link;
    struct console_socket *socket;
    int fd;
    struct event *readable; /* one shot */
    struct event *retry;
    size_t pending_start;
    size_t pending_end;
    uint8_t pending[INPUT_BYTES];
};

struct console_socket {
    struct loop *loop;
    struct console *console;
    struct evconnlistener *listener;
    LIST_HEAD(console_clients, console_client) clients;
};

static void client_destroy(struct console_client *client)
{
    if (client->readable != NULL)
        event_free(client->readable);
    if (client->retry != NULL)
        event_free(client->retry);
    fd_close(&client->fd);
    free(client);
}

static void offer_pending(struct console_client *client)
{
    client->pending_start +=
        console_input(client->socket->console, client->pending + client->pending_start,
                      client->pending_end - client->pending_start);
    if (client->pending_start < client->pending_end)
        (void)event_add(client->retry, &retry_time);
    else
        (void)event_add(client->readable, NULL);
}

static void on_retry(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    offer_pending(context);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
    struct console_client *client = context;
    ssize_t got = recv(fd, client->pending, sizeof(client->pending), MSG_DONTWAIT);

    (void)what;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        (void)event_add(client->readable, NULL);
        return;
    }
    if (got <= 0) {
        LIST_REMOVE(client, link);
        client_destroy(client);
        return;
    }
    client->pending_start = 0;
    client->pending_end = (size_t)got;
    offer_pending(client);
}

static struct console_client *client_create(struct console_socket *socket, int fd)
{
    struct event_base *base = loop_event_base(socket->loop);
    struct console_client *client = malloc(sizeof(*client));

    if (client == NULL)
        return NULL;
    *client = (struct console_client){.socket = socket};
    client->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (client->fd >= 0)
        client->readable = event_new(base, client->fd, EV_READ, on_readable, client);
    client->retry = event_new(base, -1, 0, on_retry, client);
    if (client->readable == NULL || client->retry == NULL ||
        event_add(client->readable, NULL) < 0) {
        client_destroy(client);
        return NULL;
    }
    return client;
}

static void on_accepted(struct evconnlistener *listener, evutil_socket_t fd,
                        struct sockaddr *address, int address_bytes, void *context)
{
    struct console_socket *socket = context;
    struct console_client *client = client_create(socket, fd);
    struct error err = ERROR_NONE;

    (void)listener;
    (void)address;
    (void)address_bytes;
    if (client == NULL) {
        log_warn("console: cannot attach one more client: %s", strerror(errno));
        (void)close(fd);
        return;
    }
    /* The descriptor is the console's from here, on failure too. */
    if (console_attach(socket->console, fd, CONSOLE_RING_BYTES, &err) < 0) {
        log_warn("%s", err.text);
        client_destroy(client);
        return;
    }
    LIST_INSERT_HEAD(&socket->clients, client, link);
}

int console_socket_create(struct loop *loop, struct console *console,
                          const struct instance *instance, struct console_socket **socket,
                          struct error *err)
{
    struct console_socket *created = malloc(sizeof(*created));

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for the console's socket");
    *created = (struct console_socket){.loop = loop, .console = console};
    LIST_INIT(&created->clients);
    created->listener =
        listener_open(loop, instance, INSTANCE_CONSOLE_SOCKET, on_accepted, created, err);
    if (created->listener == NULL) {
        free(created);
        return err->code;
    }
    *socket = created;
    return 0;
}

void console_socket_destroy(struct console_socket *socket)
{
    struct console_client *next;

    if (socket == NULL)
        return;
    evconnlistener_free(socket->listener);
    for (struct console_client *client = LIST_FIRST(&socket->clients); client != NULL;
         client = next) {
        next = LIST_NEXT(client, link);
        client_destroy(client);
    }
    free(socket);
}
