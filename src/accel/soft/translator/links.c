/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: where branches whose target was known when they were translated go, and what
 * becomes of them when blocks do. Others may run the code that changes here.
 *
 * Within a page a link goes to the target's `entry` while both blocks last: a block has a
 * list of these, and when it becomes stale they go to their stubs again.
 *
 * To another page code compares the target's place, as it was found, with the TLB's. The
 * branch behind the comparison is aimed before the place is put, and with several vCPUs
 * never again: one of them could have compared with the old place, and branch by the new
 * aim. If the target moves to another page its branches ask C.
 */
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/emit_private.h"
#include "accel/soft/translator/shared_private.h"

/* ---- within a page ---- */

static struct code_writer open_cold(const struct translator *translator)
{
    uint8_t *at = translator->memory.writable + translator->memory.cold.at;

    return (struct code_writer){
        .at = at, .start = at, .start_offset = translator->memory.cold.at};
}

/* Flags are in the host's, the target wants them in the state. */
static uint32_t landing_with_flags(struct translator *translator, uint32_t target)
{
    struct emitter e = {.translator = translator, .flags = FLAGS_HOST};
    uint32_t start = translator->memory.cold.at;

    if (code_area_left(&translator->memory.cold) < (size_t)2 * ENCODE_LIMIT)
        return 0;
    e.hot = open_cold(translator);
    emit_flags_to_state(&e);
    encode_jump(&e.hot, target);
    translator->memory.cold.at = writer_offset(&e.hot);
    return start;
}

/* Where the branch may go on in `to`, past the look for attention unless a loop is
 * closed; with code to bring flags to where they are wanted. 0: there is no room for
 * that. */
static uint32_t landing(struct translator *translator, const struct link *link,
                        const struct block *to)
{
    const struct translated_code *code = &to->code;
    uint32_t target = link->backward ? code->poll_entry : code->entry;

    if (code->flags_in == FLAGS_NOWHERE)
        return target;
    if (code->flags_in == FLAGS_STATE)
        return link->flags == FLAGS_HOST ? landing_with_flags(translator, target)
                                         : target;
    if (link->flags != FLAGS_HOST)
        return code->poll_entry;
    return link->backward ? landing_with_flags(translator, code->poll_entry)
                          : code->entry;
}

static void set_within(struct translator *translator, uint32_t index, struct block *to)
{
    struct link *link = &translator->links[index];
    const uint32_t target = link->set ? 0 : landing(translator, link, to);

    if (target == 0)
        return;
    code_memory_aim(&translator->memory, link->branch_end, target);
    link->set = true;
    link->next_incoming = to->code.incoming;
    to->code.incoming = index;
}

static void unset_incoming(struct translator *translator, struct block *block)
{
    while (block->code.incoming != 0) {
        struct link *link = &translator->links[block->code.incoming];

        code_memory_aim(&translator->memory, link->branch_end, link->stub);
        link->set = false;
        block->code.incoming = link->next_incoming;
    }
}

/* ---- to another page ---- */

static void set_elsewhere(struct soft_cpu *cpu, struct link *link, const struct block *to)
{
    struct code_memory *memory = &cpu->translator->memory;
    const uint64_t place = tlb_place(to->rip, to->gpa);

    /* The upper half is in the code. */
    if (place >> 32 != tlb_place(to->rip, 0) >> 32 ||
        (link->set && cpu->vm->cpu_count > 1))
        return;
    code_memory_aim(memory, link->branch_end, to->code.poll_entry);
    code_memory_put(memory, link->place_at, (uint32_t)place);
    link->set = true;
}

void link_set(struct soft_cpu *cpu, uint32_t index, struct block *to)
{
    struct translator *translator = cpu->translator;
    struct link *link = &translator->links[index];

    translator_lock(translator);
    if (!link->from->stale && !to->stale) {
        if (link->place_at == 0)
            set_within(translator, index, to);
        else
            set_elsewhere(cpu, link, to);
    }
    translator_unlock(translator);
}

/* ---- stale blocks ---- */

void translation_make_stale(struct translator *translator, struct block *block)
{
    if (block->code.poll_entry == 0)
        return;
    unset_incoming(translator, block);
    code_memory_put_jump(&translator->memory, block->code.poll_entry, block->code.leave);
}

void translation_send_on(struct soft_cpu *cpu, const struct block *from,
                         const struct block *to)
{
    struct translator *translator = cpu->translator;

    translator_lock(translator);
    if (!to->stale && to->next_gpa == from->next_gpa && to->gpa == from->gpa &&
        to->mode == from->mode)
        code_memory_put_jump(&translator->memory, from->code.poll_entry,
                             to->code.poll_entry);
    translator_unlock(translator);
}
