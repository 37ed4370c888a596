/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paging: the page walk, and the TLBs that remember its results.
 */
#ifndef HUSK_SOFT_MMU_PRIVATE_H
#define HUSK_SOFT_MMU_PRIVATE_H

#include "accel/soft/access_private.h"

/* CPUID 0x80000008: what fits into a page-table entry's address. */
#define SOFT_PHYSICAL_BITS 46

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
