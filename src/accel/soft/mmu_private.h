/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paging: the page walk, and the TLBs that remember its results.
 *
 * Three TLBs for data, so that whether an access is allowed follows from an entry being
 * there: supervisor accesses, user accesses, and supervisor accesses that may touch user
 * pages although SMAP is on (RFLAGS.AC). All hold 4 KiB translations; large pages are
 * entered in pieces. Two more hold where instructions were fetched from; block_lookup
 * knows only pages that are in these.
 */
#ifndef HUSK_SOFT_MMU_PRIVATE_H
#define HUSK_SOFT_MMU_PRIVATE_H

#include "accel/soft/access_private.h"

/* CPUID 0x80000008: what fits into a page-table entry's address. */
#define SOFT_PHYSICAL_BITS 46

enum tlb_kind {
    TLB_SUPERVISOR,
    TLB_USER,
    TLB_SUPERVISOR_AC,
    TLB_FETCH_SUPERVISOR,
    TLB_FETCH_USER,
    TLB_KINDS
};

/* Entries made since the last flush, so that one need not look at all. */
#define TLB_FILL_LIST 1024
struct tlb_fills {
    uint32_t count; /* > TLB_FILL_LIST: the list is incomplete */
    uint16_t index[TLB_FILL_LIST];
};

/* A Bloom filter over the large pages that entries were made from; INVLPG drops the whole
 * page. */
#define TLB_LARGE_BITS 1024

struct soft_mmu {
    struct tlb_entry entries[TLB_KINDS][TLB_ENTRIES];
    struct tlb_fills fills[TLB_KINDS][2]; /* not global, global */
    uint64_t large_pages[TLB_LARGE_BITS / 64];
    uint32_t keys; /* of pages that entries were made from: bits as `key` counts */
};

#define USER_KEYS 16

/* What a walk found. */
struct translation {
    uint64_t gpa;        /* of the byte asked for */
    uint64_t page_bytes; /* 4 KiB, 2 or 4 MiB, 1 GiB */
    bool writable; /* for this privilege, dirty bit set: writes need no further walk */
    bool global;
    bool has_key; /* a protection key counts: one of PKRS, or USER_KEYS + one of PKRU */
    unsigned key;
};

/* Walks for one access. Raises #PF, or #GP/#SS for a non-canonical address. `kind`: whose
 * rights. */
struct translation mmu_walk(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                            enum soft_access access, enum tlb_kind kind);

/* The TLB in force: by CPL, and RFLAGS.AC under SMAP. */
enum tlb_kind mmu_kind(const struct soft_cpu *cpu);

/* The host address of RAM that `linear` translates to, entered into the TLB of `kind`;
 * NULL where it is no RAM (*gpa then says what). */
uint8_t *mmu_fill(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                  enum soft_access access, enum tlb_kind kind, uint64_t *gpa);

#endif
