/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw disks: a file or block device whose bytes are the guest's sectors.
 *
 * Requests are handed in and come back later, so that whoever serves a guest never waits
 * for the host's storage. Below this header there are several engines that carry them out
 * (engines.c); above them stands one check of range and write permission, in disk.c.
 *
 * The format is raw, always. It is never guessed from the content: a guest could write
 * the header of another format into its first sector and be given the host's files.
 *
 * All functions are called on one thread, the disk's I/O thread (disk_open and disk_close
 * on any, while it has no requests), except where "any thread" is said.
 */
#ifndef HUSK_DISK_DISK_H
#define HUSK_DISK_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/error.h"

/* The unit of offsets and sizes (virtio 1.2, 5.2.2: a sector is 512 bytes, whatever the
 * block size). */
#define DISK_SECTOR_BYTES UINT64_C(512)

enum disk_operation {
    DISK_READ,
    DISK_WRITE,
    DISK_FLUSH,        /* what was written before it will survive a loss of power */
    DISK_DISCARD,      /* the range's content is of no interest any more */
    DISK_WRITE_ZEROES, /* the range reads as zeros afterwards */
};
#define DISK_OPERATIONS 5

struct disk_options {
    const char *path;
    const char *engine; /* "sync", "threads", "mmap", "uring"; NULL or "auto": choose */
    bool read_only;
    bool ephemeral; /* writes stay in memory and are gone at the end; the file is only
                       read */
    bool direct;    /* past the host's page cache (O_DIRECT) */
};

/* The caller owns it and what `buffers` points to, and leaves both alone from submit to
 * reap. */
struct disk_request {
    enum disk_operation operation;
    bool unmap; /* WRITE_ZEROES: the blocks may be given back to the host */
    uint64_t offset_bytes;
    uint64_t size_bytes;
    const struct iovec *buffers; /* READ, WRITE: together size_bytes */
    unsigned buffer_count;
    void *owner; /* the caller's */
    bool quiet;  /* if the host fails it, the caller tells the operator */

    /* 0 or a negative errno. -EROFS: the disk is read-only. -ERANGE: outside of it.
     * -EINVAL: no whole sectors, or buffers of another size. Else what the host said;
     * -EIO if it gave fewer bytes than the disk has. Once a FLUSH has failed all others
     * do: the host may have dropped what it could not write, and say no more of it. */
    int result;
    bool refused; /* `result` is this header's word, not the host's */

    /* disk/'s, from submit to reap. */
    struct disk_request *next;
    uint64_t sequence;   /* place among the requests of this disk */
    uint64_t done_bytes; /* what an attempt has moved already */
    uint64_t waits_for;  /* FLUSH: writes that must come back first */
};

struct disk;

/* Errors name no path (the caller prefixes "disk PATH"). A file that another process has
 * open for writing is refused; readers share. */
int disk_open(const struct disk_options *options, struct disk **disk,
              struct error *err) MUST_CHECK;

/* Waits for the requests in flight; they are not reaped any more. Accepts NULL. */
void disk_close(struct disk *disk);

/* Begins all `count` requests and returns; they come back in any order. A FLUSH is begun
 * when the writes submitted before it have come back. (The engine "sync" does the work in
 * this call, one after the other: it is what the others are compared with. "mmap" copies
 * in this call what is small and in the host's cache; "uring" writes what is small and
 * alone to a file of ext4.) */
void disk_submit(struct disk *disk, struct disk_request *const requests[],
                 unsigned count);

/* Takes up to `max` requests that have come back. Returns how many. Whoever has a FLUSH
 * in flight must go on reaping: that is what lets it begin. */
unsigned disk_reap(struct disk *disk, struct disk_request *done[], unsigned max);

/* What became of a request that has failed, for the operator: "disk a.img: write of 4096
 * bytes at byte 8192 failed: No space left on device". */
void disk_describe_failure(const struct disk *disk, const struct disk_request *request,
                           char *text, size_t size);
/* Says it in the log: of each kind of trouble once, until such an operation succeeds
 * again, and at most once a second. */
void disk_report_failure(struct disk *disk, const struct disk_request *request);

/* An eventfd, readable while there is something to reap; not to be read by the caller. */
int disk_completion_fd(const struct disk *disk);

/* Waits until every request has come back (they are still to be reaped): for a reset. */
void disk_drain(struct disk *disk);

/* Looks at the file again: somebody may have made it larger or smaller. True if the
 * disk's size is another now. (An ephemeral disk keeps its size.) */
bool disk_update_size(struct disk *disk);

uint64_t disk_size_bytes(const struct disk *disk); /* whole sectors; any thread */

/* What a guest should know to align its requests; it need not obey. Powers of two, except
 * for the optimal size, which may be 0: unknown. */
struct disk_topology {
    uint32_t logical_block_bytes;
    uint32_t physical_block_bytes;
    uint32_t optimal_bytes;
    uint32_t discard_block_bytes; /* smaller discards free nothing */
};
struct disk_topology disk_topology(const struct disk *disk); /* any thread */

bool disk_is_read_only(const struct disk *disk);         /* any thread */
const char *disk_path(const struct disk *disk);          /* any thread */
const char *disk_engine_name(const struct disk *disk);   /* any thread */
const char *disk_engine_reason(const struct disk *disk); /* why this one; any thread */

/* What has come back so far. Any thread; the numbers are of about the same moment. */
struct disk_counters {
    uint64_t requests[DISK_OPERATIONS]; /* failed ones included */
    uint64_t bytes[DISK_OPERATIONS];    /* of those that succeeded */
    uint64_t errors[DISK_OPERATIONS];
};
struct disk_counters disk_counters(const struct disk *disk);

#endif
