/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtio block device (virtio 1.2, section 5.2) on a disk of disk/disk.h.
 *
 * One I/O thread a disk takes requests from the queues, hands them to the disk and gives
 * them back; no other thread ever waits for the host's storage. A reset by the driver
 * while requests are in flight is done when they have come back, and the vCPU goes on.
 *
 * A request that the host fails is answered with an error, or held, as the policy says:
 * then nothing more is taken from the queues until virtio_blk_retry.
 *
 * Threads: create and destroy on the one that owns the machine; all else on any.
 */
#ifndef HUSK_VIRTIO_BLK_H
#define HUSK_VIRTIO_BLK_H

#include "base/error.h"
#include "disk/disk.h"
#include "memory/memory.h"
#include "virtio/device.h"

#define VIRTIO_BLK_CLASS_CODE UINT32_C(0x018000) /* mass storage, of another kind */
#define VIRTIO_BLK_MAX_QUEUES VIRTIO_MAX_QUEUES
#define VIRTIO_BLK_SERIAL_BYTES 20 /* 5.2.6 */

/* What happens to a request that the host has failed. */
enum virtio_blk_policy {
    VIRTIO_BLK_REPORT,       /* the guest gets the error */
    VIRTIO_BLK_STOP,         /* it is held */
    VIRTIO_BLK_STOP_IF_FULL, /* held if the host is full, else the guest gets it */
};

struct virtio_blk_options {
    unsigned queue_count; /* 1 to VIRTIO_BLK_MAX_QUEUES */
    const char *serial;   /* up to VIRTIO_BLK_SERIAL_BYTES; NULL: none */
    enum virtio_blk_policy on_read_error;
    enum virtio_blk_policy on_write_error; /* of all that is no read */
    /* The I/O thread, without locks: requests are held, or a virtio_blk_stop that had to
     * wait is done. */
    void (*attention)(void *context);
    void *context;
};

struct virtio_blk;

/* Takes `disk` if it succeeds. `memory` is borrowed. */
int virtio_blk_create(const struct virtio_blk_options *options, struct disk *disk,
                      struct memory *memory, struct virtio_blk **blk,
                      struct error *err) MUST_CHECK;

/* Ends the I/O thread when no request is in flight any more. */
void virtio_blk_end(struct virtio_blk *blk);
/* False: the host has not answered within `patience_ms`. The I/O thread, the disk and all
 * that they use (the transport and guest memory, too) must then be left behind, for the
 * process to end with. */
bool virtio_blk_has_ended(struct virtio_blk *blk, int patience_ms);

/* After it has ended, and after its transport. */
void virtio_blk_destroy(struct virtio_blk *blk);

struct virtio_device *virtio_blk_device(struct virtio_blk *blk);

/* Takes nothing more until the driver starts it again, and forgets what is held. True: no
 * request is in flight. Else `attention` comes when that is so. For a reset of the
 * machine. */
bool virtio_blk_stop(struct virtio_blk *blk);

/* Begins again what is held, and goes on. */
void virtio_blk_retry(struct virtio_blk *blk);

/* Looks at the size of the file, and tells the driver if it is another now. */
void virtio_blk_update_size(struct virtio_blk *blk);

/* For a look at guest memory while no vCPU runs. True: nothing is in flight, and nothing
 * is begun until _thaw, which the same thread calls soon. False: it is not frozen. */
bool virtio_blk_freeze(struct virtio_blk *blk);
void virtio_blk_thaw(struct virtio_blk *blk);

struct virtio_blk_status {
    unsigned queues;
    unsigned in_flight; /* those held included */
    unsigned held;
    char trouble[ERROR_TEXT_BYTES]; /* of the first one held; "": none */
    struct disk_counters counters;
};
void virtio_blk_status(struct virtio_blk *blk, struct virtio_blk_status *status);

const struct disk *virtio_blk_disk(const struct virtio_blk *blk);

#endif
