/* SPDX-License-Identifier: Apache-2.0 */
/* Making and preparing the image; see disk_image_private.h. */
#include "bench/disk_image_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fd.h"
#include "bench/disk_measure.h"

/* How much of its disk the guest reads to find its orders (tools/make-disk-bench-guest).
 */
#define ORDERS_BYTES ((size_t)16 * KIB)

#define BLOCK_BYTES ((size_t)64 * KIB)

const char disk_measure_script[] = SCRIPT_TEXT;

static int write_all(int fd, const void *bytes, size_t size_bytes)
{
    const char *at = bytes;

    while (size_bytes > 0) {
        ssize_t written = write(fd, at, size_bytes);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        at += written;
        size_bytes -= (size_t)written;
    }
    return 0;
}

/* No two blocks are alike, so that no storage can save room for them. */
static int fill(int fd, uint64_t size_bytes)
{
    uint64_t words[BLOCK_BYTES / sizeof(uint64_t)];
    int status = 0;

    for (uint64_t done = 0; status == 0 && done < size_bytes; done += BLOCK_BYTES) {
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
            words[i] = (done + i + 1) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden */
        status = write_all(fd, words, min_u64(size_bytes - done, BLOCK_BYTES));
    }
    return status;
}

int disk_image_make(const char *path, uint64_t size_bytes, struct error *err)
{
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int status = fd < 0 ? -errno : fill(fd, size_bytes);

    if (status < 0)
        return error_set_errno(err, status, "%s: cannot make a disk of %ju MiB", path,
                               (uintmax_t)(size_bytes / MIB));
    return 0;
}

int disk_image_prepare(const char *path, const char *arguments, struct error *err)
{
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
    char orders[ORDERS_BYTES] = {0};
    int length =
        snprintf(orders, sizeof(orders), "set -- %s\n%s", arguments, disk_measure_script);
    int status;

    CHECK(length > 0 && (size_t)length < sizeof(orders));
    status = fd < 0 ? -errno : write_all(fd, orders, sizeof(orders));
    if (status == 0 && fsync(fd) < 0)
        status = -errno;
    if (status < 0)
        return error_set_errno(err, status, "%s: cannot prepare the disk", path);
    return 0;
}
