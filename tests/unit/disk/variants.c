/* SPDX-License-Identifier: Apache-2.0 */
/* See variants.h. */
#include "variants.h"

#include <stdio.h>
#include <stdlib.h>

static const struct variant variants[] = {
    {.name = "sync", .options = {.engine = "sync"}},
    {.name = "threads", .options = {.engine = "threads"}},
    {.name = "mmap", .options = {.engine = "mmap"}},
    {.name = "uring", .options = {.engine = "uring"}},
    {.name = "ephemeral", .options = {.engine = "mmap", .ephemeral = true}},
    {.name = "direct-sync", .options = {.engine = "sync", .direct = true}},
    {.name = "direct-threads", .options = {.engine = "threads", .direct = true}},
    {.name = "direct-uring", .options = {.engine = "uring", .direct = true}},
    {.name = "direct-blocks",
     .options = {.engine = "threads", .direct = true},
     .direct_bytes = 4096},
};
const struct variant *variant;

struct disk *open_variant(const struct test_file *file)
{
    struct disk_options options = variant->options;
    struct disk *disk;

    options.path = file->path;
    disk = open_or_fail(&options);
    if (variant->direct_bytes != 0)
        disk->file.direct_bytes = variant->direct_bytes;
    return disk;
}

/* 0 or a negative errno. */
static int check_variant(void)
{
    struct test_file file;
    struct disk_options options = variant->options;
    struct error err = ERROR_NONE;
    struct disk *disk = NULL;

    file_init(&file, DISK_BYTES);
    options.path = file.path;
    put_handler_back();
    if (disk_open(&options, &disk, &err) < 0)
        print_message("%s is not to be had here: %s\n", variant->name, err.text);
    disk_close(disk);
    file_finish(&file);
    return err.code;
}

int variant_choose(int argc, char **argv)
{
    for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
        if (argc == 2 && strcmp(argv[1], variants[i].name) == 0)
            variant = &variants[i];
    if (variant == NULL) {
        (void)fprintf(stderr, "usage: %s VARIANT\n", argv[0]);
        return EXIT_FAILURE;
    }
    return check_variant() < 0 ? EXIT_SKIP : 0;
}
