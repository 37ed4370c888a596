/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of virtio-blk: from a chain to what the disk is to do, and back to the guest.
 * Section numbers are those of virtio 1.2. */
#include <errno.h>

#include "base/bytes.h"
#include "base/check.h"
#include "virtio/blk_private.h"
#include "virtio/chain.h"

/* Kinds of requests (5.2.6). */
enum request_type {
    REQUEST_READ = 0,
    REQUEST_WRITE = 1,
    REQUEST_FLUSH = 4,
    REQUEST_GET_ID = 8,
    REQUEST_DISCARD = 11,
    REQUEST_WRITE_ZEROES = 13,
};

#define RANGE_FLAG_UNMAP UINT32_C(1)

struct header { /* 5.2.6 */
    uint32_t type;
    uint32_t reserved;
    uint64_t sector;
};
_Static_assert(sizeof(struct header) == 16, "5.2.6");

/* ---- bytes of a chain ---- */

/* Moves the first `size` bytes of what the device reads out of the chain. False: it has
 * fewer. */
static bool take_bytes(struct virtio_chain *chain, void *bytes, size_t size)
{
    uint8_t *to = bytes;

    if (chain->readable_bytes < size)
        return false;
    chain->readable_bytes -= (uint32_t)size;
    for (struct iovec *buffer = chain->buffers; size > 0; buffer++) {
        size_t part = min_u64(buffer->iov_len, size);

        memcpy(to, buffer->iov_base, part);
        buffer->iov_base = (uint8_t *)buffer->iov_base + part;
        buffer->iov_len -= part;
        to += part;
        size -= part;
    }
    return true;
}

static struct iovec *writable(struct virtio_chain *chain)
{
    return chain->buffers + chain->readable_count;
}

/* The last byte is for the status (5.2.6); what stands before it is for data. */
static bool cut_status(struct blk_request *request)
{
    struct virtio_chain *chain = &request->chain;

    if (chain->writable_bytes == 0)
        return false;
    request->last = writable(chain) + chain->writable_count - 1;
    while (request->last->iov_len == 0)
        request->last--;
    request->last->iov_len--;
    return true;
}

/* ---- what the disk is to do ---- */

static bool fail(struct blk_request *request, enum blk_status status)
{
    request->answer = status;
    return false;
}

static bool is_held_ever(const struct virtio_blk *blk, enum disk_operation operation)
{
    return (operation == DISK_READ ? blk->options.on_read_error
                                   : blk->options.on_write_error) != VIRTIO_BLK_REPORT;
}

static void prepare(struct virtio_blk *blk, struct blk_request *request,
                    enum disk_operation operation, uint64_t offset_bytes,
                    uint64_t size_bytes)
{
    request->disk = (struct disk_request){
        .operation = operation,
        .offset_bytes = offset_bytes,
        .size_bytes = size_bytes,
        .owner = request,
        .quiet = is_held_ever(blk, operation),
    };
}

/* `buffers` without the empty ones at both ends, which the header and the status have
 * left: their addresses are nobody's business, least of all O_DIRECT's. */
static void prepare_transfer(struct virtio_blk *blk, struct blk_request *request,
                             enum disk_operation operation, uint64_t offset_bytes,
                             struct iovec *buffers, unsigned count, uint64_t size_bytes)
{
    while (count > 0 && buffers[count - 1].iov_len == 0)
        count--;
    while (count > 0 && buffers->iov_len == 0) {
        buffers++;
        count--;
    }
    prepare(blk, request, operation, offset_bytes, size_bytes);
    request->disk.buffers = buffers;
    request->disk.buffer_count = count;
}

static bool begin_read(struct virtio_blk *blk, struct blk_request *request,
                       uint64_t offset_bytes)
{
    struct virtio_chain *chain = &request->chain;

    prepare_transfer(blk, request, DISK_READ, offset_bytes, writable(chain),
                     chain->writable_count, chain->writable_bytes - 1);
    return true;
}

static bool begin_write(struct virtio_blk *blk, struct blk_request *request,
                        uint64_t offset_bytes)
{
    struct virtio_chain *chain = &request->chain;

    prepare_transfer(blk, request, DISK_WRITE, offset_bytes, chain->buffers,
                     chain->readable_count, chain->readable_bytes);
    return true;
}

static bool begin_flush(struct virtio_blk *blk, struct blk_request *request,
                        uint64_t offset_bytes)
{
    (void)offset_bytes; /* 5.2.6.1: without meaning */
    prepare(blk, request, DISK_FLUSH, 0, 0);
    return true;
}

/* As many of the 20 bytes as there is room for. */
static bool answer_id(struct virtio_blk *blk, struct blk_request *request,
                      uint64_t offset_bytes)
{
    (void)offset_bytes;
    (void)virtio_chain_write(&request->chain, blk->serial, sizeof(blk->serial));
    return fail(request, BLK_OK);
}

/* ---- ranges ---- */

static void prepare_range(struct virtio_blk *blk, struct blk_request *request,
                          enum disk_operation operation)
{
    const struct blk_range *range = &request->ranges[request->next_range++];

    prepare(blk, request, operation, range->sector * DISK_SECTOR_BYTES,
            range->sector_count * DISK_SECTOR_BYTES);
    request->disk.unmap = (range->flags & RANGE_FLAG_UNMAP) != 0;
}

/* All are looked at before anything is done. 5.2.6.2: UNSUPP for a flag that is not
 * known, and for UNMAP in a DISCARD. */
static enum blk_status check_ranges(const struct blk_request *request,
                                    uint32_t allowed_flags)
{
    uint64_t ignored;

    for (unsigned i = 0; i < request->range_count; i++)
        if (request->ranges[i].flags & ~allowed_flags)
            return BLK_UNSUPPORTED;
    for (unsigned i = 0; i < request->range_count; i++)
        if (request->ranges[i].sector_count > BLK_MAX_RANGE_SECTORS ||
            __builtin_mul_overflow(request->ranges[i].sector, DISK_SECTOR_BYTES,
                                   &ignored))
            return BLK_IOERR;
    return BLK_OK;
}

static bool begin_ranges(struct virtio_blk *blk, struct blk_request *request,
                         enum disk_operation operation, uint32_t allowed_flags)
{
    uint32_t size_bytes = request->chain.readable_bytes;
    enum blk_status status;

    if (size_bytes == 0 || size_bytes > sizeof(request->ranges) ||
        size_bytes % sizeof(struct blk_range) != 0)
        return fail(request, BLK_IOERR);
    CHECK(take_bytes(&request->chain, request->ranges, size_bytes));
    request->range_count = size_bytes / sizeof(struct blk_range);
    status = check_ranges(request, allowed_flags);
    if (status != BLK_OK)
        return fail(request, status);
    prepare_range(blk, request, operation);
    return true;
}

static bool begin_discard(struct virtio_blk *blk, struct blk_request *request,
                          uint64_t offset_bytes)
{
    (void)offset_bytes; /* each range has its own */
    return begin_ranges(blk, request, DISK_DISCARD, 0);
}

static bool begin_write_zeroes(struct virtio_blk *blk, struct blk_request *request,
                               uint64_t offset_bytes)
{
    (void)offset_bytes;
    return begin_ranges(blk, request, DISK_WRITE_ZEROES, RANGE_FLAG_UNMAP);
}

/* ---- from the queue ---- */

struct kind {
    uint32_t type;
    uint64_t feature; /* without it there is no such request; 0: there always is */
    bool (*begin)(struct virtio_blk *blk, struct blk_request *request,
                  uint64_t offset_bytes);
};
static const struct kind kinds[] = {
    {.type = REQUEST_READ, .begin = begin_read},
    {.type = REQUEST_WRITE, .begin = begin_write},
    {.type = REQUEST_FLUSH, .begin = begin_flush},
    {.type = REQUEST_GET_ID, .begin = answer_id},
    {.type = REQUEST_DISCARD, .feature = VIRTIO_BLK_F_DISCARD, .begin = begin_discard},
    {.type = REQUEST_WRITE_ZEROES,
     .feature = VIRTIO_BLK_F_WRITE_ZEROES,
     .begin = begin_write_zeroes},
};

static const struct kind *find_kind(const struct virtio_blk *blk, uint32_t type)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (kinds[i].type == type && (kinds[i].feature & ~blk->ops.features) == 0)
            return &kinds[i];
    return NULL;
}

struct blk_request *blk_request_take(struct virtio_blk *blk, unsigned queue)
{
    struct blk_queue *from = &blk->queues[queue];
    struct blk_request *request;

    if (from->free_count == 0)
        return NULL;
    request = &from->requests[from->free[from->free_count - 1]];
    if (!virtio_queue_take(&blk->device.queues[queue].ring, &request->chain))
        return NULL;
    from->free_count--;
    request->queue = queue;
    return request;
}

bool blk_request_begin(struct virtio_blk *blk, struct blk_request *request)
{
    const struct kind *kind;
    struct header header;
    uint64_t offset_bytes;

    request->next_range = request->range_count = 0;
    request->answer = BLK_OK;
    if (!cut_status(request)) {
        virtio_queue_break(&blk->device.queues[request->queue].ring,
                           "a request has no room for its status");
        return false;
    }
    if (!take_bytes(&request->chain, &header, sizeof(header)))
        return fail(request, BLK_IOERR);
    kind = find_kind(blk, header.type);
    if (kind == NULL)
        return fail(request, BLK_UNSUPPORTED);
    if (__builtin_mul_overflow(header.sector, DISK_SECTOR_BYTES, &offset_bytes))
        return fail(request, BLK_IOERR);
    return kind->begin(blk, request, offset_bytes);
}

/* ---- back to the queue ---- */

static bool must_be_stable(const struct virtio_blk *blk,
                           const struct blk_request *request)
{
    return (request->disk.operation == DISK_WRITE ||
            request->disk.operation == DISK_WRITE_ZEROES) &&
           atomic_load(&blk->is_write_through);
}

bool blk_request_go_on(struct virtio_blk *blk, struct blk_request *request)
{
    if (request->disk.result < 0)
        return fail(request, BLK_IOERR);
    if (request->next_range < request->range_count) {
        prepare_range(blk, request, request->disk.operation);
        return true;
    }
    if (!must_be_stable(blk, request))
        return fail(request, BLK_OK);
    prepare(blk, request, DISK_FLUSH, 0, 0);
    return true;
}

static void release(struct virtio_blk *blk, const struct blk_request *request)
{
    struct blk_queue *queue = &blk->queues[request->queue];

    queue->free[queue->free_count++] = (uint16_t)(request - queue->requests);
}

/* The driver reads nothing from what is told to have been written but the status, if that
 * is not OK. */
void blk_request_answer(struct virtio_blk *blk, struct blk_request *request)
{
    struct iovec *last = request->last;

    ((uint8_t *)last->iov_base)[last->iov_len++] = (uint8_t)request->answer;
    virtio_queue_give(&blk->device.queues[request->queue].ring, &request->chain,
                      request->chain.writable_bytes);
    release(blk, request);
}

void blk_request_drop(struct virtio_blk *blk, struct blk_request *request)
{
    virtio_queue_drop(&blk->device.queues[request->queue].ring, &request->chain);
    release(blk, request);
}
