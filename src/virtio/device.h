/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtio device (virtio 1.2, chapter 2) as its transport and its implementation see
 * it: status, features, queues, configuration space. The implementation is a const struct
 * virtio_ops; it waits for `notify_fd` of its queues on a worker thread of its own and
 * calls virtio_device_interrupt.
 *
 * Threads: the driver's side on vCPU threads, for which the transport takes the device's
 * lock; _interrupt, _check_queue, _config_changed, _stopped and _is_live on any thread,
 * without it.
 * Lock order: the device's lock, then the implementation's, then the transport's. An
 * implementation that holds a lock in _interrupt may take the same lock in its ops.
 */
#ifndef HUSK_VIRTIO_DEVICE_H
#define HUSK_VIRTIO_DEVICE_H

#include <event2/event.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/loop.h"
#include "virtio/queue.h"

/* Feature bits of every device (6). */
#define VIRTIO_F_INDIRECT_DESC (UINT64_C(1) << 28)
#define VIRTIO_F_EVENT_IDX (UINT64_C(1) << 29)
#define VIRTIO_F_VERSION_1 (UINT64_C(1) << 32)
#define VIRTIO_F_RING_RESET (UINT64_C(1) << 40)

/* Device status (2.1). */
enum virtio_status {
    VIRTIO_STATUS_ACKNOWLEDGE = 0x01,
    VIRTIO_STATUS_DRIVER = 0x02,
    VIRTIO_STATUS_DRIVER_OK = 0x04,
    VIRTIO_STATUS_FEATURES_OK = 0x08,
    VIRTIO_STATUS_NEEDS_RESET = 0x40,
    VIRTIO_STATUS_FAILED = 0x80,
};

#define VIRTIO_MAX_QUEUES 16

struct virtio_ops {
    const char *name;   /* for messages: "virtio-rng" */
    uint16_t device_id; /* chapter 5 */
    uint64_t features;  /* of the device type; those above are added */
    unsigned queue_count;
    uint32_t config_bytes;
    /* All are called with the device's lock held.
     *
     * The driver is ready, or has enabled one more queue: enabled queues may be used. */
    void (*start)(void *context);
    /* The queue (all queues: VIRTIO_ALL_QUEUES) is taken away. Returns when no request of
     * it is in flight and the worker will not touch it any more. */
    void (*stop)(void *context, unsigned queue);
    /* In its place where requests wait for the host, as a vCPU must not. False: some are
     * in flight. No more are taken, and when the last of them has come back the worker
     * calls virtio_device_stopped, which asks again. */
    bool (*begin_stop)(void *context, unsigned queue);
    /* The access lies in `config_bytes`. NULL where there are none. */
    uint32_t (*config_read)(void *context, uint32_t offset, unsigned size);
    void (*config_write)(void *context, uint32_t offset, unsigned size, uint32_t value);
};
#define VIRTIO_ALL_QUEUES UINT_MAX

/* How the driver is reached. Any thread; never calls back into the device. */
struct virtio_transport {
    void (*interrupt_queue)(void *context, unsigned queue);
    void (*interrupt_config)(void *context);
    bool (*may_access_memory)(void *context);
    void *context;
};

struct virtio_device_queue {
    struct virtio_queue ring;
    struct virtio_queue_setup setup; /* what the driver has said; under the lock */
    int notify_fd;                   /* eventfd, non-blocking: written when it notifies */
    struct event *notified;          /* of virtio_device_watch, or NULL */
    bool is_resetting;               /* begun, not done; under the lock */
};

struct virtio_device {
    const struct virtio_ops *ops;
    void *context; /* of `ops` */
    struct virtio_transport transport;
    struct virtio_device_queue queues[VIRTIO_MAX_QUEUES];

    pthread_mutex_t lock; /* of `driver_features` and what changes with the status */
    uint64_t driver_features;
    bool is_resetting; /* begun, not done: the status is not 0 until it is (2.4.2) */
    _Atomic uint8_t status;
    _Atomic uint8_t config_generation;
    /* Since the machine was made: */
    _Atomic uint64_t broken_rings;
    _Atomic uint64_t signals_written;  /* to the notify_fds, by _notify */
    _Atomic uint64_t signals_accepted; /* those, and what others have written there */
};

int virtio_device_init(struct virtio_device *device, const struct virtio_ops *ops,
                       void *context, struct memory *memory,
                       struct error *err) MUST_CHECK;
/* Has the loop call `handle` when the queue's notify_fd is readable; until _finish, which
 * is on the loop's thread then. */
int virtio_device_watch(struct virtio_device *device, struct loop *loop, unsigned queue,
                        event_callback_fn handle, void *context,
                        struct error *err) MUST_CHECK;
void virtio_device_finish(struct virtio_device *device);

/* Notifications that have not come by _notify: whoever else knows a notify_fd has
 * signalled it. Any thread; as of lately. */
uint64_t virtio_device_foreign_notifications(const struct virtio_device *device);

/* ---- for the implementation ---- */

/* Whether its queues may be used now: the driver is ready, no ring is broken, and the
 * transport lets it access memory. */
bool virtio_device_is_live(struct virtio_device *device);
/* Takes the notification away, so that notify_fd is not readable any more. */
void virtio_device_accept_notification(struct virtio_device *device, unsigned queue);
/* Interrupts if the driver wants to know what has been given back. */
void virtio_device_interrupt(struct virtio_device *device, unsigned queue);
/* To be called when _take gives nothing more: a broken ring stops the device until the
 * driver resets it. Counted, and one line in the log. */
void virtio_device_check_queue(struct virtio_device *device, unsigned queue);
/* After a begin_stop that was false: nothing is in flight any more. */
void virtio_device_stopped(struct virtio_device *device);
/* The configuration space has changed. */
void virtio_device_config_changed(struct virtio_device *device);
/* Under the lock: in ops, or after the start. */
bool virtio_device_has_feature(const struct virtio_device *device, uint64_t feature);

/* ---- for the transport: all but _notify* with the device's lock held ---- */

uint64_t virtio_device_features(const struct virtio_device *device); /* what is offered */
void virtio_device_set_driver_features(struct virtio_device *device, unsigned half,
                                       uint32_t features); /* half 0 or 1 */
/* 0 resets the device. The status reads 0 when that is done, which is on return unless
 * begin_stop has to wait; until then nothing else is accepted. */
void virtio_device_set_status(struct virtio_device *device, uint8_t status);
void virtio_device_enable_queue(struct virtio_device *device, unsigned queue);
void virtio_device_reset_queue(struct virtio_device *device, unsigned queue);
void virtio_device_notify(struct virtio_device *device, unsigned queue);
/* As if the driver had notified each queue: there may be requests already. */
void virtio_device_notify_all(struct virtio_device *device);
/* Any size, in or behind the configuration space. */
uint32_t virtio_device_config_read(struct virtio_device *device, uint32_t offset,
                                   unsigned size);
void virtio_device_config_write(struct virtio_device *device, uint32_t offset,
                                unsigned size, uint32_t value);

#endif
