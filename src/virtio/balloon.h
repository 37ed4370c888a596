/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory balloon (virtio 1.2, section 5.5): pages of RAM that the guest does not need
 * go back to the host. It reports what happens to be free, time and again (5.5.6.7), and
 * hands out as much more as it is asked for. Served on the main loop, which owns memory,
 * in small portions.
 *
 * Nothing is remembered of the pages: one that is touched again is there, full of zeros,
 * as fresh memory is.
 */
#ifndef HUSK_VIRTIO_BALLOON_H
#define HUSK_VIRTIO_BALLOON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/loop.h"
#include "memory/memory.h"
#include "virtio/device.h"

#define VIRTIO_BALLOON_CLASS_CODE UINT32_C(0x00ff00) /* PCI: fits no other class */

/* Places of RAM: below and above the hole at 4 GiB. */
#define VIRTIO_BALLOON_MAX_SPANS 2

struct virtio_balloon_options {
    /* What the guest may give back; pages elsewhere stay as they are. */
    struct memory_span spans[VIRTIO_BALLOON_MAX_SPANS];
    size_t span_count;
};

/* What the guest says of its memory (5.5.6.3), by its tag. */
enum virtio_balloon_statistic {
    VIRTIO_BALLOON_SWAP_IN_BYTES,
    VIRTIO_BALLOON_SWAP_OUT_BYTES,
    VIRTIO_BALLOON_MAJOR_FAULTS,
    VIRTIO_BALLOON_MINOR_FAULTS,
    VIRTIO_BALLOON_FREE_BYTES,
    VIRTIO_BALLOON_TOTAL_BYTES,
    VIRTIO_BALLOON_AVAILABLE_BYTES,
    VIRTIO_BALLOON_CACHE_BYTES,
    VIRTIO_BALLOON_HUGE_PAGE_ALLOCATIONS,
    VIRTIO_BALLOON_HUGE_PAGE_FAILURES,
    VIRTIO_BALLOON_STATISTICS,
};

struct virtio_balloon_status {
    uint64_t target_bytes;
    uint64_t actual_bytes; /* what the guest says is in the balloon */
    /* Since the machine was made, each time a page came: */
    uint64_t inflated_bytes;
    uint64_t reported_bytes;
    /* ... and was not given back, since a process may have so many mappings only, or
     * since the guest wants the page's bytes to stay (5.5.6.7.2). */
    uint64_t kept_bytes;
    uint64_t poisoned_bytes;

    unsigned statistics_known; /* a bit each */
    uint64_t statistics[VIRTIO_BALLOON_STATISTICS];
};

struct virtio_balloon;

/* Both are borrowed. `memory` may be discarded (memory_may_discard). */
int virtio_balloon_create(const struct virtio_balloon_options *options, struct loop *loop,
                          struct memory *memory, struct virtio_balloon **balloon,
                          struct error *err) MUST_CHECK;
/* After its transport. Accepts NULL. */
void virtio_balloon_destroy(struct virtio_balloon *balloon);

struct virtio_device *virtio_balloon_device(struct virtio_balloon *balloon);

/* The loop's thread. How much the guest shall do without: whole pages. It stays so over
 * resets. */
void virtio_balloon_set_target(struct virtio_balloon *balloon, uint64_t target_bytes);

/* The loop's thread. Statistics are those that the guest has sent last; it is asked for
 * new ones. */
void virtio_balloon_status(struct virtio_balloon *balloon,
                           struct virtio_balloon_status *status);

#endif
