/* SPDX-License-Identifier: Apache-2.0 */
/* The engine that hands requests to threads of its own: good everywhere. */
#include <errno.h>
#include <stdlib.h>

#include "disk/pool_private.h"

static int threads_open(struct disk *disk, struct error *err)
{
    struct disk_pool *pool = malloc(sizeof(*pool));

    if (pool == NULL)
        return error_set_errno(err, ENOMEM, "no memory for a disk");
    disk->engine_state = pool;
    if (disk_pool_open(pool, disk, DISK_POOL_MAX_THREADS, disk_perform, err) == 0)
        return 0;
    free(pool);
    return err->code;
}

static void threads_close(struct disk *disk)
{
    disk_pool_close(disk->engine_state);
    free(disk->engine_state);
}

static void threads_submit(struct disk *disk, struct request_list *requests)
{
    disk_pool_submit(disk->engine_state, requests);
}

const struct disk_engine disk_engine_threads = {
    .name = "threads",
    .open = threads_open,
    .close = threads_close,
    .submit = threads_submit,
};
