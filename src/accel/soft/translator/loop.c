/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops of one block. Where each turn accesses what is near the turn before, code looks
 * into a copy of the TLB's entry before it looks into the TLB: the address of the copy is
 * a constant, so nothing waits for it.
 */
#include "accel/soft/access_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/emit_private.h"

/* As far as an address may go in one turn. */
#define LOOP_STEP 256

static bool jumps(const struct instruction *instruction)
{
    return instruction->form->select == select_jump_condition ||
           (instruction->form->select == select_flow &&
            instruction->form->variant == FLOW_JUMP);
}

static bool is_small(int64_t step)
{
    return step >= -LOOP_STEP && step <= LOOP_STEP;
}

/* Moves the register that it writes by a small constant. */
static bool steps(const struct instruction *instruction)
{
    const struct form *form = instruction->form;

    if (form->select == select_alu_unary)
        return form->variant == ALU_INC || form->variant == ALU_DEC;
    if (form->select == select_alu)
        return (form->variant == ALU_ADD || form->variant == ALU_SUB) &&
               form->operands[1] >= OPERAND_I8 && form->operands[1] <= OPERAND_IV &&
               is_small(instruction->operand_size == 4 ? (int32_t)instruction->immediate
                                                       : (int64_t)instruction->immediate);
    return form->select == select_lea && instruction->base == instruction->reg &&
           instruction->index == SOFT_ZERO && is_small(instruction->displacement);
}

/* Instructions up to the last branch to the block's start. */
static size_t length_of_loop(const struct emitter *e)
{
    size_t count = e->draft->count;

    while (count > 0 && !(e->draft->instructions[count - 1].immediate == e->block->rip &&
                          jumps(&e->draft->instructions[count - 1])))
        count--;
    return count;
}

void find_loop(struct emitter *e)
{
    e->loop.count = length_of_loop(e);
    e->loop.unsteady = 0;
    e->loop.place_counts[false] = 0;
    e->loop.place_counts[true] = 0;
    for (size_t i = 0; i < e->loop.count; i++)
        if (!steps(&e->draft->instructions[i]))
            e->loop.unsteady |= registers_written(&e->draft->instructions[i]);
}

static bool is_steady(const struct access_loop *loop, unsigned number)
{
    return number == SOFT_ZERO || (loop->unsteady >> number & 1) == 0;
}

static bool is_same(const struct access_place *a, const struct access_place *b)
{
    return a->base == b->base && a->index == b->index && a->scale == b->scale &&
           a->displacement == b->displacement;
}

unsigned loop_page(struct emitter *e, const struct access_place *place, bool write)
{
    struct access_loop *loop = &e->loop;
    struct access_place *places = loop->places[write];
    unsigned slot = 0;

    if (e->ordinal >= loop->count || !is_steady(loop, place->base) ||
        !is_steady(loop, place->index))
        return LOOP_PAGES;
    while (slot < loop->place_counts[write] && !is_same(&places[slot], place))
        slot++;
    if (slot == loop->place_counts[write] && slot < LOOP_PAGES) {
        places[slot] = *place;
        loop->place_counts[write]++;
    }
    return slot;
}
