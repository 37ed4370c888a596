/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One cache of translations for all vCPUs of a VM.
 *
 * Code names no vCPU: what differs between them it finds through GS. So a block is the
 * same for all who come to it by the same physical address, rip and mode. Each vCPU has
 * its own jump cache and TLBs; a branch to another page asks the TLB of who runs it
 * whether the page is where the target was found (emit_exit.c).
 *
 * One lock guards all that changes: making blocks, links, staleness, emptying. Finding a
 * block needs none: blocks are complete before they can be found, and what is dropped
 * stays as it is until all is emptied, when nobody is inside. The lock is
 * never held while a walk of page tables may raise, or anything waits. Where an
 * instruction is, and the page that it crosses into, is therefore found out before.
 *
 * Whoever writes to code makes its blocks stale at once, for all vCPUs. Others may finish
 * the block that they are in (code_pages_private.h).
 *
 * When memory is full, all of it is emptied, but others may be inside: in translated
 * code, or in C that it has called. Nobody waits for them. Memory is marked full, all are
 * asked to look around, and nobody goes inside any more; who would, interprets. The next
 * one to find that all are outside empties it. So a vCPU that sleeps, is paused or is at
 * work in a device delays nothing but the translator.
 */
#ifndef HUSK_SOFT_SHARED_PRIVATE_H
#define HUSK_SOFT_SHARED_PRIVATE_H

#include <string.h>

#include "accel/soft/translator/translator_private.h"

void translator_lock(struct translator *translator);
void translator_unlock(struct translator *translator);

/* False: not now. The vCPU is inside until it leaves, and what it finds there stays. */
bool translator_enter(struct soft_cpu *cpu);
void translator_leave(struct soft_cpu *cpu); /* may be outside already */

/* The block at cpu->rip, perhaps one without code, or NULL: memory is full. May raise. */
struct block *translation_find(struct soft_cpu *cpu);
/* The same, where each access has a check of its own: when one for several has failed. */
struct block *translation_find_careful(struct soft_cpu *cpu);

/* Memory is full: see above. With the lock held. */
void translator_ask_to_empty(struct soft_cpu *cpu);

/* With the lock held, nobody inside: all is gone, and, the memory being empty, its pages
 * are the host's. */
void translator_empty(struct soft_vm *vm, struct translator *translator);
void translator_give_back(struct soft_vm *vm, struct translator *translator);

/* Where an instruction lies that is to be translated. */
struct block_place {
    uint64_t gpa;
    uint64_t next_gpa; /* as in struct block */
};

/* Translates the block at cpu->rip, as block_build does for the interpreter; with the
 * lock held. NULL: memory is full, or, as *moved says, what is there now lies elsewhere.
 */
struct block *translate_block(struct soft_cpu *cpu, const struct block_place *place,
                              uint32_t mode, bool *moved);

/* The page of code with a call's `place` behind it. What was made for it before is seen.
 */
static inline const struct call_page *translator_page(struct translator *translator,
                                                      const uint8_t *place)
{
    const size_t offset = (size_t)(place - translator->memory.executable);

    (void)atomic_load_explicit(&translator->published, memory_order_acquire);
    return &translator->pages[offset >> CODE_PAGE_SHIFT];
}

static inline uint32_t translator_index(uint32_t first, const uint8_t *place)
{
    code_index distance;

    memcpy(&distance, place, sizeof(distance));
    return (uint32_t)((int64_t)first + distance);
}

/* The site or link that code has named. */
static inline struct site *translator_site(struct translator *translator,
                                           const uint8_t *place)
{
    const struct call_page *page = translator_page(translator, place);

    return &translator->sites[translator_index(page->first_site, place)];
}
static inline uint32_t translator_link(struct translator *translator,
                                       const uint8_t *place)
{
    const struct call_page *page = translator_page(translator, place);

    return translator_index(page->first_link, place);
}

#endif
