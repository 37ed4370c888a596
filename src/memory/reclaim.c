/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives back what a guest's memory costs and need not: private pages that are zero, and
 * those that other guests have as well; see memory.h.
 *
 * The host's page map says which pages are private at all. Equal neighbours are treated
 * together, since each change of kind is one more mapping for the host's kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "memory/memory_private.h"

/* Entries of /proc/PID/pagemap (Linux, Documentation/admin-guide/mm/pagemap.rst). */
#define PAGEMAP_FILE (UINT64_C(1) << 61) /* a file's page, or shared */
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)

/* Entries read at a time: those of 2 MiB. */
#define PAGEMAP_BATCH 512

enum page_kind {
    PAGE_KEEP,
    PAGE_ZERO,           /* of anonymous memory */
    PAGE_ZERO_OVER_FILE, /* with a file below, which must not come back */
    PAGE_COMMON,
    PAGE_COMMON_AGAIN, /* written to since, and what it was */
};

struct pass {
    struct memory *memory;
    struct commons *commons; /* NULL: none */
    struct memory_reclaimed *reclaimed;
    int pagemap_fd;

    /* The run of equal pages that is being collected. */
    enum page_kind kind;
    uint64_t run_gpa;
    uint64_t run_bytes;
};

static bool is_zero(const uint8_t *page)
{
    /* Each byte equals the next one. */
    return page[0] == 0 && memcmp(page, page + 1, PAGE_BYTES - 1) == 0;
}

static enum page_kind judge(struct pass *pass, uint64_t gpa)
{
    const uint8_t *page = pass->memory->base + gpa;

    if (is_zero(page))
        return memory_is_over_file(pass->memory, gpa) ? PAGE_ZERO_OVER_FILE : PAGE_ZERO;
    if (pass->commons == NULL)
        return PAGE_KEEP;
    switch (commons_ask(pass->commons, gpa, page)) {
    case COMMONS_HELD:
        return memory_is_common(pass->memory, gpa) ? PAGE_COMMON_AGAIN : PAGE_COMMON;
    case COMMONS_LATER:
        pass->reclaimed->later_bytes += PAGE_BYTES;
        return PAGE_KEEP;
    case COMMONS_OTHER:
        break;
    }
    return PAGE_KEEP;
}

/* ---- what becomes of a run ---- */

static int map_common(struct pass *pass, uint64_t gpa, uint64_t size_bytes)
{
    uint8_t *start = pass->memory->base + gpa;

    if (pass->memory->common_runs >= MEMORY_MAX_COMMON_RUNS)
        return -ENOSPC;
    if (mmap(start, size_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, pass->memory->common.fd,
             (off_t)gpa) == MAP_FAILED)
        return -errno;
    (void)madvise(start, size_bytes, MADV_DONTDUMP);
    memory_common_note(pass->memory, gpa, size_bytes, true);
    memory_plain_note(pass->memory, gpa, size_bytes, false);
    pass->memory->common_runs++;
    return 0;
}

/* The run is over. There may not be one more mapping, by the host's count
 * (vm.max_map_count) or by ours: then the pages stay what they were. */
static int end_run(struct pass *pass)
{
    uint64_t size_bytes = pass->run_bytes;
    int status = 0;

    pass->run_bytes = 0;
    if (size_bytes == 0)
        return 0;
    switch (pass->kind) {
    case PAGE_KEEP:
        pass->reclaimed->kept_bytes += size_bytes;
        return 0;
    case PAGE_ZERO:
    case PAGE_COMMON_AGAIN:
        status = memory_drop_anonymous(pass->memory, pass->run_gpa, size_bytes);
        break;
    case PAGE_ZERO_OVER_FILE:
        status = memory_cover_file(pass->memory, pass->run_gpa, size_bytes);
        break;
    case PAGE_COMMON:
        status = map_common(pass, pass->run_gpa, size_bytes);
        break;
    }
    if (status < 0)
        pass->reclaimed->kept_bytes += size_bytes;
    else if (pass->kind == PAGE_COMMON || pass->kind == PAGE_COMMON_AGAIN)
        pass->reclaimed->common_bytes += size_bytes;
    else
        pass->reclaimed->zero_bytes += size_bytes;
    return status == -ENOSPC || status == -ENOMEM ? 0 : status;
}

static int add_to_run(struct pass *pass, uint64_t gpa, enum page_kind kind)
{
    int status = 0;

    if (kind != pass->kind || gpa != pass->run_gpa + pass->run_bytes)
        status = end_run(pass);
    if (pass->run_bytes == 0) {
        pass->kind = kind;
        pass->run_gpa = gpa;
    }
    pass->run_bytes += PAGE_BYTES;
    return status;
}

/* ---- the way through memory ---- */

static int look_at_batch(struct pass *pass, uint64_t gpa, size_t count)
{
    uint64_t entries[PAGEMAP_BATCH];
    uintptr_t first = (uintptr_t)pass->memory->base + gpa;
    int status = fd_read_at(pass->pagemap_fd, first / PAGE_BYTES * sizeof(entries[0]),
                            entries, count * sizeof(entries[0]));

    for (size_t i = 0; i < count && status == 0; i++) {
        uint64_t page = gpa + i * PAGE_BYTES;

        if ((entries[i] & (PAGEMAP_PRESENT | PAGEMAP_FILE)) == PAGEMAP_PRESENT)
            status = add_to_run(pass, page, judge(pass, page));
    }
    return status;
}

static int look_at_region(struct pass *pass, const struct memory_region *region)
{
    uint64_t end = region->gpa + region->size_bytes;
    int status = 0;

    for (uint64_t gpa = region->gpa; gpa < end && status == 0;
         gpa += PAGEMAP_BATCH * PAGE_BYTES) {
        size_t count = (size_t)min_u64(PAGEMAP_BATCH, (end - gpa) / PAGE_BYTES);

        status = look_at_batch(pass, gpa, count);
    }
    return status < 0 ? status : end_run(pass);
}

uint64_t memory_reserved_bytes(const struct memory *memory)
{
    return memory->reserved_end;
}

bool memory_may_reclaim(const struct memory *memory)
{
    return !memory->options.huge_pages && !memory->options.mergeable &&
           !memory->options.prefault;
}

int memory_reclaim(struct memory *memory, struct commons *commons,
                   struct memory_reclaimed *reclaimed, struct error *err)
{
    CLEANUP_FD int pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    struct pass pass = {.memory = memory,
                        .commons = commons,
                        .reclaimed = reclaimed,
                        .pagemap_fd = pagemap_fd};
    int status = 0;

    *reclaimed = (struct memory_reclaimed){.zero_bytes = 0};
    if (pagemap_fd < 0)
        return error_set_errno(err, errno, "cannot open /proc/self/pagemap");
    if (commons != NULL && memory_common_begin(memory, commons, err) < 0)
        return err->code;
    for (size_t i = 0; i < memory->ram_count && status == 0; i++)
        status = look_at_region(&pass, &memory->regions[i]);
    if (status < 0)
        return error_set_errno(err, status, "cannot look through guest memory");
    return 0;
}
