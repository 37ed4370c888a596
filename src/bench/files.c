/* SPDX-License-Identifier: Apache-2.0 */
/* The places where a bench's files are; see files_private.h. */
#include "bench/files_private.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The directory of husk's own executable: what belongs to it is found from there. */
static int own_directory(char directory[PATH_MAX], struct error *err)
{
    ssize_t size = readlink("/proc/self/exe", directory, PATH_MAX - 1);

    if (size <= 0)
        return error_set_errno(err, errno, "cannot find out where husk itself is");
    directory[size] = '\0';
    *strrchr(directory, '/') = '\0';
    return 0;
}

/* `start` and what follows, without "..", or as it is if there is no such file. */
static char *join(const char *start, const char *middle, const char *end)
{
    char *path = NULL;
    char *simple;

    if (asprintf(&path, "%s%s%s", start, middle, end) < 0)
        return NULL;
    simple = realpath(path, NULL);
    if (simple == NULL)
        return path;
    free(path);
    return simple;
}

/* The first of both that can be read; frees the other. */
static char *choose(char *first, char *second)
{
    if (first != NULL && access(first, R_OK) == 0) {
        free(second);
        return first;
    }
    free(first);
    if (second != NULL && access(second, R_OK) == 0)
        return second;
    free(second);
    return NULL;
}

char *bench_find_kernel(const char *asked, const char *flavour, struct error *err)
{
    char directory[PATH_MAX];
    char below[NAME_MAX];
    struct utsname host;
    char *found;

    if (asked != NULL) {
        found = choose(join(asked, "", ""), NULL);
        if (found == NULL)
            (void)error_set_errno(err, errno, "--kernel %s", asked);
        return found;
    }
    if (own_directory(directory, err) < 0)
        return NULL;
    (void)uname(&host);
    (void)snprintf(below, sizeof(below), "/../kernels/%s/vmlinuz", flavour);
    found = choose(join(directory, below, ""), join("/boot/vmlinuz-", host.release, ""));
    if (found == NULL)
        (void)error_set(err, ENOENT,
                        "no kernel to boot, neither %s%s nor /boot/vmlinuz-%s; "
                        "tools/get-kernel fetches Debian's, --kernel names another",
                        directory, below, host.release);
    return found;
}

char *bench_find_guest(const char *name, struct error *err)
{
    char directory[PATH_MAX];
    char *found;

    if (own_directory(directory, err) < 0)
        return NULL;
    found = choose(join(directory, "/../bench/", name),
                   join(directory, "/../share/husk/bench/", name));
    if (found == NULL)
        (void)error_set(err, ENOENT,
                        "the bench's file %s is in neither %s/../bench nor "
                        "%s/../share/husk/bench; it is built with husk (ninja without a "
                        "target)",
                        name, directory, directory);
    return found;
}

/* True if all of these are there; they end with NULL. */
static bool has_files(const char *directory, const char *const *names)
{
    bool found = true;

    for (; found && *names != NULL; names++) {
        char *path = join(directory, "/", *names);

        found = path != NULL && access(path, R_OK) == 0;
        free(path);
    }
    return found;
}

/* What tools have made: the `asked` directory, or `folder` in the build's; NULL, without
 * an error, if the files are not there. */
static char *find_made(const char *asked, const char *folder, const char *const *names,
                       struct error *err)
{
    char own[PATH_MAX];
    char *directory;

    if (asked == NULL && own_directory(own, err) < 0)
        return NULL;
    directory = asked != NULL ? join(asked, "", "") : join(own, "/../", folder);
    if (directory != NULL && has_files(directory, names))
        return directory;
    free(directory);
    return NULL;
}

char *bench_find_disk_guest(const char *asked, struct error *err)
{
    static const char *const names[] = {"vmlinuz", "initramfs", NULL};
    char *directory = find_made(asked, "disk-bench", names, err);

    if (directory == NULL && err->code == 0)
        (void)error_set(err, -ENOENT,
                        "no guest to measure disks in, vmlinuz and initramfs in %s: "
                        "tools/make-disk-bench-guest DIRECTORY makes one of Debian's "
                        "kernel, fio and bonnie++, --guest DIRECTORY names it",
                        asked == NULL ? "build/disk-bench" : asked);
    return directory;
}

char *bench_find_boot_guest(struct error *err)
{
    static const char *const names[] = {"vmlinuz", "root.cpio", "small.cpio", "root.ext4",
                                        NULL};
    char *directory = find_made(NULL, "boot-bench", names, err);

    if (directory == NULL && err->code == 0)
        (void)error_set(err, -ENOENT,
                        "no root file system to start from in build/boot-bench: "
                        "tools/make-boot-bench-guest makes one");
    return directory;
}
