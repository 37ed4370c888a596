/* SPDX-License-Identifier: Apache-2.0 */
/* Translates one block; see translator_private.h. */
#include <string.h>
#include <time.h>

#include "accel/soft/handlers_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/check_private.h"
#include "accel/soft/translator/rules_private.h"
#include "accel/soft/translator/shared_private.h"
#include "base/bytes.h"
#include "base/check.h"

/* More than any block takes: hot and cold bytes an instruction. Blocks' entries are at
 * multiples of 8, for code_memory_put_jump; 16 were no faster. */
#define HOT_BYTES_LIMIT 256u
#define COLD_BYTES_LIMIT 128u
#define BLOCK_ALIGNMENT 8u

/* A block goes on behind conditional branches that are not taken, but not for ever. */
#define CONDITIONS_LIMIT 8

/* ---- what is in the block ---- */

static bool changes_mode(const struct form *form)
{
    return form->select == select_system &&
           (form->variant == SYSTEM_STAC || form->variant == SYSTEM_CLAC);
}

/* STI ends the interpreter's blocks, but here something must follow it. */
static bool enables_interrupts(const struct form *form)
{
    return form->select == select_system && form->variant == SYSTEM_STI;
}

/* What follows has been translated already. */
static bool is_known(const struct draft *draft)
{
    return block_cache_find(draft->cpu->translator->blocks, draft->gpa + draft->used,
                            draft_rip(draft), draft->mode | MODE_TRANSLATED,
                            BLOCK_ONE_PAGE) != NULL;
}

static void decode(struct draft *draft)
{
    unsigned conditions = 0;

    if (draft->page_bytes == NULL)
        return;
    while (draft->count < BLOCK_LIMIT && draft->used < draft->page_left &&
           draft_add(draft)) {
        const struct form *form = draft->instructions[draft->count - 1].form;

        if (draft->next_gpa != BLOCK_ONE_PAGE || changes_mode(form))
            return;
        if ((form->attributes & FORM_ENDS) == 0 || enables_interrupts(form))
            continue;
        if (form->select != select_jump_condition) {
            draft->end = END_BRANCH;
            return;
        }
        if (++conditions > CONDITIONS_LIMIT || is_known(draft))
            return;
    }
}

/* ---- entries ---- */

static bool overwrites_flags(const struct instruction *instruction)
{
    bool accesses =
        instruction->memory && (instruction->form->attributes & FORM_OFFSET_ONLY) == 0;
    bool flows = instruction->form->select == select_jump_condition ||
                 (instruction->form->select == select_flow &&
                  instruction->form->variant == FLOW_JUMP);

    return accesses || ((instruction->form->attributes & FORM_PURE) == 0 && !flows);
}

/* Where the block had best get its flags: where it first wants them. */
static enum flags_place flags_at_entry(const struct emitter *e)
{
    const struct draft *draft = e->draft;

    if (e->live_in[0] == 0)
        return FLAGS_NOWHERE;
    for (size_t i = 0; i < draft->count; i++) {
        if (overwrites_flags(&draft->instructions[i]))
            return FLAGS_STATE;
        if (flags_needed(&draft->instructions[i], e->live_out[i]) != 0)
            return FLAGS_HOST;
    }
    return FLAGS_HOST;
}

/* In front of its entry a block has its way out, so that the branch there is short. The
 * entry begins with an instruction that code_memory_put_jump may replace. */
static void emit_poll(struct emitter *e)
{
    struct translated_code *code = &e->block->code;

    code->leave = emit_site_call(e, &e->hot, e->translator->leave, emit_site(e));
    code->poll_entry = writer_offset(&e->hot);
    encode(&e->hot, &(struct host_instruction){.opcode = {0x83},
                                               .opcode_bytes = 1,
                                               .reg = 7,
                                               .is_memory = true,
                                               .memory = STATE(attention),
                                               .immediate_bytes = 1});
    encode_short_jump_if(&e->hot, CONDITION_NE, code->leave);
}

static void emit_entries(struct emitter *e)
{
    struct translated_code *code = &e->block->code;

    code->flags_in = (uint8_t)flags_at_entry(e);
    e->flags = code->flags_in == FLAGS_NOWHERE ? FLAGS_NOWHERE : FLAGS_STATE;
    emit_poll(e);
    if (code->flags_in == FLAGS_HOST)
        emit_flags_to_host(e);
    code->entry = writer_offset(&e->hot);
}

/* ---- instructions ---- */

static void set_instruction(struct emitter *e, size_t ordinal)
{
    e->ordinal = ordinal;
    e->instruction = &e->draft->instructions[ordinal];
    e->bytes = e->draft->bytes + (e->instruction->rip - e->block->rip);
}

static bool emit_by_rule(struct emitter *e)
{
    translate_rule *rule = rule_find(e->instruction);
    bool done;

    if (e->stack_behind != 0 && !stack_may_be_behind(e))
        emit_stack(e);
    e->group_kept = false;
    done = rule != NULL && rule(e);
    e->group.shared = e->group.shared && done && e->group_kept;
    return done;
}

/* False: under the lockstep checker, what is the interpreter's is a block of its own, and
 * this one must end before it. */
static bool emit_block(struct emitter *e)
{
    set_instruction(e, 0);
    emit_entries(e);
    for (size_t i = 0; i < e->draft->count; i++) {
        set_instruction(e, i);
        if (emit_by_rule(e))
            continue;
        if (e->cpu->lockstep != NULL && e->draft->count > 1)
            return false;
        emit_step(e, (e->instruction->form->attributes & FORM_ENDS) != 0);
        e->block->code.interpreted = e->draft->count == 1;
    }
    emit_stack(e);
    if (e->draft->end != END_BRANCH)
        emit_exit(e, draft_rip(e->draft), e->live_behind);
    return true;
}

/* An instruction that crosses into the next page: the interpreter's, which also looks
 * whether that page is still the same. */
static void emit_crossing(struct emitter *e)
{
    set_instruction(e, 0);
    e->flags = FLAGS_STATE;
    e->block->code.flags_in = FLAGS_STATE;
    emit_poll(e);
    e->block->code.entry = writer_offset(&e->hot);
    emit_step(e, true);
    e->block->code.interpreted = true;
}

/* ---- room ---- */

static struct code_writer writer_open(const struct translator *translator,
                                      uint32_t offset)
{
    uint8_t *at = translator->memory.writable + offset;

    return (struct code_writer){.at = at, .start = at, .start_offset = offset};
}

/* More than a block's. */
#define SITES_LIMIT (4 * BLOCK_LIMIT)

/* Blocks of the interpreter's instructions have sites, but nothing in the cold area.
 * Calls there must be able to name theirs, so many behind the first one of their page. */
static void leave_far_page(struct translator *translator)
{
    struct code_area *cold = &translator->memory.cold;
    uint32_t first;

    if (cold->at == cold->end)
        return;
    first = translator->pages[cold->at >> CODE_PAGE_SHIFT].first_site;
    if (first != 0 && translator->site_count + SITES_LIMIT > first + CODE_INDEX_LIMIT)
        cold->at = (uint32_t)align_up(cold->at, 1u << CODE_PAGE_SHIFT);
}

static bool has_room(const struct translator *translator)
{
    return code_area_left(&translator->memory.hot) >
               (size_t)BLOCK_LIMIT * HOT_BYTES_LIMIT &&
           code_area_left(&translator->memory.cold) >
               (size_t)BLOCK_LIMIT * COLD_BYTES_LIMIT &&
           TRANSLATOR_SITES - translator->site_count > SITES_LIMIT &&
           TRANSLATOR_LINKS - translator->link_count > 3 * BLOCK_LIMIT;
}

static bool emit(struct emitter *e)
{
    struct translator *translator = e->translator;

    e->granules = 0;
    e->vectors = false;
    e->group.shared = false;
    e->stack_behind = 0;
    find_loop(e);
    find_last_uses(e);
    e->hot = writer_open(
        translator,
        (uint32_t)align_up(translator->memory.hot.at + EMIT_CALL_BYTES, BLOCK_ALIGNMENT) -
            EMIT_CALL_BYTES);
    e->cold = writer_open(translator, translator->memory.cold.at);
    if (e->draft->next_gpa != BLOCK_ONE_PAGE) {
        emit_crossing(e);
        return true;
    }
    find_live_flags(e);
    return emit_block(e);
}

/* The code between blocks counts, too. */
static void count(const struct emitter *e)
{
    const struct code_memory *memory = &e->translator->memory;
    struct translator_counters *counters = &e->translator->counters;
    const uint32_t hot = writer_offset(&e->hot) - memory->hot.at;
    const uint32_t cold = writer_offset(&e->cold) - memory->cold.at;

    translator_count(&counters->blocks, 1);
    translator_count(&counters->instructions, e->draft->count);
    translator_count(&counters->code_bytes, hot + cold);
}

static void translate(struct emitter *e, struct draft *draft)
{
    struct translator *translator = e->translator;
    struct code_memory *memory = &translator->memory;
    const uint32_t sites = translator->site_count;
    const uint32_t links = translator->link_count;

    while (!emit(e)) {
        translator->site_count = sites;
        translator->link_count = links;
        draft_shorten(draft, max_u64(e->ordinal, 1));
    }
    e->block->byte_count = draft_bytes(draft);
    count(e);
    memory->hot.at = writer_offset(&e->hot);
    memory->cold.at = writer_offset(&e->cold);
}

/* Every field by itself: gcc would clear a struct of this size with a string instruction,
 * which takes longer. */
static void start_block(struct block *block, const struct draft *draft, uint32_t mode)
{
    block->rip = draft->cpu->rip;
    block->gpa = draft->gpa;
    block->next_gpa = draft->next_gpa;
    block->mode = mode;
    block->byte_count = draft_bytes(draft);
    block->uop_count = 0;
    block->code = (struct translated_code){.entry = 0};
    block->stale = false;
    block->next_in_hash = 0;
    block->granules = 0;
    block->shadow = NULL;
}

static struct block *make_block(struct soft_cpu *cpu, const struct block_place *place,
                                uint32_t mode, bool *moved)
{
    struct draft draft;
    struct emitter e;
    struct block *block;

    leave_far_page(cpu->translator);
    if (!has_room(cpu->translator))
        return NULL;
    draft_open(&draft, cpu, place->gpa, cpu->mode);
    draft.placed = true;
    draft.next_gpa = place->next_gpa;
    decode(&draft);
    *moved = draft.has_moved;
    if (draft.has_moved)
        return NULL;
    block = block_cache_allocate(cpu->translator->blocks, 0);
    if (block == NULL)
        return NULL;
    start_block(block, &draft, mode);
    if (draft.count == 0)
        return block; /* the interpreter raises what is to be raised */
    e.cpu = cpu;
    e.translator = cpu->translator;
    e.draft = &draft;
    e.block = block;
    e.one_cpu = cpu->vm->cpu_count == 1;
    e.careful = (mode & MODE_CAREFUL) != 0;
    translate(&e, &draft);
    block->granules = e.granules;
    if (cpu->lockstep != NULL && !block->code.interpreted)
        lockstep_prepare(cpu, block, &draft);
    return block;
}

/* ---- time ---- */

/* The thread's time is asked for by system calls: too long to do it for each block. */
#define TIMED_BLOCKS 32

static uint64_t thread_ns(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct block *translate_block(struct soft_cpu *cpu, const struct block_place *place,
                              uint32_t mode, bool *moved)
{
    struct translator_counters *counters = &cpu->translator->counters;
    struct block *block;
    uint64_t first, start, taken;

    if (counters->blocks % TIMED_BLOCKS != TIMED_BLOCKS / 2)
        return make_block(cpu, place, mode, moved);
    first = thread_ns();
    start = thread_ns();
    block = make_block(cpu, place, mode, moved);
    taken = thread_ns() - start;
    if (block != NULL && taken > start - first) /* what asking takes */
        translator_count(&counters->nanoseconds,
                         (taken - (start - first)) * TIMED_BLOCKS);
    return block;
}
