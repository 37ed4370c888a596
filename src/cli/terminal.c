/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input as a console; see terminal.h. */
#include "cli/terminal.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"

#define INPUT_BYTES 4096

/* While the guest has no room, what was read is offered again after this time. */
#define RETRY_MS 10

struct terminal {
    const struct terminal_ops *ops;
    void *context;
    struct event *readable;
    struct event *retry;
    struct event *continued; /* SIGCONT */
    struct event *resized;   /* SIGWINCH */
    struct escape_filter filter;
    bool is_terminal;
    size_t pending_start;
    size_t pending_end;
    uint8_t pending[INPUT_BYTES];
};

/* What a fatal signal or exit() must put back: set before raw mode, read in signal
 * context. */
static struct termios saved_modes;
static atomic_bool modes_changed;

static void restore_modes(void)
{
    if (!atomic_exchange(&modes_changed, false))
        return;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &saved_modes);
    log_set_raw_terminal(false);
}

static void restore_and_die(int number)
{
    restore_modes();
    (void)raise(number); /* SA_RESETHAND: the default action follows */
}

static void guard_against_death(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};
    struct sigaction action = {.sa_handler = restore_and_die,
                               .sa_flags = (int)SA_RESETHAND};
    static bool registered;

    if (registered)
        return;
    registered = true;
    (void)atexit(restore_modes);
    for (size_t i = 0; i < ARRAY_SIZE(fatal); i++) {
        struct sigaction current;

        /* A handler somebody else installed (SIGBUS of guest memory) keeps its place. */
        if (sigaction(fatal[i], NULL, &current) == 0 && current.sa_handler == SIG_DFL)
            (void)sigaction(fatal[i], &action, NULL);
    }
}

static int set_raw_modes(void)
{
    struct termios raw = saved_modes;

    cfmakeraw(&raw);
    raw.c_oflag |=
        OPOST; /* stderr lines of other programs on the terminal stay readable */
    return tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static int make_raw(struct error *err)
{
    if (tcgetattr(STDIN_FILENO, &saved_modes) < 0)
        return error_set_errno(err, errno, "cannot read the terminal's modes");
    guard_against_death();
    atomic_store(&modes_changed, true);
    if (set_raw_modes() < 0)
        return error_set_errno(err, errno, "cannot switch the terminal to raw mode");
    log_set_raw_terminal(true);
    return 0;
}

size_t escape_filter_feed(struct escape_filter *filter, const uint8_t *bytes, size_t size,
                          uint8_t *plain, void (*key)(void *context, char letter),
                          void *context)
{
    size_t plain_size = 0;

    for (size_t i = 0; i < size; i++) {
        uint8_t byte = bytes[i];

        if (!filter->escaped && byte == TERMINAL_ESCAPE) {
            filter->escaped = true;
            continue;
        }
        if (!filter->escaped)
            plain[plain_size++] = byte;
        else if (byte == 'a' || byte == TERMINAL_ESCAPE)
            plain[plain_size++] = TERMINAL_ESCAPE;
        else
            key(context, (char)byte);
        filter->escaped = false;
    }
    return plain_size;
}

/* Offers what is pending; with some left, reading stops until the guest has room. A
 * terminal is read on, for its escape keys must work when the guest takes nothing. */
static void offer_pending(struct terminal *terminal)
{
    static const struct timeval retry_time = {.tv_usec = RETRY_MS * 1000L};

    terminal->pending_start += terminal->ops->input(
        terminal->context, terminal->pending + terminal->pending_start,
        terminal->pending_end - terminal->pending_start);
    if (terminal->pending_start < terminal->pending_end && !terminal->is_terminal)
        (void)event_add(terminal->retry, &retry_time);
    else
        (void)event_add(terminal->readable, NULL);
}

static void on_retry(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    offer_pending(context);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
    struct terminal *terminal = context;
    uint8_t bytes[INPUT_BYTES];
    ssize_t got = read(fd, bytes, sizeof(bytes));

    (void)what;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        (void)event_add(terminal->readable, NULL);
        return;
    }
    if (got <= 0)
        return; /* end of input is not the end of the guest */
    terminal->pending_start = 0;
    if (terminal->is_terminal) {
        terminal->pending_end =
            escape_filter_feed(&terminal->filter, bytes, (size_t)got, terminal->pending,
                               terminal->ops->key, terminal->context);
    } else {
        memcpy(terminal->pending, bytes, (size_t)got);
        terminal->pending_end = (size_t)got;
    }
    offer_pending(terminal);
}

/* While the process was stopped the shell has had the terminal for itself. Continued in
 * the background (of a terminal that knows of jobs), it must not touch it; `fg` sends the
 * signal again. */
static void on_continued(evutil_socket_t number, short what, void *context)
{
    pid_t foreground = tcgetpgrp(STDIN_FILENO);

    (void)number;
    (void)what;
    (void)context;
    if (foreground < 0 || foreground == getpgrp())
        (void)set_raw_modes();
}

static void tell_size(const struct terminal *terminal)
{
    struct winsize size;

    if (terminal->ops->resized != NULL && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
        terminal->ops->resized(terminal->context, size.ws_col, size.ws_row);
}

static void on_resized(evutil_socket_t number, short what, void *context)
{
    (void)number;
    (void)what;
    tell_size(context);
}

static int watch_signal(struct terminal *terminal, struct event_base *base, int number,
                        event_callback_fn handle, struct event **event, struct error *err)
{
    *event = evsignal_new(base, number, handle, terminal);
    if (*event == NULL || event_add(*event, NULL) < 0)
        return error_set(err, -EIO, "cannot watch signal %d", number);
    return 0;
}

static int watch_terminal(struct terminal *terminal, struct event_base *base,
                          struct error *err)
{
    if (watch_signal(terminal, base, SIGCONT, on_continued, &terminal->continued, err) <
            0 ||
        watch_signal(terminal, base, SIGWINCH, on_resized, &terminal->resized, err) < 0)
        return err->code;
    tell_size(terminal);
    return 0;
}

int terminal_open(struct loop *loop, const struct terminal_ops *ops, void *context,
                  struct terminal **terminal, struct error *err)
{
    struct event_base *base = loop_event_base(loop);
    struct terminal *opened = calloc(1, sizeof(*opened));

    if (opened == NULL)
        return error_set(err, -ENOMEM, "out of memory for the console");
    opened->ops = ops;
    opened->context = context;
    opened->is_terminal = isatty(STDIN_FILENO) == 1;
    opened->readable = event_new(base, STDIN_FILENO, EV_READ, on_readable, opened);
    opened->retry = event_new(base, -1, 0, on_retry, opened);
    if (opened->readable == NULL || opened->retry == NULL) {
        error_set(err, -ENOMEM, "out of memory for the console");
        goto fail;
    }
    if (opened->is_terminal &&
        (watch_terminal(opened, base, err) < 0 || make_raw(err) < 0))
        goto fail;
    /* A closed standard input cannot be watched; the guest then simply gets no input. */
    (void)event_add(opened->readable, NULL);
    *terminal = opened;
    return 0;

fail:
    terminal_close(opened);
    return err->code;
}

void terminal_close(struct terminal *terminal)
{
    if (terminal == NULL)
        return;
    restore_modes();
    if (terminal->readable != NULL)
        event_free(terminal->readable);
    if (terminal->retry != NULL)
        event_free(terminal->retry);
    if (terminal->continued != NULL)
        event_free(terminal->continued);
    if (terminal->resized != NULL)
        event_free(terminal->resized);
    free(terminal);
}

bool terminal_is_raw(const struct terminal *terminal)
{
    return terminal->is_terminal;
}
