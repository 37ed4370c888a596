/* SPDX-License-Identifier: Apache-2.0 */
/* Making and removing temporary directories; see directory_private.h. */
#include "bench/directory_private.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

char *bench_directory_make(struct error *err)
{
    const char *parent = getenv("TMPDIR");
    char *path = NULL;

    if (asprintf(&path, "%s/husk-bench-XXXXXX", parent == NULL ? "/tmp" : parent) < 0) {
        (void)error_set(err, ENOMEM, "out of memory for a file name");
        return NULL;
    }
    if (mkdtemp(path) != NULL)
        return path;
    (void)error_set_errno(err, errno, "cannot make a directory like %s", path);
    free(path);
    return NULL;
}

/* Descriptors that nftw may use at once. */
#define OPEN_DIRECTORIES 8

static int remove_entry(const char *path, const struct stat *status, int kind,
                        struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

void bench_directory_remove(char *path)
{
    if (path != NULL)
        (void)nftw(path, remove_entry, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
    free(path);
}
