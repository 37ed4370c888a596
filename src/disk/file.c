/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, locks and measures what is behind a disk; see file_private.h. */
#include "disk/file_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/file_lock.h"

/* Where the host does not say what O_DIRECT wants, as kernels before 6.1: a page is
 * enough for every storage there is. */
#define DIRECT_BYTES_UNKNOWN 4096

/* The largest block that a guest is told. Network file systems have a MiB, which no guest
 * would want to align to. */
#define MAX_BLOCK_BYTES UINT64_C(65536)

static int lock_file(const struct disk_file *file, struct error *err)
{
    char name[512]; /* longer ones are cut: it serves a message */

    (void)snprintf(name, sizeof(name), "disk %s", file->path);
    return file_lock(file->fd, !file->read_only, name, err);
}

static int open_path(struct disk_file *file, const struct disk_options *options,
                     struct error *err)
{
    int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK; /* a FIFO is refused, not waited for */

    flags |= file->read_only ? O_RDONLY : O_RDWR;
    if (options->direct)
        flags |= O_DIRECT;
    file->fd = open(options->path, flags);
    if (file->fd >= 0)
        return 0;
    if (errno == EINVAL && options->direct)
        return error_set(err, -EINVAL,
                         "its file system has no O_DIRECT: leave out 'direct'");
    if ((errno == EACCES || errno == EROFS || errno == EPERM) && !file->read_only)
        return error_set_errno(err, errno,
                               "cannot open for writing (read-only or ephemeral may do)");
    return error_set_errno(err, errno, "cannot open");
}

/* What a file system calls the size of good requests (stat(2)) may be anything. */
static uint32_t block_bytes(const struct stat *status)
{
    uint64_t bytes = MAX_BLOCK_BYTES;

    while (bytes > DISK_SECTOR_BYTES && bytes > (uint64_t)status->st_blksize)
        bytes /= 2;
    return (uint32_t)bytes;
}

static int check_kind(struct disk_file *file, const struct disk_options *options,
                      struct error *err)
{
    struct stat status;

    /* O_NONBLOCK was for what is refused here; io_uring takes it to mean "rather fail".
     */
    if (fstat(file->fd, &status) < 0 ||
        fcntl(file->fd, F_SETFL, options->direct ? O_DIRECT : 0) < 0)
        return error_set_errno(err, errno, "cannot be examined");
    if (S_ISDIR(status.st_mode))
        return error_set(err, -EISDIR, "is a directory, not a disk");
    if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
        return error_set(err, -EINVAL, "is neither a regular file nor a block device");
    file->block_device = S_ISBLK(status.st_mode);
    file->topology = (struct disk_topology){
        .logical_block_bytes = DISK_SECTOR_BYTES,
        .physical_block_bytes = block_bytes(&status),
        .discard_block_bytes = block_bytes(&status),
    };
    return 0;
}

/* A device that does not answer keeps what check_kind has put there. */
static void ask_block_device(struct disk_file *file)
{
    struct disk_topology *topology = &file->topology;
    int logical;
    unsigned value;

    if (ioctl(file->fd, BLKSSZGET, &logical) == 0)
        topology->logical_block_bytes = (uint32_t)logical;
    if (ioctl(file->fd, BLKPBSZGET, &value) == 0)
        topology->physical_block_bytes = value;
    if (ioctl(file->fd, BLKIOOPT, &value) == 0)
        topology->optimal_bytes = value;
    topology->discard_block_bytes = topology->physical_block_bytes;
}

static int prepare_direct(struct disk_file *file, struct error *err)
{
    struct statx status;

    file->direct_bytes = DIRECT_BYTES_UNKNOWN;
    file->direct_memory_bytes = DIRECT_BYTES_UNKNOWN;
    if (statx(file->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
        (status.stx_mask & STATX_DIOALIGN) != 0) {
        if (status.stx_dio_offset_align == 0)
            return error_set(err, -EINVAL,
                             "its file system has no O_DIRECT: leave out 'direct'");
        file->direct_bytes = status.stx_dio_offset_align;
        file->direct_memory_bytes = status.stx_dio_mem_align;
    }
    /* The logical block stays as it is: partition tables count in it. */
    file->topology.physical_block_bytes =
        (uint32_t)max_u64(file->topology.physical_block_bytes, file->direct_bytes);
    file->bounce = aligned_alloc(DIRECT_BYTES_UNKNOWN, DISK_BOUNCE_BYTES);
    if (file->bounce == NULL)
        return error_set_errno(err, ENOMEM, "no memory for a disk");
    return 0;
}

int disk_file_measure(const struct disk_file *file, uint64_t *size_bytes)
{
    struct stat status;

    if (file->block_device)
        return ioctl(file->fd, BLKGETSIZE64, size_bytes) < 0 ? -errno : 0;
    if (fstat(file->fd, &status) < 0)
        return -errno;
    *size_bytes = (uint64_t)status.st_size;
    return 0;
}

uint64_t disk_file_unit_bytes(const struct disk_file *file)
{
    return max_u64(DISK_SECTOR_BYTES, file->direct_bytes);
}

int disk_file_open(struct disk_file *file, const struct disk_options *options,
                   struct error *err)
{
    *file = (struct disk_file){
        .path = strdup(options->path),
        .fd = -1,
        .read_only = options->read_only || options->ephemeral,
    };
    (void)pthread_mutex_init(&file->bounce_lock, NULL);
    if (file->path == NULL) {
        error_set_errno(err, ENOMEM, "no memory for a disk");
        goto fail;
    }
    if (open_path(file, options, err) < 0 || check_kind(file, options, err) < 0 ||
        lock_file(file, err) < 0)
        goto fail;
    if (file->block_device)
        ask_block_device(file);
    if (options->direct && prepare_direct(file, err) < 0)
        goto fail;
    return 0;

fail:
    disk_file_close(file);
    return err->code;
}

void disk_file_close(struct disk_file *file)
{
    fd_close(&file->fd);
    (void)pthread_mutex_destroy(&file->bounce_lock);
    free(file->bounce);
    free(file->path);
}
