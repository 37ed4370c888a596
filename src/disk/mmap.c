/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine on a map of the file: reads and writes are copies. What is small and in the
 * host's cache is copied at once; the rest is for a few threads, because a page that is
 * not there yet is waited for in the middle of a copy.
 *
 * A map has no way to return an error: a full host or a file that has become shorter is a
 * SIGBUS. So blocks are reserved before they are written to; and where a page is lost all
 * the same, a zero page takes its place, and the map is not trusted there any more:
 * requests are performed by system calls, which say what is the matter.
 *
 * If the disk is ephemeral the map is private: the guest's writes become pages of ours,
 * and the file, which is open for reading alone, is never changed. A page that was lost
 * is mapped again when it is asked for again.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/map_guard.h"
#include "disk/iovec_private.h"
#include "disk/pool_private.h"

#define PAGE_BYTES UINT64_C(4096)
#define WORD_BITS 64

/* Copies wait for the storage only at pages that are not in the host's cache. */
#define THREADS 4

/* A copy of this size takes some 10 us, about as long as it takes to wake a thread. */
#define AT_ONCE_BYTES UINT64_C(65536)
#define AT_ONCE_PAGES (AT_ONCE_BYTES / PAGE_BYTES + 1) /* it may begin anywhere */

struct mmap_engine {
    struct disk *disk;
    uint8_t *map;
    uint64_t size_bytes; /* of the map: the disk's when it was opened */
    struct map_guard guard;
    struct disk_pool pool;

    _Atomic uint64_t *lost;      /* one bit a page: zeros have taken its place */
    atomic_bool has_lost;        /* a page, ever */
    pthread_mutex_t lossy_lock;  /* a private map that has lost pages */
    _Atomic uint64_t *reserved;  /* one bit a page: the host has room for it */
    _Atomic uint64_t *written;   /* one bit a page of a private map: it is ours */
    atomic_bool can_not_reserve; /* the file system has no way to */
};

/* ---- pages, a bit each ---- */

struct page_range {
    uint64_t first;
    uint64_t end;
};

static struct page_range pages_of(const struct disk_request *request)
{
    uint64_t end = request->offset_bytes + request->size_bytes;

    return (struct page_range){
        .first = request->offset_bytes / PAGE_BYTES,
        .end = align_up(end, PAGE_BYTES) / PAGE_BYTES,
    };
}

static uint64_t bit_of(uint64_t page)
{
    return UINT64_C(1) << (page % WORD_BITS);
}

static bool has_bit(_Atomic uint64_t *bits, uint64_t page)
{
    return (atomic_load(&bits[page / WORD_BITS]) & bit_of(page)) != 0;
}

static void set_bit(_Atomic uint64_t *bits, uint64_t page)
{
    (void)atomic_fetch_or(&bits[page / WORD_BITS], bit_of(page));
}

static void clear_bit(_Atomic uint64_t *bits, uint64_t page)
{
    (void)atomic_fetch_and(&bits[page / WORD_BITS], ~bit_of(page));
}

static _Atomic uint64_t *make_bits(uint64_t pages)
{
    return calloc(pages / WORD_BITS + 1, sizeof(_Atomic uint64_t));
}

/* Costs address space alone, until bits are set. */
static int make_all_bits(struct mmap_engine *engine, struct error *err)
{
    uint64_t pages = align_up(engine->size_bytes, PAGE_BYTES) / PAGE_BYTES;

    engine->lost = make_bits(pages);
    engine->reserved = make_bits(pages);
    engine->written = make_bits(pages);
    if (engine->lost == NULL || engine->reserved == NULL || engine->written == NULL)
        return error_set_errno(err, ENOMEM, "no memory for a disk");
    return 0;
}

/* ---- pages that are lost ---- */

/* Signal context. The bit is set before the page is there, so that whoever sees the page,
 * and looks at the bit afterwards, knows. */
static bool repair(void *context, uintptr_t address)
{
    struct mmap_engine *engine = context;

    set_bit(engine->lost, (address - (uintptr_t)engine->map) / PAGE_BYTES);
    atomic_store(&engine->has_lost, true);
    return map_guard_put_zero_page(address);
}

/* True if the map has shown the range truthfully so far. */
static bool is_trusted(const struct mmap_engine *engine,
                       const struct disk_request *request)
{
    struct page_range pages = pages_of(request);

    if (request->offset_bytes + request->size_bytes > engine->size_bytes)
        return false;
    if (!atomic_load(&engine->has_lost))
        return true;
    for (uint64_t page = pages.first; page < pages.end; page++)
        if (has_bit(engine->lost, page))
            return false;
    return true;
}

/* Asked after a copy. So is the file: what a map shows between a new end of it and the
 * end of that page are zeros. */
static bool was_whole(const struct mmap_engine *engine,
                      const struct disk_request *request)
{
    const struct disk_file *file = &engine->disk->file;
    uint64_t end = request->offset_bytes + request->size_bytes;
    struct stat status;

    return is_trusted(engine, request) &&
           (file->block_device ||
            (fstat(file->fd, &status) == 0 && end <= (uint64_t)status.st_size));
}

/* ---- room for what is written ---- */

static bool is_reserved(const struct mmap_engine *engine, struct page_range pages)
{
    for (uint64_t page = pages.first; page < pages.end; page++)
        if (!has_bit(engine->reserved, page))
            return false;
    return true;
}

/* 0, or a negative errno: -EOPNOTSUPP if it cannot be known whether there is room. */
static int reserve(struct mmap_engine *engine, const struct disk_request *request)
{
    struct page_range pages = pages_of(request);
    int status;

    if (engine->disk->file.block_device || is_reserved(engine, pages))
        return 0;
    if (atomic_load(&engine->can_not_reserve))
        return -EOPNOTSUPP;
    status = fallocate(engine->disk->file.fd, FALLOC_FL_KEEP_SIZE,
                       (off_t)(pages.first * PAGE_BYTES),
                       (off_t)((pages.end - pages.first) * PAGE_BYTES));
    status = (int)disk_outcome(engine->disk, request, status < 0 ? -errno : 0);
    if (status == -EOPNOTSUPP)
        atomic_store(&engine->can_not_reserve, true);
    if (status < 0)
        return status;
    for (uint64_t page = pages.first; page < pages.end; page++)
        set_bit(engine->reserved, page);
    return 0;
}

static void forget_reservation(struct mmap_engine *engine,
                               const struct disk_request *request)
{
    struct page_range pages = pages_of(request);
    uint64_t page = pages.first;
    uint64_t end =
        min_u64(pages.end, align_up(engine->size_bytes, PAGE_BYTES) / PAGE_BYTES);

    while (page < end) {
        if (is_aligned(page, WORD_BITS) && end - page >= WORD_BITS) {
            atomic_store(&engine->reserved[page / WORD_BITS], 0);
            page += WORD_BITS;
        } else {
            clear_bit(engine->reserved, page);
            page++;
        }
    }
}

/* ---- a map that writes through ---- */

static int transfer(struct mmap_engine *engine, struct disk_request *request)
{
    int status = 0;

    if (!is_trusted(engine, request))
        return disk_perform(engine->disk, request);
    if (request->operation == DISK_WRITE)
        status = reserve(engine, request);
    if (status == -EOPNOTSUPP)
        return disk_perform(engine->disk, request);
    if (status < 0)
        return status;
    iovec_copy(request, 0, engine->map + request->offset_bytes, request->size_bytes);
    return was_whole(engine, request) ? 0 : disk_perform(engine->disk, request);
}

static int perform_shared(struct disk *disk, struct disk_request *request)
{
    struct mmap_engine *engine = disk->engine_state;
    int result;

    switch (request->operation) {
    case DISK_READ:
    case DISK_WRITE:
        return transfer(engine, request);
    case DISK_DISCARD:
    case DISK_WRITE_ZEROES:
        result = disk_perform(disk, request);
        forget_reservation(engine, request);
        return result;
    case DISK_FLUSH:
        /* The kernel has noted at the first write to each page that it is dirty; so
         * fdatasync writes what was written through the map like anything else, and
         * msync would do no more. */
        break;
    }
    return disk_perform(disk, request);
}

/* ---- a private map ---- */

/* The content is of no interest: our copies go, and what the file has shows again. */
static void forget_pages(struct mmap_engine *engine, const struct disk_request *request)
{
    uint64_t start = align_up(request->offset_bytes, PAGE_BYTES);
    uint64_t end = align_down(request->offset_bytes + request->size_bytes, PAGE_BYTES);

    if (start < end)
        (void)madvise(engine->map + start, end - start, MADV_DONTNEED);
    for (uint64_t page = start / PAGE_BYTES; page < end / PAGE_BYTES; page++)
        clear_bit(engine->written, page);
}

/* Lost pages of the range are those of the file again, until they are touched. (Not those
 * that the guest has written: a truncation takes them away, too, and for good.) */
static void map_again(struct mmap_engine *engine, const struct disk_request *request)
{
    struct page_range pages = pages_of(request);

    for (uint64_t page = pages.first; page < pages.end; page++) {
        if (!has_bit(engine->lost, page) || has_bit(engine->written, page))
            continue;
        clear_bit(engine->lost, page); /* before it can be lost again */
        if (mmap(engine->map + page * PAGE_BYTES, PAGE_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, engine->disk->file.fd,
                 (off_t)(page * PAGE_BYTES)) == MAP_FAILED)
            set_bit(engine->lost, page);
    }
}

static bool copy_private(struct mmap_engine *engine, const struct disk_request *request)
{
    struct page_range pages = pages_of(request);
    uint8_t *range = engine->map + request->offset_bytes;
    bool whole;

    if (request->operation == DISK_WRITE_ZEROES)
        memset(range, 0, request->size_bytes);
    else
        iovec_copy(request, 0, range, request->size_bytes);
    whole = was_whole(engine, request);
    if (whole && request->operation != DISK_READ)
        for (uint64_t page = pages.first; page < pages.end; page++)
            set_bit(engine->written, page);
    return whole;
}

/* A page that is mapped again under the hands of another request would make that believe
 * in what it has read from, or written to, the zeros. So from the first loss on there is
 * one request at a time, and those that were in the midst of it are done once more. */
static bool transfer_private(struct mmap_engine *engine,
                             const struct disk_request *request)
{
    bool done = false;

    if (!atomic_load(&engine->has_lost)) {
        done = copy_private(engine, request);
        if (!atomic_load(&engine->has_lost))
            return done;
    }
    (void)pthread_mutex_lock(&engine->lossy_lock);
    map_again(engine, request);
    done = copy_private(engine, request);
    (void)pthread_mutex_unlock(&engine->lossy_lock);
    return done;
}

static int perform_private(struct disk *disk, struct disk_request *request)
{
    struct mmap_engine *engine = disk->engine_state;

    switch (request->operation) {
    case DISK_READ:
    case DISK_WRITE:
    case DISK_WRITE_ZEROES:
        break;
    case DISK_DISCARD:
        forget_pages(engine, request);
        return 0;
    case DISK_FLUSH:
        return 0;
    }
    return (int)disk_outcome(disk, request, transfer_private(engine, request) ? 0 : -EIO);
}

/* ---- open and close ---- */

static int map_file(struct mmap_engine *engine, struct error *err)
{
    const struct disk *disk = engine->disk;
    bool writable = disk->ephemeral || !disk->file.read_only;
    int flags = disk->ephemeral ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED;
    void *map =
        mmap(NULL, engine->size_bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
             flags, disk->file.fd, 0);

    if (map == MAP_FAILED)
        return error_set_errno(err, errno, "cannot be mapped (another engine may do)");
    engine->map = map;
    engine->guard = (struct map_guard){
        .start = (uintptr_t)map,
        .end = (uintptr_t)map + align_up(engine->size_bytes, PAGE_BYTES),
        .repair = repair,
        .context = engine,
    };
    return map_guard_register(&engine->guard, err);
}

static void release(struct mmap_engine *engine)
{
    map_guard_unregister(&engine->guard);
    if (engine->map != NULL)
        (void)munmap(engine->map, engine->size_bytes);
    (void)pthread_mutex_destroy(&engine->lossy_lock);
    free(engine->lost);
    free(engine->reserved);
    free(engine->written);
    free(engine);
}

static int mmap_open(struct disk *disk, struct error *err)
{
    struct mmap_engine *engine = calloc(1, sizeof(*engine));

    if (engine == NULL)
        return error_set_errno(err, ENOMEM, "no memory for a disk");
    engine->disk = disk;
    engine->size_bytes = disk_size_bytes(disk);
    (void)pthread_mutex_init(&engine->lossy_lock, NULL);
    disk->engine_state = engine;
    if (make_all_bits(engine, err) < 0 || map_file(engine, err) < 0 ||
        disk_pool_open(&engine->pool, disk, THREADS,
                       disk->ephemeral ? perform_private : perform_shared, err) < 0) {
        release(engine);
        return err->code;
    }
    return 0;
}

static void mmap_close(struct disk *disk)
{
    struct mmap_engine *engine = disk->engine_state;

    disk_pool_close(&engine->pool);
    release(engine);
}

/* True if a copy will hardly have to wait. The host may take pages away again meanwhile;
 * it is then this thread that waits for them. */
static bool is_at_hand(struct mmap_engine *engine, const struct disk_request *request)
{
    struct page_range pages = pages_of(request);
    unsigned char resident[AT_ONCE_PAGES];

    if ((request->operation != DISK_READ && request->operation != DISK_WRITE) ||
        request->size_bytes > AT_ONCE_BYTES || !is_trusted(engine, request))
        return false;
    if (mincore(engine->map + pages.first * PAGE_BYTES,
                (pages.end - pages.first) * PAGE_BYTES, resident) < 0)
        return false;
    for (uint64_t i = 0; i < pages.end - pages.first; i++)
        if ((resident[i] & 1) == 0) /* mincore(2): the other bits are reserved */
            return false;
    return true;
}

static void mmap_submit(struct disk *disk, struct request_list *requests)
{
    struct mmap_engine *engine = disk->engine_state;
    struct request_list slow = {0};
    struct disk_request *request;

    while ((request = request_list_take(requests)) != NULL) {
        if (is_at_hand(engine, request))
            disk_complete(disk, request, engine->pool.perform(disk, request));
        else
            request_list_append(&slow, request);
    }
    if (slow.first != NULL)
        disk_pool_submit(&engine->pool, &slow);
}

const struct disk_engine disk_engine_mmap = {
    .name = "mmap",
    .maps = true,
    .open = mmap_open,
    .close = mmap_close,
    .submit = mmap_submit,
};
