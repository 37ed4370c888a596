/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk console: a running instance's console on this terminal. Ends when the instance
 * closes it, on Ctrl-A x, or by a signal; end of file on standard input is none of them.
 */
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/control_private.h"
#include "cli/signals.h"
#include "cli/terminal.h"

#define OUTPUT_BYTES 65536
#define INPUT_BYTES 65536

struct attachment {
    struct loop *loop;
    struct terminal *terminal;
    const struct instance_info *instance; /* borrowed */
    int fd;
    struct event *readable;
    struct event *writable; /* while input is pending */
    struct signals signals;
    int exit_code;
    struct error failure;
    size_t pending; /* input that the instance has not taken yet */
    uint8_t input[INPUT_BYTES];
};

/* For people only; a pipe gets console output and nothing else. */
static void tell(const struct attachment *attachment, const char *text)
{
    if (attachment->terminal != NULL && terminal_is_raw(attachment->terminal))
        log_line(LOG_ERROR, "%s: %s", attachment->instance->name, text);
}

/* ---- instance to standard output ---- */

static void on_readable(evutil_socket_t fd, short what, void *context)
{
    struct attachment *attachment = context;
    uint8_t output[OUTPUT_BYTES];
    ssize_t got = recv(fd, output, sizeof(output), MSG_DONTWAIT);
    int status;

    (void)what;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        tell(attachment, "the console has closed");
        loop_stop(attachment->loop);
        return;
    }
    status = fd_write_all(STDOUT_FILENO, output, (size_t)got);
    if (status == 0)
        return;
    if (status == -EPIPE) /* `| head` */
        attachment->exit_code = EXIT_SIGNAL_BASE + SIGPIPE;
    else
        error_set_errno(&attachment->failure, status, "cannot write standard output");
    loop_stop(attachment->loop);
}

/* ---- standard input to instance ---- */

static void send_pending(struct attachment *attachment)
{
    ssize_t put = send(attachment->fd, attachment->input, attachment->pending,
                       MSG_DONTWAIT | MSG_NOSIGNAL);

    /* Any other error shows as end of file on the reading side. */
    if (put < 0 && errno != EAGAIN && errno != EINTR)
        put = (ssize_t)attachment->pending;
    if (put > 0) {
        attachment->pending -= (size_t)put;
        memmove(attachment->input, attachment->input + put, attachment->pending);
    }
    if (attachment->pending > 0)
        (void)event_add(attachment->writable, NULL);
}

static void on_writable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    send_pending(context);
}

static size_t on_input(void *context, const uint8_t *bytes, size_t size)
{
    struct attachment *attachment = context;
    size_t taken = (size_t)min_u64(size, INPUT_BYTES - attachment->pending);

    memcpy(attachment->input + attachment->pending, bytes, taken);
    attachment->pending += taken;
    send_pending(attachment);
    return taken;
}

static void on_key(void *context, char letter)
{
    struct attachment *attachment = context;

    if (letter == 'x')
        loop_stop(attachment->loop);
    else
        tell(attachment, "Ctrl-A then: x detach, a a literal Ctrl-A, h this help");
}

/* For guests that can be told. One that cannot, or an older husk, is fine, too. */
static void on_resized(void *context, uint16_t columns, uint16_t rows)
{
    const struct attachment *attachment = context;
    struct error ignored = ERROR_NONE;
    char *answer = NULL;
    char body[40];

    (void)snprintf(body, sizeof(body), "{\"size\": \"%ux%u\"}", columns, rows);
    if (api_request(attachment->instance, "PUT", "/console", body, &answer, &ignored) < 0)
        log_debug("%s", ignored.text);
    free(answer);
}

static const struct terminal_ops terminal_ops = {
    .input = on_input, .key = on_key, .resized = on_resized};

/* ---- start and end ---- */

static void on_signal(evutil_socket_t number, short what, void *context)
{
    struct attachment *attachment = context;

    (void)what;
    attachment->exit_code = EXIT_SIGNAL_BASE + (int)number;
    loop_stop(attachment->loop);
}

static int watch(struct attachment *attachment, struct error *err)
{
    struct event_base *base = loop_event_base(attachment->loop);

    attachment->readable =
        event_new(base, attachment->fd, EV_READ | EV_PERSIST, on_readable, attachment);
    attachment->writable =
        event_new(base, attachment->fd, EV_WRITE, on_writable, attachment);
    if (attachment->readable == NULL || attachment->writable == NULL ||
        event_add(attachment->readable, NULL) < 0)
        return error_set(err, ENOMEM, "out of memory for the console");
    return signals_watch(&attachment->signals, attachment->loop, on_signal, attachment,
                         err);
}

static int attach(struct attachment *attachment, const struct control_request *request,
                  struct error *err)
{
    attachment->instance = &request->instance;
    attachment->fd = api_connect_console(&request->instance, err);
    if (attachment->fd < 0 || loop_create(&attachment->loop, err) < 0 ||
        watch(attachment, err) < 0)
        return err->code;
    if (!request->no_input && terminal_open(attachment->loop, &terminal_ops, attachment,
                                            &attachment->terminal, err) < 0)
        return err->code;
    tell(attachment, "Ctrl-A x detaches, Ctrl-A h shows the other keys");
    if (loop_run(attachment->loop, err) < 0)
        return err->code;
    if (attachment->failure.code != 0)
        return error_set(err, attachment->failure.code, "%s", attachment->failure.text);
    return 0;
}

static void detach(struct attachment *attachment)
{
    terminal_close(attachment->terminal);
    signals_finish(&attachment->signals);
    if (attachment->readable != NULL)
        event_free(attachment->readable);
    if (attachment->writable != NULL)
        event_free(attachment->writable);
    loop_destroy(attachment->loop);
    fd_close(&attachment->fd);
    free(attachment);
}

int cli_console(int argc, char **argv, struct error *err)
{
    struct control_request request;
    int code = control_begin(CONTROL_NAME | CONTROL_NO_INPUT, argc, argv, &request, err);
    struct attachment *attachment;

    if (code != 0)
        return code;
    attachment = calloc(1, sizeof(*attachment));
    if (attachment == NULL) {
        error_set(err, ENOMEM, "out of memory for the console");
        return EXIT_HOST_FAILURE;
    }
    attachment->fd = -1;
    code =
        attach(attachment, &request, err) < 0 ? EXIT_HOST_FAILURE : attachment->exit_code;
    detach(attachment);
    return code;
}
