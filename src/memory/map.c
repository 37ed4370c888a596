/* SPDX-License-Identifier: Apache-2.0 */
/* Files in guest memory; see memory.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fd.h"
#include "memory/memory_private.h"

static int check_map(const struct memory *memory, const struct memory_map *map,
                     struct error *err)
{
    if (memory->options.huge_pages)
        return error_set(err, -EINVAL,
                         "%s: a file cannot be mapped into memory of huge pages",
                         map->name);
    if (map->size_bytes == 0 ||
        !is_aligned(map->gpa | map->file_offset | map->size_bytes, PAGE_BYTES))
        return error_set(err, -EINVAL,
                         "%s: 0x%" PRIx64 " bytes from offset 0x%" PRIx64
                         " cannot be mapped at 0x%" PRIx64 ": not whole pages",
                         map->name, map->size_bytes, map->file_offset, map->gpa);
    if (memory_translate(memory, map->gpa, map->size_bytes) == NULL)
        return error_set(err, -EFAULT,
                         "%s: 0x%" PRIx64 " bytes cannot be mapped at 0x%" PRIx64
                         ": not inside guest memory",
                         map->name, map->size_bytes, map->gpa);
    if (atomic_load(&memory->map_count) == MEMORY_MAX_MAPS)
        return error_set(err, -ENOSPC, "%s: more than %d file maps in one guest",
                         map->name, MEMORY_MAX_MAPS);
    return 0;
}

/* Pages behind the end of a file would give SIGBUS from the start: refused. The end need
 * not be on a page boundary, the rest of the last page is zero. */
static int find_file_end(struct memory_map *map, int fd, struct error *err)
{
    struct stat status;
    uint64_t file_bytes;

    if (fstat(fd, &status) < 0)
        return error_set_errno(err, errno, "%s: cannot stat", map->name);
    if (!S_ISREG(status.st_mode))
        return 0;
    file_bytes = (uint64_t)status.st_size;
    if (!range_within(map->file_offset, map->size_bytes,
                      align_up(file_bytes, PAGE_BYTES)))
        return error_set(err, -ERANGE,
                         "%s: ends at byte %" PRIu64 ", but 0x%" PRIx64
                         " bytes from offset 0x%" PRIx64 " are to be mapped",
                         map->name, file_bytes, map->size_bytes, map->file_offset);
    map->file_end = min_u64(file_bytes, map->file_offset + map->size_bytes);
    return 0;
}

/* Puts `map` into guest memory and into the table. */
static int add_map(struct memory *memory, struct memory_map *map, int fd, bool shared,
                   struct error *err)
{
    size_t count = atomic_load(&memory->map_count);
    CLEANUP_FD int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    uint8_t *start = memory->base + map->gpa;

    if (own_fd < 0)
        return error_set_errno(err, errno, "%s: cannot duplicate its descriptor",
                               map->name);
    if (mmap(start, map->size_bytes, PROT_READ | PROT_WRITE,
             (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED | MAP_NORESERVE, fd,
             (off_t)map->file_offset) == MAP_FAILED)
        return error_set_errno(err, errno, "%s: cannot map", map->name);
    (void)madvise(start, map->size_bytes, MADV_DONTDUMP);
    map->fd = fd_take(&own_fd);
    memory->maps[count] = *map;
    atomic_store(&memory->map_count, count + 1);
    return 0;
}

int memory_map_file(struct memory *memory, uint64_t gpa, int fd, uint64_t offset,
                    uint64_t size_bytes, const char *name, struct error *err)
{
    struct memory_map map = {
        .gpa = gpa,
        .size_bytes = size_bytes,
        .file_offset = offset,
    };

    (void)snprintf(map.name, sizeof(map.name), "%s", name);
    if (check_map(memory, &map, err) < 0 || find_file_end(&map, fd, err) < 0)
        return err->code;
    return add_map(memory, &map, fd, false, err);
}

static const struct memory_region *find_file_region(const struct memory *memory,
                                                    uint64_t gpa)
{
    for (size_t i = memory->ram_count; i < memory->region_count; i++)
        if (memory->regions[i].gpa == gpa)
            return &memory->regions[i];
    return NULL;
}

int memory_map_span(struct memory *memory, uint64_t gpa, int fd, bool shared,
                    const char *name, struct error *err)
{
    const struct memory_region *region = find_file_region(memory, gpa);
    off_t file_bytes = lseek(fd, 0, SEEK_END); /* of a block device, too */
    struct memory_map map = {.gpa = gpa};
    int status;

    CHECK(region != NULL && memory->lasting_maps == atomic_load(&memory->map_count));
    (void)snprintf(map.name, sizeof(map.name), "%s", name);
    if (file_bytes < 0)
        return error_set_errno(err, errno, "%s: cannot find its size", name);
    map.size_bytes =
        min_u64(region->size_bytes, align_up((uint64_t)file_bytes, PAGE_BYTES));
    if (map.size_bytes == 0)
        return error_set(err, -ENODATA, "%s: is empty", name);
    if (find_file_end(&map, fd, err) < 0 || add_map(memory, &map, fd, shared, err) < 0)
        return err->code;
    memory->lasting_maps++;
    status = memory_map_anonymous((uint8_t *)region->hva + map.size_bytes,
                                  region->size_bytes - map.size_bytes, MAP_NORESERVE);
    if (status < 0)
        return error_set_errno(err, status, "%s: cannot map zeros behind its end", name);
    return 0;
}

void memory_forget_maps(struct memory *memory, size_t kept)
{
    size_t count = atomic_exchange(&memory->map_count, kept);

    for (size_t i = kept; i < count; i++)
        fd_close(&memory->maps[i].fd);
}
