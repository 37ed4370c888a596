/* SPDX-License-Identifier: Apache-2.0 */
/* Guest memory: reservation, spans, checked access; see memory.h. */
#include "memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fd.h"
#include "memory/memory_private.h"

#define HUGE_PAGE_BYTES (2 * MIB)

/* The largest page of the x86-64 page tables: with the base aligned to it, equal low bits
 * of guest and host address permit every page size. */
#define BASE_ALIGNMENT GIB

/* One huge page, so that no page size can straddle the end of RAM. */
#define GUARD_BYTES HUGE_PAGE_BYTES

/* User space has 47 address bits; half of that leaves room for everything else. */
#define GPA_LIMIT (UINT64_C(1) << 46)

static int check_spans(const struct memory_span *spans, size_t count, struct error *err)
{
    uint64_t previous_end = 0;

    if (count == 0 || count > MEMORY_MAX_SPANS)
        return error_set(err, -EINVAL,
                         "guest memory of %zu spans is not supported (1 to %d are)",
                         count, MEMORY_MAX_SPANS);
    for (size_t i = 0; i < count; i++) {
        uint64_t gpa = spans[i].gpa;
        uint64_t size_bytes = spans[i].size_bytes;

        if (size_bytes == 0 || !is_aligned(gpa | size_bytes, PAGE_BYTES))
            return error_set(err, -EINVAL,
                             "guest memory of 0x%" PRIx64 " bytes at 0x%" PRIx64
                             " does not consist of whole pages",
                             size_bytes, gpa);
        if (!range_within(gpa, size_bytes, GPA_LIMIT))
            return error_set(err, -EINVAL,
                             "guest memory of 0x%" PRIx64 " bytes at 0x%" PRIx64
                             " ends beyond the 64 TiB that husk can reserve",
                             size_bytes, gpa);
        if (gpa < previous_end)
            return error_set(err, -EINVAL,
                             "guest memory at 0x%" PRIx64
                             " overlaps the span before it, or is not in order",
                             gpa);
        previous_end = gpa + size_bytes;
    }
    return 0;
}

/* Reserves [0, reserved_end) of guest-physical space at a 1 GiB boundary: as much more is
 * taken as the alignment can cost, and given back. */
static int reserve(struct memory *memory, struct error *err)
{
    uint64_t wanted = memory->reserved_end;
    uint64_t taken = wanted + BASE_ALIGNMENT;
    uint8_t *start =
        mmap(NULL, taken, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t head;

    if (start == MAP_FAILED)
        return error_set_errno(err, errno,
                               "cannot reserve %" PRIu64 " MiB of addresses for guest "
                               "memory (is 'ulimit -v' set?)",
                               taken / MIB);
    head = align_up((uintptr_t)start, BASE_ALIGNMENT) - (uintptr_t)start;
    if (head > 0)
        (void)munmap(start, head);
    (void)munmap(start + head + wanted, BASE_ALIGNMENT - head);
    memory->base = start + head;
    return 0;
}

/* Pages of the pool that nobody has been promised; false if the host has no pool. */
static bool huge_pages_available(uint64_t *available)
{
    static const char *const files[] = {
        "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
        "/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages",
    };
    uint64_t counts[ARRAY_SIZE(files)];

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char text[32] = "";
        CLEANUP_FD int fd = open(files[i], O_RDONLY | O_CLOEXEC);

        /* The file is shorter than the buffer; its digits are what matters. */
        if (fd < 0 || fd_read_at(fd, 0, text, sizeof(text) - 1) != -ENODATA)
            return false;
        counts[i] = strtoull(text, NULL, 10);
    }
    *available = counts[0] > counts[1] ? counts[0] - counts[1] : 0;
    return true;
}

int memory_map_anonymous(void *start, uint64_t size_bytes, int flags)
{
    if (size_bytes == 0)
        return 0;
    if (mmap(start, size_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0) == MAP_FAILED)
        return -errno;
    /* A core dump is for bugs of husk: it needs no guest secrets, nor gigabytes. */
    (void)madvise(start, size_bytes, MADV_DONTDUMP);
    return 0;
}

/* The part of a span that consists of whole huge pages; what is before and behind it gets
 * small ones. */
static void huge_part(const struct memory_region *region, uint64_t *head_bytes,
                      uint64_t *huge_bytes)
{
    uint64_t end = region->gpa + region->size_bytes;
    uint64_t first = align_up(region->gpa, HUGE_PAGE_BYTES);
    uint64_t last = align_down(end, HUGE_PAGE_BYTES);

    *huge_bytes = last > first ? last - first : 0;
    *head_bytes = *huge_bytes > 0 ? first - region->gpa : 0;
}

static uint64_t huge_pages_needed(const struct memory *memory)
{
    uint64_t total_bytes = 0;

    for (size_t i = 0; i < memory->ram_count; i++) {
        uint64_t head_bytes;
        uint64_t huge_bytes;

        huge_part(&memory->regions[i], &head_bytes, &huge_bytes);
        total_bytes += huge_bytes;
    }
    return total_bytes / HUGE_PAGE_BYTES;
}

static int huge_pages_refused(const struct memory *memory, int code, struct error *err)
{
    uint64_t needed = huge_pages_needed(memory);
    uint64_t available;

    if (!huge_pages_available(&available))
        return error_set_errno(err, code,
                               "this host's kernel offers no huge pages of 2 MiB");
    return error_set(err, code,
                     "guest memory needs %" PRIu64 " huge pages of 2 MiB, and %" PRIu64
                     " are free; raise vm.nr_hugepages or leave out the huge pages",
                     needed, available);
}

/* Unlike small pages, huge ones are reserved by mmap (no MAP_NORESERVE): a pool that is
 * too small is an error now and not a SIGBUS in the middle of the guest's life. */
static int map_huge_span(const struct memory *memory, const struct memory_region *region,
                         struct error *err)
{
    uint8_t *start = region->hva;
    uint64_t head_bytes;
    uint64_t huge_bytes;
    int status;

    huge_part(region, &head_bytes, &huge_bytes);
    status = memory_map_anonymous(start + head_bytes, huge_bytes,
                                  MAP_HUGETLB | (int)MAP_HUGE_2MB);
    if (status < 0)
        return huge_pages_refused(memory, status, err);
    status = memory_map_anonymous(start, head_bytes, MAP_NORESERVE);
    if (status == 0)
        status = memory_map_anonymous(start + head_bytes + huge_bytes,
                                      region->size_bytes - head_bytes - huge_bytes,
                                      MAP_NORESERVE);
    if (status < 0)
        return error_set_errno(err, status, "cannot map guest memory");
    return 0;
}

static int map_ram(struct memory *memory, struct error *err)
{
    for (size_t i = 0; i < memory->ram_count; i++) {
        const struct memory_region *region = &memory->regions[i];
        int status;

        if (memory->options.huge_pages) {
            status = map_huge_span(memory, region, err);
            if (status < 0)
                return status;
            continue;
        }
        status = memory_map_anonymous(region->hva, region->size_bytes, MAP_NORESERVE);
        if (status < 0)
            return error_set_errno(err, status,
                                   "cannot map guest memory of 0x%" PRIx64
                                   " bytes at 0x%" PRIx64,
                                   region->size_bytes, region->gpa);
    }
    return 0;
}

int memory_create(const struct memory_span *spans, size_t count,
                  const struct memory_options *options, struct memory **memory,
                  struct error *err)
{
    struct memory *created;

    if (check_spans(spans, count, err) < 0)
        return err->code;
    created = calloc(1, sizeof(*created));
    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for guest memory");
    CHECK(options->file_span_count < count);
    created->options = *options;
    created->region_count = count;
    created->ram_count = count - options->file_span_count;
    created->reserved_end =
        align_up(spans[count - 1].gpa + spans[count - 1].size_bytes, HUGE_PAGE_BYTES) +
        GUARD_BYTES;
    if (reserve(created, err) < 0) {
        free(created);
        return err->code;
    }
    for (size_t i = 0; i < count; i++)
        created->regions[i] = (struct memory_region){
            .gpa = spans[i].gpa,
            .size_bytes = spans[i].size_bytes,
            .hva = created->base + spans[i].gpa,
        };
    if (memory_plain_begin(created, err) < 0 || map_ram(created, err) < 0 ||
        memory_loss_register(created, err) < 0) {
        memory_destroy(created);
        return err->code;
    }
    *memory = created;
    return 0;
}

void memory_destroy(struct memory *memory)
{
    if (memory == NULL)
        return;
    memory_loss_unregister(memory);
    (void)munmap(memory->base, memory->reserved_end);
    memory_forget_maps(memory, 0);
    memory_common_forget(memory);
    free(memory->plain_pages);
    free(memory);
}

size_t memory_region_count(const struct memory *memory)
{
    return memory->region_count;
}

const struct memory_region *memory_regions(const struct memory *memory)
{
    return memory->regions;
}

uint8_t *memory_translate(const struct memory *memory, uint64_t gpa, uint64_t size_bytes)
{
    for (size_t i = 0; i < memory->region_count; i++) {
        const struct memory_region *region = &memory->regions[i];

        if (gpa >= region->gpa &&
            range_within(gpa - region->gpa, size_bytes, region->size_bytes))
            return memory->base + gpa;
    }
    return NULL;
}

/* mmap over huge pages would reserve the new ones before it gives the old ones back, and
 * a pool that just fits would be too small. */
static int release_huge_pages(struct memory *memory, struct error *err)
{
    for (size_t i = 0; i < memory->ram_count; i++) {
        const struct memory_region *region = &memory->regions[i];

        if (mmap(region->hva, region->size_bytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
                 0) == MAP_FAILED)
            return error_set_errno(err, errno, "cannot give huge pages back");
    }
    return 0;
}

int memory_reset(struct memory *memory, struct error *err)
{
    memory_forget_maps(memory, memory->lasting_maps);
    if (memory->options.huge_pages && release_huge_pages(memory, err) < 0)
        return err->code;
    if (map_ram(memory, err) < 0)
        return err->code;
    memory_common_forget(memory);
    memory_plain_forget(memory);
    return 0;
}

int memory_read(const struct memory *memory, uint64_t gpa, void *to, size_t size)
{
    const uint8_t *from = memory_translate(memory, gpa, size);

    if (from == NULL)
        return -EFAULT;
    memcpy(to, from, size);
    return 0;
}

int memory_write(struct memory *memory, uint64_t gpa, const void *from, size_t size)
{
    uint8_t *to = memory_translate(memory, gpa, size);

    if (to == NULL)
        return -EFAULT;
    memcpy(to, from, size);
    return 0;
}

void *memory_slice(struct memory *memory, uint64_t gpa, size_t size)
{
    return memory_translate(memory, gpa, size);
}

uint64_t memory_slice_gpa(const struct memory *memory, const void *slice)
{
    return (uint64_t)((const uint8_t *)slice - memory->base);
}

void memory_on_write(struct memory *memory,
                     void (*notify)(void *context, uint64_t gpa, uint64_t size_bytes),
                     void *context)
{
    memory->on_write = notify;
    memory->on_write_context = context;
}

void memory_written(const struct memory *memory, uint64_t gpa, uint64_t size_bytes)
{
    if (memory->on_write != NULL)
        memory->on_write(memory->on_write_context, gpa, size_bytes);
}

void memory_slice_written(const struct memory *memory, const void *slice,
                          uint64_t size_bytes)
{
    memory_written(memory, memory_slice_gpa(memory, slice), size_bytes);
}
