/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine on io_uring: reads, writes and flushes go to the host's kernel by a ring,
 * many with one system call, and no thread of ours waits for them.
 *
 * What is unusual goes to one thread that performs it by system calls: requests that
 * O_DIRECT does not take as they are, what a short transfer has left, what the ring has
 * no place for, discards and zeros with their ways around what the host cannot do.
 *
 * A small write to ext4 that comes alone is done at once: see AT_ONCE_BYTES.
 *
 * Neither the file nor the guest's memory is registered with the ring. The host's kernel
 * takes a ring apart some time after its process has ended, and would hold the file's
 * lock until then: who starts again at once would find the disk in use. Registered memory
 * is pinned, all of it, and the pages that guests share by mapping one file become
 * copies.
 */
#include <errno.h>
#include <liburing.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "disk/direct_private.h"
#include "disk/pool_private.h"

/* Requests begun by one system call; more take several. The kernel has twice as many
 * places for what comes back (io_uring_setup(2)), and is never given more than that. */
#define RING_ENTRIES 128
#define RING_MAX_IN_FLIGHT (2 * RING_ENTRIES)

/* Measured: on ext4 a buffered write of 4 KiB by the ring takes 30 us, 40 of processors,
 * and 5 by pwritev. The file system cannot begin one without the chance of waiting, so
 * the kernel hands it to a thread of its own. */
#define AT_ONCE_BYTES UINT64_C(65536)

struct uring_engine {
    struct io_uring ring;
    unsigned in_flight;     /* in the ring */
    bool hands_over_writes; /* to threads of the kernel, always */
    struct disk_pool pool;
};

/* Some hosts let a ring be made and not be used. Found out here that is an error; later
 * it would be a disk that never answers. */
static int try_ring(struct io_uring *ring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    struct io_uring_cqe *cqe;
    int status;

    if (sqe == NULL)
        return -EAGAIN;
    io_uring_prep_nop(sqe);
    status = io_uring_submit_and_wait(ring, 1);
    if (status < 0)
        return status;
    status = io_uring_wait_cqe(ring, &cqe);
    if (status == 0)
        io_uring_cqe_seen(ring, cqe);
    return status;
}

static int open_ring(struct disk *disk, struct io_uring *ring, struct error *err)
{
    int status = io_uring_queue_init(RING_ENTRIES, ring, 0);

    if (status == 0 && (status = try_ring(ring)) < 0)
        io_uring_queue_exit(ring);
    if (status < 0)
        return error_set_errno(err, status,
                               "the host allows no io_uring (a seccomp filter, "
                               "kernel.io_uring_disabled or a limit on locked memory)");
    status = io_uring_register_eventfd(ring, disk->completion_fd);
    if (status == 0)
        return 0;
    io_uring_queue_exit(ring);
    return error_set_errno(err, status, "the host's io_uring lacks what disks need");
}

static bool is_buffered_ext4(const struct disk_file *file)
{
    struct statfs status;

    return !file->block_device && file->direct_bytes == 0 &&
           fstatfs(file->fd, &status) == 0 && status.f_type == EXT4_SUPER_MAGIC;
}

static int uring_open(struct disk *disk, struct error *err)
{
    struct uring_engine *engine = malloc(sizeof(*engine));

    if (engine == NULL)
        return error_set_errno(err, ENOMEM, "no memory for a disk");
    engine->in_flight = 0;
    engine->hands_over_writes = is_buffered_ext4(&disk->file);
    disk->engine_state = engine;
    if (open_ring(disk, &engine->ring, err) == 0) {
        if (disk_pool_open(&engine->pool, disk, 1, disk_perform, err) == 0)
            return 0;
        io_uring_queue_exit(&engine->ring);
    }
    free(engine);
    return err->code;
}

static void uring_close(struct disk *disk)
{
    struct uring_engine *engine = disk->engine_state;

    disk_pool_close(&engine->pool);
    io_uring_queue_exit(&engine->ring);
    free(engine);
}

static bool is_for_the_ring(const struct disk *disk, const struct disk_request *request)
{
    if (request->operation == DISK_FLUSH)
        return true;
    return (request->operation == DISK_READ || request->operation == DISK_WRITE) &&
           request->buffer_count <= IOV_MAX && !disk_direct_must_bounce(disk, request);
}

static void prepare(struct io_uring_sqe *sqe, int fd, struct disk_request *request)
{
    if (request->operation == DISK_FLUSH)
        io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
    else if (request->operation == DISK_READ)
        io_uring_prep_readv(sqe, fd, request->buffers, request->buffer_count,
                            request->offset_bytes);
    else
        io_uring_prep_writev(sqe, fd, request->buffers, request->buffer_count,
                             request->offset_bytes);
    io_uring_sqe_set_data(sqe, request);
}

/* The kernel takes no requests while it is short of memory for them. There is nothing
 * else to do for this thread than to wait until it is not. */
static void enter(struct io_uring *ring)
{
    const struct timespec pause = {.tv_nsec = (long)NS_PER_MS};

    while (io_uring_sq_ready(ring) > 0)
        if (io_uring_submit(ring) < 0)
            (void)nanosleep(&pause, NULL);
}

static struct io_uring_sqe *next_entry(struct io_uring *ring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

    if (sqe != NULL)
        return sqe;
    enter(ring);
    return io_uring_get_sqe(ring);
}

/* True of a small write that is better done than handed over, and that nobody would wait
 * behind if the host took its time after all. */
static bool is_for_now(const struct uring_engine *engine,
                       const struct request_list *requests)
{
    const struct disk_request *request = requests->first;

    return engine->hands_over_writes && engine->in_flight == 0 &&
           request == requests->last && request->operation == DISK_WRITE &&
           request->size_bytes <= AT_ONCE_BYTES;
}

static void uring_submit(struct disk *disk, struct request_list *requests)
{
    struct uring_engine *engine = disk->engine_state;
    struct request_list unusual = {0};
    struct disk_request *request;

    if (is_for_now(engine, requests)) {
        request = request_list_take(requests);
        disk_complete(disk, request, disk_perform(disk, request));
        return;
    }
    while ((request = request_list_take(requests)) != NULL) {
        if (engine->in_flight < RING_MAX_IN_FLIGHT && is_for_the_ring(disk, request)) {
            prepare(next_entry(&engine->ring), disk->file.fd, request);
            engine->in_flight++;
        } else {
            request_list_append(&unusual, request);
        }
    }
    enter(&engine->ring);
    if (unusual.first != NULL)
        disk_pool_submit(&engine->pool, &unusual);
}

/* True if the request is done, with its result; else its rest is to be performed. */
static bool take_outcome(struct disk_request *request, int64_t outcome)
{
    if (outcome == -EINTR || outcome == -EAGAIN)
        return false;
    request->result = outcome < 0 ? (int)outcome : 0;
    if (outcome < 0 || request->operation == DISK_FLUSH)
        return true;
    request->done_bytes = (uint64_t)outcome;
    return request->done_bytes == request->size_bytes;
}

static void uring_collect(struct disk *disk, struct request_list *done)
{
    struct uring_engine *engine = disk->engine_state;
    struct request_list unfinished = {0};
    struct io_uring_cqe *cqe;

    while (io_uring_peek_cqe(&engine->ring, &cqe) == 0) {
        struct disk_request *request = io_uring_cqe_get_data(cqe);
        int64_t outcome = disk_outcome(disk, request, cqe->res);

        io_uring_cqe_seen(&engine->ring, cqe);
        engine->in_flight--;
        request_list_append(take_outcome(request, outcome) ? done : &unfinished, request);
    }
    if (unfinished.first != NULL)
        disk_pool_submit(&engine->pool, &unfinished);
}

const struct disk_engine disk_engine_uring = {
    .name = "uring",
    .open = uring_open,
    .close = uring_close,
    .submit = uring_submit,
    .collect = uring_collect,
};
