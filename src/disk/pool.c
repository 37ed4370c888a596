/* SPDX-License-Identifier: Apache-2.0 */
/* The threads behind the engines, and their queue; see pool_private.h. */
#include "disk/pool_private.h"

#include <errno.h>

#include "base/thread.h"

/* NULL: the pool ends. */
static struct disk_request *next_request(struct disk_pool *pool)
{
    struct disk_request *request;

    (void)pthread_mutex_lock(&pool->lock);
    while ((request = request_list_take(&pool->queue)) == NULL && !pool->ending)
        (void)pthread_cond_wait(&pool->work, &pool->lock);
    (void)pthread_mutex_unlock(&pool->lock);
    return request;
}

static void *work(void *context)
{
    struct disk_pool *pool = context;
    struct disk_request *request;

    while ((request = next_request(pool)) != NULL)
        disk_complete(pool->disk, request, pool->perform(pool->disk, request));
    return NULL;
}

static int start_threads(struct disk_pool *pool, unsigned thread_count)
{
    while (pool->thread_count < thread_count) {
        int status = thread_start(&pool->threads[pool->thread_count], "disk", work, pool);

        if (status < 0)
            return status;
        pool->thread_count++;
    }
    return 0;
}

int disk_pool_open(struct disk_pool *pool, struct disk *disk, unsigned thread_count,
                   int (*perform)(struct disk *disk, struct disk_request *request),
                   struct error *err)
{
    int status;

    *pool = (struct disk_pool){.disk = disk, .perform = perform};
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->work, NULL);
    status = start_threads(pool, thread_count);
    if (status == 0)
        return 0;
    disk_pool_close(pool);
    return error_set_errno(err, status, "cannot start a thread for a disk");
}

void disk_pool_close(struct disk_pool *pool)
{
    (void)pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    (void)pthread_cond_broadcast(&pool->work);
    (void)pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->thread_count; i++)
        (void)pthread_join(pool->threads[i], NULL);
    (void)pthread_cond_destroy(&pool->work);
    (void)pthread_mutex_destroy(&pool->lock);
}

/* One lock for a batch, however long. */
void disk_pool_submit(struct disk_pool *pool, struct request_list *requests)
{
    bool several = requests->first != requests->last;

    (void)pthread_mutex_lock(&pool->lock);
    request_list_move(&pool->queue, requests);
    if (several)
        (void)pthread_cond_broadcast(&pool->work);
    else
        (void)pthread_cond_signal(&pool->work);
    (void)pthread_mutex_unlock(&pool->lock);
}
