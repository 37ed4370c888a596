/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of this user's running husks; see runtime_directory.h. */
#include "base/runtime_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

int runtime_directory_path(char *path, size_t size, struct error *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int wanted;

    /* The base directory specification says to ignore relative paths. */
    if (runtime != NULL && runtime[0] == '/')
        wanted = snprintf(path, size, "%s/husk", runtime);
    else if (geteuid() == 0)
        wanted = snprintf(path, size, "/run/husk");
    else
        wanted = snprintf(path, size, "/tmp/husk-%u", (unsigned int)geteuid());
    if (wanted < 0 || (size_t)wanted >= size)
        return error_set(err, -ENAMETOOLONG,
                         "XDG_RUNTIME_DIR is too long for a socket's path: "
                         "set it to a shorter one");
    return 0;
}

/* Anybody can put things into /tmp, so what is found there is trusted only if it is our
 * own directory and closed to others. Asked of the descriptor that is then used, so that
 * nobody can swap it in between. */
static int check(int fd, const char *path, struct error *err)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return error_set_errno(err, errno, "%s: cannot examine", path);
    if (status.st_uid != geteuid())
        return error_set(err, -EPERM,
                         "%s belongs to user %u, not to %u who runs husk: "
                         "set XDG_RUNTIME_DIR to a directory of your own",
                         path, (unsigned int)status.st_uid, (unsigned int)geteuid());
    if ((status.st_mode & 077) != 0)
        return error_set(err, -EPERM, "%s is open to others (mode %04o): chmod 700 it",
                         path, (unsigned int)status.st_mode & 07777);
    return 0;
}

int runtime_directory_open(const char *path, bool create, int *fd, struct error *err)
{
    if (create && mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot create directory %s", path);
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0 && errno == ENOENT && !create)
        return -ENOENT;
    if (*fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return error_set(err, -ENOTDIR, "%s is no directory: remove it", path);
    if (*fd < 0)
        return error_set(err, errno,
                         "cannot open directory %s: %s; set XDG_RUNTIME_DIR to a "
                         "directory of your own",
                         path, strerror(errno));
    if (check(*fd, path, err) < 0) {
        fd_close(fd);
        return err->code;
    }
    return 0;
}
