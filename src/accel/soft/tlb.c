/* SPDX-License-Identifier: Apache-2.0 */
/* TLBs: entered, looked up where the fast way does not, emptied; see mmu_private.h. */
#include <string.h>

#include "accel/soft/blocks_private.h"
#include "accel/soft/debug_private.h"
#include "accel/soft/mmu_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/check_private.h"

/* tlb_entry.info */
#define ENTRY_GLOBAL 0x1u

/* Whatever takes an entry away, or its write tag, takes these. */
static void forget_copies(struct soft_mmu *mmu)
{
    for (size_t kind = 0; kind < ARRAY_SIZE(mmu->stack_pages); kind++) {
        mmu->stack_pages[kind].limit = 0;
        for (size_t slot = 0; slot < LOOP_PAGES; slot++) {
            mmu->loop_pages[kind][false][slot].limit = 0;
            mmu->loop_pages[kind][true][slot].limit = 0;
        }
    }
}

static void forget_copy(struct page_copy *copy, uint64_t tag)
{
    if (copy->tag == tag)
        copy->limit = 0;
}

/* What makes place for another page takes its copy along: who looks for pages that may be
 * written to, looks at the entries. */
static void replace_entry(struct soft_mmu *mmu, enum tlb_kind kind, size_t index,
                          struct tlb_entry with)
{
    const struct tlb_entry *entry = &mmu->entries[kind][index];

    if (kind < TLB_FETCH_SUPERVISOR) {
        forget_copy(&mmu->stack_pages[kind], entry->write_tag);
        for (size_t slot = 0; slot < LOOP_PAGES; slot++) {
            forget_copy(&mmu->loop_pages[kind][false][slot], entry->read_tag);
            forget_copy(&mmu->loop_pages[kind][true][slot], entry->write_tag);
        }
    }
    mmu->entries[kind][index] = with;
}

static void clear_entry(struct tlb_entry *entry, size_t index)
{
    *entry =
        (struct tlb_entry){.read_tag = TLB_NO_TAG(index), .write_tag = TLB_NO_TAG(index)};
}

/* A fresh soft_cpu is zero, and so are nearly all empty entries: what a guest does not
 * use of its TLBs costs neither time nor memory. */
void soft_mmu_init(struct soft_cpu *cpu)
{
    for (size_t kind = 0; kind < TLB_KINDS; kind++)
        clear_entry(&cpu->mmu.entries[kind][0], 0);
}

enum tlb_kind mmu_kind(const struct soft_cpu *cpu)
{
    if (cpu->cpl == 3)
        return TLB_USER;
    if ((cpu->cr4 & X86_CR4_SMAP) != 0 && (cpu->flags_system & X86_FLAGS_AC) != 0)
        return TLB_SUPERVISOR_AC;
    return TLB_SUPERVISOR;
}

struct tlb_entry *soft_mmu_tlb(struct soft_cpu *cpu)
{
    return cpu->mmu.entries[mmu_kind(cpu)];
}

static unsigned large_bit(uint64_t linear, uint64_t page_bytes)
{
    uint64_t page = linear / page_bytes + (page_bytes == GIB ? 7 : 0);

    return (unsigned)((page * UINT64_C(0x9e3779b97f4a7c15)) >> 51); /* thirteen bits */
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
    struct translation translation;
    struct tlb_entry entry;
    uint8_t *page;
    size_t index = (linear >> 12) & (TLB_ENTRIES - 1);
    uint64_t tag = align_down(linear, X86_PAGE_BYTES);

    if (cpu->is_shadow) {
        *gpa = 0; /* it is always RAM */
        return lockstep_access(cpu, uop, linear, access, kind);
    }
    translation = mmu_walk(cpu, uop, linear, access, kind);
    code_pages_settle(cpu);
    page = soft_vm_page(cpu->vm, translation.gpa);
    *gpa = translation.gpa;
    if (page == NULL)
        return NULL;
    if (debug_watches_page(cpu, linear))
        return page + linear % X86_PAGE_BYTES;
    entry = (struct tlb_entry){
        .read_tag = tag,
        .write_tag =
            translation.writable && !code_pages_has(&cpu->vm->code_pages, translation.gpa)
                ? tag
                : TLB_NO_TAG(index),
        .page = (uint64_t)(uintptr_t)page,
        .info = translation.global ? ENTRY_GLOBAL : 0,
    };
    replace_entry(&cpu->mmu, kind, index, entry);
    note_fill(&cpu->mmu, kind, linear, &translation);
    return page + linear % X86_PAGE_BYTES;
}

/* An entry that makes place for another page takes what block_lookup knows with it. */
static void fill_fetch(struct soft_cpu *cpu, uint64_t linear,
                       const struct translation *translation, enum tlb_kind kind)
{
    size_t index = (linear >> 12) & (TLB_ENTRIES - 1);
    struct tlb_entry *entry = &cpu->mmu.entries[kind][index];
    uint64_t tag = align_down(linear, X86_PAGE_BYTES);

    if (entry->read_tag != TLB_NO_TAG(index))
        block_cache_forget_addresses(cpu);
    *entry = (struct tlb_entry){
        .read_tag = tag,
        .place = tlb_place(linear, translation->gpa),
        .page = align_down(translation->gpa, X86_PAGE_BYTES),
        .info = translation->global ? ENTRY_GLOBAL : 0,
    };
    note_fill(&cpu->mmu, kind, linear, translation);
}

uint64_t soft_fetch_gpa(struct soft_cpu *cpu, uint64_t linear)
{
    bool user = cpu->cpl == 3;
    enum tlb_kind kind = user ? TLB_FETCH_USER : TLB_FETCH_SUPERVISOR;
    const struct tlb_entry *entry =
        &cpu->mmu.entries[kind][(linear >> 12) & (TLB_ENTRIES - 1)];
    struct translation translation;

    if (LIKELY(linear - entry->read_tag < X86_PAGE_BYTES))
        return entry->page + (linear - entry->read_tag);
    translation =
        mmu_walk(cpu, NULL, linear, ACCESS_EXECUTE, user ? TLB_USER : TLB_SUPERVISOR);
    fill_fetch(cpu, linear, &translation, kind);
    return translation.gpa;
}

/* ---- flushes
 * -------------------------------------------------------------------------------------
 */

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
    struct soft_mmu *mmu = &cpu->mmu;

    code_pages_settle(cpu);
    forget_copies(mmu);
    for (size_t kind = 0; kind < TLB_KINDS; kind++) {
        flush_fills(mmu, kind, false);
        flush_fills(mmu, kind, true);
    }
    memset(mmu->large_pages, 0, sizeof(mmu->large_pages));
    mmu->keys = 0;
    block_cache_forget_addresses(cpu);
}

/* Code in the upper half of the address space that is not global: a kernel's seldom is.
 */
static bool has_upper_code(const struct soft_mmu *mmu)
{
    for (size_t kind = TLB_FETCH_SUPERVISOR; kind <= TLB_FETCH_USER; kind++) {
        const struct tlb_fills *fills = &mmu->fills[kind][false];

        if (!is_complete(fills))
            return true;
        for (size_t i = 0; i < fills->count; i++)
            if (mmu->entries[kind][fills->index[i]].read_tag >> 63 != 0)
                return true;
    }
    return false;
}

void soft_tlb_flush_non_global(struct soft_cpu *cpu)
{
    struct soft_mmu *mmu = &cpu->mmu;
    bool fetched = mmu->fills[TLB_FETCH_SUPERVISOR][false].count != 0 ||
                   mmu->fills[TLB_FETCH_USER][false].count != 0;
    bool upper = has_upper_code(mmu);

    code_pages_settle(cpu);
    forget_copies(mmu);
    for (size_t kind = 0; kind < TLB_KINDS; kind++)
        flush_fills(mmu, kind, false);
    if (upper)
        block_cache_forget_addresses(cpu);
    else if (fetched)
        block_cache_forget_lower_addresses(cpu);
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

/* True if the entry was of the page. */
static bool flush_if_within(struct soft_mmu *mmu, size_t kind, size_t index,
                            const struct large_page *page)
{
    struct tlb_entry *entry = &mmu->entries[kind][index];

    if (entry->read_tag - page->start >= page->bytes)
        return false;
    clear_entry(entry, index);
    return true;
}

static bool flush_list(struct soft_mmu *mmu, size_t kind, bool global,
                       const struct large_page *page)
{
    const struct tlb_fills *fills = &mmu->fills[kind][global];
    bool any = false;

    for (size_t i = 0; i < fills->count; i++)
        any |= flush_if_within(mmu, kind, fills->index[i], page);
    return any;
}

static bool has_lists(const struct soft_mmu *mmu, size_t kind)
{
    return is_complete(&mmu->fills[kind][false]) && is_complete(&mmu->fills[kind][true]);
}

/* True if there were entries of the page. */
static bool flush_kind(struct soft_mmu *mmu, size_t kind, const struct large_page *page)
{
    const size_t indices = min_u64(page->bytes / X86_PAGE_BYTES, TLB_ENTRIES);
    const size_t first = page->start >> 12;
    bool any = false;

    if (has_lists(mmu, kind)) {
        any = flush_list(mmu, kind, false, page);
        return flush_list(mmu, kind, true, page) || any;
    }
    for (size_t i = 0; i < indices; i++)
        any |= flush_if_within(mmu, kind, (first + i) & (TLB_ENTRIES - 1), page);
    return any;
}

static void flush_large(struct soft_cpu *cpu, uint64_t linear, uint64_t page_bytes)
{
    const struct large_page page = {align_down(linear, page_bytes), page_bytes};
    bool code = false;

    for (size_t kind = 0; kind < TLB_KINDS; kind++)
        if (flush_kind(&cpu->mmu, kind, &page) && kind >= TLB_FETCH_SUPERVISOR)
            code = true;
    if (code)
        block_cache_forget_addresses(cpu);
}

void soft_tlb_flush_page(struct soft_cpu *cpu, uint64_t linear)
{
    static const uint64_t large_sizes[] = {2 * MIB, 4 * MIB, GIB};
    struct soft_mmu *mmu = &cpu->mmu;
    size_t index = (linear >> 12) & (TLB_ENTRIES - 1);

    code_pages_settle(cpu);
    forget_copies(mmu);
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
    uint32_t in_use = cpu->mmu.keys >> (user ? USER_KEYS : 0);
    bool stale = false;

    for (unsigned key = 0; key < USER_KEYS; key++)
        if ((changed >> 2 * key & 3) != 0 && (in_use >> key & 1) != 0)
            stale = true;
    cpu->key_rights[user] = rights;
    if (stale)
        soft_tlb_flush_all(cpu);
}

/* True if the entry was there, to write. */
static bool protect(struct soft_mmu *mmu, size_t kind, size_t index, uint64_t page)
{
    struct tlb_entry *entry = &mmu->entries[kind][index];

    if (entry->page != page || entry->write_tag == TLB_NO_TAG(index))
        return false;
    entry->write_tag = TLB_NO_TAG(index);
    return true;
}

static bool protect_kind(struct soft_mmu *mmu, size_t kind, uint64_t page)
{
    bool any = false;

    if (!has_lists(mmu, kind)) {
        for (size_t index = 0; index < TLB_ENTRIES; index++)
            any |= protect(mmu, kind, index, page);
        return any;
    }
    for (size_t global = 0; global < 2; global++) {
        const struct tlb_fills *fills = &mmu->fills[kind][global];

        for (size_t i = 0; i < fills->count; i++)
            any |= protect(mmu, kind, fills->index[i], page);
    }
    return any;
}

bool soft_tlb_protect_code(struct soft_cpu *cpu, uint64_t gpa)
{
    uint64_t page = (uint64_t)(uintptr_t)soft_vm_page(cpu->vm, gpa);
    bool any = false;

    forget_copies(&cpu->mmu);
    for (size_t kind = 0; kind < TLB_FETCH_SUPERVISOR; kind++)
        any |= protect_kind(&cpu->mmu, kind, page);
    return any;
}

void soft_tlb_visit_writable_code(struct soft_cpu *cpu,
                                  void (*visit)(struct soft_cpu *cpu, uint64_t gpa))
{
    const uint64_t base = (uint64_t)(uintptr_t)cpu->vm->memory_base;

    for (size_t kind = 0; kind < TLB_FETCH_SUPERVISOR; kind++)
        for (size_t index = 0; index < TLB_ENTRIES; index++) {
            const struct tlb_entry *entry = &cpu->mmu.entries[kind][index];

            if (entry->write_tag != TLB_NO_TAG(index) &&
                code_pages_has(&cpu->vm->code_pages, entry->page - base))
                visit(cpu, entry->page - base);
        }
}
