/* SPDX-License-Identifier: Apache-2.0 */
/* A request carried out by system calls that wait: what the engines sync and threads are
 * made of, and what the others fall back to. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "disk/direct_private.h"
#include "disk/disk_private.h"
#include "disk/iovec_private.h"

/* Buffers handed to the host at once; a request with more takes several calls. */
#define PART_BUFFERS 64

/* Never written to; not const, so that it takes no room in the program's file. */
#define ZEROS_BYTES UINT64_C(65536)
static _Alignas(4096) uint8_t zeros[ZEROS_BYTES];

static int64_t call_result(struct disk *disk, const struct disk_request *request,
                           int64_t returned)
{
    return disk_outcome(disk, request, returned < 0 ? -errno : returned);
}

/* One attempt at the rest of a READ or WRITE: bytes moved, or a negative errno. */
static int64_t transfer_some(struct disk *disk, const struct disk_request *request)
{
    off_t offset = (off_t)(request->offset_bytes + request->done_bytes);
    struct iovec part[PART_BUFFERS];
    int count = iovec_part(request, request->done_bytes, part, PART_BUFFERS);

    if (request->operation == DISK_READ)
        return call_result(disk, request, preadv(disk->file.fd, part, count, offset));
    return call_result(disk, request, pwritev(disk->file.fd, part, count, offset));
}

static int transfer(struct disk *disk, struct disk_request *request)
{
    while (request->done_bytes < request->size_bytes) {
        int64_t moved;

        if (disk_direct_must_bounce(disk, request))
            return disk_direct_bounce(disk, request);
        moved = transfer_some(disk, request);
        if (moved == -EINTR)
            continue;
        if (moved < 0)
            return (int)moved;
        if (moved == 0)
            return -EIO; /* the file has become shorter */
        request->done_bytes += (uint64_t)moved;
    }
    return 0;
}

static int flush(struct disk *disk, const struct disk_request *request)
{
    return (int)call_result(disk, request, fdatasync(disk->file.fd));
}

static int allocate(struct disk *disk, const struct disk_request *request, int mode)
{
    return (int)call_result(disk, request,
                            fallocate(disk->file.fd, mode | FALLOC_FL_KEEP_SIZE,
                                      (off_t)request->offset_bytes,
                                      (off_t)request->size_bytes));
}

/* What a file system or device says that cannot do this, or not for this range
 * (fallocate(2), and blkdev_fallocate in Linux's block/fops.c). */
static bool is_unsupported(int result)
{
    return result == -EOPNOTSUPP || result == -EINVAL || result == -ENOSYS ||
           result == -ENOTTY;
}

/* A discard is advice: a host that cannot take it keeps the blocks. */
static int discard(struct disk *disk, const struct disk_request *request)
{
    uint64_t range[2] = {request->offset_bytes, request->size_bytes};
    int result;

    if (disk->file.block_device)
        result = (int)call_result(disk, request, ioctl(disk->file.fd, BLKDISCARD, range));
    else
        result = allocate(disk, request, FALLOC_FL_PUNCH_HOLE);
    return is_unsupported(result) ? 0 : result;
}

static int write_zeros(struct disk *disk, struct disk_request *request)
{
    while (request->done_bytes < request->size_bytes) {
        struct iovec buffer = {
            .iov_base = zeros,
            .iov_len = min_u64(request->size_bytes - request->done_bytes, ZEROS_BYTES),
        };
        struct disk_request piece = {
            .operation = DISK_WRITE,
            .offset_bytes = request->offset_bytes + request->done_bytes,
            .size_bytes = buffer.iov_len,
            .buffers = &buffer,
            .buffer_count = 1,
        };
        int result = transfer(disk, &piece);

        if (result < 0)
            return result;
        request->done_bytes += buffer.iov_len;
    }
    return 0;
}

static int write_zeroes(struct disk *disk, struct disk_request *request)
{
    int result = -EOPNOTSUPP;

    if (request->unmap)
        result = allocate(disk, request, FALLOC_FL_PUNCH_HOLE);
    if (is_unsupported(result))
        result = allocate(disk, request, FALLOC_FL_ZERO_RANGE);
    return is_unsupported(result) ? write_zeros(disk, request) : result;
}

int disk_perform(struct disk *disk, struct disk_request *request)
{
    switch (request->operation) {
    case DISK_READ:
    case DISK_WRITE:
        return transfer(disk, request);
    case DISK_FLUSH:
        return flush(disk, request);
    case DISK_DISCARD:
        return discard(disk, request);
    case DISK_WRITE_ZEROES:
        return write_zeroes(disk, request);
    }
    return -EINVAL;
}
