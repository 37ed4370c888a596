/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lockstep checker's shadow: a processor of the interpreter, a copy of the real one
 * but for its TLBs, which stay empty. So each of its accesses comes to lockstep_access.
 */
#include <string.h>
#include <sys/mman.h>

#include "accel/soft/draft_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/mmu_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/check_shadow_private.h"
#include "accel/soft/translator/translator_private.h"
#include "base/check.h"

/* How soft_cpu.unwind of a shadow is left, beside enum soft_unwind. */
#define UNWIND_NOT_CHECKED 16

struct soft_cpu *shadow_create(void)
{
    struct soft_cpu *shadow = mmap(NULL, sizeof(*shadow), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (shadow == MAP_FAILED)
        return NULL;
    soft_mmu_init(shadow);
    return shadow;
}

void shadow_destroy(struct soft_cpu *shadow)
{
    if (shadow != NULL)
        (void)munmap(shadow, sizeof(*shadow));
}

/* ---- memory ---- */

static uint8_t *find_page(struct lockstep *lockstep, uint8_t *page, bool writes)
{
    size_t i = 0;

    while (i < lockstep->page_count && lockstep->originals[i] != page)
        i++;
    if (i < lockstep->page_count)
        return lockstep->copies[i];
    if (!writes)
        return page;
    if (i == SHADOW_PAGES)
        longjmp(lockstep->shadow->unwind, UNWIND_NOT_CHECKED);
    lockstep->page_count++;
    lockstep->originals[i] = page;
    memcpy(lockstep->copies[i], page, X86_PAGE_BYTES);
    return lockstep->copies[i];
}

void *lockstep_view(struct soft_cpu *shadow, void *at, bool writes)
{
    uint64_t offset = (uintptr_t)at % X86_PAGE_BYTES;

    return find_page(shadow->lockstep, (uint8_t *)at - offset, writes) + offset;
}

/* What the real processor's TLB knows counts, as it will there. */
uint8_t *lockstep_access(struct soft_cpu *shadow, const struct uop *uop, uint64_t linear,
                         enum soft_access access, enum tlb_kind kind)
{
    struct lockstep *lockstep = shadow->lockstep;
    const struct tlb_entry *entry =
        &lockstep->cpu->mmu.entries[kind][(linear >> 12) % TLB_ENTRIES];
    uint64_t tag = access == ACCESS_WRITE ? entry->write_tag : entry->read_tag;
    uint64_t offset = linear % X86_PAGE_BYTES;
    uint8_t *page = (uint8_t *)(uintptr_t)entry->page;

    if (linear - tag >= X86_PAGE_BYTES)
        page = soft_vm_page(shadow->vm, mmu_walk(shadow, uop, linear, access, kind).gpa);
    if (page == NULL)
        longjmp(shadow->unwind, UNWIND_NOT_CHECKED); /* a device's */
    return find_page(lockstep, page, access == ACCESS_WRITE) + offset;
}

/* ---- what it runs ---- */

/* Instructions up to a branch, as a block of the interpreter; *next is the one behind
 * them. NULL: no memory. */
static struct block *make_piece(struct soft_cpu *cpu, const struct draft *draft,
                                size_t *next)
{
    const struct instruction *instruction = &draft->instructions[*next];
    const uint64_t rip = instruction->rip;
    struct uop uops[2 * BLOCK_LIMIT + 1];
    struct block *piece;
    size_t count = 0;
    size_t ordinal = 0;
    unsigned ends = 0;

    while (ends == 0 && *next < draft->count) {
        instruction = &draft->instructions[(*next)++];
        count += block_uops(&uops[count], instruction, ordinal++, false);
        ends = instruction->form->attributes & (FORM_ENDS | FORM_CONDITIONAL);
    }
    if (ends != FORM_ENDS)
        uops[count++] = block_stop(instruction->rip + instruction->length);
    piece = block_cache_allocate(cpu->translator->blocks, count);
    if (piece == NULL)
        return NULL;
    *piece = (struct block){.rip = rip, .uop_count = (uint16_t)count};
    memcpy(piece->uops, uops, count * sizeof(uops[0]));
    return piece;
}

/* The pieces are a list by `shadow`, too. */
void lockstep_prepare(struct soft_cpu *cpu, struct block *block,
                      const struct draft *draft)
{
    struct block *first = NULL;
    struct block **link = &first;
    size_t next = 0;

    while (next < draft->count) {
        *link = make_piece(cpu, draft, &next);
        if (*link == NULL)
            return;
        link = &(*link)->shadow;
    }
    block->shadow = first;
}

/* [from, to) of the fields. */
static void copy_fields(struct lockstep *lockstep, size_t from, size_t to)
{
    memcpy((uint8_t *)lockstep->shadow + from, (const uint8_t *)lockstep->cpu + from,
           to - from);
}

/* It has TLBs of its own. */
static void copy_processor(struct lockstep *lockstep)
{
    struct soft_cpu *shadow = lockstep->shadow;

    copy_fields(lockstep, offsetof(struct soft_cpu, r), offsetof(struct soft_cpu, mmu));
    copy_fields(lockstep, offsetof(struct soft_cpu, mmu) + sizeof(shadow->mmu),
                offsetof(struct soft_cpu, translated));
    shadow->translator = NULL;
    shadow->is_shadow = true;
    shadow->tlb = soft_mmu_tlb(shadow);
}

/* Each piece returns, because the budget is one block. */
static void run_pieces(struct lockstep *lockstep)
{
    struct soft_cpu *shadow = lockstep->shadow;
    const struct block *piece = lockstep->block->shadow;

    do {
        shadow->budget = 1;
        piece->uops[0].run(shadow, piece->uops);
        piece = piece->shadow;
    } while (piece != NULL && shadow->rip == piece->rip);
    lockstep->ahead = piece;
}

bool shadow_run(struct lockstep *lockstep)
{
    copy_processor(lockstep);
    switch (setjmp(lockstep->shadow->unwind)) {
    case 0:
        run_pieces(lockstep);
        return true;
    case UNWIND_FAULT:
        lockstep->faulted = true;
        return true;
    default:
        return false;
    }
}

/* A branch at the end of a piece leaves none. */
unsigned shadow_undefined_flags(const struct lockstep *lockstep)
{
    const struct block *piece = lockstep->block->shadow;
    unsigned undefined = 0;

    for (; piece != lockstep->ahead; piece = piece->shadow)
        for (size_t i = 0; i < piece->uop_count; i++) {
            const struct form *form = piece->uops[i].form;

            if (form != NULL)
                undefined =
                    (undefined & ~(unsigned)form->flags.written) | form->flags.undefined;
        }
    return undefined;
}
