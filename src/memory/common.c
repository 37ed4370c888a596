/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of guest memory are mapped from the library of common pages. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "memory/memory_private.h"

#define WORD_BITS 64

size_t memory_page_words(const struct memory *memory)
{
    return (size_t)align_up(memory->reserved_end / PAGE_BYTES, WORD_BITS) / WORD_BITS;
}

/* Its files may have been removed and made anew meanwhile. */
static bool is_same_file(int fd, int other_fd)
{
    struct stat status;
    struct stat other;

    return fstat(fd, &status) == 0 && fstat(other_fd, &other) == 0 &&
           status.st_dev == other.st_dev && status.st_ino == other.st_ino;
}

int memory_common_begin(struct memory *memory, const struct commons *commons,
                        struct error *err)
{
    struct memory_map map = {
        .size_bytes = commons_size_bytes(commons),
        .file_end = commons_size_bytes(commons),
    };

    if (memory->common_pages != NULL) {
        if (is_same_file(memory->common.fd, commons_pages_fd(commons)))
            return 0;
        return error_set(err, -ESTALE, "%s: is another file than at the last look",
                         commons_name(commons));
    }
    (void)snprintf(map.name, sizeof(map.name), "%s", commons_name(commons));
    map.fd = fcntl(commons_pages_fd(commons), F_DUPFD_CLOEXEC, 0);
    if (map.fd < 0)
        return error_set_errno(err, errno, "%s: cannot duplicate its descriptor",
                               map.name);
    memory->common = map;
    /* Calloc'ed words are complete before anybody can find them set. */
    memory->common_pages =
        calloc(memory_page_words(memory), sizeof(memory->common_pages[0]));
    if (memory->common_pages == NULL) {
        fd_close(&memory->common.fd);
        return error_set(err, -ENOMEM, "out of memory for the list of common pages");
    }
    return 0;
}

void memory_common_note(struct memory *memory, uint64_t gpa, uint64_t size_bytes,
                        bool common)
{
    uint64_t first = gpa / PAGE_BYTES;

    if (memory->common_pages == NULL)
        return;
    for (uint64_t page = first; page < first + size_bytes / PAGE_BYTES; page++) {
        _Atomic uint64_t *word = &memory->common_pages[page / WORD_BITS];
        uint64_t bit = UINT64_C(1) << page % WORD_BITS;

        if (common)
            (void)atomic_fetch_or(word, bit);
        else
            (void)atomic_fetch_and(word, ~bit);
    }
}

bool memory_is_common(const struct memory *memory, uint64_t gpa)
{
    uint64_t page = gpa / PAGE_BYTES;

    return memory->common_pages != NULL && gpa < memory->reserved_end &&
           (atomic_load(&memory->common_pages[page / WORD_BITS]) >> page % WORD_BITS &
            1) != 0;
}

void memory_common_forget(struct memory *memory)
{
    if (memory->common_pages == NULL)
        return;
    free((void *)(uintptr_t)memory->common_pages);
    memory->common_pages = NULL;
    memory->common_runs = 0;
    fd_close(&memory->common.fd);
}
