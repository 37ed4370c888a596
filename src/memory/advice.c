/* SPDX-License-Identifier: Apache-2.0 */
/* Advice to the host's kernel about guest memory: populate it now, let KSM merge it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/log.h"
#include "memory/memory_private.h"

#define KSM_RUN_FILE "/sys/kernel/mm/ksm/run"

/* The advice is taken also while KSM is off, and counts from the moment it is on. */
static void warn_if_ksm_is_off(void)
{
    CLEANUP_FD int fd = open(KSM_RUN_FILE, O_RDONLY | O_CLOEXEC);
    char run;

    if (fd < 0)
        log_warn("this host's kernel has no KSM: equal pages stay separate");
    else if (fd_read_at(fd, 0, &run, 1) == 0 && run != '1')
        log_warn("KSM is off on this host (%s is %c): equal pages stay separate until it "
                 "is 1",
                 KSM_RUN_FILE, run);
}

static int advise_mergeable(struct memory *memory, struct error *err)
{
    if (!memory->ksm_checked)
        warn_if_ksm_is_off();
    memory->ksm_checked = true;
    for (size_t i = 0; i < memory->ram_count; i++) {
        const struct memory_region *region = &memory->regions[i];

        /* EINVAL: a kernel without KSM. */
        if (madvise(region->hva, region->size_bytes, MADV_MERGEABLE) < 0 &&
            errno != EINVAL)
            return error_set_errno(err, errno, "cannot advise KSM to merge guest memory");
    }
    return 0;
}

/* For kernels before 5.14. No vCPU runs yet, so writing a byte back loses nothing. */
static void touch_pages(uint8_t *start, uint64_t size_bytes, bool write)
{
    for (uint64_t offset = 0; offset < size_bytes; offset += PAGE_BYTES) {
        volatile uint8_t *byte = start + offset;
        uint8_t value = *byte;

        if (write)
            *byte = value;
    }
}

static int populate(struct memory *memory, uint64_t gpa, uint64_t size_bytes,
                    const struct memory_map *map, struct error *err)
{
    uint8_t *start = memory->base + gpa;
    int advice = map != NULL ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
    int status;

    do
        status = madvise(start, size_bytes, advice);
    while (status < 0 && (errno == EINTR || errno == EAGAIN));
    if (status == 0)
        return 0;
    if (errno == EINVAL) {
        touch_pages(start, size_bytes, map == NULL);
        return 0;
    }
    return error_set_errno(
        err, errno, "%s: cannot fill 0x%" PRIx64 " bytes at 0x%" PRIx64 " in advance",
        map != NULL ? map->name : "guest memory", size_bytes, gpa);
}

/* Where the run of pages ends that begins at `gpa`: inside `map`, or, with none, before
 * the next map. */
static uint64_t run_end(const struct memory *memory, uint64_t gpa, uint64_t limit,
                        const struct memory_map *map)
{
    size_t count = atomic_load(&memory->map_count);
    uint64_t end = limit;

    if (map != NULL)
        return min_u64(limit, map->gpa + map->size_bytes);
    for (size_t i = 0; i < count; i++)
        if (memory->maps[i].gpa > gpa)
            end = min_u64(end, memory->maps[i].gpa);
    return end;
}

/* File pages are populated for reading only: a write would copy each of them, and nothing
 * would be shared with other guests any more. */
static int prefault(struct memory *memory, struct error *err)
{
    for (size_t i = 0; i < memory->ram_count; i++) {
        uint64_t gpa = memory->regions[i].gpa;
        uint64_t limit = gpa + memory->regions[i].size_bytes;

        while (gpa < limit) {
            const struct memory_map *map = memory_map_find(memory, gpa);
            uint64_t end = run_end(memory, gpa, limit, map);

            if (populate(memory, gpa, end - gpa, map, err) < 0)
                return err->code;
            gpa = end;
        }
    }
    return 0;
}

int memory_apply_advice(struct memory *memory, struct error *err)
{
    if (memory->options.mergeable && advise_mergeable(memory, err) < 0)
        return err->code;
    if (memory->options.prefault)
        return prefault(memory, err);
    return 0;
}
