/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The translator: blocks of 64-bit code as host code.
 *
 * Inside translated code the guest's registers are the host's, with the same numbers,
 * except that RSP is in R15, and that R10, R11 and R15 stay in soft_cpu.r (the host's R10
 * and R11 are free to use, its RSP is SOFT_FRAME). By GS it reaches struct soft_cpu, by
 * RSP the next 128 bytes of it. The guest's arithmetic flags are in one of three places:
 * enum flags_place.
 *
 * A block has two entries. Branches from its own page may come to `entry`, with flags
 * where `flags_in` says. All others come to `poll_entry`, with flags in the state: there
 * the code looks for attention.
 *
 * What code cannot do by itself it leaves to C by calling a thunk, behind whose call lies
 * the index of a site or a link: what C has to know. When C is called all registers are
 * in soft_cpu, so it may raise; it returns where to go on, or NULL to leave.
 *
 * All vCPUs of a VM run the same code: shared_private.h says how.
 */
#ifndef HUSK_SOFT_TRANSLATOR_PRIVATE_H
#define HUSK_SOFT_TRANSLATOR_PRIVATE_H

#include <pthread.h>

#include "accel/soft/blocks_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/translator/code_memory_private.h"

/* Where the guest's arithmetic flags are, at one place of the code. */
enum flags_place {
    FLAGS_NOWHERE, /* nobody will read them */
    FLAGS_HOST,    /* in the host's flags */
    FLAGS_STATE,   /* in soft_cpu.flags_packed */
};

enum site_flags {
    SITE_WRITE = 0x1,    /* it writes */
    SITE_WRITABLE = 0x2, /* code has looked for a page to write to */
    SITE_ALIGNED = 0x4,  /* to its size, or #GP, which comes before a page fault */
    SITE_SHARED = 0x8,   /* others have no check of their own: see emit_access.c */
    SITE_VECTORS = 0x10, /* what follows finds the host's vector registers loaded */
};

/* An instruction that may need C: for a TLB miss, or for all of its work. */
struct site {
    struct block *block;
    struct uop
        *_Atomic uops; /* the instruction for the interpreter, once it was needed */
    uint32_t retry;    /* where to go on when the TLB has the page */
    uint32_t next;     /* where the next instruction is; 0: by soft_cpu.rip. Or, of a
                        * shared check, the link to a careful block */
    uint16_t delta;    /* of its address from the block's */
    uint8_t length;
    uint8_t size;     /* of the access; 0: none, C does it all */
    uint8_t segment;  /* enum x86_segment_register */
    uint8_t distance; /* of the access from what was looked for: others are before it */
    uint8_t flags;    /* enum site_flags */
};

/* A branch to an address known when it was translated. */
struct link {
    uint64_t target;
    struct block *from;
    uint32_t branch_end;    /* behind the four bytes of its distance */
    uint32_t stub;          /* where it goes while it is not set */
    uint32_t place_at;      /* to another page: where its tlb_place is compared; else 0 */
    uint32_t next_incoming; /* of the block in the same page that it goes to */
    uint8_t flags;          /* enum flags_place */
    bool backward;          /* may close a loop */
    bool set;
};

/* Behind a call of a thunk are two bytes: the index of a site or link, less that of the
 * first one that a call in the same page of code memory has named. */
struct call_page {
    uint32_t first_site; /* 0: there is none yet */
    uint32_t first_link;
};
#define CODE_PAGE_SHIFT 12
/* A page has room for fewer calls; sites without one there are not many: see translate.c.
 */
typedef int16_t code_index;
#define CODE_INDEX_LIMIT INT16_MAX

/* What happened, since the start; beside struct translated_counters. */
struct translator_counters {
    _Atomic uint64_t blocks;
    _Atomic uint64_t instructions;
    _Atomic uint64_t code_bytes;
    _Atomic uint64_t nanoseconds; /* from some of the blocks: see translate.c */
    _Atomic uint64_t evictions;
};

/* The largest operand that must be aligned. */
#define CHECK_MAX_BYTES 16

/* One for all vCPUs. What is made once is only read; all else is under the lock. */
struct translator {
    pthread_mutex_t lock;
    struct block_cache *blocks;
    _Atomic uint64_t published; /* blocks: stored behind what was made for one */
    _Atomic uint64_t epoch;     /* how often all was dropped */
    _Atomic bool full;          /* all is to be dropped when no vCPU is inside */
    struct code_memory memory;
    struct site *sites;
    uint32_t site_count;
    struct link *links;
    uint32_t link_count;
    struct call_page *pages; /* of code memory */

    /* Thunks, by offset. */
    uint32_t enter;
    uint32_t slow;
    uint32_t shared;
    uint32_t step;
    uint32_t follow; /* a link; flags are in the state, or nowhere */
    uint32_t follow_host_flags;
    uint32_t leave;
    uint32_t vectors;
    uint32_t landing; /* an indirect branch, under the lockstep checker */
    /* Comparisons out of line: they make a good entry the copy that was wanted. Those of
     * a single push ([1]) or pop go on behind their site's name, or to `slow`. */
    uint32_t stack_tops[TLB_FETCH_SUPERVISOR][2];
    uint32_t stack_groups[TLB_FETCH_SUPERVISOR];
    uint32_t loop_pages[TLB_FETCH_SUPERVISOR][2][LOOP_PAGES];

    struct translator_counters counters;
};

#define TRANSLATOR_CODE_BYTES (32u << 20)
#define TRANSLATOR_PAGES (TRANSLATOR_CODE_BYTES >> CODE_PAGE_SHIFT)
#define TRANSLATOR_SITES (1u << 20)
#define TRANSLATOR_LINKS (1u << 19)

int translator_create(struct translator **translator, uint32_t code_bytes,
                      struct error *err) MUST_CHECK;
void translator_destroy(struct translator *translator); /* accepts NULL */

/* Runs translated code from cpu->rip on until something wants the run loop. False: there
 * is no translation for that place; it is the interpreter's. */
bool translator_run(struct soft_cpu *cpu);

/* True if code of this mode is translated. */
static inline bool translator_serves(const struct soft_cpu *cpu)
{
    return cpu->translator != NULL && (cpu->mode & MODE_CODE64) != 0;
}

/* ---- for blocks.c ---- */

/* With the lock held: whoever comes to a stale block's code from now on looks again. */
void translation_make_stale(struct translator *translator, struct block *block);

/* [gpa, gpa + size), inside one page, was written. Any thread; without a translator
 * nothing is done. */
void translation_written(struct soft_vm *vm, uint64_t gpa, unsigned size);

/* What all vCPUs have counted. Any thread. */
void translator_read_counters(const struct soft_vm *vm,
                              struct accel_translations *translations);

/* Where code is has changed: of the upper half of the address space, too, or only of the
 * lower. The jump cache forgets it. */
void translator_forget(struct soft_cpu *cpu, bool upper_half);

/* ---- for the VM ---- */

/* All translations are gone, and their memory is the host's. While no vCPU runs. Accepts
 * NULL. */
void translator_release(struct soft_vm *vm, struct translator *translator);
/* What it has in use. Any thread. Accepts NULL: 0. */
uint64_t translator_bytes(struct translator *translator);

/* ---- what thunks call (serve.c) ---- */

/* `place`: behind the call, where the index is. */
typedef const uint8_t *translator_service(struct soft_cpu *cpu, const uint8_t *place);
translator_service serve_slow;    /* a site's TLB check has failed */
translator_service serve_shared;  /* ... on which other accesses depend */
translator_service serve_step;    /* a site's instruction is the interpreter's */
translator_service serve_follow;  /* a link is not set */
translator_service serve_leave;   /* attention, or a site's block is stale */
translator_service serve_vectors; /* a site's block wants the vector registers */
translator_service serve_landing; /* the lockstep checker's, of indirect branches */

/* thunks.c: emits the thunks into empty code memory. */
void thunks_emit(struct translator *translator);

typedef void translator_entry(struct soft_cpu *cpu, const uint8_t *code);

/* ---- links.c ---- */

/* Aims the link at `to`, which was found for it, if it can be. */
void link_set(struct soft_cpu *cpu, uint32_t index, struct block *to);

/* Whoever comes to the stale block `from` goes on to `to`, which was found there. */
void translation_send_on(struct soft_cpu *cpu, const struct block *from,
                         const struct block *to);

#endif
