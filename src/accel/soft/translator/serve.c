/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What translated code calls: TLB misses, instructions that are the interpreter's,
 * branches that do not know their target yet, attention, stale blocks. All registers are
 * in soft_cpu; what raises leaves for the run loop by longjmp.
 */
#include "accel/soft/draft_private.h"
#include "accel/soft/mmu_private.h"
#include "accel/soft/translator/check_private.h"
#include "accel/soft/translator/shared_private.h"
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
    const uint32_t index = jump_cache_index(cpu->rip);
    const uint64_t key = jump_key(cpu->rip, cpu->mode_salt);
    struct jump_fills *fills = &state->jump_fills[jump_key_half(key)];

    state->jumps[index].key = key;
    state->jumps[index].code = code;
    if (fills->count < JUMP_CACHE_FILL_LIST)
        fills->index[fills->count] = (uint16_t)index;
    if (fills->count <= JUMP_CACHE_FILL_LIST)
        fills->count++;
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
    block = translation_find(cpu);
    return block != NULL && block->code.poll_entry != 0 ? block : NULL;
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
    if (state->jumps[index].key == jump_key(cpu->rip, cpu->mode_salt))
        return state->jumps[index].code;
    block = find_next(cpu);
    if (block == NULL)
        return NULL;
    code = code_at(cpu, block->code.poll_entry);
    remember_jump(cpu, code);
    return code;
}

/* ---- one instruction by the interpreter ---- */

/* One vCPU makes them for all. */
static const struct uop *keep_uops(struct soft_cpu *cpu, struct site *site,
                                   const struct uop *uops, size_t count)
{
    struct translator *translator = cpu->translator;
    struct uop *kept;

    translator_lock(translator);
    kept = atomic_load(&site->uops);
    if (kept == NULL && !site->block->stale) {
        kept = block_cache_keep_uops(translator->blocks, uops, count);
        atomic_store(&site->uops, kept);
        if (kept == NULL)
            translator_ask_to_empty(cpu);
    }
    translator_unlock(translator);
    return kept;
}

/* The instruction as the interpreter runs it by itself. NULL: it is not there any more,
 * or there is no memory. */
static const struct uop *make_uops(struct soft_cpu *cpu, struct site *site)
{
    struct uop uops[3];
    struct draft draft;
    size_t count;

    draft_open(&draft, cpu, site->block->gpa + site->delta, cpu->mode | MODE_SINGLE);
    draft.placed = true; /* where the block has it, which others share */
    draft.next_gpa = site->block->next_gpa;
    if (draft.page_bytes == NULL || !draft_add(&draft) ||
        draft.instructions[0].length != site->length)
        return NULL;
    count = block_uops(uops, &draft.instructions[0], 0, false);
    uops[count++] = block_stop(draft_rip(&draft));
    return keep_uops(cpu, site, uops, count);
}

static const struct uop *find_uops(struct soft_cpu *cpu, struct site *site)
{
    const struct uop *uops;

    if (!block_still_maps(cpu, site->block))
        return NULL;
    uops = atomic_load_explicit(&site->uops, memory_order_acquire);
    return uops != NULL ? uops : make_uops(cpu, site);
}

static const uint8_t *step(struct soft_cpu *cpu, struct site *site)
{
    struct block *block = site->block;
    uint64_t next_rip = block->rip + site->delta + site->length;
    const struct uop *uops;

    cpu->rip = block->rip + site->delta;
    translator_count(&cpu->translated.counters.steps, 1);
    vectors_save(cpu);
    uops = find_uops(cpu, site);
    if (uops == NULL) {
        lockstep_abandon(cpu);
        return go_on(cpu);
    }
    cpu->budget = 1;
    cpu->single = true;
    uops[0].run(cpu, uops);
    if (site->next == 0)
        return go_on(cpu);
    if (block->stale || cpu->rip != next_rip || cpu->mode != block_cpu_mode(block) ||
        needs_run_loop(cpu)) {
        lockstep_abandon(cpu);
        return go_on(cpu);
    }
    if ((site->flags & SITE_VECTORS) != 0 && !vectors_load(cpu)) {
        lockstep_abandon(cpu);
        cpu->translated.interpret_next = 1;
        return NULL;
    }
    return code_at(cpu, site->next);
}

const uint8_t *serve_step(struct soft_cpu *cpu, const uint8_t *place)
{
    struct site *site = translator_site(cpu->translator, place);

    if (cpu->lockstep != NULL && site->next == 0)
        lockstep_missed(cpu);
    return step(cpu, site);
}

const uint8_t *serve_landing(struct soft_cpu *cpu, const uint8_t *place)
{
    (void)place;
    cpu->rip = lockstep_target(cpu->lockstep);
    return NULL;
}

const uint8_t *serve_vectors(struct soft_cpu *cpu, const uint8_t *place)
{
    const struct site *site = translator_site(cpu->translator, place);

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
    struct translated_state *state = &cpu->translated;
    const uint64_t entry = state->operands[0];
    const bool in_turn = state->last_fill.rip == rip && state->last_fill.entry == entry &&
                         state->last_fill.page != page;

    state->last_fill.rip = rip;
    state->last_fill.entry = entry;
    state->last_fill.page = page;
    return in_turn;
}

/* Code has left the offset of the TLB's entry, and the address minus its tag. True: now
 * the entry is there. May raise. */
static bool fill(struct soft_cpu *cpu, const struct site *site)
{
    const bool writable = (site->flags & SITE_WRITABLE) != 0;
    const struct tlb_entry *entry =
        &cpu->tlb[cpu->translated.operands[0] >> TLB_ENTRY_SHIFT];
    const uint64_t linear =
        cpu->translated.operands[1] + tag_of(entry, writable) + site->distance;
    const uint64_t page = align_down(linear, X86_PAGE_BYTES);
    const struct uop uop = {.rip = site->block->rip + site->delta,
                            .length = site->length,
                            .segment = site->segment};
    uint64_t gpa;

    if (((site->flags & SITE_ALIGNED) != 0 && linear % site->size != 0) ||
        tag_of(entry, writable) == page || linear - page > X86_PAGE_BYTES - site->size ||
        fills_in_turn(cpu, uop.rip, page))
        return false;
    translator_count(&cpu->translated.counters.fills, 1);
    (void)mmu_fill(cpu, &uop, linear,
                   (site->flags & SITE_WRITE) != 0 ? ACCESS_WRITE : ACCESS_READ,
                   mmu_kind(cpu), &gpa);
    return tag_of(entry, writable) == page;
}

/* Begins the instruction anew. */
static const uint8_t *retry(struct soft_cpu *cpu, const struct site *site)
{
    if ((site->flags & SITE_VECTORS) != 0)
        CHECK(vectors_load(cpu)); /* as they were */
    return code_at(cpu, site->retry);
}

const uint8_t *serve_slow(struct soft_cpu *cpu, const uint8_t *place)
{
    struct site *site = translator_site(cpu->translator, place);

    vectors_enter_c(cpu);
    return fill(cpu, site) ? retry(cpu, site) : step(cpu, site);
}

/* On at the site's instruction, each access having its own check. */
static const uint8_t *go_on_carefully(struct soft_cpu *cpu, const struct site *site)
{
    struct block *block;

    cpu->rip = site->block->rip + site->delta;
    if (cpu->lockstep != NULL) {
        lockstep_abandon(cpu);
        cpu->translated.careful_next = 1;
        return NULL;
    }
    if (needs_run_loop(cpu))
        return NULL;
    block = translation_find_careful(cpu);
    if (block == NULL || block->code.poll_entry == 0) {
        cpu->translated.interpret_next = 1;
        return NULL;
    }
    vectors_save(cpu); /* what writes code may use them */
    link_set(cpu, site->next, block);
    return code_at(cpu, block->code.poll_entry);
}

const uint8_t *serve_shared(struct soft_cpu *cpu, const uint8_t *place)
{
    const struct site *site = translator_site(cpu->translator, place);

    vectors_enter_c(cpu);
    return fill(cpu, site) ? retry(cpu, site) : go_on_carefully(cpu, site);
}

/* ---- branches ---- */

static const uint8_t *follow(struct soft_cpu *cpu, uint32_t index)
{
    struct block *block;

    cpu->rip = cpu->translator->links[index].target;
    block = find_next(cpu);
    if (block == NULL)
        return NULL;
    vectors_save(cpu); /* what writes code may use them */
    link_set(cpu, index, block);
    return code_at(cpu, block->code.poll_entry);
}

const uint8_t *serve_follow(struct soft_cpu *cpu, const uint8_t *place)
{
    vectors_enter_c(cpu);
    return follow(cpu, translator_link(cpu->translator, place));
}

/* Whoever still knows the stale block is sent on from its entry. */
static const uint8_t *leave_stale(struct soft_cpu *cpu, const struct block *block)
{
    const struct block *next;

    vectors_enter_c(cpu);
    next = find_next(cpu);
    if (next == NULL)
        return NULL;
    translation_send_on(cpu, block, next);
    return code_at(cpu, next->code.poll_entry);
}

const uint8_t *serve_leave(struct soft_cpu *cpu, const uint8_t *place)
{
    const struct block *block = translator_site(cpu->translator, place)->block;

    lockstep_abandon(cpu);
    cpu->rip = block->rip;
    return block->stale ? leave_stale(cpu, block) : NULL;
}
