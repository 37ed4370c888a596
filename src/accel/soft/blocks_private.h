/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of decoded instructions: found by physical address, rip and mode; made by
 * build.c or the translator; gone when somebody writes to their bytes. Each vCPU has a
 * cache of its own for what it interprets; translations are in one for all of them
 * (translator/shared_private.h).
 *
 * A block's instructions lie in one page. The one exception is an instruction that
 * crosses into the next page: it makes a block by itself, which is checked against both
 * translations each time and is never chained to.
 *
 * Blocks live in an arena that is emptied as a whole when it is full. A block that has
 * become stale is not freed before: all its uops are replaced by one that returns to the
 * run loop, so neither a chain pointer nor the block in progress can run old code.
 */
#ifndef HUSK_SOFT_BLOCKS_PRIVATE_H
#define HUSK_SOFT_BLOCKS_PRIVATE_H

#include "accel/soft/cpu_private.h"
#include "accel/soft/instruction_private.h"

#define BLOCK_LIMIT 64 /* instructions */
#define BLOCK_ONE_PAGE UINT64_MAX

/* What the translator makes of a block: places in its code memory, see there. */
struct translated_code {
    uint32_t entry;
    uint32_t poll_entry; /* 0: none, this block is the interpreter's */
    uint32_t leave;      /* where the look for attention goes if there is some */
    uint32_t incoming;   /* links that go to `entry`: a list, see struct link */
    uint8_t flags_in;
    bool interpreted; /* nothing but one instruction that the interpreter does */
};

/* What a lookup wants is in its first 64 bytes. */
struct block {
    uint64_t rip;      /* of the first instruction */
    uint64_t gpa;      /* of its first byte */
    uint64_t next_gpa; /* of the page that it crosses into, or BLOCK_ONE_PAGE */
    uint32_t mode;
    uint16_t byte_count;
    uint16_t uop_count;
    struct translated_code code; /* MODE_TRANSLATED: there are no uops */
    _Atomic bool stale;          /* its bytes have changed */
    _Atomic uint32_t next_in_hash;
    uint64_t granules;    /* of its page: what else it depends on */
    struct block *shadow; /* the same for the lockstep checker, in pieces */
    struct uop uops[];    /* the last one ends the block */
};

/* A stock kernel's boot decodes a third of a million instructions: 16 MiB of uops.
 * Touched as needed, emptied when full. */
#define BLOCK_ARENA_BYTES (UINT64_C(64) << 20)

#define BLOCK_HASH_BUCKETS 65536
#define BLOCK_PAGE_BUCKETS 4096
#define BLOCK_ADDRESSES 4096

struct block_reference {
    struct block *block;
    struct block_reference *next;
};

/* A physical page that has code. */
struct code_page {
    uint64_t gpa;
    bool counted;      /* by code_pages.c */
    uint64_t granules; /* bit n: bytes n * 64 .. + 63 belong to a block */
    struct block_reference *blocks;
    struct code_page *next;
};

/* By rip, for branches that have no chain pointer: valid while its generation is the
 * cache's. */
struct block_address {
    uint64_t rip;
    uint64_t generation;
    uint32_t mode;
    struct block *block;
};

struct block_cache {
    uint16_t page_unit; /* enum code_page_unit */
    uint8_t *arena;
    _Atomic size_t used; /* one thread at a time; others read it */
    uint64_t generation;
    _Atomic uint32_t hash[BLOCK_HASH_BUCKETS]; /* 0: empty; see blocks.c */
    struct code_page *pages[BLOCK_PAGE_BUCKETS];
    struct block_address addresses[BLOCK_ADDRESSES];
};

int block_cache_create(struct block_cache **cache, struct error *err) MUST_CHECK;
void block_cache_destroy(struct block_cache *cache); /* accepts NULL */

/* What soft_cpu.mode is where the block runs. */
static inline uint32_t block_cpu_mode(const struct block *block)
{
    return block->mode & ~(uint32_t)(MODE_TRANSLATED | MODE_CAREFUL);
}

/* The interpreter's block at cpu->rip for `mode`: from the cache, else built. May raise
 * (a fault on fetch). Only from the run loop: it may empty the arena. */
struct block *block_find(struct soft_cpu *cpu, uint32_t mode);

static inline struct block_address *block_address(struct block_cache *cache, uint64_t rip)
{
    return &cache->addresses[(rip ^ rip >> 12) % BLOCK_ADDRESSES];
}

/* The block at `rip` under cpu->mode if it was found there since translations last
 * changed, else NULL. Never raises. */
static inline struct block *block_lookup(const struct soft_cpu *cpu, uint64_t rip)
{
    const struct block_address *address = block_address(cpu->blocks, rip);

    if (address->rip == rip && address->generation == cpu->blocks->generation &&
        address->mode == cpu->mode)
        return address->block;
    return NULL;
}

/* Translations, or CS, have changed: what block_lookup knows is void, and what the
 * translator knows of either half of the address space, or of the lower alone. */
void block_cache_forget_addresses(struct soft_cpu *cpu);
void block_cache_forget_lower_addresses(struct soft_cpu *cpu);

/* [gpa, gpa + size), inside one page, was written: blocks with these bytes are stale, the
 * vCPU's own and translations. */
void block_cache_written(struct soft_cpu *cpu, uint64_t gpa, unsigned size);

/* The memory that blocks take; about. Any thread. */
uint64_t block_cache_bytes(const struct block_cache *cache);

/* Forgets everything. The interpreter's: only from the run loop. */
void block_cache_empty(struct soft_vm *vm, struct block_cache *cache);
/* The same, and gives the memory back. */
void block_cache_release(struct soft_vm *vm, struct block_cache *cache);

/* What is to be done for a block, in this order: writes to its pages are watched from now
 * on, it is made, and it can be found. False: the arena is full. */
bool block_cache_claim(struct soft_cpu *cpu, struct block_cache *cache, uint64_t gpa);
bool block_cache_add(struct soft_cpu *cpu, struct block_cache *cache,
                     struct block *block);

/* The block for code at `gpa`, or NULL. Others may add and drop blocks meanwhile, but not
 * empty the cache: one that is dropped now may be found still. */
struct block *block_cache_find(const struct block_cache *cache, uint64_t gpa,
                               uint64_t rip, uint32_t mode, uint64_t next_gpa);

/* Blocks of one cache that have bytes in [gpa, gpa + size), inside one page, are stale
 * now. */
void block_cache_drop(struct soft_vm *vm, struct block_cache *cache, uint64_t gpa,
                      unsigned size);

/* A block that crosses pages counts only while its second page is where it was. May
 * raise. */
bool block_still_maps(struct soft_cpu *cpu, const struct block *block);

/* Bits of the granules that [offset, offset + size) of a page touches; size is not 0. */
uint64_t block_granules(uint64_t offset, uint64_t size);

/* A copy of uops that lives as long as blocks do; NULL when the arena is full. */
struct uop *block_cache_keep_uops(struct block_cache *cache, const struct uop *uops,
                                  size_t count);

/* ---- build.c
 * ---------------------------------------------------------------------------------- */

/* Memory for a block of `uop_count` uops; NULL when the arena is full. */
struct block *block_cache_allocate(struct block_cache *cache, size_t uop_count);

/* One or two uops for an instruction; returns how many. `flags_dead`: nobody will read
 * the flags it writes. */
size_t block_uops(struct uop *uops, const struct instruction *instruction, size_t ordinal,
                  bool flags_dead);

/* A uop that returns to the caller, before the instruction at `rip`. */
struct uop block_stop(uint64_t rip);

/* Decodes the block at cpu->rip, whose first byte is at `gpa`. Raises faults of the
 * fetch. NULL when the arena is full. */
struct block *block_build(struct soft_cpu *cpu, uint64_t gpa, uint32_t mode);

#endif
