/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest memory as instructions see it: linear addresses, current privilege, current
 * paging. The fast way is a TLB compare inline; everything else (miss, page crossing,
 * MMIO, code pages, faults) is in mmu.c. Each may raise and then does not return.
 *
 * Little-endian, any alignment. Ordering is the host's, which is the guest's (x86-TSO).
 */
#ifndef HUSK_SOFT_ACCESS_PRIVATE_H
#define HUSK_SOFT_ACCESS_PRIVATE_H

#include "accel/soft/cpu_private.h"

#define LIKELY(condition) __builtin_expect((condition) != 0, 1)

/* Host types that may alias guest memory. */
typedef uint8_t guest_u8 __attribute__((may_alias));
typedef uint16_t guest_u16 __attribute__((may_alias, aligned(1)));
typedef uint32_t guest_u32 __attribute__((may_alias, aligned(1)));
typedef uint64_t guest_u64 __attribute__((may_alias, aligned(1)));

static inline struct tlb_entry *soft_tlb_entry(const struct soft_cpu *cpu,
                                               uint64_t linear)
{
    return &cpu->tlb[(linear >> 12) & (TLB_ENTRIES - 1)];
}

/* The host address of `size` readable (writable) bytes, or NULL: take the slow way. */
static inline void *soft_readable(const struct soft_cpu *cpu, uint64_t linear,
                                  unsigned size)
{
    const struct tlb_entry *entry = soft_tlb_entry(cpu, linear);

    return LIKELY(linear - entry->read_tag <= X86_PAGE_BYTES - size)
               ? (void *)(uintptr_t)(entry->page + (linear - entry->read_tag))
               : NULL;
}
static inline void *soft_writable(const struct soft_cpu *cpu, uint64_t linear,
                                  unsigned size)
{
    const struct tlb_entry *entry = soft_tlb_entry(cpu, linear);

    return LIKELY(linear - entry->write_tag <= X86_PAGE_BYTES - size)
               ? (void *)(uintptr_t)(entry->page + (linear - entry->write_tag))
               : NULL;
}

/* For LOCK: the host address of `size` bytes to change in one atomic step, faults raised.
 * Pages with decoded code have one, too: the guest keeps locks beside code, and reuses
 * pages that once were code. NULL where there is none (devices, page crossings). */
void *soft_lockable_slow(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                         unsigned size);
void soft_lock_done_slow(struct soft_cpu *cpu);
static inline void *soft_lockable(struct soft_cpu *cpu, const struct uop *uop,
                                  uint64_t linear, unsigned size)
{
    void *host = soft_writable(cpu, linear, size);

    return LIKELY(host) ? host : soft_lockable_slow(cpu, uop, linear, size);
}
/* Behind the step, before anything else of the instruction can be left undone. */
static inline void soft_lock_done(struct soft_cpu *cpu)
{
    if (!LIKELY(cpu->locked.size == 0))
        soft_lock_done_slow(cpu);
}

/* The slow ways: size 1, 2, 4, 8. Any address; page crossing is checked whole before the
 * first byte moves. */
uint64_t soft_load_slow(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                        unsigned size);
void soft_store_slow(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                     unsigned size, uint64_t value);
/* First half of a read-modify-write: write permission is checked, then the value is read.
 * Complete with soft_store_slow, which cannot fault then. */
uint64_t soft_load_for_store_slow(struct soft_cpu *cpu, const struct uop *uop,
                                  uint64_t linear, unsigned size);

/* Blocks of bytes (16-byte operands, FXSAVE, descriptors...): all or nothing. */
void soft_load_bytes(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                     void *to, unsigned size);
void soft_store_bytes(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                      const void *from, unsigned size);

/* Raises what a later store of `size` bytes would raise. */
void soft_check_store(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                      unsigned size);

/* Accesses the processor makes for itself (descriptor tables, TSS, IDT, interrupt frames
 * on an inner stack): supervisor rights whatever CPL is. */
uint64_t soft_system_load(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                          unsigned size);
void soft_system_store(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                       unsigned size, uint64_t value);

#define SOFT_DEFINE_ACCESS(bits)                                                         \
    static inline uint##bits##_t soft_load##bits(struct soft_cpu *cpu,                   \
                                                 const struct uop *uop, uint64_t linear) \
    {                                                                                    \
        const guest_u##bits *from = soft_readable(cpu, linear, (bits) / 8);              \
                                                                                         \
        return LIKELY(from)                                                              \
                   ? *from                                                               \
                   : (uint##bits##_t)soft_load_slow(cpu, uop, linear, (bits) / 8);       \
    }                                                                                    \
    static inline void soft_store##bits(struct soft_cpu *cpu, const struct uop *uop,     \
                                        uint64_t linear, uint##bits##_t value)           \
    {                                                                                    \
        guest_u##bits *to = soft_writable(cpu, linear, (bits) / 8);                      \
                                                                                         \
        if (LIKELY(to))                                                                  \
            *to = value;                                                                 \
        else                                                                             \
            soft_store_slow(cpu, uop, linear, (bits) / 8, value);                        \
    }
SOFT_DEFINE_ACCESS(8)
SOFT_DEFINE_ACCESS(16)
SOFT_DEFINE_ACCESS(32)
SOFT_DEFINE_ACCESS(64)
#undef SOFT_DEFINE_ACCESS

/* ---- mmu.c: translations
 * --------------------------------------------------------------------- */

enum soft_access { ACCESS_READ, ACCESS_WRITE, ACCESS_EXECUTE };

/* Walks the page tables for `linear` (with A/D updates), raising a page fault with `uop`
 * where the access is not allowed. `user`: with user rights. Returns the guest-physical
 * address. */
uint64_t soft_translate(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                        enum soft_access access, bool user);

/* The guest-physical address of code at `linear`, with the rights of CPL; may raise. */
uint64_t soft_fetch_gpa(struct soft_cpu *cpu, uint64_t linear);

/* INVLPG; CR3 load (global entries stay); everything. */
void soft_tlb_flush_page(struct soft_cpu *cpu, uint64_t linear);
void soft_tlb_flush_non_global(struct soft_cpu *cpu);
void soft_tlb_flush_all(struct soft_cpu *cpu);

/* What the protection keys of user pages (PKRU), or of the others (PKRS), allow from now
 * on. */
void soft_set_key_rights(struct soft_cpu *cpu, bool user, uint32_t rights);

/* A page has become code: no vCPU may write to it the fast way any more. True if this one
 * could. */
bool soft_tlb_protect_code(struct soft_cpu *cpu, uint64_t gpa);
/* For each page that this vCPU may write to the fast way although it has code. */
void soft_tlb_visit_writable_code(struct soft_cpu *cpu,
                                  void (*visit)(struct soft_cpu *cpu, uint64_t gpa));

#endif
