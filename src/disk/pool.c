/* SPDX-License-Identifier: Apache-2.0 */
/* The threads behind the engines, and their queue; see pool_private.h. */
#include "disk/pool_private.h"

#include <errno.h>
#include <signal.h>

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

/* Signals are for the main loop, except those that a thread brings upon itself. */
static void mask_signals(sigset_t *previous)
{
    sigset_t masked;

    (void)sigfillset(&masked);
    (void)sigdelset(&masked, SIGBUS);
    (void)sigdelset(&masked, SIGSEGV);
    (void)sigdelset(&masked, SIGILL);
    (void)sigdelset(&masked, SIGFPE);
    (void)pthread_sigmask(SIG_SETMASK, &masked, previous);
}

static int start_threads(struct disk_pool *pool, unsigned thread_count)
{
    sigset_t previous;
    int status = 0;

    mask_signals(&previous);
    while (status == 0 && pool->thread_count < thread_count) {
        pthread_t *thread = &pool->threads[pool->thread_count];

        status = pthread_create(thread, NULL, work, pool);
        if (status == 0) {
            (void)pthread_setname_np(*thread, "disk");
            pool->thread_count++;
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &previous, NULL);
    return status;
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
