/* SPDX-License-Identifier: Apache-2.0 */
/* A library of common pages in memory files, and looks at guests with it. */
#ifndef HUSK_TESTS_LIBRARY_TEST_H
#define HUSK_TESTS_LIBRARY_TEST_H

#include "memory_test.h"

#include "memory/commons.h"

struct library {
    int pages_fd;
    int marks_fd;
};

static inline struct library new_library(void)
{
    struct library library = {.pages_fd = memfd_create("pages", MFD_CLOEXEC),
                              .marks_fd = memfd_create("marks", MFD_CLOEXEC)};

    assert_true(library.pages_fd >= 0 && library.marks_fd >= 0);
    return library;
}

static inline void drop_library(struct library *library)
{
    fd_close(&library->pages_fd);
    fd_close(&library->marks_fd);
}

static inline struct commons *open_or_fail(const struct library *library,
                                           uint64_t size_bytes, uint16_t guest)
{
    struct commons *commons = NULL;
    struct error err = ERROR_NONE;

    if (commons_open(library->pages_fd, library->marks_fd, size_bytes, guest, "library",
                     &commons, &err) < 0)
        fail_msg("%s", err.text);
    return commons;
}

static inline struct memory_reclaimed reclaim(struct memory *memory,
                                              struct commons *commons)
{
    struct memory_reclaimed reclaimed;
    struct error err = ERROR_NONE;

    if (memory_reclaim(memory, commons, &reclaimed, &err) < 0)
        fail_msg("%s", err.text);
    return reclaimed;
}

/* Each memory is a guest of its own. */
static inline uint16_t guest_of(const struct memory *memory)
{
    return (uint16_t)((uintptr_t)memory >> 4);
}

static inline struct memory_reclaimed reclaim_with(struct memory *memory,
                                                   const struct library *library)
{
    struct commons *commons =
        open_or_fail(library, memory_reserved_bytes(memory), guest_of(memory));
    struct memory_reclaimed reclaimed = reclaim(memory, commons);

    commons_close(commons);
    return reclaimed;
}

#endif
