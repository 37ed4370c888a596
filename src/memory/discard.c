/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a guest needs no more: zeros in its place, and the host has it back; see
 * memory.h.
 *
 * For anonymous memory that is MADV_DONTNEED. To a file's page it would bring the file's
 * bytes back, so there anonymous memory is mapped over it, at the same address. Linux
 * lets nobody see the moment between: who touches the page then waits for the lock that
 * mmap holds.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "memory/memory_private.h"

#define WORD_BITS 64

/* ---- which pages ---- */

int memory_plain_begin(struct memory *memory, struct error *err)
{
    memory->plain_pages =
        calloc(memory_page_words(memory), sizeof(memory->plain_pages[0]));
    if (memory->plain_pages == NULL)
        return error_set(err, -ENOMEM, "out of memory for the list of plain pages");
    return 0;
}

void memory_plain_forget(struct memory *memory)
{
    if (memory->covers > 0)
        memset(memory->plain_pages, 0,
               memory_page_words(memory) * sizeof(memory->plain_pages[0]));
    memory->covers = 0;
}

static bool is_plain(const struct memory *memory, uint64_t page)
{
    return (memory->plain_pages[page / WORD_BITS] >> page % WORD_BITS & 1) != 0;
}

void memory_plain_note(struct memory *memory, uint64_t gpa, uint64_t size_bytes,
                       bool plain)
{
    uint64_t first = gpa / PAGE_BYTES;
    uint64_t end = first + size_bytes / PAGE_BYTES;

    for (uint64_t page = first; page < end; page++) {
        uint64_t bit = UINT64_C(1) << page % WORD_BITS;

        if (plain)
            memory->plain_pages[page / WORD_BITS] |= bit;
        else
            memory->plain_pages[page / WORD_BITS] &= ~bit;
    }
}

bool memory_is_over_file(const struct memory *memory, uint64_t gpa)
{
    return !is_plain(memory, gpa / PAGE_BYTES) && memory_map_find(memory, gpa) != NULL;
}

/* ---- giving back ---- */

int memory_drop_anonymous(struct memory *memory, uint64_t gpa, uint64_t size_bytes)
{
    return madvise(memory->base + gpa, size_bytes, MADV_DONTNEED) < 0 ? -errno : 0;
}

int memory_cover_file(struct memory *memory, uint64_t gpa, uint64_t size_bytes)
{
    uint8_t *start = memory->base + gpa;
    int status;

    if (memory->covers >= MEMORY_MAX_COVERS)
        return -ENOSPC;
    status = memory_map_anonymous(start, size_bytes, MAP_NORESERVE);
    if (status < 0)
        return status;
    if (memory->options.mergeable)
        (void)madvise(start, size_bytes, MADV_MERGEABLE);
    memory_common_note(memory, gpa, size_bytes, false);
    memory_plain_note(memory, gpa, size_bytes, true);
    memory->covers++;
    return 0;
}

/* How much from `gpa` on, up to `limit`, is over a file as the first page is, or is not.
 */
static uint64_t run_bytes(const struct memory *memory, uint64_t gpa, uint64_t limit,
                          bool over_file)
{
    uint64_t end = gpa + PAGE_BYTES;

    while (end < limit && memory_is_over_file(memory, end) == over_file)
        end += PAGE_BYTES;
    return end - gpa;
}

static bool is_ram(const struct memory *memory, uint64_t gpa, uint64_t size_bytes)
{
    for (size_t i = 0; i < memory->ram_count; i++) {
        const struct memory_region *region = &memory->regions[i];

        if (gpa >= region->gpa &&
            range_within(gpa - region->gpa, size_bytes, region->size_bytes))
            return true;
    }
    return false;
}

bool memory_may_discard(const struct memory *memory)
{
    return !memory->options.huge_pages && !memory->options.prefault;
}

int memory_discard(struct memory *memory, uint64_t gpa, uint64_t size_bytes,
                   uint64_t *kept_bytes)
{
    uint64_t end = gpa + size_bytes;
    uint64_t size;

    *kept_bytes = 0;
    if (!memory_may_discard(memory) || !is_aligned(gpa | size_bytes, PAGE_BYTES) ||
        !is_ram(memory, gpa, size_bytes))
        return -EINVAL;
    for (; gpa < end; gpa += size) {
        bool over_file = memory_is_over_file(memory, gpa);
        int status;

        size = run_bytes(memory, gpa, end, over_file);
        status = over_file ? memory_cover_file(memory, gpa, size)
                           : memory_drop_anonymous(memory, gpa, size);
        if (status < 0)
            *kept_bytes += size;
        else
            memory_written(memory, gpa, size);
    }
    return 0;
}
