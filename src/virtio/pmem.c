/* SPDX-License-Identifier: Apache-2.0 */
/* virtio-pmem; see pmem.h. */
#include "virtio/pmem.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "virtio/chain.h"

#define DEVICE_ID 27 /* 5.19.1 */
#define QUEUE 0      /* 5.19.2 */

#define REQUEST_FLUSH 0 /* 5.19.6.1 */
enum response { RESPONSE_OK = 0, RESPONSE_ERROR = 1 };
#define WORD_BYTES 4 /* what a request is, and a response */

/* Configuration space (5.19.4). */
#define CONFIG_START 0
#define CONFIG_SIZE 8
#define CONFIG_BYTES 16

/* Flushes that are answered by one flush of the file. Linux has one in flight for each
 * process that waits for it. */
#define BATCH 8

struct virtio_pmem {
    struct virtio_device device;
    struct virtio_pmem_options options;
    struct memory *memory; /* borrowed */
    uint8_t config[CONFIG_BYTES];
    pthread_t worker;
    atomic_bool ending; /* set before the worker is notified the last time */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ended;
    bool has_ended;
    bool running;
    unsigned taken; /* chains that the worker has */

    /* The worker's. */
    int flush_failure; /* of the first flush that failed; 0: none has */
    struct log_gate gate;
    struct virtio_chain chains[BATCH];
};

/* ---- one flush ---- */

/* A file that has lost a page once has lost what the guest wrote there since. */
static int flush_file(struct virtio_pmem *pmem)
{
    struct memory_loss loss;

    if (memory_lost(pmem->memory, &loss))
        return -EIO;
    return fdatasync(pmem->options.fd) < 0 ? -errno : 0;
}

/* Linux reports pages that could not be written once and forgets them: after a failure
 * nobody knows what the file holds, and no later flush may say that it is all there. */
static int flush(struct virtio_pmem *pmem)
{
    int status = pmem->flush_failure;

    if (status == 0 && pmem->options.flush == VIRTIO_PMEM_FLUSH_FILE)
        status = flush_file(pmem);
    if (pmem->options.flush == VIRTIO_PMEM_FLUSH_REFUSE)
        status = -EROFS;
    pmem->flush_failure = status;
    if (status < 0 && !atomic_load(&pmem->ending) && log_gate_open(&pmem->gate))
        log_warn("%s: the guest's flush failed: %s", pmem->options.name,
                 strerror(-status));
    return status;
}

/* ---- requests ---- */

static bool is_flush(const struct virtio_chain *chain)
{
    uint8_t type[WORD_BYTES];

    return virtio_chain_read(chain, type, sizeof(type)) == sizeof(type) &&
           load_le32(type) == REQUEST_FLUSH;
}

static void answer(struct virtio_queue *ring, const struct virtio_chain *chain,
                   int status)
{
    bool done = status == 0 && is_flush(chain);
    uint8_t response[WORD_BYTES];

    store_le32(response, done ? RESPONSE_OK : RESPONSE_ERROR);
    virtio_queue_give(ring, chain,
                      (uint32_t)virtio_chain_write(chain, response, sizeof(response)));
}

static void take_requests(struct virtio_pmem *pmem)
{
    struct virtio_queue *ring = &pmem->device.queues[QUEUE].ring;

    CHECK(pthread_mutex_lock(&pmem->lock) == 0);
    if (pmem->running && virtio_device_is_live(&pmem->device))
        while (pmem->taken < BATCH && virtio_queue_take(ring, &pmem->chains[pmem->taken]))
            pmem->taken++;
    CHECK(pthread_mutex_unlock(&pmem->lock) == 0);
}

/* False: the driver has taken the queue away meanwhile. */
static bool give_back(struct virtio_pmem *pmem, int status)
{
    struct virtio_queue *ring = &pmem->device.queues[QUEUE].ring;
    bool running;
    bool more = false;

    CHECK(pthread_mutex_lock(&pmem->lock) == 0);
    running = pmem->running;
    for (unsigned i = 0; i < pmem->taken; i++)
        if (running)
            answer(ring, &pmem->chains[i], status);
        else
            virtio_queue_drop(ring, &pmem->chains[i]);
    pmem->taken = 0;
    if (running) {
        virtio_device_interrupt(&pmem->device, QUEUE);
        virtio_device_check_queue(&pmem->device, QUEUE);
        more = virtio_queue_listen(ring);
    }
    CHECK(pthread_mutex_unlock(&pmem->lock) == 0);
    if (more)
        virtio_device_notify(&pmem->device, QUEUE);
    return running;
}

/* The lock is what keeps the worker from guest memory. */
bool virtio_pmem_freeze(struct virtio_pmem *pmem)
{
    CHECK(pthread_mutex_lock(&pmem->lock) == 0);
    if (pmem->taken == 0)
        return true;
    CHECK(pthread_mutex_unlock(&pmem->lock) == 0);
    return false;
}

void virtio_pmem_thaw(struct virtio_pmem *pmem)
{
    CHECK(pthread_mutex_unlock(&pmem->lock) == 0);
}

static void *work(void *context)
{
    struct virtio_pmem *pmem = context;
    struct pollfd notified = {.fd = pmem->device.queues[QUEUE].notify_fd,
                              .events = POLLIN};

    while (!atomic_load(&pmem->ending)) {
        if (poll(&notified, 1, -1) < 0)
            continue;
        virtio_device_accept_notification(&pmem->device, QUEUE);
        take_requests(pmem);
        if (!give_back(pmem, pmem->taken > 0 ? flush(pmem) : 0))
            virtio_device_stopped(&pmem->device);
    }
    CHECK(pthread_mutex_lock(&pmem->lock) == 0);
    pmem->has_ended = true;
    CHECK(pthread_cond_signal(&pmem->ended) == 0);
    CHECK(pthread_mutex_unlock(&pmem->lock) == 0);
    return NULL;
}

/* ---- what the driver does ---- */

/* Requests may be waiting already. */
static void start(void *context)
{
    struct virtio_pmem *pmem = context;

    CHECK(pthread_mutex_lock(&pmem->lock) == 0);
    pmem->running = true;
    CHECK(pthread_mutex_unlock(&pmem->lock) == 0);
    virtio_device_notify(&pmem->device, QUEUE);
}

static bool begin_stop(void *context, unsigned queue)
{
    struct virtio_pmem *pmem = context;
    bool idle;

    (void)queue; /* there is one */
    CHECK(pthread_mutex_lock(&pmem->lock) == 0);
    pmem->running = false;
    idle = pmem->taken == 0;
    CHECK(pthread_mutex_unlock(&pmem->lock) == 0);
    return idle;
}

static uint32_t config_read(void *context, uint32_t offset, unsigned size)
{
    const struct virtio_pmem *pmem = context;
    uint8_t bytes[4] = {0};

    memcpy(bytes, pmem->config + offset, size);
    return load_le32(bytes);
}

static void config_write(void *context, uint32_t offset, unsigned size, uint32_t value)
{
    (void)context; /* all of it is for reading */
    (void)offset;
    (void)size;
    (void)value;
}

static const struct virtio_ops pmem_ops = {
    .name = "virtio-pmem",
    .device_id = DEVICE_ID,
    .queue_count = 1,
    .config_bytes = CONFIG_BYTES,
    .start = start,
    .begin_stop = begin_stop,
    .config_read = config_read,
    .config_write = config_write,
};

/* ---- the device ---- */

int virtio_pmem_create(const struct virtio_pmem_options *options, struct memory *memory,
                       struct virtio_pmem **pmem, struct error *err)
{
    struct virtio_pmem *created = calloc(1, sizeof(*created));
    int status;

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for virtio-pmem");
    if (virtio_device_init(&created->device, &pmem_ops, created, memory, err) < 0) {
        free(created);
        return err->code;
    }
    created->options = *options;
    created->memory = memory;
    store_le64(created->config + CONFIG_START, options->gpa);
    store_le64(created->config + CONFIG_SIZE, options->size_bytes);
    CHECK(pthread_mutex_init(&created->lock, NULL) == 0);
    CHECK(pthread_cond_init(&created->ended, NULL) == 0);
    status = thread_start(&created->worker, "pmem", work, created);
    if (status < 0) {
        virtio_pmem_destroy(created);
        return error_set_errno(err, status, "cannot start a thread for virtio-pmem");
    }
    *pmem = created;
    return 0;
}

static bool has_ended(struct virtio_pmem *pmem, int patience_ms)
{
    uint64_t limit_ns = clock_monotonic_ns() + (uint64_t)patience_ms * NS_PER_MS;
    const struct timespec limit = {.tv_sec = (time_t)(limit_ns / NS_PER_SECOND),
                                   .tv_nsec = (long)(limit_ns % NS_PER_SECOND)};
    bool ended;
    int status = 0;

    CHECK(pthread_mutex_lock(&pmem->lock) == 0);
    while (!pmem->has_ended && status != ETIMEDOUT)
        status =
            pthread_cond_clockwait(&pmem->ended, &pmem->lock, CLOCK_MONOTONIC, &limit);
    ended = pmem->has_ended;
    CHECK(pthread_mutex_unlock(&pmem->lock) == 0);
    return ended;
}

bool virtio_pmem_end(struct virtio_pmem *pmem, int patience_ms)
{
    (void)begin_stop(pmem, QUEUE); /* from here on it leaves the transport alone */
    atomic_store(&pmem->ending, true);
    virtio_device_notify(&pmem->device, QUEUE);
    if (!has_ended(pmem, patience_ms))
        return false;
    CHECK(pthread_join(pmem->worker, NULL) == 0);
    return true;
}

void virtio_pmem_destroy(struct virtio_pmem *pmem)
{
    virtio_device_finish(&pmem->device);
    CHECK(pthread_cond_destroy(&pmem->ended) == 0);
    CHECK(pthread_mutex_destroy(&pmem->lock) == 0);
    free(pmem);
}

struct virtio_device *virtio_pmem_device(struct virtio_pmem *pmem)
{
    return &pmem->device;
}
