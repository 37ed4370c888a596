/* SPDX-License-Identifier: Apache-2.0 */
/* virtio-rng; see rng.h. */
#include "virtio/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/bytes.h"
#include "base/check.h"

#define DEVICE_ID 4 /* 5.4.1 */
#define QUEUE 0

/* A guest that asks for more gets less, as it may (5.4.6.2): the loop has other work. */
#define REQUEST_LIMIT_BYTES 4096
/* Requests at a time, for the same reason. */
#define BATCH 16

struct virtio_rng {
    struct virtio_device device;

    /* Held while the queue is in use, by which stopping waits for that. */
    pthread_mutex_t lock;
    bool running;
    struct virtio_chain chain;
};

/* What has been written, which is less than the buffer if the guest has asked for much.
 */
static uint32_t fill(const struct virtio_chain *chain)
{
    size_t left = REQUEST_LIMIT_BYTES;
    uint32_t filled = 0;

    for (unsigned i = 0; i < chain->writable_count && left > 0; i++) {
        const struct iovec *buffer = &chain->buffers[chain->readable_count + i];
        size_t size = min_u64(buffer->iov_len, left);
        ssize_t got = getrandom(buffer->iov_base, size, 0);

        if (got > 0)
            filled += (uint32_t)got;
        if (got != (ssize_t)size)
            break; /* interrupted: what is there is good */
        left -= size;
    }
    return filled;
}

/* True if there may be more. */
static bool serve(struct virtio_rng *rng)
{
    struct virtio_queue *ring = &rng->device.queues[QUEUE].ring;
    unsigned served = 0;

    if (!rng->running || !virtio_device_is_live(&rng->device))
        return false;
    while (served < BATCH && virtio_queue_take(ring, &rng->chain)) {
        virtio_queue_give(ring, &rng->chain, fill(&rng->chain));
        served++;
    }
    virtio_device_interrupt(&rng->device, QUEUE);
    virtio_device_check_queue(&rng->device, QUEUE);
    return virtio_queue_listen(ring);
}

/* The loop's thread. */
static void handle_notification(int fd, short what, void *context)
{
    struct virtio_rng *rng = context;
    bool more;

    (void)fd;
    (void)what;
    virtio_device_accept_notification(&rng->device, QUEUE);
    pthread_mutex_lock(&rng->lock);
    more = serve(rng);
    pthread_mutex_unlock(&rng->lock);
    if (more)
        virtio_device_notify(&rng->device,
                             QUEUE); /* after what else the loop has to do */
}

static void set_running(struct virtio_rng *rng, bool running)
{
    pthread_mutex_lock(&rng->lock);
    rng->running = running;
    pthread_mutex_unlock(&rng->lock);
}

/* Requests may be waiting already. */
static void start(void *context)
{
    struct virtio_rng *rng = context;

    set_running(rng, true);
    virtio_device_notify(&rng->device, QUEUE);
}

static void stop(void *context, unsigned queue)
{
    (void)queue; /* there is one */
    set_running(context, false);
}

static const struct virtio_ops rng_ops = {
    .name = "virtio-rng",
    .device_id = DEVICE_ID,
    .queue_count = 1,
    .start = start,
    .stop = stop,
};

int virtio_rng_create(struct loop *loop, struct memory *memory, struct virtio_rng **rng,
                      struct error *err)
{
    struct virtio_rng *created = calloc(1, sizeof(*created));

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for virtio-rng");
    if (virtio_device_init(&created->device, &rng_ops, created, memory, err) < 0) {
        free(created);
        return err->code;
    }
    CHECK(pthread_mutex_init(&created->lock, NULL) == 0);
    if (virtio_device_watch(&created->device, loop, QUEUE, handle_notification, created,
                            err) < 0) {
        virtio_rng_destroy(created);
        return err->code;
    }
    *rng = created;
    return 0;
}

void virtio_rng_destroy(struct virtio_rng *rng)
{
    if (rng == NULL)
        return;
    virtio_device_finish(&rng->device);
    CHECK(pthread_mutex_destroy(&rng->lock) == 0);
    free(rng);
}

struct virtio_device *virtio_rng_device(struct virtio_rng *rng)
{
    return &rng->device;
}
