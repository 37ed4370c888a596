/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library of common pages; see commons.h.
 *
 * A mark is 0, or a hash of a page's content: with MARK_PUBLISHED of the page that the
 * library holds, without it of the one that was seen last, and by which guest. Readers
 * take no lock: a mark is written whole, and after its page. There is one writer at a
 * time.
 */
#include "memory/commons.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "memory/memory_private.h"

/* The parts of a mark. */
#define MARK_PUBLISHED UINT64_C(1)
#define MARK_GUEST_SHIFT 1
#define MARK_GUEST (UINT64_C(0x7fff) << MARK_GUEST_SHIFT)
#define MARK_HASH (~(MARK_PUBLISHED | MARK_GUEST))

struct commons {
    int pages_fd; /* borrowed, as is the other one */
    int marks_fd;
    uint64_t size_bytes;
    uint64_t guest; /* as a part of a mark */
    const char *name;
    bool writes; /* this process has the lock */
    _Atomic uint64_t *marks;
};

static size_t marks_bytes(uint64_t size_bytes)
{
    return (size_t)(size_bytes / PAGE_BYTES * sizeof(uint64_t));
}

/* One writer; it is let go by commons_close, or with the process. */
static bool try_lock(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static void unlock(int fd)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

    (void)fcntl(fd, F_OFD_SETLK, &lock);
}

/* Gives a new file its size, all zeros. A file of another size is not ours to repair. */
static int check_size(int fd, uint64_t size_bytes, bool writes, struct error *err)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return error_set_errno(err, errno, "cannot stat");
    if ((uint64_t)status.st_size == size_bytes)
        return 0;
    if (status.st_size != 0 || !writes)
        return error_set(err, -EINVAL, "has %jd bytes where there should be %" PRIu64,
                         (intmax_t)status.st_size, size_bytes);
    if (ftruncate(fd, (off_t)size_bytes) < 0)
        return error_set_errno(err, errno, "cannot be made %" PRIu64 " bytes long",
                               size_bytes);
    return 0;
}

int commons_open(int pages_fd, int marks_fd, uint64_t size_bytes, uint16_t guest,
                 const char *name, struct commons **commons, struct error *err)
{
    size_t bytes = marks_bytes(size_bytes);
    struct commons *opened = calloc(1, sizeof(*opened));

    if (opened == NULL)
        return error_set(err, -ENOMEM, "out of memory for common pages");
    *opened = (struct commons){.pages_fd = pages_fd,
                               .marks_fd = marks_fd,
                               .size_bytes = size_bytes,
                               .guest = (uint64_t)guest << MARK_GUEST_SHIFT & MARK_GUEST,
                               .name = name,
                               .writes = try_lock(marks_fd)};
    if (check_size(pages_fd, size_bytes, opened->writes, err) == 0 &&
        check_size(marks_fd, bytes, opened->writes, err) == 0) {
        void *marks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, marks_fd, 0);

        if (marks == MAP_FAILED)
            error_set_errno(err, errno, "cannot be mapped");
        else
            opened->marks = marks;
    }
    if (err->code != 0) {
        commons_close(opened);
        return error_prefix(err, "%s", name);
    }
    *commons = opened;
    return 0;
}

void commons_close(struct commons *commons)
{
    if (commons == NULL)
        return;
    if (commons->marks != NULL)
        (void)munmap((void *)(uintptr_t)commons->marks, marks_bytes(commons->size_bytes));
    if (commons->writes)
        unlock(commons->marks_fd);
    free(commons);
}

int commons_pages_fd(const struct commons *commons)
{
    return commons->pages_fd;
}

uint64_t commons_size_bytes(const struct commons *commons)
{
    return commons->size_bytes;
}

const char *commons_name(const struct commons *commons)
{
    return commons->name;
}

/* Never 0. Two pages with one hash cost a comparison, or a place in the library. */
static uint64_t hash_page(const void *page)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < PAGE_BYTES; i += sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, (const uint8_t *)page + i, sizeof(word));
        /* The multiplier is 2^64 divided by the golden ratio. */
        hash = ((hash << 23 | hash >> 41) ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return (hash & MARK_HASH) != 0 ? hash & MARK_HASH : MARK_HASH;
}

static bool is_held(const struct commons *commons, uint64_t gpa, const void *page)
{
    uint8_t held[PAGE_BYTES];

    return fd_read_at(commons->pages_fd, gpa, held, sizeof(held)) == 0 &&
           memcmp(held, page, sizeof(held)) == 0;
}

static bool write_page(const struct commons *commons, uint64_t gpa, const void *page)
{
    return pwrite(commons->pages_fd, page, PAGE_BYTES, (off_t)gpa) == (ssize_t)PAGE_BYTES;
}

enum commons_answer commons_ask(struct commons *commons, uint64_t gpa, const void *page)
{
    _Atomic uint64_t *mark;
    uint64_t seen;
    uint64_t hash;

    if (!range_within(gpa, PAGE_BYTES, commons->size_bytes))
        return COMMONS_OTHER;
    mark = &commons->marks[gpa / PAGE_BYTES];
    seen = atomic_load(mark);
    hash = hash_page(page);
    if ((seen & MARK_PUBLISHED) != 0)
        return (seen & MARK_HASH) == hash && is_held(commons, gpa, page) ? COMMONS_HELD
                                                                         : COMMONS_OTHER;
    if (!commons->writes)
        return COMMONS_LATER;
    if ((seen & MARK_HASH) != hash || (seen & MARK_GUEST) == commons->guest) {
        atomic_store(mark, hash | commons->guest);
        return COMMONS_LATER;
    }
    if (!write_page(commons, gpa, page))
        return COMMONS_OTHER;
    atomic_store(mark, hash | MARK_PUBLISHED);
    return COMMONS_HELD;
}
