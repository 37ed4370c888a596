/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of the API: one blocking request over the instance's Unix socket.
 *
 * libevent's HTTP client (2.1) connects to host names only, and a loop would be much for
 * one question, so this speaks the little HTTP that husk's own server needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "api/client_private.h"
#include "api/instances_private.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"

/* For the whole request. */
#define REQUEST_TIMEOUT_S 5

#define RECEIVE_BYTES 8192

struct answer {
    char *bytes; /* NUL-terminated behind `size` */
    size_t size;
    size_t capacity;
};

static int timed_out(struct error *err)
{
    return error_set(err, -ETIMEDOUT, "does not answer (timed out after %d s)",
                     REQUEST_TIMEOUT_S);
}

static int connect_socket(const struct instance_info *instance, const char *name, int *fd,
                          struct error *err)
{
    /* connect() on a Unix socket waits while the backlog is full, up to this. */
    static const struct timeval limit = {.tv_sec = REQUEST_TIMEOUT_S};
    struct sockaddr_un address;
    CLEANUP_FD int created = -1;

    if (instance_socket_address(instance->directory, name, &address, err) < 0)
        return err->code;
    created = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (created < 0 ||
        setsockopt(created, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
        return error_set_errno(err, errno, "cannot create a socket");
    if (connect(created, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        if (errno == EAGAIN)
            return timed_out(err);
        if (errno == ENOENT || errno == ECONNREFUSED)
            return error_set(err, -errno, "has no %s: it is just starting or ending",
                             name);
        return error_set_errno(err, errno, "cannot connect to %s", address.sun_path);
    }
    *fd = fd_take(&created);
    return 0;
}

static int send_all(int fd, const char *bytes, size_t size, struct error *err)
{
    while (size > 0) {
        ssize_t put = send(fd, bytes, size, MSG_NOSIGNAL);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN)
            return timed_out(err);
        /* The server may have answered and closed before it read everything. */
        if (put < 0 && errno == EPIPE)
            return 0;
        if (put < 0)
            return error_set_errno(err, errno, "cannot send the request");
        bytes += put;
        size -= (size_t)put;
    }
    return 0;
}

static int send_request(int fd, const char *method, const char *path, const char *body,
                        struct error *err)
{
    char head[512];
    size_t body_bytes = body == NULL ? 0 : strlen(body);
    int head_bytes = snprintf(head, sizeof(head),
                              "%s %s HTTP/1.1\r\n"
                              "Host: localhost\r\n"
                              "Connection: close\r\n"
                              "Content-Type: application/json\r\n"
                              "Content-Length: %zu\r\n"
                              "\r\n",
                              method, path, body_bytes);

    if (head_bytes < 0 || (size_t)head_bytes >= sizeof(head))
        return error_set(err, -EMSGSIZE, "request path is too long");
    if (send_all(fd, head, (size_t)head_bytes, err) < 0)
        return err->code;
    return body_bytes == 0 ? 0 : send_all(fd, body, body_bytes, err);
}

static int wait_readable(int fd, uint64_t deadline_ns, struct error *err)
{
    for (;;) {
        uint64_t now_ns = clock_monotonic_ns();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int count;

        if (now_ns >= deadline_ns)
            return timed_out(err);
        count = poll(&ready, 1, (int)((deadline_ns - now_ns) / NS_PER_MS) + 1);
        if (count > 0)
            return 0;
        if (count < 0 && errno != EINTR)
            return error_set_errno(err, errno, "cannot wait for the answer");
    }
}

/* Makes room for one more piece and its NUL. False if out of memory. */
static bool answer_reserve(struct answer *answer)
{
    size_t capacity = answer->size + RECEIVE_BYTES + 1;
    char *grown;

    if (answer->bytes != NULL && capacity <= answer->capacity)
        return true;
    capacity *= 2;
    grown = realloc(answer->bytes, capacity);
    if (grown == NULL)
        return false;
    answer->bytes = grown;
    answer->capacity = capacity;
    return true;
}

/* Reads until the answer is complete; `response` then points into `answer`. */
static int receive_response(int fd, uint64_t deadline_ns, struct answer *answer,
                            struct response *response, struct error *err)
{
    for (;;) {
        ssize_t got;
        int status;

        if (!answer_reserve(answer))
            return error_set(err, -ENOMEM, "out of memory for the answer");
        status = wait_readable(fd, deadline_ns, err);
        if (status < 0)
            return status;
        got = recv(fd, answer->bytes + answer->size, RECEIVE_BYTES, MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0 && errno != ECONNRESET)
            return error_set_errno(err, errno, "cannot read the answer");
        answer->size += got < 0 ? 0 : (size_t)got;
        answer->bytes[answer->size] = '\0';
        status = response_parse(answer->bytes, answer->size, got <= 0, response, err);
        if (status != 0)
            return status < 0 ? status : 0;
    }
}

/* The errno that stands for a refusal, so that callers can tell them apart. */
static int status_errno(int status)
{
    switch (status) {
    case 400:
        return -EINVAL;
    case 404:
        return -ENOENT;
    case 409:
        return -EBUSY;
    default:
        return -EPROTO;
    }
}

static int refuse(const struct response *response, struct error *err)
{
    json_t *document = json_loadb(response->body, response->body_bytes, 0, NULL);
    const char *fault = json_string_value(json_object_get(document, "fault_message"));

    if (fault != NULL)
        error_set(err, status_errno(response->status), "%s", fault);
    else
        error_set(err, status_errno(response->status), "answers with HTTP status %d",
                  response->status);
    json_decref(document);
    return err->code;
}

static int request(const struct instance_info *instance, const char *method,
                   const char *path, const char *body, struct answer *answer,
                   struct error *err)
{
    uint64_t deadline_ns = clock_monotonic_ns() + REQUEST_TIMEOUT_S * NS_PER_SECOND;
    struct response response = {.body = NULL};
    CLEANUP_FD int fd = -1;

    if (connect_socket(instance, INSTANCE_API_SOCKET, &fd, err) < 0 ||
        send_request(fd, method, path, body, err) < 0 ||
        receive_response(fd, deadline_ns, answer, &response, err) < 0)
        return err->code;
    if (response.status < 200 || response.status > 299)
        return refuse(&response, err);
    memmove(answer->bytes, response.body, response.body_bytes);
    answer->bytes[response.body_bytes] = '\0';
    return 0;
}

int api_request(const struct instance_info *instance, const char *method,
                const char *path, const char *body, char **answer, struct error *err)
{
    struct answer received = {.bytes = NULL};

    if (request(instance, method, path, body, &received, err) < 0) {
        free(received.bytes);
        return error_prefix(err, "instance %s", instance->name);
    }
    *answer = received.bytes;
    return 0;
}

int api_connect_console(const struct instance_info *instance, struct error *err)
{
    int fd = -1;

    if (connect_socket(instance, INSTANCE_CONSOLE_SOCKET, &fd, err) < 0)
        return error_prefix(err, "instance %s", instance->name);
    return fd;
}
