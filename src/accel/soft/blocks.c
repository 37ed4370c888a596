/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of decoded blocks; see blocks_private.h. */
#include "accel/soft/blocks_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "accel/soft/access_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/reserve_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/translator_private.h"
#include "base/check.h"

/* Written bytes are compared with code in granules of this size (64 to a page). */
#define GRANULE_SHIFT 6

int block_cache_create(struct block_cache **cache, struct error *err)
{
    struct block_cache *created = calloc(1, sizeof(*created));

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for the software CPU");
    created->arena = soft_reserve(BLOCK_ARENA_BYTES);
    if (created->arena == NULL) {
        free(created);
        return error_set_errno(err, errno, "cannot reserve %d MiB for decoded code",
                               (int)(BLOCK_ARENA_BYTES >> 20));
    }
    created->page_unit = CODE_INTERPRETED;
    created->generation = 1;
    *cache = created;
    return 0;
}

void block_cache_destroy(struct block_cache *cache)
{
    if (cache == NULL)
        return;
    soft_release(cache->arena, BLOCK_ARENA_BYTES);
    free(cache);
}

/* ---- arena
 * ------------------------------------------------------------------------------------ */

static void *arena_take(struct block_cache *cache, size_t size)
{
    void *taken;

    size = (size_t)align_up(size, 16);
    if (size > BLOCK_ARENA_BYTES - cache->used)
        return NULL;
    taken = cache->arena + cache->used;
    cache->used += size;
    return taken;
}

struct block *block_cache_allocate(struct block_cache *cache, size_t uop_count)
{
    return arena_take(cache, sizeof(struct block) + uop_count * sizeof(struct uop));
}

struct uop *block_cache_keep_uops(struct block_cache *cache, const struct uop *uops,
                                  size_t count)
{
    struct uop *kept = arena_take(cache, count * sizeof(*uops));

    if (kept != NULL)
        memcpy(kept, uops, count * sizeof(*uops));
    return kept;
}

static void uncount(struct soft_vm *vm, const struct block_cache *cache,
                    struct code_page *page)
{
    if (page->counted)
        code_pages_remove(vm, page->gpa, cache->page_unit);
    page->counted = false;
}

void block_cache_empty(struct soft_vm *vm, struct block_cache *cache)
{
    for (size_t i = 0; i < BLOCK_PAGE_BUCKETS; i++)
        for (struct code_page *page = cache->pages[i]; page != NULL; page = page->next)
            uncount(vm, cache, page);
    memset(cache->hash, 0, sizeof(cache->hash));
    memset(cache->pages, 0, sizeof(cache->pages));
    cache->used = 0;
    cache->generation++;
}

uint64_t block_cache_bytes(const struct block_cache *cache)
{
    return atomic_load_explicit(&cache->used, memory_order_relaxed);
}

void block_cache_release(struct soft_vm *vm, struct block_cache *cache)
{
    block_cache_empty(vm, cache);
    (void)madvise(cache->arena, BLOCK_ARENA_BYTES, MADV_DONTNEED);
}

void block_cache_forget_addresses(struct soft_cpu *cpu)
{
    cpu->blocks->generation++;
    translator_forget(cpu, true);
}

void block_cache_forget_lower_addresses(struct soft_cpu *cpu)
{
    cpu->blocks->generation++;
    translator_forget(cpu, false);
}

/* ---- pages with code
 * -------------------------------------------------------------------------- */

static struct code_page **page_bucket(struct block_cache *cache, uint64_t page_gpa)
{
    return &cache->pages[(page_gpa >> 12) % BLOCK_PAGE_BUCKETS];
}

static struct code_page *find_page(struct block_cache *cache, uint64_t page_gpa)
{
    struct code_page *page = *page_bucket(cache, page_gpa);

    while (page != NULL && page->gpa != page_gpa)
        page = page->next;
    return page;
}

static struct code_page *make_page(struct block_cache *cache, uint64_t page_gpa)
{
    struct code_page **bucket = page_bucket(cache, page_gpa);
    struct code_page *page = arena_take(cache, sizeof(*page));

    if (page != NULL) {
        *page = (struct code_page){.gpa = page_gpa, .next = *bucket};
        *bucket = page;
    }
    return page;
}

uint64_t block_granules(uint64_t offset, uint64_t size)
{
    uint64_t first = offset >> GRANULE_SHIFT;
    uint64_t last = (offset + size - 1) >> GRANULE_SHIFT;

    return (~UINT64_C(0) >> (63 - last)) & (~UINT64_C(0) << first);
}

/* Outside RAM there is nothing to write to. */
bool block_cache_claim(struct soft_cpu *cpu, struct block_cache *cache, uint64_t gpa)
{
    uint64_t page_gpa = align_down(gpa, X86_PAGE_BYTES);
    struct code_page *page = find_page(cache, page_gpa);

    if (soft_vm_page(cpu->vm, page_gpa) == NULL)
        return true;
    if (page == NULL)
        page = make_page(cache, page_gpa);
    if (page == NULL)
        return false;
    if (!page->counted)
        code_pages_add(cpu, page_gpa, cache->page_unit);
    page->counted = true;
    return true;
}

/* Notes that `size` bytes at `gpa`, inside one page, belong to `block`. False: arena
 * full. */
static bool note_bytes(struct soft_cpu *cpu, struct block_cache *cache,
                       struct block *block, uint64_t gpa, uint64_t size)
{
    uint64_t page_gpa = align_down(gpa, X86_PAGE_BYTES);
    struct block_reference *reference = arena_take(cache, sizeof(*reference));
    struct code_page *page;

    if (reference == NULL || !block_cache_claim(cpu, cache, gpa))
        return false;
    page = find_page(cache, page_gpa);
    if (page == NULL)
        return true;
    *reference = (struct block_reference){.block = block, .next = page->blocks};
    page->blocks = reference;
    page->granules |= block_granules(gpa - page_gpa, size) | block->granules;
    return true;
}

/* Bytes of the block in its first page. */
static uint64_t first_part(const struct block *block)
{
    return min_u64(block->byte_count, X86_PAGE_BYTES - block->gpa % X86_PAGE_BYTES);
}

static bool note_block(struct soft_cpu *cpu, struct block_cache *cache,
                       struct block *block)
{
    uint64_t first = first_part(block);

    return note_bytes(cpu, cache, block, block->gpa, first) &&
           (block->next_gpa == BLOCK_ONE_PAGE ||
            note_bytes(cpu, cache, block, block->next_gpa, block->byte_count - first));
}

/* ---- stale blocks
 * ------------------------------------------------------------------------------ */

/* What the uops of a stale block have become: back to the run loop, before that
 * instruction. */
static void run_stale(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->retired += uop->ordinal;
    cpu->rip = uop->rip;
}

/* Code that lies together is looked for one after the other, so that of a page its
 * buckets lie together, too, by 16 bytes of code: they share lines of the host's cache.
 */
static _Atomic uint32_t *hash_bucket(struct block_cache *cache, uint64_t gpa,
                                     uint64_t rip, uint32_t mode)
{
    uint64_t page = ((gpa >> 12) + (rip >> 12 << 28)) ^ mode;
    uint64_t mixed = page * UINT64_C(0x9e3779b97f4a7c15);

    return &cache->hash[((mixed >> 32) + gpa % X86_PAGE_BYTES / 16) % BLOCK_HASH_BUCKETS];
}

/* What a bucket, or the block before in it, names: a place in the arena plus 1. That
 * takes half of what a pointer does, so that twice as many share a line. */
static struct block *in_hash(const struct block_cache *cache,
                             const _Atomic uint32_t *link)
{
    const uint32_t place = atomic_load_explicit(link, memory_order_acquire);

    return place == 0 ? NULL : (struct block *)(void *)(cache->arena + place - 1);
}

static void put_in_hash(const struct block_cache *cache, _Atomic uint32_t *link,
                        const struct block *block)
{
    const uint32_t place =
        block == NULL ? 0 : (uint32_t)((const uint8_t *)block - cache->arena) + 1;

    atomic_store_explicit(link, place, memory_order_release);
}

/* Takes away the chain pointers to `block`, which come from blocks of its own page. */
static void unchain(const struct code_page *page, const struct block *block)
{
    for (struct block_reference *from = page->blocks; from != NULL; from = from->next) {
        struct uop *last;

        if (from->block->uop_count == 0)
            continue;
        last = &from->block->uops[from->block->uop_count - 1];
        if (last->chain == block)
            last->chain = NULL;
        if (from->block->uop_count > 1 && last[-1].chain == block)
            last[-1].chain = NULL;
    }
}

static void make_stale(struct soft_vm *vm, struct block_cache *cache,
                       const struct code_page *page, struct block *block)
{
    _Atomic uint32_t *link = hash_bucket(cache, block->gpa, block->rip, block->mode);
    struct block_address *address = block_address(cache, block->rip);

    if (block->stale)
        return; /* never found, or through the reference in its other page */
    block->stale = true;
    if (address->block == block)
        *address = (struct block_address){.block = NULL};
    if ((block->mode & MODE_TRANSLATED) == 0)
        unchain(page, block);
    while (in_hash(cache, link) != block)
        link = &in_hash(cache, link)->next_in_hash;
    put_in_hash(cache, link, in_hash(cache, &block->next_in_hash));
    for (size_t i = 0; i < block->uop_count; i++)
        block->uops[i].run = run_stale;
    if ((block->mode & MODE_TRANSLATED) != 0)
        translation_make_stale(vm->translator, block);
}

static bool block_has_bytes(const struct block *block, uint64_t gpa, uint64_t size)
{
    uint64_t first = first_part(block);

    if (ranges_overlap(align_down(block->gpa, X86_PAGE_BYTES), X86_PAGE_BYTES, gpa,
                       size) &&
        (block->granules & block_granules(gpa % X86_PAGE_BYTES, size)) != 0)
        return true;
    return ranges_overlap(block->gpa, first, gpa, size) ||
           (block->next_gpa != BLOCK_ONE_PAGE &&
            ranges_overlap(block->next_gpa, block->byte_count - first, gpa, size));
}

void block_cache_drop(struct soft_vm *vm, struct block_cache *cache, uint64_t gpa,
                      unsigned size)
{
    uint64_t page_gpa = align_down(gpa, X86_PAGE_BYTES);
    struct code_page *page = find_page(cache, page_gpa);
    struct block_reference **link;

    if (page == NULL || (page->blocks != NULL &&
                         (page->granules & block_granules(gpa - page_gpa, size)) == 0))
        return;
    link = &page->blocks;
    while (*link != NULL) {
        struct block *block = (*link)->block;

        if (block_has_bytes(block, gpa, size)) {
            make_stale(vm, cache, page, block);
            *link = (*link)->next;
        } else {
            link = &(*link)->next;
        }
    }
    if (page->blocks == NULL) {
        page->granules = 0;
        uncount(vm, cache, page);
    }
}

void block_cache_written(struct soft_cpu *cpu, uint64_t gpa, unsigned size)
{
    block_cache_drop(cpu->vm, cpu->blocks, gpa, size);
    translation_written(cpu->vm, gpa, size);
}

/* ---- finding
 * ------------------------------------------------------------------------------------ */

static uint64_t fetch_gpa(struct soft_cpu *cpu, uint64_t rip)
{
    return soft_fetch_gpa(cpu, soft_code_linear(cpu, rip));
}

bool block_still_maps(struct soft_cpu *cpu, const struct block *block)
{
    return block->next_gpa == BLOCK_ONE_PAGE ||
           fetch_gpa(cpu, block->rip + first_part(block)) == block->next_gpa;
}

static struct block *find_in_hash(struct soft_cpu *cpu, uint64_t gpa, uint32_t mode)
{
    struct block_cache *cache = cpu->blocks;
    struct block *block = in_hash(cache, hash_bucket(cache, gpa, cpu->rip, mode));

    while (block != NULL && (block->gpa != gpa || block->rip != cpu->rip ||
                             block->mode != mode || !block_still_maps(cpu, block)))
        block = in_hash(cache, &block->next_in_hash);
    return block;
}

struct block *block_cache_find(const struct block_cache *cache, uint64_t gpa,
                               uint64_t rip, uint32_t mode, uint64_t next_gpa)
{
    struct block *block = in_hash(
        cache, hash_bucket((struct block_cache *)(uintptr_t)cache, gpa, rip, mode));

    while (block != NULL && (block->gpa != gpa || block->rip != rip ||
                             block->mode != mode || block->next_gpa != next_gpa))
        block = in_hash(cache, &block->next_in_hash);
    return block;
}

bool block_cache_add(struct soft_cpu *cpu, struct block_cache *cache, struct block *block)
{
    _Atomic uint32_t *bucket = hash_bucket(cache, block->gpa, block->rip, block->mode);

    if (!note_block(cpu, cache, block)) {
        block->stale = true; /* one of its pages may know it already */
        return false;
    }
    put_in_hash(cache, &block->next_in_hash, in_hash(cache, bucket));
    put_in_hash(cache, bucket, block);
    return true;
}

/* NULL: some memory is full. */
static struct block *make(struct soft_cpu *cpu, uint64_t gpa, uint32_t mode)
{
    struct block *block = NULL;

    if (block_cache_claim(cpu, cpu->blocks, gpa))
        block = block_build(cpu, gpa, mode);
    return block != NULL && block_cache_add(cpu, cpu->blocks, block) ? block : NULL;
}

/* With an empty arena there is room for any block. */
static struct block *build(struct soft_cpu *cpu, uint64_t gpa, uint32_t mode)
{
    struct block *block = make(cpu, gpa, mode);

    if (block == NULL) {
        block_cache_empty(cpu->vm, cpu->blocks);
        block = make(cpu, gpa, mode);
        CHECK(block != NULL);
    }
    return block;
}

struct block *block_find(struct soft_cpu *cpu, uint32_t mode)
{
    struct block *block = block_lookup(cpu, cpu->rip);
    uint64_t gpa;

    if (block != NULL && mode == cpu->mode)
        return block;
    gpa = fetch_gpa(cpu, cpu->rip);
    block = find_in_hash(cpu, gpa, mode);
    if (block == NULL)
        block = build(cpu, gpa, mode);
    if (block->next_gpa == BLOCK_ONE_PAGE && mode == cpu->mode)
        *block_address(cpu->blocks, cpu->rip) =
            (struct block_address){.rip = cpu->rip,
                                   .generation = cpu->blocks->generation,
                                   .mode = mode,
                                   .block = block};
    return block;
}
