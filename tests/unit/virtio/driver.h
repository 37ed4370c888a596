/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's end of a split ring, as a guest would have it in its memory: at one place,
 * with a size that tests choose. */
#ifndef HUSK_TESTS_VIRTIO_DRIVER_H
#define HUSK_TESTS_VIRTIO_DRIVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "memory/memory.h"
#include "virtio/queue.h"

#define RING_DESCRIPTORS 0x1000
#define RING_AVAILABLE 0x3000
#define RING_USED 0x4000
#define RING_SIZE 8

#define NEXT 1
#define WRITE 2
#define INDIRECT 4

/* 1 MiB at 0, 1 MiB at 1 MiB as a span of its own, 64 KiB at 4 MiB. */
static inline struct memory *driver_memory(void)
{
    const struct memory_span spans[] = {{0, MIB}, {MIB, MIB}, {4 * MIB, 64 * KIB}};
    const struct memory_options options = {0};
    struct memory *memory = NULL;
    struct error err = ERROR_NONE;

    if (memory_create(spans, ARRAY_SIZE(spans), &options, &memory, &err) < 0)
        fail_msg("%s", err.text);
    return memory;
}

static inline void put16(struct memory *memory, uint64_t gpa, uint16_t value)
{
    assert_int_equal(memory_write(memory, gpa, &value, sizeof(value)), 0);
}

static inline uint16_t get16(struct memory *memory, uint64_t gpa)
{
    uint16_t value;

    assert_int_equal(memory_read(memory, gpa, &value, sizeof(value)), 0);
    return value;
}

static inline uint32_t get32(struct memory *memory, uint64_t gpa)
{
    return get16(memory, gpa) | (uint32_t)get16(memory, gpa + 2) << 16;
}

/* Descriptor `index` of the table at `table`. */
static inline void put_descriptor(struct memory *memory, uint64_t table, unsigned index,
                                  uint64_t address, uint32_t size, uint16_t flags,
                                  uint16_t next)
{
    uint8_t bytes[16];

    store_le64(bytes, address);
    store_le32(bytes + 8, size);
    store_le16(bytes + 12, flags);
    store_le16(bytes + 14, next);
    assert_int_equal(
        memory_write(memory, table + index * sizeof(bytes), bytes, sizeof(bytes)), 0);
}

/* Makes the chain that begins with `head` available. */
static inline void make_available(struct memory *memory, uint16_t head)
{
    uint16_t index = get16(memory, RING_AVAILABLE + 2);

    put16(memory, RING_AVAILABLE + 4 + 2u * (index % RING_SIZE), head);
    /* The device may be looking on a thread of its own. */
    atomic_store((_Atomic uint16_t *)memory_slice(memory, RING_AVAILABLE + 2, 2),
                 (uint16_t)(index + 1));
}

static inline struct virtio_queue_setup ring_setup(void)
{
    return (struct virtio_queue_setup){.size = RING_SIZE,
                                       .descriptors = RING_DESCRIPTORS,
                                       .available = RING_AVAILABLE,
                                       .used = RING_USED,
                                       .indirect = true};
}

#endif
