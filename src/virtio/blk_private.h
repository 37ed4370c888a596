/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of virtio-blk share: the device, its requests and its I/O thread.
 * Section numbers are those of virtio 1.2. */
#ifndef HUSK_VIRTIO_BLK_PRIVATE_H
#define HUSK_VIRTIO_BLK_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "virtio/blk.h"

/* Feature bits (5.2.3). */
#define VIRTIO_BLK_F_SEG_MAX (UINT64_C(1) << 2)
#define VIRTIO_BLK_F_RO (UINT64_C(1) << 5)
#define VIRTIO_BLK_F_BLK_SIZE (UINT64_C(1) << 6)
#define VIRTIO_BLK_F_FLUSH (UINT64_C(1) << 9)
#define VIRTIO_BLK_F_TOPOLOGY (UINT64_C(1) << 10)
#define VIRTIO_BLK_F_CONFIG_WCE (UINT64_C(1) << 11)
#define VIRTIO_BLK_F_MQ (UINT64_C(1) << 12)
#define VIRTIO_BLK_F_DISCARD (UINT64_C(1) << 13)
#define VIRTIO_BLK_F_WRITE_ZEROES (UINT64_C(1) << 14)

/* Limits of DISCARD and WRITE_ZEROES that the driver is told. A GiB of zeros may have to
 * be written byte by byte, and a reset waits for that. */
#define BLK_MAX_RANGE_SECTORS UINT32_C(0x200000)
#define BLK_MAX_RANGES 32

struct blk_range { /* 5.2.6 */
    uint64_t sector;
    uint32_t sector_count;
    uint32_t flags;
};
_Static_assert(sizeof(struct blk_range) == 16, "5.2.6");

/* The answer to a request (5.2.6). */
enum blk_status { BLK_OK = 0, BLK_IOERR = 1, BLK_UNSUPPORTED = 2 };

/* From being taken off its queue until it is given back, dropped or answered. The I/O
 * thread's, but for `next`, and for one that is held. */
struct blk_request {
    struct virtio_chain chain;
    struct disk_request disk; /* what is to be done, or being done */
    unsigned queue;
    struct blk_request *next; /* held ones; under the lock */

    struct iovec *last;     /* the buffer whose last byte is the status, cut off it */
    enum blk_status answer; /* when there is nothing more to be done */
    unsigned next_range;    /* DISCARD, WRITE_ZEROES */
    unsigned range_count;
    struct blk_range ranges[BLK_MAX_RANGES];
};

/* All under the lock. */
struct blk_queue {
    bool is_running;              /* the driver has started it, and not stopped */
    struct blk_request *requests; /* as many as a ring may have in flight */
    uint16_t free[VIRTIO_QUEUE_MAX_SIZE];
    unsigned free_count;
};

/* What others ask of the I/O thread. */
enum blk_order { BLK_ORDER_END = 0x1, BLK_ORDER_RETRY = 0x2, BLK_ORDER_UPDATE = 0x4 };

struct virtio_blk {
    struct virtio_device device;
    struct virtio_ops ops; /* of this one: its features and queues */
    struct virtio_blk_options options;
    char serial[VIRTIO_BLK_SERIAL_BYTES];
    struct disk *disk; /* owned */
    pthread_t thread;
    int control_fd; /* eventfd: look at the orders */

    _Atomic unsigned orders;      /* set with control_fd, taken by the I/O thread */
    atomic_bool is_write_back;    /* the driver's wish (5.2.5) */
    atomic_bool is_write_through; /* what comes of it: no write is done before it is
                                     stable */

    pthread_mutex_t lock; /* inside of the device's */
    struct blk_queue queues[VIRTIO_BLK_MAX_QUEUES];
    bool has_ended; /* the I/O thread does nothing any more */
    pthread_cond_t ended;
    struct blk_request *held; /* the last one held comes first */
    char trouble[ERROR_TEXT_BYTES];
};

/* ---- blk_request.c: the I/O thread ---- */

/* Makes of the chain that has been taken what is to be done first. False: there is
 * nothing to be done but to answer. A chain without room for a status cannot be answered:
 * its queue is broken. */
bool blk_request_begin(struct virtio_blk *blk, struct blk_request *request);

/* The disk has done what was to be done: what next. False: to be answered. */
bool blk_request_go_on(struct virtio_blk *blk, struct blk_request *request);

/* Writes the answer and gives the chain back. Under the lock. */
void blk_request_answer(struct virtio_blk *blk, struct blk_request *request);

/* Forgets it: its queue is taken away, or broken. Under the lock. */
void blk_request_drop(struct virtio_blk *blk, struct blk_request *request);

/* The next chain of a queue, or NULL. Under the lock. */
struct blk_request *blk_request_take(struct virtio_blk *blk, unsigned queue);

/* ---- blk_worker.c ---- */

void *blk_work(void *blk);
void blk_give_order(struct virtio_blk *blk, enum blk_order order); /* any thread */

/* Of a queue, or VIRTIO_ALL_QUEUES. Under the lock. */
unsigned blk_in_flight(const struct virtio_blk *blk, unsigned queue);
void blk_drop_held(struct virtio_blk *blk, unsigned queue);

#endif
