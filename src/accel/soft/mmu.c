/* SPDX-License-Identifier: Apache-2.0 */
/* Page walks and TLBs; see mmu_private.h. */
#include "accel/soft/mmu_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "accel/soft/blocks_private.h"
#include "accel/soft/debug_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/soft_private.h"

/* tlb_entry.info */
#define ENTRY_GLOBAL 0x1u

/* ---- the walk
 * ---------------------------------------------------------------------------------- */

/* How one paging mode is laid out (SDM tables 4-1 and 4-2). */
struct paging_format {
    unsigned levels;
    unsigned entry_bytes;
    unsigned index_bits;
};

static const struct paging_format format_32bit = {2, 4, 10};
static const struct paging_format format_pae = {3, 8, 9};
static const struct paging_format format_4level = {4, 8, 9};

struct walk {
    struct soft_cpu *cpu;
    const struct uop *uop;
    uint64_t linear;
    enum soft_access access;
    enum tlb_kind kind;
    const struct paging_format *format;
};

static bool walk_is_user(const struct walk *walk)
{
    return walk->kind == TLB_USER;
}

static _Noreturn void raise_walk(const struct walk *walk, uint32_t reason)
{
    const struct soft_cpu *cpu = walk->cpu;
    uint32_t code = reason;

    if (walk->access == ACCESS_WRITE)
        code |= X86_PF_WRITE;
    if (walk_is_user(walk))
        code |= X86_PF_USER;
    /* SDM 4.7: the fetch bit needs a mode in which fetches can be told apart. */
    if (walk->access == ACCESS_EXECUTE &&
        (((cpu->cr4 & X86_CR4_PAE) != 0 && (cpu->efer & X86_EFER_NXE) != 0) ||
         (cpu->cr4 & X86_CR4_SMEP) != 0))
        code |= X86_PF_FETCH;
    soft_raise_page_fault(walk->cpu, walk->uop, walk->linear, code);
}

/* A page-table entry in guest memory, or NULL where there is no RAM: that reads as not
 * present. */
static void *entry_address(const struct walk *walk, uint64_t gpa)
{
    uint8_t *page = soft_vm_page(walk->cpu->vm, gpa);

    return page == NULL ? NULL : page + gpa % X86_PAGE_BYTES;
}

static uint64_t entry_load(const struct walk *walk, const void *at)
{
    if (at == NULL)
        return 0;
    return walk->format->entry_bytes == 8
               ? atomic_load_explicit((const _Atomic uint64_t *)at, memory_order_relaxed)
               : atomic_load_explicit((const _Atomic uint32_t *)at, memory_order_relaxed);
}

/* Sets accessed and dirty bits unless the entry has changed meanwhile. */
static bool entry_mark(const struct walk *walk, void *at, uint64_t gpa, uint64_t entry,
                       uint64_t bits)
{
    bool done;

    if ((entry & bits) == bits)
        return true;
    if (walk->format->entry_bytes == 8) {
        done =
            atomic_compare_exchange_strong((_Atomic uint64_t *)at, &entry, entry | bits);
    } else {
        uint32_t expected = (uint32_t)entry;

        done = atomic_compare_exchange_strong((_Atomic uint32_t *)at, &expected,
                                              expected | (uint32_t)bits);
    }
    if (done && code_pages_has(&walk->cpu->vm->code_pages, gpa))
        code_pages_written(walk->cpu, gpa, walk->format->entry_bytes);
    return done;
}

/* Bits that must be 0 in a present entry (SDM table 4-19 and figure 4-11). */
static uint64_t reserved_bits(const struct walk *walk, unsigned level, bool large)
{
    const struct soft_cpu *cpu = walk->cpu;
    uint64_t above_physical =
        UINT64_C(0x000fffffffffffff) & ~((UINT64_C(1) << SOFT_PHYSICAL_BITS) - 1);
    uint64_t reserved;

    if (walk->format->entry_bytes == 4)
        return large ? UINT64_C(0x00200000) : 0; /* PSE-36: 40 bits */
    if (walk->format == &format_pae && level == 3)
        return above_physical | UINT64_C(0xfff0000000000000) | 0x1e6;
    reserved = above_physical;
    if (walk->format == &format_pae)
        reserved |= UINT64_C(0x7ff0000000000000);
    if ((cpu->efer & X86_EFER_NXE) == 0)
        reserved |= X86_PTE_NO_EXECUTE;
    if (large)
        reserved |= (UINT64_C(1) << (12 + 9 * (level - 1))) - 1 - 0x1fff;
    if (level == 4)
        reserved |= X86_PTE_LARGE;
    return reserved;
}

static bool is_large(const struct walk *walk, unsigned level, uint64_t entry)
{
    if ((entry & X86_PTE_LARGE) == 0 || level == 1)
        return false;
    if (walk->format == &format_32bit)
        return (walk->cpu->cr4 & X86_CR4_PSE) != 0;
    return level == 2 || (level == 3 && walk->format == &format_4level);
}

/* What all levels together allow. */
struct rights {
    bool user;
    bool write;
    bool no_execute;
};

static bool allows_write(const struct walk *walk, struct rights rights)
{
    return rights.write || (!walk_is_user(walk) && (walk->cpu->cr0 & X86_CR0_WP) == 0);
}

/* SDM 4.6.1. */
static bool is_allowed(const struct walk *walk, struct rights rights)
{
    const struct soft_cpu *cpu = walk->cpu;

    if (walk_is_user(walk) && !rights.user)
        return false;
    if (walk->access == ACCESS_EXECUTE) {
        if (rights.no_execute)
            return false;
        return walk_is_user(walk) || !rights.user || (cpu->cr4 & X86_CR4_SMEP) == 0;
    }
    if (walk->kind == TLB_SUPERVISOR && rights.user && (cpu->cr4 & X86_CR4_SMAP) != 0)
        return false;
    return walk->access == ACCESS_READ || allows_write(walk, rights);
}

static uint64_t page_address(const struct walk *walk, uint64_t entry, uint64_t page_bytes)
{
    uint64_t base = entry & X86_PTE_ADDRESS & ~(page_bytes - 1);

    if (walk->format->entry_bytes == 4) {
        base = (uint32_t)entry & ~(page_bytes - 1) & UINT64_C(0xfffff000);
        if (page_bytes > X86_PAGE_BYTES)
            base |= (entry >> 13 & 0xff) << 32; /* PSE-36 */
    }
    return base | (walk->linear & (page_bytes - 1));
}

/* One try; false if an entry changed under it. */
static bool try_walk(const struct walk *walk, struct translation *result)
{
    const struct paging_format *format = walk->format;
    struct rights rights = {.user = true, .write = true};
    uint64_t table = walk->cpu->cr3 & (format->levels == 4     ? X86_PTE_ADDRESS
                                       : format == &format_pae ? UINT64_C(0xffffffe0)
                                                               : UINT64_C(0xfffff000));

    for (unsigned level = format->levels;; level--) {
        unsigned shift = 12 + format->index_bits * (level - 1);
        uint64_t index =
            walk->linear >> shift & ((UINT64_C(1) << format->index_bits) - 1);
        uint64_t gpa = table + index * format->entry_bytes;
        void *at = entry_address(walk, gpa);
        uint64_t entry = entry_load(walk, at);
        bool large = is_large(walk, level, entry);
        bool pointers = format == &format_pae && level == 3; /* PDPTEs carry no rights */
        uint64_t bits = X86_PTE_ACCESSED;

        if ((entry & X86_PTE_PRESENT) == 0)
            raise_walk(walk, 0);
        if ((entry & reserved_bits(walk, level, large)) != 0)
            raise_walk(walk, X86_PF_PRESENT | X86_PF_RESERVED);
        if (!pointers) {
            rights.user = rights.user && (entry & X86_PTE_USER) != 0;
            rights.write = rights.write && (entry & X86_PTE_WRITABLE) != 0;
            rights.no_execute = rights.no_execute || (format->entry_bytes == 8 &&
                                                      (entry & X86_PTE_NO_EXECUTE) != 0);
        }
        if (level > 1 && !large) {
            if (!pointers && !entry_mark(walk, at, gpa, entry, bits))
                return false;
            table = format->entry_bytes == 4 ? entry & UINT64_C(0xfffff000)
                                             : entry & X86_PTE_ADDRESS;
            continue;
        }
        if (!is_allowed(walk, rights))
            raise_walk(walk, X86_PF_PRESENT);
        if (walk->access == ACCESS_WRITE)
            bits |= X86_PTE_DIRTY;
        if (!entry_mark(walk, at, gpa, entry, bits))
            return false;
        *result = (struct translation){
            .gpa = page_address(walk, entry, UINT64_C(1) << shift),
            .page_bytes = UINT64_C(1) << shift,
            .writable =
                ((entry | bits) & X86_PTE_DIRTY) != 0 && allows_write(walk, rights),
            .global =
                (entry & X86_PTE_GLOBAL) != 0 && (walk->cpu->cr4 & X86_CR4_PGE) != 0,
        };
        return true;
    }
}

static bool is_canonical(uint64_t linear)
{
    return (uint64_t)((int64_t)(linear << 16) >> 16) == linear;
}

static const struct paging_format *paging_format(const struct soft_cpu *cpu)
{
    if ((cpu->efer & X86_EFER_LMA) != 0)
        return &format_4level;
    return (cpu->cr4 & X86_CR4_PAE) != 0 ? &format_pae : &format_32bit;
}

struct translation mmu_walk(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                            enum soft_access access, enum tlb_kind kind)
{
    struct walk walk = {cpu, uop, linear, access, kind, paging_format(cpu)};
    struct translation result;

    if ((cpu->cr0 & X86_CR0_PG) == 0)
        return (struct translation){
            .gpa = (uint32_t)linear, .page_bytes = X86_PAGE_BYTES, .writable = true};
    if (walk.format == &format_4level && !is_canonical(linear)) {
        bool stack = uop != NULL && uop->segment == X86_SS;

        soft_raise_code(cpu, uop, stack ? X86_VECTOR_SS : X86_VECTOR_GP, 0);
    }
    while (!try_walk(&walk, &result))
        continue;
    return result;
}

/* ---- TLBs
 * ---------------------------------------------------------------------------------------
 */

int soft_mmu_create(struct soft_cpu *cpu, struct error *err)
{
    cpu->mmu = aligned_alloc(64, align_up(sizeof(*cpu->mmu), 64));
    if (cpu->mmu == NULL)
        return error_set(err, -ENOMEM, "out of memory for the TLBs of vCPU %u",
                         cpu->index);
    soft_tlb_flush_all(cpu);
    return 0;
}

void soft_mmu_destroy(struct soft_cpu *cpu)
{
    free(cpu->mmu);
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

static void clear_entry(struct tlb_entry *entry, size_t index)
{
    *entry =
        (struct tlb_entry){.read_tag = TLB_NO_TAG(index), .write_tag = TLB_NO_TAG(index)};
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

static void note_fill(struct soft_mmu *mmu, enum tlb_kind kind, uint64_t linear,
                      const struct translation *translation)
{
    if (translation->page_bytes > X86_PAGE_BYTES) {
        unsigned bit = large_bit(linear, translation->page_bytes);

        mmu->large_pages[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    if (translation->global)
        return;
    if (mmu->fill_count[kind] < TLB_FILL_LIST)
        mmu->fills[kind][mmu->fill_count[kind]] =
            (uint16_t)((linear >> 12) & (TLB_ENTRIES - 1));
    if (mmu->fill_count[kind] <= TLB_FILL_LIST)
        mmu->fill_count[kind]++;
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

uint64_t soft_translate(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                        enum soft_access access, bool user)
{
    return mmu_walk(cpu, uop, linear, access, user ? TLB_USER : TLB_SUPERVISOR).gpa;
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

void soft_tlb_flush_all(struct soft_cpu *cpu)
{
    struct soft_mmu *mmu = cpu->mmu;

    for (size_t kind = 0; kind < TLB_KINDS; kind++)
        for (size_t index = 0; index < TLB_ENTRIES; index++)
            clear_entry(&mmu->entries[kind][index], index);
    memset(mmu->fill_count, 0, sizeof(mmu->fill_count));
    memset(mmu->large_pages, 0, sizeof(mmu->large_pages));
    block_cache_forget_addresses(cpu);
}

static void flush_unless_global(struct soft_mmu *mmu, size_t kind, size_t index)
{
    struct tlb_entry *entry = &mmu->entries[kind][index];

    if ((entry->info & ENTRY_GLOBAL) == 0)
        clear_entry(entry, index);
}

void soft_tlb_flush_non_global(struct soft_cpu *cpu)
{
    struct soft_mmu *mmu = cpu->mmu;
    bool fetched =
        mmu->fill_count[TLB_FETCH_SUPERVISOR] + mmu->fill_count[TLB_FETCH_USER] != 0;

    for (size_t kind = 0; kind < TLB_KINDS; kind++) {
        if (mmu->fill_count[kind] > TLB_FILL_LIST)
            for (size_t index = 0; index < TLB_ENTRIES; index++)
                flush_unless_global(mmu, kind, index);
        else
            for (size_t i = 0; i < mmu->fill_count[kind]; i++)
                flush_unless_global(mmu, kind, mmu->fills[kind][i]);
        mmu->fill_count[kind] = 0;
    }
    if (fetched)
        block_cache_forget_addresses(cpu);
}

static bool was_fetched(const struct soft_mmu *mmu, uint64_t linear)
{
    size_t index = (linear >> 12) & (TLB_ENTRIES - 1);

    return linear - mmu->entries[TLB_FETCH_SUPERVISOR][index].read_tag < X86_PAGE_BYTES ||
           linear - mmu->entries[TLB_FETCH_USER][index].read_tag < X86_PAGE_BYTES;
}

/* Drops every entry made from the large page around `linear`. */
static void flush_large(struct soft_cpu *cpu, uint64_t linear, uint64_t page_bytes)
{
    struct soft_mmu *mmu = cpu->mmu;
    uint64_t start = align_down(linear, page_bytes);

    block_cache_forget_addresses(cpu);
    for (size_t kind = 0; kind < TLB_KINDS; kind++)
        for (size_t index = 0; index < TLB_ENTRIES; index++)
            if (mmu->entries[kind][index].read_tag - start < page_bytes)
                clear_entry(&mmu->entries[kind][index], index);
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

void soft_tlb_protect_code(struct soft_cpu *cpu, uint64_t gpa)
{
    uint8_t *page = soft_vm_page(cpu->vm, gpa);
    struct soft_mmu *mmu = cpu->mmu;

    for (size_t kind = 0; kind < TLB_FETCH_SUPERVISOR; kind++)
        for (size_t index = 0; index < TLB_ENTRIES; index++) {
            struct tlb_entry *entry = &mmu->entries[kind][index];

            if ((uint64_t)(uintptr_t)page - entry->addend == entry->write_tag)
                entry->write_tag = TLB_NO_TAG(index);
        }
}
