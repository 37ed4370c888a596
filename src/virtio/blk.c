/* SPDX-License-Identifier: Apache-2.0 */
/* virtio-blk as its driver and its owner see it; see blk.h. Section numbers are those of
 * virtio 1.2. */
#include "virtio/blk.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/thread.h"
#include "virtio/blk_private.h"

#define DEVICE_ID 2 /* 5.2.1 */

#define FEATURES                                                                         \
    (VIRTIO_BLK_F_SEG_MAX | VIRTIO_BLK_F_BLK_SIZE | VIRTIO_BLK_F_FLUSH |                 \
     VIRTIO_BLK_F_TOPOLOGY | VIRTIO_BLK_F_CONFIG_WCE | VIRTIO_BLK_F_MQ)
#define FEATURES_READ_ONLY VIRTIO_BLK_F_RO
#define FEATURES_WRITABLE (VIRTIO_BLK_F_DISCARD | VIRTIO_BLK_F_WRITE_ZEROES)

/* Header and status take a descriptor each. */
#define MAX_SEGMENTS (VIRTIO_QUEUE_MAX_SIZE - 2)

/* ---- configuration space ---- */

struct __attribute__((packed)) configuration { /* 5.2.4 */
    uint64_t capacity;                         /* in sectors */
    uint32_t size_max;
    uint32_t seg_max;
    uint8_t geometry[4];
    uint32_t blk_size;
    uint8_t physical_block_exponent;
    uint8_t alignment_offset;
    uint16_t min_io_blocks;
    uint32_t optimal_io_blocks;
    uint8_t writeback;
    uint8_t unused0;
    uint16_t num_queues;
    uint32_t max_discard_sectors;
    uint32_t max_discard_segments;
    uint32_t discard_sector_alignment;
    uint32_t max_write_zeroes_sectors;
    uint32_t max_write_zeroes_segments;
    uint8_t write_zeroes_may_unmap;
    uint8_t unused1[3];
};
_Static_assert(sizeof(struct configuration) == 60, "5.2.4");

/* Whether the driver is shown a cache: not if it cannot flush it (5.2.5.2). */
static bool shows_write_back(const struct virtio_blk *blk)
{
    const struct virtio_device *device = &blk->device;
    bool cannot_flush = virtio_device_has_feature(device, VIRTIO_BLK_F_CONFIG_WCE) &&
                        !virtio_device_has_feature(device, VIRTIO_BLK_F_FLUSH);

    return !cannot_flush && atomic_load(&blk->is_write_back);
}

static struct configuration configuration(const struct virtio_blk *blk)
{
    struct disk_topology topology = disk_topology(blk->disk);
    uint32_t blocks = topology.physical_block_bytes / topology.logical_block_bytes;

    return (struct configuration){
        .capacity = disk_size_bytes(blk->disk) / DISK_SECTOR_BYTES,
        .seg_max = MAX_SEGMENTS,
        .blk_size = topology.logical_block_bytes,
        .physical_block_exponent = (uint8_t)__builtin_ctz(blocks),
        .min_io_blocks = (uint16_t)blocks,
        .optimal_io_blocks = topology.optimal_bytes / topology.logical_block_bytes,
        .writeback = shows_write_back(blk),
        .num_queues = (uint16_t)blk->ops.queue_count,
        .max_discard_sectors = BLK_MAX_RANGE_SECTORS,
        .max_discard_segments = BLK_MAX_RANGES,
        .discard_sector_alignment =
            (uint32_t)(topology.discard_block_bytes / DISK_SECTOR_BYTES),
        .max_write_zeroes_sectors = BLK_MAX_RANGE_SECTORS,
        .max_write_zeroes_segments = BLK_MAX_RANGES,
        .write_zeroes_may_unmap = 1,
    };
}

static uint32_t config_read(void *context, uint32_t offset, unsigned size)
{
    const struct virtio_blk *blk = context;
    struct configuration all = configuration(blk);
    uint32_t value = 0;

    memcpy(&value, (const uint8_t *)&all + offset, min_u64(size, sizeof(value)));
    return value;
}

/* Without FLUSH the driver has no way to ask for stable storage, so that every write must
 * bring it (5.2.6.2). */
static void choose_caching(struct virtio_blk *blk)
{
    const struct virtio_device *device = &blk->device;
    bool is_write_back = virtio_device_has_feature(device, VIRTIO_BLK_F_FLUSH);

    if (virtio_device_has_feature(device, VIRTIO_BLK_F_CONFIG_WCE))
        is_write_back &= atomic_load(&blk->is_write_back);
    atomic_store(&blk->is_write_through, !is_write_back);
}

static void config_write(void *context, uint32_t offset, unsigned size, uint32_t value)
{
    struct virtio_blk *blk = context;

    if (offset != offsetof(struct configuration, writeback) || size != 1)
        return; /* nothing else can be written (5.2.4) */
    atomic_store(&blk->is_write_back, value != 0);
    choose_caching(blk);
}

/* ---- start and stop ---- */

static void lock(struct virtio_blk *blk)
{
    CHECK(pthread_mutex_lock(&blk->lock) == 0);
}

static void unlock(struct virtio_blk *blk)
{
    CHECK(pthread_mutex_unlock(&blk->lock) == 0);
}

/* Requests may be waiting already. */
static void start(void *context)
{
    struct virtio_blk *blk = context;

    choose_caching(blk);
    lock(blk);
    for (unsigned i = 0; i < blk->ops.queue_count; i++)
        blk->queues[i].is_running =
            blk->device.queues[i].ring.enabled && !blk->device.queues[i].is_resetting;
    unlock(blk);
    virtio_device_notify_all(&blk->device);
}

static bool stop_queue(struct virtio_blk *blk, unsigned queue)
{
    bool is_idle;

    lock(blk);
    for (unsigned i = 0; i < blk->ops.queue_count; i++)
        if (queue == VIRTIO_ALL_QUEUES || queue == i)
            blk->queues[i].is_running = false;
    blk_drop_held(blk, queue);
    is_idle = blk_in_flight(blk, queue) == 0;
    unlock(blk);
    return is_idle;
}

/* After a reset of the device the cache is as the host has it (5.2.5.2). */
static bool begin_stop(void *context, unsigned queue)
{
    struct virtio_blk *blk = context;

    if (queue == VIRTIO_ALL_QUEUES)
        atomic_store(&blk->is_write_back, true);
    return stop_queue(blk, queue);
}

/* ---- for the owner ---- */

bool virtio_blk_stop(struct virtio_blk *blk)
{
    return stop_queue(blk, VIRTIO_ALL_QUEUES);
}

void virtio_blk_retry(struct virtio_blk *blk)
{
    blk_give_order(blk, BLK_ORDER_RETRY);
}

void virtio_blk_update_size(struct virtio_blk *blk)
{
    blk_give_order(blk, BLK_ORDER_UPDATE);
}

void virtio_blk_status(struct virtio_blk *blk, struct virtio_blk_status *status)
{
    *status = (struct virtio_blk_status){.queues = blk->ops.queue_count,
                                         .counters = disk_counters(blk->disk)};
    lock(blk);
    status->in_flight = blk_in_flight(blk, VIRTIO_ALL_QUEUES);
    for (const struct blk_request *held = blk->held; held != NULL; held = held->next)
        status->held++;
    if (status->held > 0)
        (void)memcpy(status->trouble, blk->trouble, sizeof(status->trouble));
    unlock(blk);
}

struct virtio_device *virtio_blk_device(struct virtio_blk *blk)
{
    return &blk->device;
}

const struct disk *virtio_blk_disk(const struct virtio_blk *blk)
{
    return blk->disk;
}

/* ---- life ---- */

static int make_queues(struct virtio_blk *blk, struct error *err)
{
    for (unsigned i = 0; i < blk->ops.queue_count; i++) {
        struct blk_queue *queue = &blk->queues[i];

        /* Pages that are not used are not there. */
        queue->requests = calloc(VIRTIO_QUEUE_MAX_SIZE, sizeof(*queue->requests));
        if (queue->requests == NULL)
            return error_set(err, -ENOMEM, "out of memory for virtio-blk");
        while (queue->free_count < VIRTIO_QUEUE_MAX_SIZE) {
            queue->free[queue->free_count] =
                (uint16_t)(VIRTIO_QUEUE_MAX_SIZE - 1 - queue->free_count);
            queue->free_count++;
        }
    }
    return 0;
}

static int make_worker(struct virtio_blk *blk, struct error *err)
{
    int status;

    blk->control_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (blk->control_fd < 0)
        return error_set_errno(err, errno, "virtio-blk: cannot create an eventfd");
    status = thread_start(&blk->thread, "disk-queues", blk_work, blk);
    if (status < 0)
        return error_set_errno(err, status, "cannot start the I/O thread of a disk");
    return 0;
}

/* All but the disk. */
static void dismantle(struct virtio_blk *blk)
{
    fd_close(&blk->control_fd);
    for (unsigned i = 0; i < blk->ops.queue_count; i++)
        free(blk->queues[i].requests);
    CHECK(pthread_cond_destroy(&blk->ended) == 0);
    CHECK(pthread_mutex_destroy(&blk->lock) == 0);
    virtio_device_finish(&blk->device);
    free(blk);
}

static void set_up(struct virtio_blk *blk, const struct virtio_blk_options *options,
                   struct disk *disk)
{
    blk->options = *options;
    blk->disk = disk;
    blk->control_fd = -1;
    if (options->serial != NULL)
        (void)memcpy(blk->serial, options->serial,
                     min_u64(strlen(options->serial), sizeof(blk->serial)));
    blk->options.serial = NULL; /* the caller's */
    atomic_store(&blk->is_write_back, true);
    blk->ops = (struct virtio_ops){
        .name = "virtio-blk",
        .device_id = DEVICE_ID,
        .features =
            FEATURES | (disk_is_read_only(disk) ? FEATURES_READ_ONLY : FEATURES_WRITABLE),
        .queue_count = options->queue_count,
        .config_bytes = sizeof(struct configuration),
        .start = start,
        .begin_stop = begin_stop,
        .config_read = config_read,
        .config_write = config_write,
    };
    CHECK(pthread_mutex_init(&blk->lock, NULL) == 0);
    CHECK(pthread_cond_init(&blk->ended, NULL) == 0);
}

int virtio_blk_create(const struct virtio_blk_options *options, struct disk *disk,
                      struct memory *memory, struct virtio_blk **blk, struct error *err)
{
    struct virtio_blk *created = calloc(1, sizeof(*created));

    CHECK(options->queue_count >= 1 && options->queue_count <= VIRTIO_BLK_MAX_QUEUES);
    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for virtio-blk");
    set_up(created, options, disk);
    if (virtio_device_init(&created->device, &created->ops, created, memory, err) < 0) {
        CHECK(pthread_cond_destroy(&created->ended) == 0);
        CHECK(pthread_mutex_destroy(&created->lock) == 0);
        free(created);
        return err->code;
    }
    if (make_queues(created, err) < 0 || make_worker(created, err) < 0) {
        dismantle(created);
        return err->code;
    }
    *blk = created;
    return 0;
}

void virtio_blk_end(struct virtio_blk *blk)
{
    blk_give_order(blk, BLK_ORDER_END);
}

bool virtio_blk_has_ended(struct virtio_blk *blk, int patience_ms)
{
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)patience_ms * NS_PER_MS;
    struct timespec end = {.tv_sec = (time_t)(end_ns / NS_PER_SECOND),
                           .tv_nsec = (long)(end_ns % NS_PER_SECOND)};
    bool has_ended;
    int status = 0;

    lock(blk);
    while (!blk->has_ended && status != ETIMEDOUT)
        status = pthread_cond_clockwait(&blk->ended, &blk->lock, CLOCK_MONOTONIC, &end);
    has_ended = blk->has_ended;
    unlock(blk);
    return has_ended;
}

void virtio_blk_destroy(struct virtio_blk *blk)
{
    CHECK(virtio_blk_has_ended(blk, 0));
    CHECK(pthread_join(blk->thread, NULL) == 0);
    disk_close(blk->disk);
    dismantle(blk);
}
