/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What translated code keeps in its vCPU, beside registers and TLBs. Code reaches all of
 * struct soft_cpu through GS, at constant offsets from the first TLB: what a kernel's
 * accesses look into has short displacements then.
 */
#ifndef HUSK_SOFT_TRANSLATOR_STATE_PRIVATE_H
#define HUSK_SOFT_TRANSLATOR_STATE_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct soft_cpu;

/* The jump cache: where indirect branches find the code for an address. An address's
 * entry follows from its lower bits, which differ more than a hash's would: neighbours
 * never meet. The lowest counts for nothing, so that the others, in their place and
 * times eight, are an entry's offset. */
#define JUMP_CACHE_BITS 14
#define JUMP_CACHE_ENTRIES (1u << JUMP_CACHE_BITS)
#define JUMP_CACHE_MASK ((JUMP_CACHE_ENTRIES - 1) << 1)
struct jump {
    uint64_t key;
    const uint8_t *code;
};
_Static_assert(sizeof(struct jump) == 16, "code scales half of it by eight");

/* Entries made for one half of the address space since that was forgotten, so that few
 * need not cost a look at all. */
#define JUMP_CACHE_FILL_LIST 2048
struct jump_fills {
    uint32_t count; /* > JUMP_CACHE_FILL_LIST: the list is incomplete */
    uint16_t index[JUMP_CACHE_FILL_LIST];
};

/* What an entry says of its address: instead of the bits that its place says, the mode.
 * So no two addresses under any modes have one key in one place, those that are not
 * canonical neither, and none has 0, which is an empty entry's. */
static inline uint64_t jump_salt(uint32_t mode)
{
    return (uint64_t)mode << 1;
}

static inline uint64_t jump_key(uint64_t rip, uint64_t salt)
{
    return (rip & ~(uint64_t)JUMP_CACHE_MASK) ^ salt;
}

/* Which half a key is of. */
static inline unsigned jump_key_half(uint64_t key)
{
    return (unsigned)(key >> 63);
}

static inline uint32_t jump_cache_index(uint64_t rip)
{
    return ((uint32_t)rip & JUMP_CACHE_MASK) >> 1;
}

/* What happened, since the start. */
struct translated_counters {
    _Atomic uint64_t fills;   /* TLB misses */
    _Atomic uint64_t steps;   /* instructions that the interpreter did */
    _Atomic uint64_t lookups; /* blocks that branches found by C */
};

/* Counters have one writer, and readers on other threads. */
static inline void translator_count(_Atomic uint64_t *counter, uint64_t more)
{
    const uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, before + more, memory_order_relaxed);
}

struct translated_state {
    struct soft_cpu *self;
    uint64_t thread_stack; /* the stack pointer for C */
    uint64_t operands[2];  /* what a slow path needs of code's scratch registers */
    uint64_t target;       /* of an indirect call, while it pushes */
    _Atomic bool inside;   /* in translated code, or in C for it: see shared_private.h */
    uint64_t epoch;        /* the translator's, when this vCPU last went there */
    struct translated_counters counters;
    struct {
        uint64_t rip;
        uint64_t entry; /* its offset */
        uint64_t page;
    } last_fill;
    uint8_t vectors_resident;        /* see vectors_private.h */
    uint8_t interpret_next;          /* the next block is the interpreter's */
    uint8_t careful_next;            /* ... or a careful one */
    struct jump_fills jump_fills[2]; /* of the lower and the upper half */
    struct jump jumps[JUMP_CACHE_ENTRIES];
};

#endif
