/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for translated code. It is mapped twice, once to write and once to execute, so
 * that no page is ever both; the mappings are made at the start and stay.
 *
 * Two areas are filled from their start: `hot` with what blocks do, `cold` with what they
 * seldom need. Code is named by its offset, which is the same in both mappings.
 */
#ifndef HUSK_SOFT_CODE_MEMORY_PRIVATE_H
#define HUSK_SOFT_CODE_MEMORY_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct code_area {
    uint32_t at; /* offset of the first free byte */
    uint32_t end;
};

struct code_memory {
    uint8_t *writable;
    const uint8_t *executable;
    uint32_t size_bytes;
    uint32_t hot_start; /* behind what code_memory_keep has kept */
    struct code_area hot;
    struct code_area cold;
};

/* `size_bytes` is a multiple of 4 KiB. Fails where the host forbids executable mappings
 * of files. */
int code_memory_create(struct code_memory *memory, uint32_t size_bytes,
                       struct error *err) MUST_CHECK;
void code_memory_destroy(struct code_memory *memory); /* accepts an all-zero struct */

/* What is in `hot` so far stays when the memory is emptied. */
void code_memory_keep(struct code_memory *memory);
void code_memory_empty(struct code_memory *memory);
/* The same, and gives the pages back to the host. */
void code_memory_release(struct code_memory *memory);

uint64_t code_memory_bytes(const struct code_memory *memory); /* in use; about */

static inline size_t code_area_left(const struct code_area *area)
{
    return area->end - area->at;
}

/* Where the processor finds what was written at `offset`. */
static inline const uint8_t *code_memory_address(const struct code_memory *memory,
                                                 uint32_t offset)
{
    return memory->executable + offset;
}

/* Code is changed while others run it. A store that lies in an aligned quadword is seen
 * by their fetches as a whole or not at all (APM vol. 2, 7.3.2; SDM vol. 3, 8.1.1 grants
 * a cache line), so what changes lies so: see emit_exit.c, and blocks are aligned. What
 * runs before the change has reached it is right, too, by the rules of who changes what.
 */

/* The four bytes before `end` become the distance from there to `target`. */
static inline void code_memory_aim(struct code_memory *memory, uint32_t end,
                                   uint32_t target)
{
    uint32_t distance = target - end;
    uint32_t *place = (uint32_t *)(void *)(memory->writable + end - 4);

    __atomic_store_n(place, distance, __ATOMIC_RELEASE);
}

/* Four bytes of code at `offset` become `value`. */
static inline void code_memory_put(struct code_memory *memory, uint32_t offset,
                                   uint32_t value)
{
    uint32_t *place = (uint32_t *)(void *)(memory->writable + offset);

    __atomic_store_n(place, value, __ATOMIC_RELEASE);
}

/* JMP rel32 with its distance, and the bytes behind it in a quadword. */
#define CODE_JUMP 0xe9u
#define CODE_JUMP_BYTES 5

/* The instruction at `offset`, which is not shorter and a multiple of 8, becomes a jump
 * to `target`. */
static inline void code_memory_put_jump(struct code_memory *memory, uint32_t offset,
                                        uint32_t target)
{
    uint64_t *place = (uint64_t *)(void *)(memory->writable + offset);
    uint64_t kept = *place & ~UINT64_C(0) << 8 * CODE_JUMP_BYTES;
    uint32_t distance = target - (offset + CODE_JUMP_BYTES);

    __atomic_store_n(place, kept | (uint64_t)distance << 8 | CODE_JUMP, __ATOMIC_RELEASE);
}

#endif
