/* SPDX-License-Identifier: Apache-2.0 */
/* The table of disk engines, and the choice between them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "disk/disk_private.h"

const struct disk_engine *const disk_engines[] = {
    &disk_engine_sync, &disk_engine_threads, &disk_engine_mmap, &disk_engine_uring, NULL,
};

static void give_reason(struct disk *disk, const char *reason)
{
    (void)snprintf(disk->engine_reason, sizeof(disk->engine_reason), "%s", reason);
}

static int open_engine(struct disk *disk, const struct disk_engine *engine,
                       struct error *err)
{
    if (disk->ephemeral && !engine->maps)
        return error_set(err, -EINVAL,
                         "the engine %s writes to the file: an ephemeral disk needs mmap",
                         engine->name);
    if (disk->file.direct_bytes != 0 && engine->maps)
        return error_set(
            err, -EINVAL,
            "the engine %s and ephemeral disks work in the page cache, which "
            "'direct' leaves out",
            engine->name);
    disk->engine = engine;
    return engine->open(disk, err);
}

static int choose(struct disk *disk, struct error *err)
{
    struct error why = ERROR_NONE;

    if (disk->ephemeral) {
        give_reason(disk, "a private map keeps writes from the file");
        return open_engine(disk, &disk_engine_mmap, err);
    }
    if (open_engine(disk, &disk_engine_uring, &why) == 0) {
        give_reason(disk, "requests in flight need no thread each");
        return 0;
    }
    give_reason(disk, why.text);
    return open_engine(disk, &disk_engine_threads, err);
}

static int refuse_unknown(const char *name, struct error *err)
{
    char names[128] = "auto";

    for (const struct disk_engine *const *engine = disk_engines; *engine != NULL;
         engine++) {
        size_t length = strlen(names);

        (void)snprintf(names + length, sizeof(names) - length, ", %s", (*engine)->name);
    }
    return error_set(err, -EINVAL, "unknown engine '%s': there are %s", name, names);
}

int disk_engine_open(struct disk *disk, const char *name, struct error *err)
{
    if (name == NULL || strcmp(name, "auto") == 0)
        return choose(disk, err);
    for (const struct disk_engine *const *engine = disk_engines; *engine != NULL;
         engine++)
        if (strcmp((*engine)->name, name) == 0) {
            give_reason(disk, "asked for");
            return open_engine(disk, *engine, err);
        }
    return refuse_unknown(name, err);
}
