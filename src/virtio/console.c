/* SPDX-License-Identifier: Apache-2.0 */
/* virtio-console; see console.h. */
#include "virtio/console.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "virtio/chain.h"

#define DEVICE_ID 3 /* 5.3.1 */

/* 5.3.2: of port 0. */
enum { QUEUE_RECEIVE, QUEUE_TRANSMIT, QUEUES };

#define FEATURE_SIZE (UINT64_C(1) << 0) /* 5.3.3 */
#define FEATURE_EMERGENCY_WRITE (UINT64_C(1) << 2)

/* Configuration space (5.3.4). */
enum {
    CONFIG_COLUMNS = 0,
    CONFIG_ROWS = 2,
    CONFIG_MAX_PORTS = 4,
    CONFIG_EMERGENCY_WRITE = 8,
    CONFIG_BYTES = 12,
};

/* Chains at a time: the loop has other work. */
#define BATCH 16
/* Of a chain. Linux sends a page at most; a hostile driver can name gigabytes in one, and
 * what is cut off is output that nobody could have read. */
#define OUTPUT_LIMIT_BYTES ((size_t)64 * KIB)

/* Linux 6.1 (drivers/char/virtio_console.c, add_port) gives buffers for input before it
 * has made the port: what comes then is lost, and a change of the size crashes it. So the
 * driver is left alone until it has sent something, or so long after its start. */
#define PATIENCE_SECONDS 1

struct virtio_console {
    struct virtio_device device;
    struct virtio_console_options options;
    struct event *patience; /* pending from the driver's start on */
    _Atomic uint32_t size;  /* columns, and rows in the upper half */
    _Atomic uint64_t bytes_out;
    _Atomic uint64_t bytes_in;

    /* Held while the queues are in use, by which stopping waits for that. */
    pthread_mutex_t lock;
    bool running[QUEUES];
    bool ready; /* for input, and for changes of the size */
    struct virtio_chain chain;
};

/* ---- output ---- */

static void put(struct virtio_console *console, const uint8_t *bytes, size_t size)
{
    console->options.output(console->options.context, bytes, size);
    atomic_fetch_add(&console->bytes_out, size);
}

static void put_chain(struct virtio_console *console, const struct virtio_chain *chain)
{
    size_t left = OUTPUT_LIMIT_BYTES;

    for (unsigned i = 0; i < chain->readable_count && left > 0; i++) {
        size_t size = min_u64(chain->buffers[i].iov_len, left);

        put(console, chain->buffers[i].iov_base, size);
        left -= size;
    }
}

/* The loop's thread, without locks. */
static void become_ready(struct virtio_console *console)
{
    bool was_ready;

    CHECK(pthread_mutex_lock(&console->lock) == 0);
    was_ready = console->ready;
    console->ready = console->running[QUEUE_RECEIVE];
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
    if (was_ready)
        return;
    if (atomic_load(&console->size) != 0)
        virtio_device_config_changed(&console->device);
    console->options.room(console->options.context);
}

static void handle_patience(int fd, short what, void *context)
{
    (void)fd;
    (void)what;
    become_ready(context);
}

/* True if there may be more. */
static bool transmit(struct virtio_console *console, unsigned *sent)
{
    struct virtio_queue *ring = &console->device.queues[QUEUE_TRANSMIT].ring;

    if (!console->running[QUEUE_TRANSMIT] || !virtio_device_is_live(&console->device))
        return false;
    while (*sent < BATCH && virtio_queue_take(ring, &console->chain)) {
        put_chain(console, &console->chain);
        virtio_queue_give(ring, &console->chain, 0);
        ++*sent;
    }
    virtio_device_interrupt(&console->device, QUEUE_TRANSMIT);
    virtio_device_check_queue(&console->device, QUEUE_TRANSMIT);
    return virtio_queue_listen(ring);
}

/* The loop's thread. */
static void handle_output(int fd, short what, void *context)
{
    struct virtio_console *console = context;
    unsigned sent = 0;
    bool more;

    (void)fd;
    (void)what;
    virtio_device_accept_notification(&console->device, QUEUE_TRANSMIT);
    CHECK(pthread_mutex_lock(&console->lock) == 0);
    more = transmit(console, &sent);
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
    if (more) /* after what else the loop has to do */
        virtio_device_notify(&console->device, QUEUE_TRANSMIT);
    if (sent > 0)
        become_ready(console);
}

/* ---- input ---- */

/* As many bytes as the driver has given buffers for, and a hint whether it has given more
 * meanwhile. */
static size_t receive(struct virtio_console *console, const uint8_t *bytes, size_t size,
                      bool *more)
{
    struct virtio_queue *ring = &console->device.queues[QUEUE_RECEIVE].ring;
    size_t done = 0;

    for (unsigned i = 0;
         i < BATCH && done < size && virtio_queue_take(ring, &console->chain); i++) {
        size_t part = virtio_chain_write(&console->chain, bytes + done, size - done);

        virtio_queue_give(ring, &console->chain, (uint32_t)part);
        done += part;
    }
    virtio_device_interrupt(&console->device, QUEUE_RECEIVE);
    virtio_device_check_queue(&console->device, QUEUE_RECEIVE);
    *more = done < size && virtio_queue_listen(ring);
    return done;
}

size_t virtio_console_input(struct virtio_console *console, const uint8_t *bytes,
                            size_t size)
{
    bool more = false;
    size_t done = 0;

    CHECK(pthread_mutex_lock(&console->lock) == 0);
    if (console->ready && virtio_device_is_live(&console->device))
        done = receive(console, bytes, size, &more);
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
    atomic_fetch_add(&console->bytes_in, done);
    if (more)
        virtio_device_notify(&console->device, QUEUE_RECEIVE);
    return done;
}

/* The loop's thread. */
static void handle_room(int fd, short what, void *context)
{
    static const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    struct virtio_console *console = context;
    bool ready;

    (void)fd;
    (void)what;
    virtio_device_accept_notification(&console->device, QUEUE_RECEIVE);
    CHECK(pthread_mutex_lock(&console->lock) == 0);
    ready = console->ready;
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
    if (ready)
        console->options.room(console->options.context);
    else if (event_pending(console->patience, EV_TIMEOUT, NULL) == 0)
        (void)event_add(console->patience, &patience);
}

/* ---- what the driver does ---- */

static void set_running(struct virtio_console *console, unsigned queue, bool running)
{
    CHECK(pthread_mutex_lock(&console->lock) == 0);
    for (unsigned i = 0; i < QUEUES; i++)
        if (queue == VIRTIO_ALL_QUEUES || queue == i)
            console->running[i] = running;
    console->ready = console->ready && console->running[QUEUE_RECEIVE];
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
}

/* There may be output and room already. */
static void start(void *context)
{
    struct virtio_console *console = context;

    set_running(console, VIRTIO_ALL_QUEUES, true);
    virtio_device_notify_all(&console->device);
}

static void stop(void *context, unsigned queue)
{
    set_running(context, queue, false);
}

static uint32_t config_read(void *context, uint32_t offset, unsigned size)
{
    struct virtio_console *console = context;
    uint8_t config[CONFIG_BYTES + sizeof(uint32_t)] = {0};

    store_le32(config + CONFIG_COLUMNS, atomic_load(&console->size));
    store_le32(config + CONFIG_MAX_PORTS, 1);
    return load_le32(config + offset) & (uint32_t)((UINT64_C(1) << 8 * size) - 1);
}

/* 5.3.4: one byte at a time, before there are queues or when they do not work any more.
 */
static void config_write(void *context, uint32_t offset, unsigned size, uint32_t value)
{
    uint8_t byte = (uint8_t)value;

    (void)size;
    if (offset == CONFIG_EMERGENCY_WRITE)
        put(context, &byte, 1);
}

static const struct virtio_ops console_ops = {
    .name = "virtio-console",
    .device_id = DEVICE_ID,
    .features = FEATURE_SIZE | FEATURE_EMERGENCY_WRITE,
    .queue_count = QUEUES,
    .config_bytes = CONFIG_BYTES,
    .start = start,
    .stop = stop,
    .config_read = config_read,
    .config_write = config_write,
};

void virtio_console_resize(struct virtio_console *console, uint16_t columns,
                           uint16_t rows)
{
    uint32_t size = (uint32_t)rows << 16 | columns;

    bool ready;

    CHECK(pthread_mutex_lock(&console->lock) == 0);
    ready = console->ready;
    CHECK(pthread_mutex_unlock(&console->lock) == 0);
    if (atomic_exchange(&console->size, size) != size && ready)
        virtio_device_config_changed(&console->device);
}

/* ---- the device ---- */

int virtio_console_create(const struct virtio_console_options *options, struct loop *loop,
                          struct memory *memory, struct virtio_console **console,
                          struct error *err)
{
    struct virtio_console *created = calloc(1, sizeof(*created));

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for virtio-console");
    if (virtio_device_init(&created->device, &console_ops, created, memory, err) < 0) {
        free(created);
        return err->code;
    }
    created->options = *options;
    CHECK(pthread_mutex_init(&created->lock, NULL) == 0);
    created->patience = evtimer_new(loop_event_base(loop), handle_patience, created);
    if (created->patience == NULL)
        error_set(err, -ENOMEM, "out of memory for the main loop");
    if (created->patience == NULL ||
        virtio_device_watch(&created->device, loop, QUEUE_RECEIVE, handle_room, created,
                            err) < 0 ||
        virtio_device_watch(&created->device, loop, QUEUE_TRANSMIT, handle_output,
                            created, err) < 0) {
        virtio_console_destroy(created);
        return err->code;
    }
    *console = created;
    return 0;
}

void virtio_console_destroy(struct virtio_console *console)
{
    if (console == NULL)
        return;
    if (console->patience != NULL)
        event_free(console->patience);
    virtio_device_finish(&console->device);
    CHECK(pthread_mutex_destroy(&console->lock) == 0);
    free(console);
}

struct virtio_device *virtio_console_device(struct virtio_console *console)
{
    return &console->device;
}

struct virtio_console_counters
virtio_console_counters(const struct virtio_console *console)
{
    return (struct virtio_console_counters){
        .bytes_out = atomic_load(&console->bytes_out),
        .bytes_in = atomic_load(&console->bytes_in),
    };
}
