/* SPDX-License-Identifier: Apache-2.0 */
/* TLBs: entered, looked up where the fast way does not, emptied; see mmu_private.h. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "accel/soft/blocks_private.h"
#include "accel/soft/debug_private.h"
#include "accel/soft/mmu_private.h"
#include "accel/soft/soft_private.h"

/* tlb_entry.info */
#define ENTRY_GLOBAL 0x1u

static void clear_entry(struct tlb_entry *entry, size_t index)
{
    *entry =
        (struct tlb_entry){.read_tag = TLB_NO_TAG(index), .write_tag = TLB_NO_TAG(index)};
}

/* Fresh pages are zero, and so are nearly all empty entries: what a guest does not use of
 * its TLBs costs neither time nor memory. */
int soft_mmu_create(struct soft_cpu *cpu, struct error *err)
{
    struct soft_mmu *mmu = mmap(NULL, sizeof(*mmu), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mmu == MAP_FAILED)
        return error_set_errno(err, errno, "out of memory for the TLBs of vCPU %u",
                               cpu->index);
    for (size_t kind = 0; kind < TLB_KINDS; kind++)
        clear_entry(&mmu->entries[kind][0], 0);
    cpu->mmu = mmu;
    return 0;
}

void soft_mmu_destroy(struct soft_cpu *cpu)
{
    if (cpu->mmu != NULL)
        (void)munmap(cpu->mmu, sizeof(*cpu->mmu));
}

enum tlb_kind mmu_kind(const struct soft_cpu *cpu)
{
    if (cpu->cpl == 3)
        return TLB_USER;
    if ((cpu->cr4 & X86_CR4_SMAP) != 0 && (cpu->flags_system & X86_FLAGS_AC) != 0)
        return TLB_SUPERVISOR_AC;
    return TLB_SUPERVISOR;
}

struct tlb_entry *soft_mmu_tlb(const struct soft_cpu *cpu)
{
    return cpu->mmu->entries[mmu_kind(cpu)];
}

static unsigned large_bit(uint64_t linear, uint64_t page_bytes)
{
    uint64_t page = linear / page_bytes + (page_bytes == GIB ? 7 : 0);

    return (unsigned)((page * UINT64_C(0x9e3779b97f4a7c15)) >> 54); /* ten bits: 1024 */
}

static bool large_seen(const struct soft_mmu *mmu, uint64_t linear, uint64_t page_bytes)
{
    unsigned bit = large_bit(linear, page_bytes);

    return (mmu->large_pages[bit / 64] >> bit % 64 & 1) != 0;
}

static bool is_complete(const struct tlb_fills *fills)
{
    return fills->count <= TLB_FILL_LIST;
}

/* Not twice in a row: a page that is used and dropped in turn must not fill the list. */
static void add_fill(struct tlb_fills *fills, size_t index)
{
    if (!is_complete(fills) ||
        (fills->count != 0 && fills->index[fills->count - 1] == index))
        return;
    if (fills->count < TLB_FILL_LIST)
        fills->index[fills->count] = (uint16_t)index;
    fills->count++;
}

static void note_fill(struct soft_mmu *mmu, enum tlb_kind kind, uint64_t linear,
                      const struct translation *translation)
{
    if (translation->has_key)
        mmu->keys |= UINT32_C(1) << translation->key;
    if (translation->page_bytes > X86_PAGE_BYTES) {
        unsigned bit = large_bit(linear, translation->page_bytes);

        mmu->large_pages[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    add_fill(&mmu->fills[kind][translation->global], (linear >> 12) & (TLB_ENTRIES - 1));
}

uint8_t *mmu_fill(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                  enum soft_access access, enum tlb_kind kind, uint64_t *gpa)
{
    struct translation translation = mmu_walk(cpu, uop, linear, access, kind);
    uint8_t *page = soft_vm_page(cpu->vm, translation.gpa);
    size_t index = (linear >> 12) & (TLB_ENTRIES - 1);
    struct tlb_entry *entry = &cpu->mmu->entries[kind][index];
    uint64_t tag = align_down(linear, X86_PAGE_BYTES);

    *gpa = translation.gpa;
    if (page == NULL)
        return NULL;
    if (debug_watches_page(cpu, linear))
        return page + linear % X86_PAGE_BYTES;
    *entry = (struct tlb_entry){
        .read_tag = tag,
        .write_tag =
            translation.writable && !code_pages_has(&cpu->vm->code_pages, translation.gpa)
                ? tag
                : TLB_NO_TAG(index),
        .addend = (uint64_t)(uintptr_t)page - tag,
        .info = translation.global ? ENTRY_GLOBAL : 0,
    };
    note_fill(cpu->mmu, kind, linear, &translation);
    return page + linear % X86_PAGE_BYTES;
}

/* An entry that makes place for another page takes what block_lookup knows with it. */
static void fill_fetch(struct soft_cpu *cpu, uint64_t linear,
                       const struct translation *translation, enum tlb_kind kind)
{
    size_t index = (linear >> 12) & (TLB_ENTRIES - 1);
    struct tlb_entry *entry = &cpu->mmu->entries[kind][index];
    uint64_t tag = align_down(linear, X86_PAGE_BYTES);

    if (entry->read_tag != TLB_NO_TAG(index))
        block_cache_forget_addresses(cpu);
    *entry = (struct tlb_entry){
        .read_tag = tag,
        .write_tag = TLB_NO_TAG(index),
        .addend = align_down(translation->gpa, X86_PAGE_BYTES) - tag,
        .info = translation->global ? ENTRY_GLOBAL : 0,
    };
    note_fill(cpu->mmu, kind, linear, translation);
}

uint64_t soft_fetch_gpa(struct soft_cpu *cpu, uint64_t linear)
{
    bool user = cpu->cpl == 3;
    enum tlb_kind kind = user ? TLB_FETCH_USER : TLB_FETCH_SUPERVISOR;
    const struct tlb_entry *entry =
        &cpu->mmu->entries[kind][(linear >> 12) & (TLB_ENTRIES - 1)];
    struct translation translation;

    if (LIKELY(linear - entry->read_tag < X86_PAGE_BYTES))
        return linear + entry->addend;
    translation =
        mmu_walk(cpu, NULL, linear, ACCESS_EXECUTE, user ? TLB_USER : TLB_SUPERVISOR);
    fill_fetch(cpu, linear, &translation, kind);
    return translation.gpa;
}

/* ---- flushes
 * -------------------------------------------------------------------------------------
 */

static bool is_filled(const struct soft_mmu *mmu, size_t kind)
{
    return mmu->fills[kind][false].count != 0 || mmu->fills[kind][true].count != 0;
}

/* Drops the entries of a kind that are global, or those that are not. An index in the
 * list may meanwhile hold one of the others. */
static void flush_fills(struct soft_mmu *mmu, size_t kind, bool global)
{
    struct tlb_fills *fills = &mmu->fills[kind][global];
    size_t count = is_complete(fills) ? fills->count : TLB_ENTRIES;

    for (size_t i = 0; i < count; i++) {
        size_t index = is_complete(fills) ? fills->index[i] : i;
        struct tlb_entry *entry = &mmu->entries[kind][index];

        if (((entry->info & ENTRY_GLOBAL) != 0) == global)
            clear_entry(entry, index);
    }
    fills->count = 0;
}

void soft_tlb_flush_all(struct soft_cpu *cpu)
{
    struct soft_mmu *mmu = cpu->mmu;

    for (size_t kind = 0; kind < TLB_KINDS; kind++) {
        flush_fills(mmu, kind, false);
        flush_fills(mmu, kind, true);
    }
    memset(mmu->large_pages, 0, sizeof(mmu->large_pages));
    mmu->keys = 0;
    block_cache_forget_addresses(cpu);
}

void soft_tlb_flush_non_global(struct soft_cpu *cpu)
{
    struct soft_mmu *mmu = cpu->mmu;
    bool fetched = mmu->fills[TLB_FETCH_SUPERVISOR][false].count != 0 ||
                   mmu->fills[TLB_FETCH_USER][false].count != 0;

    for (size_t kind = 0; kind < TLB_KINDS; kind++)
        flush_fills(mmu, kind, false);
    if (fetched)
        block_cache_forget_addresses(cpu);
}

static bool was_fetched(const struct soft_mmu *mmu, uint64_t linear)
{
    size_t index = (linear >> 12) & (TLB_ENTRIES - 1);

    return linear - mmu->entries[TLB_FETCH_SUPERVISOR][index].read_tag < X86_PAGE_BYTES ||
           linear - mmu->entries[TLB_FETCH_USER][index].read_tag < X86_PAGE_BYTES;
}

/* A large page, whose entries follow each other. */
struct large_page {
    uint64_t start;
    uint64_t bytes;
};

static void flush_if_within(struct soft_mmu *mmu, size_t kind, size_t index,
                            const struct large_page *page)
{
    struct tlb_entry *entry = &mmu->entries[kind][index];

    if (entry->read_tag - page->start < page->bytes)
        clear_entry(entry, index);
}

static void flush_list(struct soft_mmu *mmu, size_t kind, bool global,
                       const struct large_page *page)
{
    const struct tlb_fills *fills = &mmu->fills[kind][global];

    for (size_t i = 0; i < fills->count; i++)
        flush_if_within(mmu, kind, fills->index[i], page);
}

static void flush_large(struct soft_cpu *cpu, uint64_t linear, uint64_t page_bytes)
{
    const struct large_page page = {align_down(linear, page_bytes), page_bytes};
    const size_t indices = min_u64(page_bytes / X86_PAGE_BYTES, TLB_ENTRIES);
    const size_t first = page.start >> 12;
    struct soft_mmu *mmu = cpu->mmu;

    block_cache_forget_addresses(cpu);
    for (size_t kind = 0; kind < TLB_KINDS; kind++) {
        const struct tlb_fills *fills = mmu->fills[kind];

        if (is_complete(&fills[false]) && is_complete(&fills[true])) {
            flush_list(mmu, kind, false, &page);
            flush_list(mmu, kind, true, &page);
        } else {
            for (size_t i = 0; i < indices; i++)
                flush_if_within(mmu, kind, (first + i) & (TLB_ENTRIES - 1), &page);
        }
    }
}

void soft_tlb_flush_page(struct soft_cpu *cpu, uint64_t linear)
{
    static const uint64_t large_sizes[] = {2 * MIB, 4 * MIB, GIB};
    struct soft_mmu *mmu = cpu->mmu;
    size_t index = (linear >> 12) & (TLB_ENTRIES - 1);

    if (was_fetched(mmu, linear))
        block_cache_forget_addresses(cpu);
    for (size_t kind = 0; kind < TLB_KINDS; kind++)
        clear_entry(&mmu->entries[kind][index], index);
    for (size_t i = 0; i < ARRAY_SIZE(large_sizes); i++)
        if (large_seen(mmu, linear, large_sizes[i]))
            flush_large(cpu, linear, large_sizes[i]);
}

/* Entries do not say what key they have: where one in use changes, all go. Programs that
 * use keys have few pages under those that change. */
void soft_set_key_rights(struct soft_cpu *cpu, bool user, uint32_t rights)
{
    uint32_t changed = cpu->key_rights[user] ^ rights;
    uint32_t in_use = cpu->mmu->keys >> (user ? USER_KEYS : 0);
    bool stale = false;

    for (unsigned key = 0; key < USER_KEYS; key++)
        if ((changed >> 2 * key & 3) != 0 && (in_use >> key & 1) != 0)
            stale = true;
    cpu->key_rights[user] = rights;
    if (stale)
        soft_tlb_flush_all(cpu);
}

void soft_tlb_protect_code(struct soft_cpu *cpu, uint64_t gpa)
{
    uint8_t *page = soft_vm_page(cpu->vm, gpa);
    struct soft_mmu *mmu = cpu->mmu;

    for (size_t kind = 0; kind < TLB_FETCH_SUPERVISOR; kind++) {
        if (!is_filled(mmu, kind))
            continue;
        for (size_t index = 0; index < TLB_ENTRIES; index++) {
            struct tlb_entry *entry = &mmu->entries[kind][index];

            if ((uint64_t)(uintptr_t)page - entry->addend == entry->write_tag)
                entry->write_tag = TLB_NO_TAG(index);
        }
    }
}
