/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What translated code calls: TLB misses, instructions that are the interpreter's,
 * branches that do not know their target yet, attention, stale blocks. All registers are
 * in soft_cpu; what raises leaves for the run loop by longjmp.
 */
#include "accel/soft/draft_private.h"
#include "accel/soft/mmu_private.h"
#include "accel/soft/translator/check_private.h"
#include "accel/soft/translator/translator_private.h"
#include "accel/soft/translator/vectors_private.h"
#include "base/check.h"

static const uint8_t *code_at(const struct soft_cpu *cpu, uint32_t offset)
{
    return code_memory_address(&cpu->translator->memory, offset);
}

/* ---- finding the next block ---- */

static void remember_jump(struct soft_cpu *cpu, const uint8_t *code)
{
    struct translated_state *state = &cpu->translated;
    uint32_t index = jump_cache_index(cpu->rip);

    state->jump_keys[index] = cpu->rip ^ state->mode_salt;
    state->jump_codes[index] = code;
    if (state->jump_fill_count < JUMP_CACHE_FILL_LIST)
        state->jump_fills[state->jump_fill_count] = (uint16_t)index;
    if (state->jump_fill_count <= JUMP_CACHE_FILL_LIST)
        state->jump_fill_count++;
}

static bool needs_run_loop(const struct soft_cpu *cpu)
{
    return atomic_load_explicit(&cpu->attention, memory_order_relaxed) != 0 ||
           cpu->activity != ACTIVITY_RUN || cpu->step_pending || cpu->watch_hits != 0 ||
           (cpu->mode & MODE_CODE64) == 0;
}

/* Under the lockstep checker each block ends there. */
static bool wants_run_loop(const struct soft_cpu *cpu)
{
    return needs_run_loop(cpu) || cpu->lockstep != NULL;
}

static struct block *find_next(struct soft_cpu *cpu)
{
    struct block *block;

    if (wants_run_loop(cpu))
        return NULL;
    translator_count(&cpu->translated.counters.lookups, 1);
    block = block_find(cpu, cpu->mode | MODE_TRANSLATED);
    return block->code.poll_entry != 0 ? block : NULL;
}

/* On at cpu->rip. */
static const uint8_t *go_on(struct soft_cpu *cpu)
{
    const struct translated_state *state = &cpu->translated;
    const uint32_t index = jump_cache_index(cpu->rip);
    const struct block *block;
    const uint8_t *code;

    if (wants_run_loop(cpu))
        return NULL;
    if (state->jump_keys[index] == (cpu->rip ^ state->mode_salt))
        return state->jump_codes[index];
    block = find_next(cpu);
    if (block == NULL)
        return NULL;
    code = code_at(cpu, block->code.poll_entry);
    remember_jump(cpu, code);
    return code;
}

/* ---- one instruction by the interpreter ---- */

/* The instruction as the interpreter runs it by itself. False: it is not there any more,
 * or there is no memory. */
static bool make_uops(struct soft_cpu *cpu, struct site *site)
{
    struct uop uops[3];
    struct draft draft;
    size_t count;

    draft_open(&draft, cpu, site->block->gpa + site->delta, cpu->mode | MODE_SINGLE);
    if (draft.page_bytes == NULL || !draft_add(&draft))
        return false;
    count = block_uops(uops, &draft.instructions[0], 0, false);
    uops[count++] = block_stop(draft_rip(&draft));
    site->uops = block_cache_keep_uops(cpu->blocks, uops, count);
    if (site->uops == NULL)
        block_cache_empty(cpu);
    return site->uops != NULL;
}

static const uint8_t *step(struct soft_cpu *cpu, struct site *site)
{
    struct block *block = site->block;
    uint64_t next_rip = block->rip + site->delta + site->length;

    cpu->rip = block->rip + site->delta;
    translator_count(&cpu->translated.counters.steps, 1);
    vectors_save(cpu);
    if (!block_still_maps(cpu, block) || (site->uops == NULL && !make_uops(cpu, site))) {
        lockstep_abandon(cpu);
        return go_on(cpu);
    }
    cpu->budget = 1;
    cpu->single = true;
    site->uops[0].run(cpu, site->uops);
    if (site->next == 0)
        return go_on(cpu);
    if (block->stale || cpu->rip != next_rip ||
        (cpu->mode | MODE_TRANSLATED) != block->mode || needs_run_loop(cpu)) {
        lockstep_abandon(cpu);
        return go_on(cpu);
    }
    if (site->vectors && !vectors_load(cpu)) {
        lockstep_abandon(cpu);
        cpu->translated.interpret_next = 1;
        return NULL;
    }
    return code_at(cpu, site->next);
}

const uint8_t *serve_step(struct soft_cpu *cpu, uint32_t index)
{
    struct site *site = &cpu->translator->sites[index];

    if (cpu->lockstep != NULL && site->next == 0)
        lockstep_missed(cpu);
    return step(cpu, site);
}

const uint8_t *serve_landing(struct soft_cpu *cpu, uint32_t index)
{
    (void)index;
    cpu->rip = lockstep_target(cpu->lockstep);
    return NULL;
}

const uint8_t *serve_vectors(struct soft_cpu *cpu, uint32_t index)
{
    const struct site *site = &cpu->translator->sites[index];

    if (vectors_load(cpu))
        return code_at(cpu, site->retry);
    lockstep_abandon(cpu);
    cpu->rip = site->block->rip + site->delta;
    cpu->translated.interpret_next = 1;
    return NULL;
}

/* ---- memory ---- */

static uint64_t tag_of(const struct tlb_entry *entry, bool write)
{
    return write ? entry->write_tag : entry->read_tag;
}

/* A push of memory, say, may read and write pages that share an entry of the TLB. It
 * begins anew after each fill, so each of its accesses would take the other's page away
 * for ever. */
static bool fills_in_turn(struct soft_cpu *cpu, uint64_t rip, uint64_t page)
{
    struct translator *translator = cpu->translator;
    const uint64_t entry = cpu->translated.operands[0];
    const bool in_turn = translator->last_fill.rip == rip &&
                         translator->last_fill.entry == entry &&
                         translator->last_fill.page != page;

    translator->last_fill.rip = rip;
    translator->last_fill.entry = entry;
    translator->last_fill.page = page;
    return in_turn;
}

/* Code has left the offset of the TLB's entry, and the address minus its tag. */
static const uint8_t *fill(struct soft_cpu *cpu, struct site *site)
{
    const struct tlb_entry *entry =
        &cpu->tlb[cpu->translated.operands[0] >> TLB_ENTRY_SHIFT];
    const uint64_t linear = cpu->translated.operands[1] + tag_of(entry, site->write);
    const uint64_t page = align_down(linear, X86_PAGE_BYTES);
    const struct uop uop = {.rip = site->block->rip + site->delta,
                            .length = site->length,
                            .segment = site->segment};
    uint64_t gpa;

    if ((site->aligned && linear % site->size != 0) ||
        tag_of(entry, site->write) == page ||
        linear - page > X86_PAGE_BYTES - site->size || fills_in_turn(cpu, uop.rip, page))
        return step(cpu, site);
    translator_count(&cpu->translated.counters.fills, 1);
    (void)mmu_fill(cpu, &uop, linear, site->write ? ACCESS_WRITE : ACCESS_READ,
                   mmu_kind(cpu), &gpa);
    if (tag_of(entry, site->write) != page)
        return step(cpu, site);
    if (site->vectors)
        CHECK(vectors_load(cpu)); /* as they were */
    return code_at(cpu, site->retry);
}

const uint8_t *serve_slow(struct soft_cpu *cpu, uint32_t index)
{
    vectors_enter_c(cpu);
    return fill(cpu, &cpu->translator->sites[index]);
}

/* ---- branches ---- */

/* To the same page: past the poll unless a loop is closed, flags brought to where the
 * target wants them. To others: for as long as the generation lasts. */
static void set_link(struct soft_cpu *cpu, const struct link *link,
                     const struct block *to)
{
    struct code_memory *memory = &cpu->translator->memory;
    uint32_t target = to->code.poll_entry;

    if (link->generation_at != 0) {
        uint32_t generation = cpu->translated.generations[link->target >> 63];

        code_memory_aim(memory, link->branch_end, target);
        code_memory_put(memory, link->generation_at, generation);
        return;
    }
    target = link_landing(cpu->translator, link, to);
    if (target != 0)
        code_memory_aim(memory, link->branch_end, target);
}

static const uint8_t *follow(struct soft_cpu *cpu, uint32_t index)
{
    const struct link link = cpu->translator->links[index];
    const uint64_t epoch = cpu->translator->epoch;
    const struct block *block;

    cpu->rip = link.target;
    block = find_next(cpu);
    if (block == NULL)
        return NULL;
    if (cpu->translator->epoch == epoch && !link.from->stale) {
        vectors_save(cpu); /* what writes code may use them */
        set_link(cpu, &link, block);
    }
    return code_at(cpu, block->code.poll_entry);
}

const uint8_t *serve_follow(struct soft_cpu *cpu, uint32_t index)
{
    vectors_enter_c(cpu);
    return follow(cpu, index);
}

const uint8_t *serve_leave(struct soft_cpu *cpu, uint32_t index)
{
    const struct site *site = &cpu->translator->sites[index];

    lockstep_abandon(cpu);
    cpu->rip = site->block->rip;
    return NULL;
}

/* Whoever still knows the stale block is sent on from its entries, if flags are wanted at
 * the same place. */
const uint8_t *serve_stale(struct soft_cpu *cpu, uint32_t index)
{
    struct block *block = cpu->translator->sites[index].block;
    const uint64_t epoch = cpu->translator->epoch;
    const struct block *next;

    lockstep_abandon(cpu);
    vectors_enter_c(cpu);
    cpu->rip = block->rip;
    next = find_next(cpu);
    if (next == NULL)
        return NULL;
    if (cpu->translator->epoch == epoch && next->next_gpa == 0)
        translation_send_on(cpu->translator, block, next);
    return code_at(cpu, next->code.poll_entry);
}
