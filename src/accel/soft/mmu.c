/* SPDX-License-Identifier: Apache-2.0 */
/* Page walks; see mmu_private.h. */
#include "accel/soft/mmu_private.h"

#include "accel/soft/instruction_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/check_private.h"

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

    if (page == NULL)
        return NULL;
    page += gpa % X86_PAGE_BYTES;
    return walk->cpu->is_shadow ? lockstep_view(walk->cpu, page, false) : page;
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
    if (walk->cpu->is_shadow)
        at = lockstep_view(walk->cpu,
                           soft_vm_page(walk->cpu->vm, gpa) + gpa % X86_PAGE_BYTES, true);
    if (walk->format->entry_bytes == 8) {
        done =
            atomic_compare_exchange_strong((_Atomic uint64_t *)at, &entry, entry | bits);
    } else {
        uint32_t expected = (uint32_t)entry;

        done = atomic_compare_exchange_strong((_Atomic uint32_t *)at, &expected,
                                              expected | (uint32_t)bits);
    }
    if (done && !walk->cpu->is_shadow && code_pages_has(&walk->cpu->vm->code_pages, gpa))
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

/* Protection keys: two bits each in PKRU and PKRS (SDM 2.7). */
#define KEY_SHIFT 59
#define KEY_NO_ACCESS 0x1u
#define KEY_NO_WRITE 0x2u

/* SDM 4.6.2: data has a key, one of PKRU's where user mode may use the address, else one
 * of PKRS', whoever accesses it. */
static bool has_key(const struct walk *walk, struct rights rights)
{
    uint64_t enabled = walk->cpu->cr4 & (rights.user ? X86_CR4_PKE : X86_CR4_PKS);

    return enabled != 0 && walk->access != ACCESS_EXECUTE &&
           walk->format == &format_4level;
}

static unsigned key_of(uint64_t entry)
{
    return (unsigned)(entry >> KEY_SHIFT & 0xf);
}

/* What the key of `entry`, in which a walk has ended, forbids. */
static uint32_t key_refuses(const struct walk *walk, struct rights rights, uint64_t entry)
{
    bool ignores_no_write = !walk_is_user(walk) && (walk->cpu->cr0 & X86_CR0_WP) == 0;
    uint32_t refused = 0;

    if (has_key(walk, rights))
        refused = walk->cpu->key_rights[rights.user] >> 2 * key_of(entry) &
                  (KEY_NO_ACCESS | KEY_NO_WRITE);
    return ignores_no_write ? refused & ~KEY_NO_WRITE : refused;
}

static bool is_refused(const struct walk *walk, uint32_t key_refused)
{
    return (key_refused & KEY_NO_ACCESS) != 0 ||
           (key_refused != 0 && walk->access == ACCESS_WRITE);
}

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
        uint32_t key_refused;

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
        key_refused = key_refuses(walk, rights, entry);
        if (is_refused(walk, key_refused))
            raise_walk(walk, X86_PF_PRESENT | X86_PF_KEY);
        if (!is_allowed(walk, rights))
            raise_walk(walk, X86_PF_PRESENT);
        if (walk->access == ACCESS_WRITE)
            bits |= X86_PTE_DIRTY;
        if (!entry_mark(walk, at, gpa, entry, bits))
            return false;
        *result = (struct translation){
            .gpa = page_address(walk, entry, UINT64_C(1) << shift),
            .page_bytes = UINT64_C(1) << shift,
            .writable = ((entry | bits) & X86_PTE_DIRTY) != 0 && key_refused == 0 &&
                        allows_write(walk, rights),
            .global =
                (entry & X86_PTE_GLOBAL) != 0 && (walk->cpu->cr4 & X86_CR4_PGE) != 0,
            .has_key = has_key(walk, rights),
            .key = key_of(entry) + (rights.user ? USER_KEYS : 0),
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

uint64_t soft_translate(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                        enum soft_access access, bool user)
{
    return mmu_walk(cpu, uop, linear, access, user ? TLB_USER : TLB_SUPERVISOR).gpa;
}
