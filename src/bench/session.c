/* SPDX-License-Identifier: Apache-2.0 */
/* Talking with a child; see session_private.h. */
#include "bench/session_private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

int bench_session_open(struct bench_session *session, const char *const *arguments,
                       int interrupt_fd, struct error *err)
{
    session->interrupt_fd = interrupt_fd;
    session->is_open = true;
    if (bench_child_start(&session->child, arguments, true, err) < 0)
        bench_session_close(session);
    return err->code;
}

void bench_session_close(struct bench_session *session)
{
    if (session->is_open)
        bench_child_end(&session->child, true);
    session->is_open = false;
}

void bench_session_say(struct bench_session *session, const char *text)
{
    (void)!write(session->child.input, text, strlen(text));
}

uint64_t bench_session_line_ns(const struct bench_session *session)
{
    return session->child.woken_ns;
}

static void forget(struct bench_output *output, size_t size_bytes)
{
    output->size_bytes -= size_bytes;
    memmove(output->bytes, output->bytes + size_bytes, output->size_bytes + 1);
}

/* Whether the line is there; if so it is taken. */
static bool take_line(struct bench_output *output, const char *start, char *line)
{
    const char *found = strstr(output->bytes, start);
    const char *newline = found == NULL ? NULL : strchr(found, '\n');
    size_t size;

    if (newline == NULL)
        return false;
    found += strlen(start);
    size = newline > found ? (size_t)(newline - found) : 0;
    if (size >= BENCH_LINE_BYTES)
        size = BENCH_LINE_BYTES - 1;
    memcpy(line, found, size);
    line[size] = '\0';
    line[strcspn(line, "\r")] = '\0';
    forget(output, (size_t)(newline + 1 - output->bytes));
    return true;
}

int bench_session_expect(struct bench_session *session, const char *start,
                         uint64_t timeout_ms, char line[BENCH_LINE_BYTES],
                         struct error *err)
{
    struct bench_child *child = &session->child;
    uint64_t deadline_ns = clock_monotonic_ns() + timeout_ms * NS_PER_MS;

    while (!take_line(&child->outputs[BENCH_STREAM_OUTPUT], start, line)) {
        int status;

        if (!session->is_open)
            return bench_child_fail(child, session->end_status, "answer", timeout_ms,
                                    err);
        status = bench_child_wait(child, deadline_ns, session->interrupt_fd);
        if (status == 0)
            continue;
        /* What it said last is looked at once more. */
        bench_child_end(child, status < 0);
        session->end_status = status;
        session->is_open = false;
    }
    return 0;
}
