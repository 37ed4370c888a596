/* SPDX-License-Identifier: Apache-2.0 */
/* Status, features and queues of a virtio device; see device.h. Section numbers are those
 * of virtio 1.2. */
#include "virtio/device.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fd.h"
#include "base/log.h"

#define COMMON_FEATURES                                                                  \
    (VIRTIO_F_INDIRECT_DESC | VIRTIO_F_EVENT_IDX | VIRTIO_F_VERSION_1 |                  \
     VIRTIO_F_RING_RESET)

/* ---- set-up and reset ---- */

static void reset_setup(struct virtio_device_queue *queue)
{
    queue->setup = (struct virtio_queue_setup){.size = VIRTIO_QUEUE_MAX_SIZE};
}

int virtio_device_init(struct virtio_device *device, const struct virtio_ops *ops,
                       void *context, struct memory *memory, struct error *err)
{
    CHECK(ops->queue_count <= VIRTIO_MAX_QUEUES);
    *device = (struct virtio_device){.ops = ops, .context = context};
    CHECK(pthread_mutex_init(&device->lock, NULL) == 0);
    for (unsigned i = 0; i < ops->queue_count; i++)
        device->queues[i].notify_fd = -1;
    for (unsigned i = 0; i < ops->queue_count; i++) {
        struct virtio_device_queue *queue = &device->queues[i];

        virtio_queue_init(&queue->ring, memory);
        reset_setup(queue);
        queue->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (queue->notify_fd < 0) {
            int code =
                error_set_errno(err, errno, "%s: cannot create an eventfd", ops->name);

            virtio_device_finish(device);
            return code;
        }
    }
    return 0;
}

int virtio_device_watch(struct virtio_device *device, struct loop *loop, unsigned queue,
                        event_callback_fn handle, void *context, struct error *err)
{
    struct event *event =
        event_new(loop_event_base(loop), device->queues[queue].notify_fd,
                  EV_READ | EV_PERSIST, handle, context);

    device->queues[queue].notified = event;
    if (event == NULL || event_add(event, NULL) < 0)
        return error_set(err, -ENOMEM, "out of memory for the main loop");
    return 0;
}

void virtio_device_finish(struct virtio_device *device)
{
    for (unsigned i = 0; i < device->ops->queue_count; i++) {
        struct virtio_device_queue *queue = &device->queues[i];

        if (queue->notified != NULL)
            event_free(queue->notified);
        fd_close(&queue->notify_fd);
    }
    CHECK(pthread_mutex_destroy(&device->lock) == 0);
}

/* True: nothing of it is in flight. */
static bool stop(struct virtio_device *device, unsigned queue)
{
    if (device->ops->begin_stop != NULL)
        return device->ops->begin_stop(device->context, queue);
    device->ops->stop(device->context, queue);
    return true;
}

static void finish_queue_reset(struct virtio_device *device, unsigned queue)
{
    virtio_queue_disable(&device->queues[queue].ring);
    reset_setup(&device->queues[queue]);
    device->queues[queue].is_resetting = false;
    virtio_device_accept_notification(device, queue);
}

static void finish_reset(struct virtio_device *device)
{
    for (unsigned i = 0; i < device->ops->queue_count; i++)
        finish_queue_reset(device, i);
    device->driver_features = 0;
    device->is_resetting = false;
    atomic_store(&device->config_generation, 0);
    atomic_store(&device->status, 0);
}

/* Of the status nothing is left but that it is not 0. */
static void reset_device(struct virtio_device *device)
{
    device->is_resetting = true;
    atomic_store(&device->status, VIRTIO_STATUS_ACKNOWLEDGE);
    if (stop(device, VIRTIO_ALL_QUEUES))
        finish_reset(device);
}

void virtio_device_stopped(struct virtio_device *device)
{
    CHECK(pthread_mutex_lock(&device->lock) == 0);
    if (device->is_resetting && stop(device, VIRTIO_ALL_QUEUES))
        finish_reset(device);
    for (unsigned i = 0; i < device->ops->queue_count; i++)
        if (device->queues[i].is_resetting && stop(device, i))
            finish_queue_reset(device, i);
    CHECK(pthread_mutex_unlock(&device->lock) == 0);
}

/* ---- features and status ---- */

uint64_t virtio_device_features(const struct virtio_device *device)
{
    return device->ops->features | COMMON_FEATURES;
}

bool virtio_device_has_feature(const struct virtio_device *device, uint64_t feature)
{
    return (device->driver_features & feature) != 0;
}

/* What is agreed on does not change any more (3.1.1). */
void virtio_device_set_driver_features(struct virtio_device *device, unsigned half,
                                       uint32_t features)
{
    unsigned shift = 32 * half;

    CHECK(half < 2);
    if (!(atomic_load(&device->status) & VIRTIO_STATUS_FEATURES_OK))
        device->driver_features =
            (device->driver_features & ~(UINT64_C(0xffffffff) << shift)) |
            (uint64_t)features << shift;
}

/* The driver wants nothing that is not offered, and does without the legacy interface
 * (6.1). */
static bool features_are_fine(const struct virtio_device *device)
{
    return (device->driver_features & ~virtio_device_features(device)) == 0 &&
           virtio_device_has_feature(device, VIRTIO_F_VERSION_1);
}

/* The status as it becomes when the driver adds `added`: what comes too early is not
 * taken, and the driver sees that when it reads the status again (3.1.1). */
static uint8_t next_status(const struct virtio_device *device, uint8_t status,
                           uint8_t added)
{
    if ((added & VIRTIO_STATUS_FEATURES_OK) && !features_are_fine(device))
        added &= (uint8_t)~VIRTIO_STATUS_FEATURES_OK;
    if (!((status | added) & VIRTIO_STATUS_FEATURES_OK))
        added &= (uint8_t)~VIRTIO_STATUS_DRIVER_OK;
    return status | added;
}

void virtio_device_set_status(struct virtio_device *device, uint8_t status)
{
    uint8_t before = atomic_load(&device->status);
    uint8_t after;

    if (status == 0)
        reset_device(device);
    if (status == 0 || device->is_resetting)
        return;
    after = next_status(device, before, status & (uint8_t)~VIRTIO_STATUS_NEEDS_RESET);
    atomic_fetch_or(&device->status, after); /* a worker may add NEEDS_RESET meanwhile */
    if (~before & after & VIRTIO_STATUS_DRIVER_OK)
        device->ops->start(device->context);
}

bool virtio_device_is_live(struct virtio_device *device)
{
    uint8_t status = atomic_load(&device->status);

    return (status & VIRTIO_STATUS_DRIVER_OK) && !(status & VIRTIO_STATUS_NEEDS_RESET) &&
           device->transport.may_access_memory(device->transport.context);
}

/* ---- queues ---- */

void virtio_device_enable_queue(struct virtio_device *device, unsigned queue)
{
    struct virtio_queue *ring = &device->queues[queue].ring;
    struct virtio_queue_setup *setup = &device->queues[queue].setup;

    if ((atomic_load(&device->status) & VIRTIO_STATUS_FEATURES_OK) && !ring->enabled &&
        ring->fault == NULL) {
        setup->indirect = virtio_device_has_feature(device, VIRTIO_F_INDIRECT_DESC);
        setup->event_index = virtio_device_has_feature(device, VIRTIO_F_EVENT_IDX);
        (void)stop(device, queue); /* it may be looking at the ring */
        if (!virtio_queue_enable(ring, setup))
            virtio_device_check_queue(device, queue);
        else if (atomic_load(&device->status) & VIRTIO_STATUS_DRIVER_OK)
            device->ops->start(device->context);
    }
}

void virtio_device_reset_queue(struct virtio_device *device, unsigned queue)
{
    if (!virtio_device_has_feature(device, VIRTIO_F_RING_RESET))
        return;
    device->queues[queue].is_resetting = true;
    if (stop(device, queue))
        finish_queue_reset(device, queue);
}

/* An eventfd's counter that is full tells the same as one that was raised once more. */
void virtio_device_notify(struct virtio_device *device, unsigned queue)
{
    const uint64_t one = 1;
    ssize_t written;

    if (queue >= device->ops->queue_count)
        return;
    written = write(device->queues[queue].notify_fd, &one, sizeof(one));
    CHECK(written == (ssize_t)sizeof(one) || errno == EAGAIN);
    if (written > 0)
        atomic_fetch_add_explicit(&device->signals_written, one, memory_order_relaxed);
}

void virtio_device_notify_all(struct virtio_device *device)
{
    for (unsigned i = 0; i < device->ops->queue_count; i++)
        virtio_device_notify(device, i);
}

void virtio_device_accept_notification(struct virtio_device *device, unsigned queue)
{
    uint64_t count;
    ssize_t got = read(device->queues[queue].notify_fd, &count, sizeof(count));

    CHECK(got == (ssize_t)sizeof(count) || errno == EAGAIN);
    if (got > 0)
        atomic_fetch_add_explicit(&device->signals_accepted, count, memory_order_relaxed);
}

uint64_t virtio_device_foreign_notifications(const struct virtio_device *device)
{
    uint64_t accepted =
        atomic_load_explicit(&device->signals_accepted, memory_order_relaxed);
    uint64_t written =
        atomic_load_explicit(&device->signals_written, memory_order_relaxed);

    return accepted - min_u64(accepted, written); /* one may be on its way */
}

void virtio_device_interrupt(struct virtio_device *device, unsigned queue)
{
    if (virtio_queue_wants_interrupt(&device->queues[queue].ring))
        device->transport.interrupt_queue(device->transport.context, queue);
}

void virtio_device_check_queue(struct virtio_device *device, unsigned queue)
{
    static struct log_gate gate;
    const char *fault = device->queues[queue].ring.fault;
    uint8_t before;

    if (fault == NULL)
        return;
    before = atomic_fetch_or(&device->status, VIRTIO_STATUS_NEEDS_RESET);
    if (before & VIRTIO_STATUS_NEEDS_RESET)
        return;
    atomic_fetch_add(&device->broken_rings, 1);
    if (log_gate_open(&gate))
        log_warn("%s: the guest's ring %u is broken (%s); the device waits for a reset",
                 device->ops->name, queue, fault);
    if (before & VIRTIO_STATUS_DRIVER_OK) /* 2.1.2 */
        device->transport.interrupt_config(device->transport.context);
}

/* ---- configuration space ---- */

void virtio_device_config_changed(struct virtio_device *device)
{
    atomic_fetch_add(&device->config_generation, 1);
    if (atomic_load(&device->status) & VIRTIO_STATUS_DRIVER_OK)
        device->transport.interrupt_config(device->transport.context);
}

uint32_t virtio_device_config_read(struct virtio_device *device, uint32_t offset,
                                   unsigned size)
{
    if (!range_within(offset, size, device->ops->config_bytes))
        return UINT32_MAX;
    return device->ops->config_read(device->context, offset, size);
}

void virtio_device_config_write(struct virtio_device *device, uint32_t offset,
                                unsigned size, uint32_t value)
{
    if (range_within(offset, size, device->ops->config_bytes))
        device->ops->config_write(device->context, offset, size, value);
}
