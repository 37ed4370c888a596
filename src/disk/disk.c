/* SPDX-License-Identifier: Apache-2.0 */
/* What stands above all engines: the checks, the order of a FLUSH, and the way back. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "disk/disk_private.h"

/* ---- the way back ---- */

static void signal_completion(const struct disk *disk)
{
    (void)eventfd_write(disk->completion_fd, 1);
}

void disk_complete(struct disk *disk, struct disk_request *request, int result)
{
    request->result = result;
    (void)pthread_mutex_lock(&disk->completed_lock);
    if (disk->completed.first == NULL)
        signal_completion(disk);
    request_list_append(&disk->completed, request);
    (void)pthread_mutex_unlock(&disk->completed_lock);
}

/* Everything that a FLUSH promises to keep. */
static bool is_change(const struct disk_request *request)
{
    return request->operation != DISK_READ && request->operation != DISK_FLUSH;
}

/* A change has come back: those flushes that came after it wait for one less. */
static void count_down_flushes(struct disk *disk, const struct disk_request *change)
{
    for (struct disk_request *flush = disk->flushes.first; flush != NULL;
         flush = flush->next)
        if (flush->sequence > change->sequence)
            flush->waits_for--;
}

/* An earlier flush never waits for more than a later one, so those that wait for nothing
 * come first. */
static void begin_flushes(struct disk *disk)
{
    struct request_list begun = {0};

    while (disk->flushes.first != NULL && disk->flushes.first->waits_for == 0)
        request_list_append(&begun, request_list_take(&disk->flushes));
    if (begun.first != NULL)
        disk->engine->submit(disk, &begun);
}

/* Linux reports a page that could not be written to one fdatasync, and forgets it. */
static void judge_flush(struct disk *disk, struct disk_request *flush)
{
    if (disk->flush_failure == 0)
        disk->flush_failure = flush->result;
    else
        flush->result = disk->flush_failure;
}

static void settle(struct disk *disk, struct disk_request *request)
{
    disk->in_flight--;
    if (is_change(request)) {
        disk->changes_in_flight--;
        count_down_flushes(disk, request);
    }
    if (request->operation == DISK_FLUSH)
        judge_flush(disk, request);
    disk_account(disk, request);
    request_list_append(&disk->ready, request);
}

/* Makes ready what the engine is done with. The eventfd is cleared first: what comes
 * later sets it again. */
static void collect(struct disk *disk)
{
    struct request_list done = {0};
    struct disk_request *request;
    eventfd_t signals;

    (void)eventfd_read(disk->completion_fd, &signals);
    (void)pthread_mutex_lock(&disk->completed_lock);
    request_list_move(&done, &disk->completed);
    (void)pthread_mutex_unlock(&disk->completed_lock);
    if (disk->engine->collect != NULL)
        disk->engine->collect(disk, &done);
    while ((request = request_list_take(&done)) != NULL)
        settle(disk, request);
    begin_flushes(disk);
}

unsigned disk_reap(struct disk *disk, struct disk_request *done[], unsigned max)
{
    unsigned count = 0;

    collect(disk);
    while (count < max && disk->ready.first != NULL)
        done[count++] = request_list_take(&disk->ready);
    if (disk->ready.first != NULL)
        signal_completion(disk);
    return count;
}

int disk_completion_fd(const struct disk *disk)
{
    return disk->completion_fd;
}

void disk_drain(struct disk *disk)
{
    while (disk->in_flight > 0) {
        struct pollfd waiting = {.fd = disk->completion_fd, .events = POLLIN};

        (void)poll(&waiting, 1, -1);
        collect(disk);
    }
    if (disk->ready.first != NULL)
        signal_completion(disk);
}

/* ---- the way in ---- */

static bool buffers_hold(const struct disk_request *request)
{
    uint64_t missing_bytes = request->size_bytes;

    for (unsigned i = 0; i < request->buffer_count; i++) {
        if (request->buffers[i].iov_len > missing_bytes)
            return false;
        missing_bytes -= request->buffers[i].iov_len;
    }
    return missing_bytes == 0;
}

/* The one door for what a guest asks of a disk. */
static int check(const struct disk *disk, const struct disk_request *request)
{
    if (request->operation == DISK_FLUSH)
        return 0;
    if (disk->read_only && request->operation != DISK_READ)
        return -EROFS;
    if (!is_aligned(request->offset_bytes | request->size_bytes, DISK_SECTOR_BYTES))
        return -EINVAL;
    if (!range_within(request->offset_bytes, request->size_bytes, disk_size_bytes(disk)))
        return -ERANGE;
    if ((request->operation == DISK_READ || request->operation == DISK_WRITE) &&
        !buffers_hold(request))
        return -EINVAL;
    return 0;
}

/* True if there is nothing for an engine to do. */
static bool is_void(const struct disk *disk, const struct disk_request *request)
{
    return request->operation == DISK_FLUSH ? disk->file.read_only
                                            : request->size_bytes == 0;
}

/* Puts the request where it goes first: back, behind writes, or to the engine. */
static void sort_in(struct disk *disk, struct disk_request *request,
                    struct request_list *begun)
{
    request->done_bytes = 0;
    request->sequence = disk->next_sequence++;
    request->result = check(disk, request);
    request->refused = request->result < 0;
    if (request->refused || is_void(disk, request)) {
        disk_account(disk, request);
        request_list_append(&disk->ready, request);
        return;
    }
    disk->in_flight++;
    if (is_change(request))
        disk->changes_in_flight++;
    request->waits_for = disk->changes_in_flight;
    if (request->operation == DISK_FLUSH && request->waits_for > 0)
        request_list_append(&disk->flushes, request);
    else
        request_list_append(begun, request);
}

void disk_submit(struct disk *disk, struct disk_request *const requests[], unsigned count)
{
    struct request_list begun = {0};

    for (unsigned i = 0; i < count; i++)
        sort_in(disk, requests[i], &begun);
    if (begun.first != NULL)
        disk->engine->submit(disk, &begun);
    if (disk->ready.first != NULL)
        signal_completion(disk);
}

/* ---- open and close ---- */

static int measure(struct disk *disk, struct error *err)
{
    uint64_t unit_bytes = disk_file_unit_bytes(&disk->file);
    uint64_t size_bytes = 0;
    int status = disk_file_measure(&disk->file, &size_bytes);

    if (status < 0)
        return error_set_errno(err, status, "its size is not to be had");
    if (size_bytes < DISK_SECTOR_BYTES)
        return error_set(err, -EINVAL,
                         "has %ju bytes: a disk needs at least one sector "
                         "of 512",
                         (uintmax_t)size_bytes);
    if (unit_bytes > DISK_SECTOR_BYTES && !is_aligned(size_bytes, unit_bytes))
        return error_set(err, -EINVAL,
                         "has %ju bytes: with 'direct' it must be a "
                         "multiple of %ju here",
                         (uintmax_t)size_bytes, (uintmax_t)unit_bytes);
    if (!is_aligned(size_bytes, unit_bytes))
        log_warn(
            "disk %s: has %ju bytes, which is no multiple of 512: the guest does not "
            "see the last %ju",
            disk->file.path, (uintmax_t)size_bytes, (uintmax_t)(size_bytes % unit_bytes));
    atomic_store(&disk->size_bytes, align_down(size_bytes, unit_bytes));
    return 0;
}

/* What disk_open has made so far. */
static void dismantle(struct disk *disk)
{
    fd_close(&disk->completion_fd);
    (void)pthread_mutex_destroy(&disk->completed_lock);
    disk_file_close(&disk->file);
    free(disk);
}

int disk_open(const struct disk_options *options, struct disk **disk, struct error *err)
{
    struct disk *opened = calloc(1, sizeof(*opened));

    if (opened == NULL)
        return error_set_errno(err, ENOMEM, "no memory for a disk");
    if (disk_file_open(&opened->file, options, err) < 0) {
        free(opened);
        return err->code;
    }
    opened->read_only = options->read_only;
    opened->ephemeral = options->ephemeral;
    (void)pthread_mutex_init(&opened->completed_lock, NULL);
    opened->completion_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (opened->completion_fd < 0)
        error_set_errno(err, errno, "no eventfd for a disk");
    if (opened->completion_fd < 0 || measure(opened, err) < 0 ||
        disk_engine_open(opened, options->engine, err) < 0) {
        dismantle(opened);
        return err->code;
    }
    *disk = opened;
    return 0;
}

void disk_close(struct disk *disk)
{
    if (disk == NULL)
        return;
    disk_drain(disk);
    disk->engine->close(disk);
    dismantle(disk);
}

/* ---- what it is ---- */

bool disk_update_size(struct disk *disk)
{
    uint64_t size_bytes;

    if (disk->ephemeral || disk_file_measure(&disk->file, &size_bytes) < 0)
        return false;
    size_bytes = align_down(size_bytes, disk_file_unit_bytes(&disk->file));
    return atomic_exchange(&disk->size_bytes, size_bytes) != size_bytes;
}

uint64_t disk_size_bytes(const struct disk *disk)
{
    return atomic_load(&disk->size_bytes);
}

struct disk_topology disk_topology(const struct disk *disk)
{
    return disk->file.topology;
}

bool disk_is_read_only(const struct disk *disk)
{
    return disk->read_only;
}

const char *disk_path(const struct disk *disk)
{
    return disk->file.path;
}

const char *disk_engine_name(const struct disk *disk)
{
    return disk->engine->name;
}

const char *disk_engine_reason(const struct disk *disk)
{
    return disk->engine_reason;
}
