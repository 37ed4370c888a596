/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The console hub; see console.h.
 *
 * One ring of output, and for each reader (standard output, log file, attached socket,
 * line watcher) a thread with its own position in it. Positions count bytes since the
 * console was made; a reader that falls more than the ring behind has lost the
 * difference.
 */
#include "vm/console.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"

#define INPUT_QUEUE_BYTES 65536
#define MAX_READERS 16

/* What is written at once. Not above PIPE_BUF (POSIX limits.h): after POLLOUT a pipe
 * takes that much without blocking. */
#define WRITE_BYTES 4096

#define LINE_BYTES 1024
#define READER_STACK_BYTES (64 * KIB)

/* How often a reader that cannot write looks whether it should give up. */
#define WRITE_POLL_MS 100

/* At the end a reader may take as long as it likes, if only it takes something this
 * often. */
#define DRAIN_GRACE_NS NS_PER_SECOND

typedef void line_function(void *context, const char *text);

struct reader {
    struct console *console;
    pthread_t thread;
    bool in_use;  /* under the console's lock, as all below */
    bool done;    /* the thread has ended, or is about to */
    bool hung_up; /* nobody is at the other end any more: the thread shall end */
    bool owns_fd;
    int fd; /* -1: a line watcher */
    uint64_t position;
    line_function *line; /* line watcher: called without the lock */
    void *line_context;
    size_t line_used; /* the line so far; the thread's own */
    char line_text[LINE_BYTES];
};

struct console {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* output came, a reader advanced or ended, or closing */
    bool closing;
    bool abandoned;   /* closing, and no more patience with slow readers */
    uint64_t written; /* bytes ever put into the ring */
    struct reader readers[MAX_READERS];

    /* Input has its own lock: the guest's end is called with it held, and output may come
     * from there. */
    pthread_mutex_t input_lock;
    size_t (*feed)(void *context, const uint8_t *bytes, size_t size);
    void *feed_context;
    size_t input_start;
    size_t input_used;
    uint8_t input[INPUT_QUEUE_BYTES];

    uint8_t ring[CONSOLE_RING_BYTES];
};

/* Copies what follows `position` out of the ring, up to its wrap. Lock held. */
static size_t ring_copy(const struct console *console, uint64_t position, uint8_t *to,
                        size_t limit)
{
    uint64_t start = position % CONSOLE_RING_BYTES;
    size_t size = (size_t)min_u64(limit, console->written - position);

    size = (size_t)min_u64(size, CONSOLE_RING_BYTES - start);
    memcpy(to, console->ring + start, size);
    return size;
}

/* Skips what the ring no longer has; returns how much that was. Lock held. */
static uint64_t skip_lost(struct reader *reader)
{
    uint64_t behind = reader->console->written - reader->position;
    uint64_t lost = behind > CONSOLE_RING_BYTES ? behind - CONSOLE_RING_BYTES : 0;

    reader->position += lost;
    return lost;
}

/* Waits for output. False when there will be none for this reader. */
static bool next_chunk(struct reader *reader, uint8_t *chunk, size_t *size,
                       uint64_t *lost)
{
    struct console *console = reader->console;
    bool more;

    CHECK(pthread_mutex_lock(&console->lock) == 0);
    while (reader->position == console->written && !console->closing && !reader->hung_up)
        CHECK(pthread_cond_wait(&console->changed, &console->lock) == 0);
    *lost = skip_lost(reader);
    *size = ring_copy(console, reader->position, chunk, WRITE_BYTES);
    more = !console->closing && !reader->hung_up;
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
    return more;
}

static void advance(struct reader *reader, size_t size)
{
    struct console *console = reader->console;

    CHECK(pthread_mutex_lock(&console->lock) == 0);
    reader->position += size;
    CHECK(pthread_cond_broadcast(&console->changed) == 0);
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
}

static bool is_closing(struct console *console)
{
    bool closing;

    CHECK(pthread_mutex_lock(&console->lock) == 0);
    closing = console->closing;
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
    return closing;
}

/* Writes as much of the bytes as the descriptor takes in one go, once it takes any.
 * Returns the count, or 0 when nobody will ever read. */
static size_t write_some(struct reader *reader, const void *bytes, size_t size)
{
    for (;;) {
        struct pollfd ready = {.fd = reader->fd, .events = POLLOUT};
        int count = poll(&ready, 1, WRITE_POLL_MS);
        ssize_t put;

        if (is_closing(reader->console))
            return 0;
        if (count <= 0)
            continue;
        put = write(reader->fd, bytes, size);
        if (put > 0)
            return (size_t)put;
        if (put < 0 && errno != EINTR && errno != EAGAIN)
            return 0;
    }
}

static bool report_loss(struct reader *reader, uint64_t lost)
{
    char notice[80];
    int size = snprintf(notice, sizeof(notice),
                        "\r\n[husk: %" PRIu64 " bytes of console output lost]\r\n", lost);

    for (int put = 0; put < size;) {
        size_t taken = write_some(reader, notice + put, (size_t)(size - put));

        if (taken == 0)
            return false;
        put += (int)taken;
    }
    return true;
}

static void *write_output(void *context)
{
    struct reader *reader = context;
    struct console *console = reader->console;
    uint8_t chunk[WRITE_BYTES];
    uint64_t lost;
    size_t size;

    while (next_chunk(reader, chunk, &size, &lost)) {
        if (lost > 0 && !report_loss(reader, lost))
            break;
        size = write_some(reader, chunk, size);
        if (size == 0)
            break;
        advance(reader, size);
    }
    CHECK(pthread_mutex_lock(&console->lock) == 0);
    reader->done = true;
    if (reader->owns_fd)
        fd_close(&reader->fd);
    CHECK(pthread_cond_broadcast(&console->changed) == 0);
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
    return NULL;
}

/* A line longer than the buffer is given in pieces. */
static void split_lines(struct reader *reader, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool full = reader->line_used == LINE_BYTES - 1;

        if (bytes[i] == '\n' || full) {
            reader->line_text[reader->line_used] = '\0';
            reader->line(reader->line_context, reader->line_text);
            reader->line_used = 0;
        }
        if (bytes[i] != '\n' && bytes[i] != '\r' && bytes[i] != '\0')
            reader->line_text[reader->line_used++] = (char)bytes[i];
    }
}

static void *watch_lines(void *context)
{
    struct reader *reader = context;
    uint8_t chunk[WRITE_BYTES];
    uint64_t lost;
    size_t size;

    while (next_chunk(reader, chunk, &size, &lost)) {
        split_lines(reader, chunk, size);
        advance(reader, size);
    }
    return NULL;
}

/* Lock held. A slot whose thread has ended is joined and used again. */
static struct reader *free_reader(struct console *console)
{
    for (size_t i = 0; i < MAX_READERS; i++) {
        struct reader *reader = &console->readers[i];

        if (reader->in_use && reader->done) {
            CHECK(pthread_join(reader->thread, NULL) == 0);
            reader->in_use = false;
        }
        if (!reader->in_use)
            return reader;
    }
    return NULL;
}

/* While the guest is silent, readers do not find out that their other end was closed.
 * Here they are told. True if there are any; their threads end soon. Lock held. */
static bool dismiss_hung_up(struct console *console)
{
    bool any = false;

    for (size_t i = 0; i < MAX_READERS; i++) {
        struct reader *reader = &console->readers[i];
        struct pollfd end = {.fd = reader->fd};

        if (reader->in_use && !reader->done && reader->owns_fd && poll(&end, 1, 0) > 0)
            reader->hung_up = any = true; /* nothing but POLLHUP and POLLERR was asked */
    }
    CHECK(pthread_cond_broadcast(&console->changed) == 0);
    return any;
}

static int start_thread(struct reader *reader, void *(*function)(void *))
{
    pthread_attr_t attributes;
    int status;

    if (pthread_attr_init(&attributes) != 0)
        return -ENOMEM;
    status = pthread_attr_setstacksize(&attributes, READER_STACK_BYTES);
    if (status == 0)
        status = pthread_create(&reader->thread, &attributes, function, reader);
    CHECK(pthread_attr_destroy(&attributes) == 0);
    return -status;
}

static int add_reader(struct console *console, const struct reader *wanted,
                      size_t backlog_bytes, struct error *err)
{
    struct reader *reader;
    int status = -EMFILE;

    CHECK(pthread_mutex_lock(&console->lock) == 0);
    reader = free_reader(console);
    if (reader == NULL && dismiss_hung_up(console))
        while ((reader = free_reader(console)) == NULL)
            CHECK(pthread_cond_wait(&console->changed, &console->lock) == 0);
    if (reader != NULL) {
        uint64_t kept = min_u64(console->written, CONSOLE_RING_BYTES);

        *reader = *wanted;
        reader->console = console;
        reader->position = console->written - min_u64(backlog_bytes, kept);
        status = start_thread(reader, wanted->line != NULL ? watch_lines : write_output);
        reader->in_use = status == 0;
    }
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
    if (status < 0)
        return error_set_errno(err, status, "console: cannot add a reader");
    return 0;
}

int console_attach(struct console *console, int fd, size_t backlog_bytes,
                   struct error *err)
{
    struct reader reader = {.fd = fd, .owns_fd = true};
    int status = add_reader(console, &reader, backlog_bytes, err);

    if (status < 0)
        fd_close(&fd);
    return status;
}

int console_watch_lines(struct console *console,
                        void (*line)(void *context, const char *text), void *context,
                        struct error *err)
{
    struct reader reader = {.fd = -1, .line = line, .line_context = context};

    return add_reader(console, &reader, 0, err);
}

static int add_log(struct console *console, const char *path, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    if (fd < 0)
        return error_set_errno(err, errno, "log %s: cannot open for writing", path);
    return console_attach(console, fd, 0, err);
}

int console_create(int output_fd, const char *log_path, struct console **console,
                   struct error *err)
{
    struct console *created = calloc(1, sizeof(*created));
    struct reader output = {.fd = output_fd};

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for the console");
    CHECK(pthread_mutex_init(&created->lock, NULL) == 0);
    CHECK(pthread_cond_init(&created->changed, NULL) == 0);
    CHECK(pthread_mutex_init(&created->input_lock, NULL) == 0);
    if ((output_fd >= 0 && add_reader(created, &output, 0, err) < 0) ||
        (log_path != NULL && add_log(created, log_path, err) < 0)) {
        console_destroy(created);
        return err->code;
    }
    *console = created;
    return 0;
}

/* The reader that still has output to take, furthest behind. Lock held. */
static const struct reader *slowest_reader(const struct console *console)
{
    const struct reader *slowest = NULL;

    for (size_t i = 0; i < MAX_READERS; i++) {
        const struct reader *reader = &console->readers[i];

        if (reader->in_use && !reader->done && reader->position < console->written &&
            (slowest == NULL || reader->position < slowest->position))
            slowest = reader;
    }
    return slowest;
}

/* Waits until the slowest has moved on; false if it takes nothing for the grace time.
 * Lock held. */
static bool wait_for_progress(struct console *console, const struct reader *slowest)
{
    uint64_t position = slowest->position;
    uint64_t deadline_ns = clock_monotonic_ns() + DRAIN_GRACE_NS;
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / NS_PER_SECOND),
                                .tv_nsec = (long)(deadline_ns % NS_PER_SECOND)};
    int status = 0;

    while (status == 0 && slowest->position == position && !slowest->done)
        status = pthread_cond_clockwait(&console->changed, &console->lock,
                                        CLOCK_MONOTONIC, &deadline);
    return status == 0;
}

void console_drain(struct console *console)
{
    const struct reader *slowest;

    if (console == NULL)
        return;
    CHECK(pthread_mutex_lock(&console->lock) == 0);
    do
        slowest = slowest_reader(console);
    while (slowest != NULL && wait_for_progress(console, slowest));
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
}

void console_close(struct console *console)
{
    if (console == NULL)
        return;
    console_drain(console);
    CHECK(pthread_mutex_lock(&console->lock) == 0);
    console->closing = true;
    CHECK(pthread_cond_broadcast(&console->changed) == 0);
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
    for (size_t i = 0; i < MAX_READERS; i++) {
        if (console->readers[i].in_use)
            CHECK(pthread_join(console->readers[i].thread, NULL) == 0);
        console->readers[i].in_use = false;
    }
}

void console_destroy(struct console *console)
{
    if (console == NULL)
        return;
    console_close(console);
    CHECK(pthread_mutex_destroy(&console->input_lock) == 0);
    CHECK(pthread_cond_destroy(&console->changed) == 0);
    CHECK(pthread_mutex_destroy(&console->lock) == 0);
    free(console);
}

void console_output(struct console *console, const uint8_t *bytes, size_t size)
{
    CHECK(pthread_mutex_lock(&console->lock) == 0);
    for (size_t i = 0; i < size; i++)
        console->ring[(console->written + i) % CONSOLE_RING_BYTES] = bytes[i];
    console->written += size;
    CHECK(pthread_cond_broadcast(&console->changed) == 0);
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
}

/* Gives the guest what it has room for. Input lock held. */
static void feed_guest(struct console *console)
{
    while (console->feed != NULL && console->input_used > 0) {
        size_t run = (size_t)min_u64(console->input_used,
                                     INPUT_QUEUE_BYTES - console->input_start);
        size_t taken = console->feed(console->feed_context,
                                     console->input + console->input_start, run);

        console->input_start = (console->input_start + taken) % INPUT_QUEUE_BYTES;
        console->input_used -= taken;
        if (taken < run)
            return;
    }
}

size_t console_input(struct console *console, const uint8_t *bytes, size_t size)
{
    size_t taken;

    CHECK(pthread_mutex_lock(&console->input_lock) == 0);
    taken = (size_t)min_u64(size, INPUT_QUEUE_BYTES - console->input_used);
    for (size_t i = 0; i < taken; i++)
        console->input[(console->input_start + console->input_used + i) %
                       INPUT_QUEUE_BYTES] = bytes[i];
    console->input_used += taken;
    feed_guest(console);
    CHECK(pthread_mutex_unlock(&console->input_lock) == 0);
    return taken;
}

void console_connect(struct console *console,
                     size_t (*feed)(void *context, const uint8_t *bytes, size_t size),
                     void *context)
{
    CHECK(pthread_mutex_lock(&console->input_lock) == 0);
    console->feed = feed;
    console->feed_context = context;
    feed_guest(console);
    CHECK(pthread_mutex_unlock(&console->input_lock) == 0);
}

void console_room(struct console *console)
{
    CHECK(pthread_mutex_lock(&console->input_lock) == 0);
    feed_guest(console);
    CHECK(pthread_mutex_unlock(&console->input_lock) == 0);
}
