/* SPDX-License-Identifier: Apache-2.0 */
/* What disk.c and the engines share: the disk, the engines' interface, lists of requests,
 * and the place where tests make the host fail. */
#ifndef HUSK_DISK_DISK_PRIVATE_H
#define HUSK_DISK_DISK_PRIVATE_H

#include "disk/disk.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "disk/file_private.h"

/* Requests in order. `last` means something only if `first` is not NULL. */
struct request_list {
    struct disk_request *first;
    struct disk_request *last;
};

static inline void request_list_append(struct request_list *list,
                                       struct disk_request *request)
{
    request->next = NULL;
    if (list->first == NULL)
        list->first = request;
    else
        list->last->next = request;
    list->last = request;
}

/* NULL: the list is empty. */
static inline struct disk_request *request_list_take(struct request_list *list)
{
    struct disk_request *request = list->first;

    if (request != NULL)
        list->first = request->next;
    return request;
}

/* Moves all of `from` behind what `to` has. */
static inline void request_list_move(struct request_list *to, struct request_list *from)
{
    if (from->first == NULL)
        return;
    if (to->first == NULL)
        to->first = from->first;
    else
        to->last->next = from->first;
    to->last = from->last;
    from->first = NULL;
}

struct disk_engine {
    const char *name;
    bool maps; /* works on a map of the file: may be ephemeral, never direct */

    int (*open)(struct disk *disk, struct error *err);
    void (*close)(struct disk *disk); /* nothing is in flight */

    /* Begins all of `requests`, which have passed the checks. Each ends in
     * disk_complete, on any thread, or in `collect`. */
    void (*submit)(struct disk *disk, struct request_list *requests);

    /* Appends what has come back by other ways than disk_complete. May be NULL. */
    void (*collect)(struct disk *disk, struct request_list *done);
};

/* NULL-terminated, in the order in which they are listed to people. */
extern const struct disk_engine *const disk_engines[];
extern const struct disk_engine disk_engine_sync;
extern const struct disk_engine disk_engine_threads;
extern const struct disk_engine disk_engine_mmap;
extern const struct disk_engine disk_engine_uring;

/* Chooses disk->engine by the options, opens it and says why in disk->engine_reason. */
int disk_engine_open(struct disk *disk, const char *name, struct error *err) MUST_CHECK;

/* How a host fails is not to be waited for. Tests put this between the host and the
 * engines: it gets what a system call has given (bytes, or a negative errno) and says
 * what the engine sees. Called on whatever thread made the call. */
struct disk_faults {
    int64_t (*outcome)(void *context, const struct disk_request *request, int64_t result);
    void *context;
};

/* Log lines are rationed for each of these apart, so that a guest that asks for nonsense
 * cannot hide that the host is full. */
enum disk_trouble { DISK_TROUBLE_FULL, DISK_TROUBLE_HOST, DISK_TROUBLE_GUEST };
#define DISK_TROUBLES 3

/* Written by the I/O thread, read by any. */
struct disk_account {
    _Atomic uint64_t requests;
    _Atomic uint64_t bytes;
    _Atomic uint64_t errors;
};

struct disk {
    struct disk_file file;
    bool read_only; /* to the guest; the file is so if the disk is ephemeral, too */
    bool ephemeral;
    _Atomic uint64_t size_bytes; /* written by the I/O thread */

    const struct disk_engine *engine;
    void *engine_state; /* the engine's */
    char engine_reason[ERROR_TEXT_BYTES];
    struct disk_faults faults; /* set before the first request */

    int completion_fd; /* eventfd */
    pthread_mutex_t completed_lock;
    struct request_list completed; /* by any thread, under the lock */

    /* The I/O thread's. */
    struct request_list ready;   /* accounted for, to be reaped */
    struct request_list flushes; /* waiting for writes, in order */
    uint64_t next_sequence;
    uint64_t in_flight;         /* submitted and not yet in `ready` */
    uint64_t changes_in_flight; /* of these, what a FLUSH waits for */
    int flush_failure;          /* of the first FLUSH that the host has failed; or 0 */
    struct log_gate gates[DISK_TROUBLES];
    bool told[DISK_OPERATIONS][DISK_TROUBLES]; /* and none has succeeded since */

    struct disk_account accounts[DISK_OPERATIONS];
};

/* Every result of a system call made for a request goes through here. */
static inline int64_t disk_outcome(struct disk *disk, const struct disk_request *request,
                                   int64_t result)
{
    if (disk->faults.outcome == NULL)
        return result;
    return disk->faults.outcome(disk->faults.context, request, result);
}

/* An engine is done with `request`. Any thread. */
void disk_complete(struct disk *disk, struct disk_request *request, int result);

/* Carries out what is left of a request by system calls, and waits for them. Returns its
 * result. Any thread; several at once. */
int disk_perform(struct disk *disk, struct disk_request *request);

/* Counts what has come back, and tells the operator of what failed. I/O thread. */
void disk_account(struct disk *disk, const struct disk_request *request);

#endif
