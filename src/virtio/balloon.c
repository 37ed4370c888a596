/* SPDX-License-Identifier: Apache-2.0 */
/* virtio-balloon; see balloon.h. Section numbers are those of virtio 1.2. */
#include "virtio/balloon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "virtio/chain.h"

#define DEVICE_ID 5 /* 5.5.1 */

/* 5.5.2. Behind the first two come those of the features that were agreed on. What
 * number the last one then has, the specification and Linux understand differently: it is
 * 4 always, or the next that is free. Free page hinting is not offered, so all that
 * follows the statistics is that one queue. */
enum { QUEUE_INFLATE, QUEUE_DEFLATE, QUEUE_STATISTICS, QUEUES = 5 };

#define FEATURE_STATISTICS (UINT64_C(1) << 1) /* 5.5.3 */
#define FEATURE_DEFLATE_ON_OOM (UINT64_C(1) << 2)
#define FEATURE_PAGE_POISON (UINT64_C(1) << 4)
#define FEATURE_REPORTING (UINT64_C(1) << 5)

/* Configuration space (5.5.4). */
enum {
    CONFIG_TARGET = 0, /* in pages, as the next one */
    CONFIG_ACTUAL = 4,
    CONFIG_HINT_COMMAND = 8,
    CONFIG_POISON = 12,
    CONFIG_BYTES = 16,
};

/* Pages of the balloon have this size, whatever the guest's have (5.5.6). */
#define PAGE_BYTES UINT64_C(4096)
#define PAGE_NUMBER_BYTES 4

/* A turn of the loop does no more than this of a request: a millisecond or two. Linux
 * names up to 256 pages, or reports up to 32 ranges of 2 MiB or 4 MiB. */
#define TURN_PAGE_NUMBERS 256
#define TURN_BYTES (64 * MIB)

#define STATISTIC_BYTES 10 /* a tag of 16 bits and a value of 64 */
#define STATISTICS_LIMIT 32

struct balloon_queue {
    struct virtio_balloon *balloon;
    unsigned index;

    /* Under the balloon's lock. */
    bool running;
    bool has_chain; /* taken, and not given back: */
    struct virtio_chain chain;
    size_t done_bytes; /* of the chain's */
};

struct virtio_balloon {
    struct virtio_device device;
    struct virtio_balloon_options options;
    struct memory *memory; /* borrowed */
    struct balloon_queue queues[QUEUES];

    /* Of the configuration space; pages, but for the last. */
    _Atomic uint32_t target;
    _Atomic uint32_t actual;
    _Atomic uint32_t poison;

    /* Held while the queues are in use, by which stopping waits for that. */
    pthread_mutex_t lock;
    struct virtio_balloon_status status; /* but for target and actual */
};

/* ---- giving back ---- */

/* [start, end), as far as the guest may give it back. */
static void discard(struct virtio_balloon *balloon, uint64_t start, uint64_t end)
{
    for (size_t i = 0; i < balloon->options.span_count; i++) {
        const struct memory_span *span = &balloon->options.spans[i];
        uint64_t from = max_u64(start, span->gpa);
        uint64_t to = min_u64(end, span->gpa + span->size_bytes);
        uint64_t kept_bytes;

        if (from >= to)
            continue;
        CHECK(memory_discard(balloon->memory, from, to - from, &kept_bytes) == 0);
        balloon->status.kept_bytes += kept_bytes;
    }
}

/* ---- inflation ---- */

/* Linux names the pages of a larger block one by one, upwards or downwards. */
static void discard_pages(struct virtio_balloon *balloon, const uint8_t *numbers,
                          size_t count)
{
    uint64_t first = 0;
    uint64_t end = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t page = load_le32(numbers + i * PAGE_NUMBER_BYTES);

        if (page == end) {
            end++;
        } else if (page + 1 == first) {
            first--;
        } else {
            discard(balloon, first * PAGE_BYTES, end * PAGE_BYTES);
            first = page;
            end = page + 1;
        }
    }
    discard(balloon, first * PAGE_BYTES, end * PAGE_BYTES);
    balloon->status.inflated_bytes += count * PAGE_BYTES;
}

/* True: that was all of the request. */
static bool inflate(struct virtio_balloon *balloon, struct balloon_queue *queue)
{
    uint8_t numbers[TURN_PAGE_NUMBERS * PAGE_NUMBER_BYTES];
    size_t size =
        virtio_chain_read_at(&queue->chain, queue->done_bytes, numbers, sizeof(numbers));

    discard_pages(balloon, numbers, size / PAGE_NUMBER_BYTES);
    queue->done_bytes += size;
    return size < sizeof(numbers);
}

/* ---- reports ---- */

/* Pages that the guest has filled with something may stay so or be filled again, and
 * nothing else (5.5.6.7.2). Zeros are what fresh memory is full of. */
static bool is_poisoned(const struct virtio_balloon *balloon)
{
    return virtio_device_has_feature(&balloon->device, FEATURE_PAGE_POISON) &&
           atomic_load(&balloon->poison) != 0;
}

/* The buffer that has the byte at `*at` of what the device may write, and where in it. */
static const struct iovec *find_buffer(const struct virtio_chain *chain, size_t *at)
{
    for (unsigned i = 0; i < chain->writable_count; i++) {
        const struct iovec *buffer = &chain->buffers[chain->readable_count + i];

        if (*at < buffer->iov_len)
            return buffer;
        *at -= buffer->iov_len;
    }
    return NULL;
}

/* The whole pages in a part of a buffer. */
static void discard_buffer(struct virtio_balloon *balloon, const struct iovec *buffer,
                           size_t at, size_t size)
{
    uint64_t gpa =
        memory_slice_gpa(balloon->memory, (const uint8_t *)buffer->iov_base + at);
    uint64_t start = align_up(gpa, PAGE_BYTES);
    uint64_t end = align_down(gpa + size, PAGE_BYTES);

    if (start >= end)
        return;
    discard(balloon, start, end);
    balloon->status.reported_bytes += end - start;
}

/* The buffers are the free pages. True: that was all of them. */
static bool report(struct virtio_balloon *balloon, struct balloon_queue *queue)
{
    size_t left = TURN_BYTES;

    if (is_poisoned(balloon)) {
        balloon->status.poisoned_bytes += queue->chain.writable_bytes;
        return true;
    }
    while (left > 0) {
        size_t at = queue->done_bytes;
        const struct iovec *buffer = find_buffer(&queue->chain, &at);
        size_t size;

        if (buffer == NULL)
            return true;
        size = min_u64(buffer->iov_len - at, left);
        discard_buffer(balloon, buffer, at, size);
        queue->done_bytes += size;
        left -= size;
    }
    return false;
}

/* ---- statistics ---- */

static void read_statistics(struct virtio_balloon *balloon,
                            const struct virtio_chain *chain)
{
    struct virtio_balloon_status *status = &balloon->status;
    uint8_t bytes[STATISTICS_LIMIT * STATISTIC_BYTES];
    size_t size = virtio_chain_read_at(chain, 0, bytes, sizeof(bytes));

    status->statistics_known = 0;
    for (size_t at = 0; at + STATISTIC_BYTES <= size; at += STATISTIC_BYTES) {
        unsigned tag = load_le16(bytes + at);

        if (tag >= VIRTIO_BALLOON_STATISTICS)
            continue; /* of a later version */
        status->statistics[tag] = load_le64(bytes + at + 2);
        status->statistics_known |= 1u << tag;
    }
}

/* ---- queues ---- */

static bool is_statistics(const struct virtio_balloon *balloon,
                          const struct balloon_queue *queue)
{
    return queue->index == QUEUE_STATISTICS &&
           virtio_device_has_feature(&balloon->device, FEATURE_STATISTICS);
}

static void give_back(struct virtio_balloon *balloon, struct balloon_queue *queue)
{
    virtio_queue_give(&balloon->device.queues[queue->index].ring, &queue->chain, 0);
    queue->has_chain = false;
    virtio_device_interrupt(&balloon->device, queue->index);
}

/* True if there is a chain to work on. */
static bool take(struct virtio_balloon *balloon, struct balloon_queue *queue)
{
    if (!queue->has_chain) {
        queue->has_chain =
            virtio_queue_take(&balloon->device.queues[queue->index].ring, &queue->chain);
        queue->done_bytes = 0;
        virtio_device_check_queue(&balloon->device, queue->index);
    }
    return queue->has_chain;
}

/* The buffer is kept until somebody asks for new statistics, by giving it back (5.5.6.3).
 * A driver that offers another one meanwhile gets the first one back. */
static void serve_statistics(struct virtio_balloon *balloon, struct balloon_queue *queue)
{
    struct virtio_queue *ring = &balloon->device.queues[queue->index].ring;

    if (queue->has_chain && virtio_queue_listen(ring))
        give_back(balloon, queue);
    if (!queue->has_chain && take(balloon, queue))
        read_statistics(balloon, &queue->chain);
}

/* True: the request has been done. Pages that the guest takes out of the balloon come
 * when it touches them. */
static bool work(struct virtio_balloon *balloon, struct balloon_queue *queue)
{
    switch (queue->index) {
    case QUEUE_INFLATE:
        return inflate(balloon, queue);
    case QUEUE_DEFLATE:
        return true;
    default:
        return report(balloon, queue);
    }
}

/* True if there is more to do, or may be. */
static bool serve(struct virtio_balloon *balloon, struct balloon_queue *queue)
{
    struct virtio_queue *ring = &balloon->device.queues[queue->index].ring;

    if (is_statistics(balloon, queue)) {
        serve_statistics(balloon, queue);
        return virtio_queue_listen(ring);
    }
    if (!take(balloon, queue))
        return virtio_queue_listen(ring);
    if (work(balloon, queue))
        give_back(balloon, queue);
    return true;
}

/* The loop's thread. */
static void handle_notification(int fd, short what, void *context)
{
    struct balloon_queue *queue = context;
    struct virtio_balloon *balloon = queue->balloon;
    bool more;

    (void)fd;
    (void)what;
    virtio_device_accept_notification(&balloon->device, queue->index);
    CHECK(pthread_mutex_lock(&balloon->lock) == 0);
    more = queue->running && virtio_device_is_live(&balloon->device) &&
           serve(balloon, queue);
    CHECK(pthread_mutex_unlock(&balloon->lock) == 0);
    if (more) /* after what else the loop has to do */
        virtio_device_notify(&balloon->device, queue->index);
}

/* ---- what the driver does ---- */

/* Requests may be waiting already. */
static void start(void *context)
{
    struct virtio_balloon *balloon = context;

    CHECK(pthread_mutex_lock(&balloon->lock) == 0);
    for (unsigned i = 0; i < QUEUES; i++)
        balloon->queues[i].running = true;
    CHECK(pthread_mutex_unlock(&balloon->lock) == 0);
    virtio_device_notify_all(&balloon->device);
}

static void stop_queue(struct virtio_balloon *balloon, struct balloon_queue *queue)
{
    queue->running = false;
    if (queue->has_chain)
        virtio_queue_drop(&balloon->device.queues[queue->index].ring, &queue->chain);
    queue->has_chain = false;
}

/* All pages of the balloon are the guest's again when the device is reset. */
static void stop(void *context, unsigned queue)
{
    struct virtio_balloon *balloon = context;

    CHECK(pthread_mutex_lock(&balloon->lock) == 0);
    for (unsigned i = 0; i < QUEUES; i++)
        if (queue == VIRTIO_ALL_QUEUES || queue == i)
            stop_queue(balloon, &balloon->queues[i]);
    if (queue == VIRTIO_ALL_QUEUES) {
        atomic_store(&balloon->actual, 0);
        atomic_store(&balloon->poison, 0);
        balloon->status.statistics_known = 0;
    }
    CHECK(pthread_mutex_unlock(&balloon->lock) == 0);
}

static uint32_t config_read(void *context, uint32_t offset, unsigned size)
{
    struct virtio_balloon *balloon = context;
    uint8_t config[CONFIG_BYTES] = {0};
    uint8_t bytes[4] = {0};

    store_le32(config + CONFIG_TARGET, atomic_load(&balloon->target));
    store_le32(config + CONFIG_ACTUAL, atomic_load(&balloon->actual));
    store_le32(config + CONFIG_POISON, atomic_load(&balloon->poison));
    memcpy(bytes, config + offset, size);
    return load_le32(bytes);
}

/* Both are words of 32 bits that are written as such (4.1.3.1). */
static void config_write(void *context, uint32_t offset, unsigned size, uint32_t value)
{
    struct virtio_balloon *balloon = context;

    if (size == 4 && offset == CONFIG_ACTUAL)
        atomic_store(&balloon->actual, value);
    else if (size == 4 && offset == CONFIG_POISON)
        atomic_store(&balloon->poison, value);
}

static const struct virtio_ops balloon_ops = {
    .name = "virtio-balloon",
    .device_id = DEVICE_ID,
    .features = FEATURE_STATISTICS | FEATURE_DEFLATE_ON_OOM | FEATURE_PAGE_POISON |
                FEATURE_REPORTING,
    .queue_count = QUEUES,
    .config_bytes = CONFIG_BYTES,
    .start = start,
    .stop = stop,
    .config_read = config_read,
    .config_write = config_write,
};

/* ---- the device ---- */

int virtio_balloon_create(const struct virtio_balloon_options *options, struct loop *loop,
                          struct memory *memory, struct virtio_balloon **balloon,
                          struct error *err)
{
    struct virtio_balloon *created = calloc(1, sizeof(*created));

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for virtio-balloon");
    if (virtio_device_init(&created->device, &balloon_ops, created, memory, err) < 0) {
        free(created);
        return err->code;
    }
    CHECK(memory_may_discard(memory));
    created->options = *options;
    created->memory = memory;
    CHECK(pthread_mutex_init(&created->lock, NULL) == 0);
    for (unsigned i = 0; i < QUEUES; i++) {
        created->queues[i].balloon = created;
        created->queues[i].index = i;
        if (virtio_device_watch(&created->device, loop, i, handle_notification,
                                &created->queues[i], err) < 0) {
            virtio_balloon_destroy(created);
            return err->code;
        }
    }
    *balloon = created;
    return 0;
}

void virtio_balloon_destroy(struct virtio_balloon *balloon)
{
    if (balloon == NULL)
        return;
    virtio_device_finish(&balloon->device);
    CHECK(pthread_mutex_destroy(&balloon->lock) == 0);
    free(balloon);
}

struct virtio_device *virtio_balloon_device(struct virtio_balloon *balloon)
{
    return &balloon->device;
}

void virtio_balloon_set_target(struct virtio_balloon *balloon, uint64_t target_bytes)
{
    uint32_t pages = (uint32_t)min_u64(target_bytes / PAGE_BYTES, UINT32_MAX);

    if (atomic_exchange(&balloon->target, pages) != pages)
        virtio_device_config_changed(&balloon->device);
}

void virtio_balloon_status(struct virtio_balloon *balloon,
                           struct virtio_balloon_status *status)
{
    struct balloon_queue *queue = &balloon->queues[QUEUE_STATISTICS];

    CHECK(pthread_mutex_lock(&balloon->lock) == 0);
    *status = balloon->status;
    if (queue->has_chain && is_statistics(balloon, queue) &&
        virtio_device_is_live(&balloon->device))
        give_back(balloon, queue);
    CHECK(pthread_mutex_unlock(&balloon->lock) == 0);
    status->target_bytes = atomic_load(&balloon->target) * PAGE_BYTES;
    status->actual_bytes = atomic_load(&balloon->actual) * PAGE_BYTES;
}
