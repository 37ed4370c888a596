/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for the host's storage, so that a disk's I/O thread need not. */
#ifndef HUSK_DISK_POOL_PRIVATE_H
#define HUSK_DISK_POOL_PRIVATE_H

#include "disk/disk_private.h"

#define DISK_POOL_MAX_THREADS 8

struct disk_pool {
    struct disk *disk;
    int (*perform)(struct disk *disk, struct disk_request *request);

    pthread_mutex_t lock; /* of the next three */
    pthread_cond_t work;
    struct request_list queue;
    bool ending;

    unsigned thread_count;
    pthread_t threads[DISK_POOL_MAX_THREADS];
};

/* `perform` is called on the pool's threads, several at once; what it returns is the
 * request's result. The pool stays where it is until it is closed. */
int disk_pool_open(struct disk_pool *pool, struct disk *disk, unsigned thread_count,
                   int (*perform)(struct disk *disk, struct disk_request *request),
                   struct error *err) MUST_CHECK;
void disk_pool_close(struct disk_pool *pool); /* nothing is in flight */
void disk_pool_submit(struct disk_pool *pool, struct request_list *requests);

#endif
