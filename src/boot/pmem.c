/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are persistent memory: opened, placed above RAM, mapped. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fd.h"
#include "base/file_lock.h"
#include "boot/builder_private.h"
#include "x86/layout.h"

/* Bits of a physical address that page tables of four levels can hold and that Linux has
 * a direct map for (46: MAX_PHYSMEM_BITS in arch/x86/include/asm/sparsemem.h). */
#define ADDRESS_LIMIT (UINT64_C(1) << 46)

const char *boot_pmem_mode_name(enum boot_pmem_mode mode)
{
    static const char *const names[] = {
        [BOOT_PMEM_SHARED] = "shared",
        [BOOT_PMEM_READ_ONLY] = "read-only",
        [BOOT_PMEM_EPHEMERAL] = "ephemeral",
    };

    return names[mode];
}

/* ---- the files ---- */

static int check_kind(int fd, struct error *err)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return error_set_errno(err, errno, "cannot be examined");
    if (S_ISDIR(status.st_mode))
        return error_set(err, -EISDIR, "is a directory, not an image");
    if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
        return error_set(err, -EINVAL, "is neither a regular file nor a block device");
    return 0;
}

/* What the guest writes behind the end of the file would be lost at the end. */
static int check_size(const struct boot_pmem_input *input, struct error *err)
{
    uint64_t rounded = align_up(input->size_bytes, LAYOUT_PMEM_UNIT);

    if (input->size_bytes == 0)
        return error_set(err, -ENODATA, "is empty");
    if (input->mode == BOOT_PMEM_SHARED && rounded != input->size_bytes)
        return error_set(err, -EINVAL,
                         "has %" PRIu64
                         " bytes, which is no multiple of 2 MiB: 'truncate "
                         "-s %" PRIu64 "' adds what is missing, or use it read-only or "
                         "ephemeral",
                         input->size_bytes, rounded);
    return 0;
}

static int open_file(struct boot_pmem_input *input, struct error *err)
{
    bool to_write = input->mode == BOOT_PMEM_SHARED;
    /* A FIFO is refused, not waited for. */
    int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (to_write ? O_RDWR : O_RDONLY);
    off_t size_bytes;

    input->fd = open(input->path, flags);
    if (input->fd < 0)
        return error_set_errno(
            err, errno,
            to_write ? "cannot open for writing ('ro' or 'ephemeral' may do)"
                     : "cannot open");
    if (check_kind(input->fd, err) < 0)
        return err->code;
    size_bytes = lseek(input->fd, 0, SEEK_END); /* of a block device, too */
    if (size_bytes < 0)
        return error_set_errno(err, errno, "cannot find its size");
    input->size_bytes = (uint64_t)size_bytes;
    return check_size(input, err);
}

int boot_pmem_open(struct boot_inputs *inputs, const struct boot_options *options,
                   struct error *err)
{
    CHECK(options->pmem_count <= BOOT_MAX_PMEMS);
    for (size_t i = 0; i < options->pmem_count; i++) {
        struct boot_pmem_input *input = &inputs->pmems[inputs->pmem_count++];

        *input = (struct boot_pmem_input){.path = options->pmems[i].path,
                                          .mode = options->pmems[i].mode};
        if (open_file(input, err) < 0)
            return error_prefix(err, "pmem %s", input->path);
    }
    return 0;
}

void boot_pmem_close(struct boot_inputs *inputs)
{
    for (size_t i = 0; i < inputs->pmem_count; i++)
        fd_close(&inputs->pmems[i].fd);
    inputs->pmem_count = 0;
}

/* ---- their places ---- */

uint64_t boot_pmem_end(const struct boot_plan *plan)
{
    const struct memory_span *last = &plan->spans[plan->span_count - 1];

    return max_u64(last->gpa + last->size_bytes, LAYOUT_HIGH_RAM_START);
}

int boot_pmem_place(struct boot_builder *builder, struct error *err)
{
    struct boot_plan *plan = builder->plan;

    for (size_t i = 0; i < builder->inputs->pmem_count; i++) {
        const struct boot_pmem_input *input = &builder->inputs->pmems[i];
        struct boot_pmem pmem = {
            .gpa = align_up(boot_pmem_end(plan), LAYOUT_PMEM_ALIGNMENT),
            .size_bytes = align_up(input->size_bytes, LAYOUT_PMEM_UNIT),
            .input = input,
            .name = boot_builder_text(builder, "pmem %s", input->path),
        };

        if (pmem.name == NULL)
            return error_set(err, -ENOMEM, "out of memory for the boot plan");
        if (!range_within(pmem.gpa, pmem.size_bytes, ADDRESS_LIMIT))
            return error_set(err, -EFBIG,
                             "%s: would end beyond the %" PRIu64
                             " TiB that a guest can address",
                             pmem.name, ADDRESS_LIMIT / (1024 * GIB));
        CHECK(plan->span_count < MEMORY_MAX_SPANS);
        plan->pmems[plan->pmem_count++] = pmem;
        plan->spans[plan->span_count++] =
            (struct memory_span){.gpa = pmem.gpa, .size_bytes = pmem.size_bytes};
    }
    return 0;
}

int boot_map_pmems(const struct boot_plan *plan, struct memory *memory, struct error *err)
{
    for (size_t i = 0; i < plan->pmem_count; i++) {
        const struct boot_pmem *pmem = &plan->pmems[i];
        bool shared = pmem->input->mode == BOOT_PMEM_SHARED;

        if (file_lock(pmem->input->fd, shared, pmem->name, err) < 0)
            return error_prefix(err, "%s", pmem->name);
        if (memory_map_span(memory, pmem->gpa, pmem->input->fd, shared, pmem->name, err) <
            0)
            return err->code;
    }
    return 0;
}
