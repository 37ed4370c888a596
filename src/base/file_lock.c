/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of files; see file_lock.h. */
#include "base/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* The host's kernel ends the io_uring requests of a process that was killed a little
 * after the process, and until then they hold the file and its lock (12 ms were seen).
 * Who starts a guest again at once must not be told of a writer that is none any more. */
#define PATIENCE_MS 500
#define PAUSE_MS 5

static bool is_taken(int status)
{
    return status == -EAGAIN || status == -EACCES; /* fcntl(2) */
}

static int lock_patiently(int fd, const struct flock *lock)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * (long)NS_PER_MS};
    int status = 0;

    for (int waited_ms = 0; waited_ms <= PATIENCE_MS; waited_ms += PAUSE_MS) {
        status = fcntl(fd, F_OFD_SETLK, lock) < 0 ? -errno : 0;
        if (!is_taken(status))
            return status;
        (void)nanosleep(&pause, NULL);
    }
    return status;
}

/* OFD locks belong to the open file, not to the process, so that they hold between two
 * disks of one process too. Byte 0 to the end. */
int file_lock(int fd, bool to_write, const char *name, struct error *err)
{
    struct flock lock = {.l_type = to_write ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
    int status = lock_patiently(fd, &lock);

    if (status == 0)
        return 0;
    if (!is_taken(status)) {
        log_warn("%s: cannot be locked (%s): nothing keeps others from writing to it",
                 name, strerror(-status));
        return 0;
    }
    if (fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_RDLCK)
        return error_set(err, -EBUSY,
                         "is in use by a reader, so it cannot be opened for writing: "
                         "open it read-only or ephemeral, or give each guest a copy");
    return error_set(err, -EBUSY,
                     "is in use by another writer: give each guest a copy, or open it "
                     "read-only or ephemeral in all");
}
