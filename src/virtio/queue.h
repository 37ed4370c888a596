/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A split virtqueue (virtio 1.2, section 2.7): descriptor chains that the driver makes
 * available, turned into host buffers, and given back as used.
 *
 * Everything in the rings is the guest's word: each field is read once and checked. A
 * ring that breaks the rules is not repaired: the queue is broken, says so once, and
 * gives nothing more until it is reset.
 *
 * Threads: init, enable and disable by the transport, while the worker does not use the
 * queue; all else on the device's one worker thread. The driver runs all the time.
 */
#ifndef HUSK_VIRTIO_QUEUE_H
#define HUSK_VIRTIO_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "memory/memory.h"

#define VIRTIO_QUEUE_MAX_SIZE 256

/* A chain has at most a queue's size of pieces (2.7.5.3.1); one that crosses from one
 * span of memory into the next gives a buffer more. */
#define VIRTIO_CHAIN_MAX_BUFFERS (VIRTIO_QUEUE_MAX_SIZE + MEMORY_MAX_SPANS)

/* What the device reads comes first, then what it writes. Guest bytes can change while
 * one looks at them. */
struct virtio_chain {
    uint16_t head; /* by which it is given back */
    unsigned readable_count;
    unsigned writable_count;
    uint32_t readable_bytes;
    uint32_t writable_bytes;
    struct iovec buffers[VIRTIO_CHAIN_MAX_BUFFERS];
};

struct virtio_queue_setup {
    uint16_t size;        /* entries: a power of two up to VIRTIO_QUEUE_MAX_SIZE */
    uint64_t descriptors; /* guest-physical */
    uint64_t available;
    uint64_t used;
    bool indirect;    /* VIRTIO_F_INDIRECT_DESC was negotiated */
    bool event_index; /* VIRTIO_F_EVENT_IDX was negotiated */
};

struct virtio_queue {
    struct memory *memory; /* borrowed */
    bool enabled;
    const char *fault; /* why it is broken; NULL: it is not */
    struct virtio_queue_setup setup;
    uint8_t *available; /* host addresses of the rings, while enabled */
    uint8_t *used;
    uint16_t next_available;
    uint16_t next_used;
    uint16_t told_used; /* next_used when the driver was last interrupted, or not */
    uint16_t in_flight; /* taken and not given back */
};

void virtio_queue_init(struct virtio_queue *queue, struct memory *memory);

/* False: the rings are not where they may be, and `fault` says why. */
bool virtio_queue_enable(struct virtio_queue *queue,
                         const struct virtio_queue_setup *setup);
void virtio_queue_disable(struct virtio_queue *queue);

/* The next chain. False: there is none, or the queue is not enabled, or it is broken. */
bool virtio_queue_take(struct virtio_queue *queue, struct virtio_chain *chain);

/* Gives a chain back, of which the device has written the first `written_bytes`. In any
 * order. */
void virtio_queue_give(struct virtio_queue *queue, const struct virtio_chain *chain,
                       uint32_t written_bytes);

/* Instead of _give, when the driver has taken the queue away: the chain is forgotten, its
 * buffers may have been written. */
void virtio_queue_drop(struct virtio_queue *queue, const struct virtio_chain *chain);

/* A chain breaks the rules of the device's own. */
void virtio_queue_break(struct virtio_queue *queue, const char *fault);

/* After one or more of _give: whether the driver wants an interrupt for them. */
bool virtio_queue_wants_interrupt(struct virtio_queue *queue);

/* While the worker is busy, notifications tell it nothing new: no more of them please. */
void virtio_queue_mute(struct virtio_queue *queue);
/* Notifications again. True: chains have come meanwhile, take them first. */
bool virtio_queue_listen(struct virtio_queue *queue);

#endif
