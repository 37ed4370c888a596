/* SPDX-License-Identifier: Apache-2.0 */
/* husk plan: the disks. They are looked at, but not locked. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/json_text.h"
#include "cli/plan_private.h"

#define SECTOR_BYTES 512

/* Block devices have their size nowhere else but at their end. */
static int measure(struct plan_disk *disk, struct error *err)
{
    CLEANUP_FD int fd =
        open(disk->config.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    off_t end;

    if (fd < 0)
        return error_set_errno(err, errno, "cannot open");
    end = lseek(fd, 0, SEEK_END);
    if (end < 0)
        return error_set_errno(err, errno, "its size is not to be had");
    disk->size_bytes = (uint64_t)end;
    return 0;
}

int plan_look_at_disks(const struct vm_config *config, struct plan_disks *disks,
                       struct error *err)
{
    disks->count = config->disk_count;
    for (size_t i = 0; i < config->disk_count; i++) {
        struct plan_disk *disk = &disks->items[i];

        if (config_disk_parse(config->disks[i], &disk->config, err) < 0 ||
            measure(disk, err) < 0)
            return error_prefix(err, "disk %s", disk->config.path);
    }
    return 0;
}

/* "" if there is nothing to say. */
static void describe_oddity(const struct plan_disk *disk, char *text, size_t size)
{
    uint64_t odd_bytes = disk->size_bytes % SECTOR_BYTES;

    text[0] = '\0';
    if (disk->size_bytes < SECTOR_BYTES)
        (void)snprintf(text, size, "a disk needs at least one sector of 512 bytes");
    else if (odd_bytes != 0)
        (void)snprintf(text, size,
                       "no multiple of 512: the guest does not see the last %" PRIu64,
                       odd_bytes);
}

void plan_print_disks(const struct plan_disks *disks)
{
    if (disks->count == 0)
        return;
    printf("\ndisks\n");
    for (size_t i = 0; i < disks->count; i++) {
        const struct plan_disk *disk = &disks->items[i];
        const struct config_disk *config = &disk->config;
        char oddity[128];

        describe_oddity(disk, oddity, sizeof(oddity));
        plan_print_foreign("  ", config->path, ": ");
        printf("%" PRIu64 " bytes%s%s%s%s%s, engine %s, werror %s, rerror %s\n",
               disk->size_bytes, oddity[0] == '\0' ? "" : ", ", oddity,
               config->read_only ? ", ro" : "", config->ephemeral ? ", ephemeral" : "",
               config->direct ? ", direct" : "", config->engine,
               config_disk_policy_name(config->on_write_error),
               config_disk_policy_name(config->on_read_error));
    }
}

static json_t *json_disk(const struct plan_disk *disk)
{
    const struct config_disk *config = &disk->config;
    char oddity[128];

    describe_oddity(disk, oddity, sizeof(oddity));
    return json_pack(
        "{s:o, s:I, s:b, s:b, s:b, s:s, s:s, s:s, s:s, s:o, s:o}", "path",
        cli_json_text(config->path), "size_bytes", (json_int_t)disk->size_bytes,
        "read_only", config->read_only, "ephemeral", config->ephemeral, "direct",
        config->direct, "engine", config->engine, "on_write_error",
        config_disk_policy_name(config->on_write_error), "on_read_error",
        config_disk_policy_name(config->on_read_error), "serial", config->serial,
        "queues",
        config->queue_count == 0 ? json_null() : json_integer(config->queue_count),
        "note", oddity[0] == '\0' ? json_null() : json_string(oddity));
}

json_t *plan_json_disks(const struct plan_disks *disks)
{
    json_t *array = json_array();

    for (size_t i = 0; i < disks->count; i++)
        (void)json_array_append_new(array, json_disk(&disks->items[i]));
    return array;
}
