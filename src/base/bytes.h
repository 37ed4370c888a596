/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in foreign bytes, and arithmetic on foreign numbers.
 *
 * Everything a file or a guest says is read through load_*, and every sum or range that
 * depends on it goes through the overflow-safe helpers here.
 */
#ifndef HUSK_BASE_BYTES_H
#define HUSK_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static inline uint16_t load_le16(const void *from)
{
    uint16_t value;

    memcpy(&value, from, sizeof(value)); /* hosts are little-endian x86-64 */
    return value;
}

static inline uint32_t load_le32(const void *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof(value));
    return value;
}

static inline uint64_t load_le64(const void *from)
{
    uint64_t value;

    memcpy(&value, from, sizeof(value));
    return value;
}

static inline void store_le16(void *to, uint16_t value)
{
    memcpy(to, &value, sizeof(value));
}

static inline void store_le32(void *to, uint32_t value)
{
    memcpy(to, &value, sizeof(value));
}

static inline void store_le64(void *to, uint64_t value)
{
    memcpy(to, &value, sizeof(value));
}

static inline uint16_t load_be16(const void *from)
{
    return __builtin_bswap16(load_le16(from));
}

static inline uint32_t load_be32(const void *from)
{
    return __builtin_bswap32(load_le32(from));
}

static inline uint64_t load_be64(const void *from)
{
    return __builtin_bswap64(load_le64(from));
}

static inline void store_be16(void *to, uint16_t value)
{
    store_le16(to, __builtin_bswap16(value));
}

static inline void store_be32(void *to, uint32_t value)
{
    store_le32(to, __builtin_bswap32(value));
}

static inline void store_be64(void *to, uint64_t value)
{
    store_le64(to, __builtin_bswap64(value));
}

/* True if [start, start + size) lies inside [0, limit). An empty range at `limit` does.
 */
static inline bool range_within(uint64_t start, uint64_t size, uint64_t limit)
{
    return start <= limit && size <= limit - start;
}

/* True if the two ranges share a byte. Ranges must not wrap. */
static inline bool ranges_overlap(uint64_t a, uint64_t a_size, uint64_t b,
                                  uint64_t b_size)
{
    return a_size != 0 && b_size != 0 && a < b + b_size && b < a + a_size;
}

/* `alignment` is a power of two. */
static inline uint64_t align_down(uint64_t value, uint64_t alignment)
{
    return value & ~(alignment - 1);
}

/* `alignment` is a power of two; wraps to 0 past the last multiple. */
static inline uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static inline bool is_aligned(uint64_t value, uint64_t alignment)
{
    return (value & (alignment - 1)) == 0;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
