/* SPDX-License-Identifier: Apache-2.0 */
/* Carries a boot plan out on guest memory. */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "boot/boot.h"

/* A map behind the end of a file would succeed, and the guest would fault on it later. */
static int check_size(const struct boot_file *file, struct error *err)
{
    struct stat status;

    if (fstat(file->input->fd, &status) < 0)
        return error_set_errno(err, errno, "%s: cannot stat", file->name);
    if (S_ISREG(status.st_mode) && (uint64_t)status.st_size < file->input->size_bytes)
        return error_set(err, -ENODATA,
                         "%s became shorter after it was opened: %" PRIu64
                         " bytes then, %" PRIu64 " now",
                         file->name, file->input->size_bytes, (uint64_t)status.st_size);
    return 0;
}

static int copy_range(const struct boot_range *range, const struct boot_file *file,
                      struct memory *memory, struct error *err)
{
    void *to = memory_slice(memory, range->gpa, range->size_bytes);
    int status;

    if (to == NULL)
        return error_set(err, -EFAULT, "%s: 0x%" PRIx64 " is no guest memory", file->name,
                         range->gpa);
    status = fd_read_at(file->input->fd, range->file_offset, to, range->size_bytes);
    if (status == -ENODATA)
        return error_set(err, status, "%s became shorter while it was read", file->name);
    if (status < 0)
        return error_set_errno(err, status, "%s: cannot read", file->name);
    return 0;
}

static int load_range(const struct boot_plan *plan, const struct boot_range *range,
                      struct memory *memory, struct error *err)
{
    const struct boot_file *file = &plan->files[range->file];

    switch (range->kind) {
    case BOOT_MAP:
        return memory_map_file(memory, range->gpa, file->input->fd, range->file_offset,
                               range->size_bytes, file->name, err);
    case BOOT_COPY:
        return copy_range(range, file, memory, err);
    case BOOT_ZERO:
        return 0; /* fresh or reset memory is zero; touching it would only cost pages */
    case BOOT_GENERATED:
        if (memory_write(memory, range->gpa, range->bytes, range->size_bytes) < 0)
            return error_set(err, -EFAULT, "%s: 0x%" PRIx64 " is no guest memory",
                             range->what, range->gpa);
        return 0;
    }
    return 0;
}

int boot_load(const struct boot_plan *plan, struct memory *memory, struct error *err)
{
    for (size_t i = 0; i < plan->file_count; i++)
        if (check_size(&plan->files[i], err) < 0)
            return err->code;
    for (size_t i = 0; i < plan->range_count; i++)
        if (load_range(plan, &plan->ranges[i], memory, err) < 0)
            return err->code;
    return 0;
}
