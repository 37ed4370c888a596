/* SPDX-License-Identifier: Apache-2.0 */
/* The lockstep checker's shadow processor; see check_private.h. */
#ifndef HUSK_SOFT_CHECK_SHADOW_PRIVATE_H
#define HUSK_SOFT_CHECK_SHADOW_PRIVATE_H

#include "accel/soft/blocks_private.h"
#include "accel/soft/translator/check_private.h"

/* Pages that the instructions of one block write to; more, and it is not checked. */
#define SHADOW_PAGES 32

struct lockstep {
    struct soft_cpu *shadow;
    const struct soft_cpu *cpu;
    const struct block *block; /* in progress; NULL: none that is checked */
    const struct block
        *ahead;             /* where the shadow has ended: of its pieces, the next one */
    bool faulted;           /* the shadow has, by its `fault` */
    bool landing;           /* the jump cache leads to where the shadow is */
    bool missed;            /* but the block has not found that */
    uint32_t every;         /* this many blocks */
    uint32_t left;          /* to the next that is checked */
    uint64_t device_writes; /* of the VM, before the block */
    uint64_t registers[X86_REGISTER_COUNT]; /* before the block */
    uint64_t compared;                      /* blocks */
    uint64_t given_up;                      /* blocks that were to be, but could not */
    struct error failure;
    size_t page_count;
    const uint8_t *originals[SHADOW_PAGES];
    /* Aligned as pages are: CMPXCHG16B and others depend on it. */
    uint8_t copies[SHADOW_PAGES][X86_PAGE_BYTES] __attribute__((aligned(X86_PAGE_BYTES)));
};

/* What differs first. */
struct difference {
    char what[64];
    uint64_t translated;
    uint64_t interpreted;
};

/* check_shadow.c */
struct soft_cpu *shadow_create(void); /* NULL: out of memory */
void shadow_destroy(struct soft_cpu *shadow);
/* The shadow does the block's instructions. False: that cannot be checked. */
bool shadow_run(struct lockstep *lockstep);
/* Arithmetic flags that are undefined where the shadow has ended. */
unsigned shadow_undefined_flags(const struct lockstep *lockstep);

/* check_compare.c */
bool lockstep_differs(const struct lockstep *lockstep, bool faulted,
                      struct difference *difference);

/* check_report.c: the message, and details to the log. */
void lockstep_report(struct lockstep *lockstep, const struct difference *difference);

#endif
