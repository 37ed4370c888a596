/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of the API: HTTP by libevent on api.sock, the console on
 * console.sock. Everything runs on the loop's thread, and every wait for a client ends in
 * a timeout, so that no client can hold up the VM.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "api/console_socket_private.h"
#include "api/listener_private.h"
#include "api/routes_private.h"
#include "base/bytes.h"

/* What a request may have. The longest that means something has less than 100 bytes. */
#define BODY_LIMIT_BYTES 65536
#define HEAD_LIMIT_BYTES 8192

/* A connection that is silent for this long is closed. */
#define CLIENT_TIMEOUT_S 5

/* At the end, clients have this long to take the answers they are owed. */
#define LAST_ANSWERS_S 1

struct api_server {
    struct api_machine machine;
    struct evhttp *http;
    struct console_socket *console_socket;
    struct event_base *base;
    unsigned answers_due; /* handed to evhttp, not yet written to the client */
};

struct method {
    enum evhttp_cmd_type type;
    const char *name;
};

/* All are let through to the routes, which know what to say about them. */
static const struct method methods[] = {
    {EVHTTP_REQ_GET, "GET"},       {EVHTTP_REQ_POST, "POST"},
    {EVHTTP_REQ_HEAD, "HEAD"},     {EVHTTP_REQ_PUT, "PUT"},
    {EVHTTP_REQ_DELETE, "DELETE"}, {EVHTTP_REQ_OPTIONS, "OPTIONS"},
    {EVHTTP_REQ_TRACE, "TRACE"},   {EVHTTP_REQ_CONNECT, "CONNECT"},
    {EVHTTP_REQ_PATCH, "PATCH"},
};

static ev_uint16_t all_methods(void)
{
    unsigned int mask = 0;

    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        mask |= methods[i].type;
    return (ev_uint16_t)mask;
}

static const char *method_name(struct evhttp_request *request)
{
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if (methods[i].type == evhttp_request_get_command(request))
            return methods[i].name;
    return "";
}

static const char *request_path(struct evhttp_request *request)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri == NULL ? NULL : evhttp_uri_get_path(uri);

    return path == NULL ? "" : path;
}

/* The answer's body as text; NULL if there is none, or no memory for it. */
static struct evbuffer *answer_buffer(const struct api_answer *answer)
{
    char *text = answer->body == NULL ? NULL : json_dumps(answer->body, JSON_COMPACT);
    struct evbuffer *buffer = text == NULL ? NULL : evbuffer_new();

    if (buffer != NULL)
        (void)evbuffer_add_printf(buffer, "%s\n", text);
    free(text);
    return buffer;
}

static void on_answered(struct evhttp_request *request, void *context)
{
    struct api_server *server = context;

    (void)request;
    server->answers_due--;
}

/* What a client asked for may have ended the machine, and with it the loop, before the
 * answer was written. A client that does not read, or is gone, is not waited for. */
static void finish_answers(struct api_server *server)
{
    static const struct timeval limit = {.tv_sec = LAST_ANSWERS_S};

    if (server->answers_due == 0 || event_base_loopexit(server->base, &limit) < 0)
        return;
    while (server->answers_due > 0 && event_base_loop(server->base, EVLOOP_ONCE) == 0 &&
           event_base_got_exit(server->base) == 0)
        continue;
}

static void on_request(struct evhttp_request *request, void *context)
{
    struct api_server *server = context;
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    struct api_question question = {.method = method_name(request),
                                    .path = request_path(request),
                                    .body = (const char *)evbuffer_pullup(input, -1),
                                    .body_bytes = evbuffer_get_length(input)};
    struct api_answer answer = api_answer(&server->machine, &question);
    struct evbuffer *output = answer_buffer(&answer);

    if (output != NULL)
        (void)evhttp_add_header(headers, "Content-Type", "application/json");
    if (answer.allow != NULL)
        (void)evhttp_add_header(headers, "Allow", answer.allow);
    evhttp_request_set_on_complete_cb(request, on_answered, server);
    server->answers_due++;
    evhttp_send_reply(request, answer.status, NULL, output);
    if (answer.stop)
        vm_stop(server->machine.vm, VM_END_STOPPED);
    if (output != NULL)
        evbuffer_free(output);
    json_decref(answer.body);
}

static int listen_http(struct api_server *server, struct loop *loop, struct error *err)
{
    struct evconnlistener *listener;

    server->base = loop_event_base(loop);
    server->http = evhttp_new(server->base);
    if (server->http == NULL)
        return error_set(err, -ENOMEM, "out of memory for the API server");
    evhttp_set_allowed_methods(server->http, all_methods());
    evhttp_set_max_body_size(server->http, BODY_LIMIT_BYTES);
    evhttp_set_max_headers_size(server->http, HEAD_LIMIT_BYTES);
    evhttp_set_timeout(server->http, CLIENT_TIMEOUT_S);
    evhttp_set_gencb(server->http, on_request, server);
    listener = listener_open(loop, server->machine.instance, INSTANCE_API_SOCKET, NULL,
                             NULL, err);
    if (listener == NULL)
        return err->code;
    if (evhttp_bind_listener(server->http, listener) == NULL) {
        evconnlistener_free(listener);
        return error_set(err, -ENOMEM, "out of memory for the API server");
    }
    return 0; /* the listener is evhttp's now */
}

static int write_info(const struct api_server *server, struct error *err)
{
    json_t *info = document_info(server->machine.config);
    char *text = info == NULL ? NULL : json_dumps(info, JSON_COMPACT);
    int status = text == NULL
                     ? error_set(err, -ENOMEM, "out of memory for " INSTANCE_INFO)
                     : instance_write_info(server->machine.instance, text, err);

    free(text);
    json_decref(info);
    return status;
}

int api_server_create(struct loop *loop, struct vm *vm, struct console *console,
                      const struct vm_config *config, const struct instance *instance,
                      struct api_server **server, struct error *err)
{
    struct api_server *created = malloc(sizeof(*created));

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for the API server");
    *created = (struct api_server){
        .machine = {.vm = vm, .config = config, .instance = instance}};
    if (write_info(created, err) < 0 ||
        console_socket_create(loop, console, instance, &created->console_socket, err) <
            0 ||
        listen_http(created, loop, err) < 0) {
        api_server_destroy(created);
        return err->code;
    }
    *server = created;
    return 0;
}

void api_server_destroy(struct api_server *server)
{
    if (server == NULL)
        return;
    finish_answers(server);
    if (server->http != NULL)
        evhttp_free(server->http);
    console_socket_destroy(server->console_socket);
    free(server);
}
