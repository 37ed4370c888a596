/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of memory/ share: small memories and files with known bytes. */
#ifndef HUSK_TESTS_MEMORY_TEST_H
#define HUSK_TESTS_MEMORY_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "memory/memory.h"

#define PAGE UINT64_C(4096)

static inline struct memory *memory_of(const struct memory_span *spans, size_t count)
{
    const struct memory_options options = {0};
    struct memory *memory = NULL;
    struct error err = ERROR_NONE;

    if (memory_create(spans, count, &options, &memory, &err) < 0)
        fail_msg("%s", err.text);
    return memory;
}

/* 1 MiB at 0 and 64 KiB at 2 MiB. */
static inline struct memory *small_memory(void)
{
    const struct memory_span spans[] = {{0, MIB}, {2 * MIB, 64 * KIB}};

    return memory_of(spans, ARRAY_SIZE(spans));
}

/* A file whose pages are full of 'a', 'b', ... in turn; the last one may be partial. */
static inline int file_of(size_t size_bytes)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    char page[PAGE];

    assert_true(fd >= 0);
    for (size_t at = 0; at < size_bytes; at += PAGE) {
        memset(page, 'a' + (int)(at / PAGE % 26), sizeof(page));
        assert_int_equal(fd_write_all(fd, page, min_u64(PAGE, size_bytes - at)), 0);
    }
    return fd;
}

static inline void map_or_fail(struct memory *memory, uint64_t gpa, int fd,
                               uint64_t offset, uint64_t size_bytes, const char *name)
{
    struct error err = ERROR_NONE;

    if (memory_map_file(memory, gpa, fd, offset, size_bytes, name, &err) < 0)
        fail_msg("%s", err.text);
}

static inline char byte_at(const struct memory *memory, uint64_t gpa)
{
    char byte;

    assert_int_equal(memory_read(memory, gpa, &byte, 1), 0);
    return byte;
}

static inline void fill(struct memory *memory, uint64_t gpa, char letter, size_t pages)
{
    char page[PAGE];

    memset(page, letter, sizeof(page));
    for (size_t i = 0; i < pages; i++)
        assert_int_equal(memory_write(memory, gpa + i * PAGE, page, sizeof(page)), 0);
}

static inline void assert_filled(struct memory *memory, uint64_t gpa, char letter,
                                 size_t pages)
{
    const char *bytes = memory_slice(memory, gpa, pages * PAGE);

    assert_non_null(bytes);
    for (size_t i = 0; i < pages * PAGE; i++)
        if (bytes[i] != letter)
            fail_msg("byte %zu is 0x%02x", i, (unsigned char)bytes[i]);
}

/* That this process has. */
static inline size_t count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    size_t lines = 0;
    int character;

    assert_non_null(maps);
    while ((character = fgetc(maps)) != EOF)
        lines += character == '\n';
    (void)fclose(maps);
    return lines;
}

#endif
