/* SPDX-License-Identifier: Apache-2.0 */
/* O_DIRECT for requests whose offset, size or buffers are not aligned: piece by piece
 * through an aligned buffer.
 *
 * A block that is written only in part is read first. Two such writes to parts of one
 * block must not come in between each other, so there is one buffer for a disk, and a
 * lock. (Whole blocks need no care: who writes them while another request changes a part
 * of them has two requests for one sector in flight, and the order is open.)
 */
#include "disk/direct_private.h"

#include <errno.h>
#include <unistd.h>

#include "base/bytes.h"
#include "disk/iovec_private.h"

bool disk_direct_must_bounce(const struct disk *disk, const struct disk_request *request)
{
    const struct disk_file *file = &disk->file;
    uint64_t together;
    uint64_t lengths = 0;
    uint64_t addresses = 0;

    if (file->direct_bytes == 0)
        return false;
    for (unsigned i = 0; i < request->buffer_count; i++) {
        addresses |= (uintptr_t)request->buffers[i].iov_base;
        lengths |= request->buffers[i].iov_len;
    }
    together = request->offset_bytes | request->done_bytes | lengths;
    return !is_aligned(together, file->direct_bytes) ||
           !is_aligned(addresses, file->direct_memory_bytes);
}

/* Fills the bounce buffer from the file, or the file from it. All of it or an error: the
 * disk's size is a multiple of the block, so a file that ends within is shorter now. */
static int move_blocks(struct disk *disk, const struct disk_request *request,
                       enum disk_operation direction, uint64_t offset,
                       uint64_t size_bytes)
{
    uint64_t moved = 0;

    while (moved < size_bytes) {
        uint8_t *at = disk->file.bounce + moved;
        off_t from = (off_t)(offset + moved);
        int64_t outcome = direction == DISK_READ
                              ? pread(disk->file.fd, at, size_bytes - moved, from)
                              : pwrite(disk->file.fd, at, size_bytes - moved, from);

        outcome = disk_outcome(disk, request, outcome < 0 ? -errno : outcome);
        if (outcome == -EINTR)
            continue;
        if (outcome <= 0)
            return outcome == 0 ? -EIO : (int)outcome;
        moved += (uint64_t)outcome;
    }
    return 0;
}

/* Bytes [from, to) of the disk lie within one piece. */
static int move_piece(struct disk *disk, struct disk_request *request, uint64_t from,
                      uint64_t to)
{
    uint64_t start = align_down(from, disk->file.direct_bytes);
    uint64_t size_bytes = align_up(to, disk->file.direct_bytes) - start;
    bool whole = from == start && to == start + size_bytes;
    int result = 0;

    if (request->operation == DISK_READ || !whole)
        result = move_blocks(disk, request, DISK_READ, start, size_bytes);
    if (result < 0)
        return result;
    iovec_copy(request, request->done_bytes, disk->file.bounce + (from - start),
               to - from);
    if (request->operation == DISK_WRITE)
        result = move_blocks(disk, request, DISK_WRITE, start, size_bytes);
    return result;
}

int disk_direct_bounce(struct disk *disk, struct disk_request *request)
{
    uint64_t end = request->offset_bytes + request->size_bytes;
    int result = 0;

    (void)pthread_mutex_lock(&disk->file.bounce_lock);
    while (result == 0 && request->done_bytes < request->size_bytes) {
        uint64_t from = request->offset_bytes + request->done_bytes;
        uint64_t start = align_down(from, disk->file.direct_bytes);
        uint64_t to = min_u64(end, start + DISK_BOUNCE_BYTES);

        result = move_piece(disk, request, from, to);
        if (result == 0)
            request->done_bytes += to - from;
    }
    (void)pthread_mutex_unlock(&disk->file.bounce_lock);
    return result;
}
