/* SPDX-License-Identifier: Apache-2.0 */
/* The engine that does each request where it is submitted: the baseline. */
#include "disk/disk_private.h"

static int sync_open(struct disk *disk, struct error *err)
{
    (void)disk;
    (void)err;
    return 0;
}

static void sync_close(struct disk *disk)
{
    (void)disk;
}

static void sync_submit(struct disk *disk, struct request_list *requests)
{
    struct disk_request *request;

    while ((request = request_list_take(requests)) != NULL)
        disk_complete(disk, request, disk_perform(disk, request));
}

const struct disk_engine disk_engine_sync = {
    .name = "sync",
    .open = sync_open,
    .close = sync_close,
    .submit = sync_submit,
};
