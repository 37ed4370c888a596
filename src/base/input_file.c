/* SPDX-License-Identifier: Apache-2.0 */
/* Files a guest starts from; see input_file.h. */
#include "base/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

/* Reads all of a pipe or device into a memory file, which replaces the descriptor. */
static int slurp_stream(struct input_file *file, const char *kind, struct error *err)
{
    CLEANUP_FD int memory_fd = memfd_create("husk-input", MFD_CLOEXEC);
    int status;

    if (memory_fd < 0)
        return error_set_errno(err, errno, "cannot create a memory file for the %s",
                               kind);
    status =
        fd_copy_stream(file->fd, memory_fd, INPUT_FILE_STREAM_LIMIT, &file->size_bytes);
    if (status == -EOVERFLOW)
        return error_set(err, status, "the %s gave more than 4 GiB", kind);
    if (status < 0)
        return error_set_errno(err, status, "cannot read the %s", kind);
    fd_close(&file->fd);
    file->fd = fd_take(&memory_fd);
    (void)snprintf(file->reason, sizeof(file->reason), "%s, read into a memory file",
                   kind);
    return 0;
}

static int find_size(struct input_file *file, struct error *err)
{
    struct stat status;

    if (fstat(file->fd, &status) < 0)
        return error_set_errno(err, errno, "cannot stat");
    switch (status.st_mode & S_IFMT) {
    case S_IFREG:
        file->size_bytes = (uint64_t)status.st_size;
        return 0;
    case S_IFDIR:
        return error_set(err, -EISDIR, "is a directory, not a file");
    case S_IFBLK: {
        off_t end = lseek(file->fd, 0, SEEK_END);

        if (end < 0)
            return error_set_errno(err, errno,
                                   "cannot find the size of the block device");
        file->size_bytes = (uint64_t)end;
        return 0;
    }
    case S_IFIFO:
        return slurp_stream(file, "pipe", err);
    case S_IFSOCK:
        return slurp_stream(file, "socket", err);
    default:
        return slurp_stream(file, "character device", err);
    }
}

/* Tries a one-page mapping of the kind guests get: file systems and security policies may
 * refuse what open allowed. */
static void probe_mapping(struct input_file *file)
{
    void *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE, file->fd, 0);

    if (page == MAP_FAILED) {
        file->mode = INPUT_READ;
        (void)snprintf(file->reason, sizeof(file->reason), "mmap refused: %s",
                       strerror(errno));
        return;
    }
    (void)munmap(page, 1);
}

static int apply_policy(struct input_file *file, enum input_policy policy,
                        struct error *err)
{
    if (policy == INPUT_POLICY_COPY) {
        file->mode = INPUT_READ;
        (void)snprintf(file->reason, sizeof(file->reason), "--images copy");
        return 0;
    }
    probe_mapping(file);
    if (policy == INPUT_POLICY_MAP && file->mode == INPUT_READ)
        return error_set(err, -ENODEV,
                         "cannot be mapped (%s), and --images map forbids "
                         "reading it instead; use --images auto",
                         file->reason);
    return 0;
}

int input_file_adopt(struct input_file *file, int fd, const char *path,
                     enum input_policy policy, struct error *err)
{
    *file = (struct input_file){.fd = fd, .mode = INPUT_MAP};
    file->path = strdup(path);
    if (file->path == NULL) {
        fd_close(&file->fd); /* input_file_close takes a file without path for closed */
        return error_set(err, -ENOMEM, "out of memory");
    }
    if (find_size(file, err) < 0)
        goto fail;
    if (file->size_bytes == 0) {
        error_set(err, -ENODATA, "is empty");
        goto fail;
    }
    if (apply_policy(file, policy, err) < 0)
        goto fail;
    return 0;

fail:
    input_file_close(file);
    return err->code;
}

int input_file_open(struct input_file *file, const char *path, enum input_policy policy,
                    struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    *file = (struct input_file){.fd = -1};
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open");
    return input_file_adopt(file, fd, path, policy, err);
}

void input_file_close(struct input_file *file)
{
    if (file->path == NULL)
        return;
    free(file->path);
    file->path = NULL;
    fd_close(&file->fd);
}

struct source input_file_source(const struct input_file *file)
{
    return source_from_fd(file->fd, file->size_bytes);
}
