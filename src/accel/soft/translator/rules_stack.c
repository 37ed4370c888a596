/* SPDX-License-Identifier: Apache-2.0 */
/* PUSH, POP, LEAVE of 64 bits. The stack pointer moves when the access is done. */
#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/emit_private.h"
#include "accel/soft/translator/rules_private.h"

static const struct access_check push_check = {
    .size = 8, .write = true, .top = true, .segment = X86_SS};
static const struct access_check pop_check = {.size = 8, .top = true, .segment = X86_SS};
static const struct access_check frame_check = {.size = 8, .segment = X86_SS};

/* In a group the next push may take it along: no C is called there that would see it. */
void stack_move(struct emitter *e, int32_t bytes)
{
    e->stack_behind += bytes;
    emit_stack_moved(e, bytes);
    if (!e->group.shared)
        emit_stack(e);
}

void stack_check_push(struct emitter *e)
{
    emit_access_at(e, X86_RSP, -8, push_check);
}

void stack_check_pop(struct emitter *e)
{
    emit_access_at(e, X86_RSP, 0, pop_check);
}

bool stack_push_is_done(const struct emitter *e)
{
    return emit_is_done_at(e, X86_RSP, -8, push_check);
}

void stack_put_constant(struct emitter *e, uint64_t value)
{
    if (value == (uint64_t)(int32_t)value) {
        encode(&e->hot, &(struct host_instruction){.wide = true,
                                                   .opcode = {0xc7},
                                                   .opcode_bytes = 1,
                                                   .is_memory = true,
                                                   .memory = emit_checked(e),
                                                   .immediate_bytes = 4,
                                                   .immediate = value});
        return;
    }
    emit_join(e);
    encode_constant(&e->hot, SCRATCH, value);
    encode_store(&e->hot, emit_checked(e), SCRATCH);
}

static void push_register(struct emitter *e, unsigned number)
{
    stack_check_push(e);
    if (register_is_homeless(number))
        emit_join(e);
    encode_store(&e->hot, emit_checked(e), emit_register(e, number, SCRATCH));
    stack_move(e, -8);
}

void stack_push_scratch(struct emitter *e)
{
    encode_store(&e->hot, STATE(translated.target), SCRATCH);
    stack_check_push(e);
    emit_join(e);
    encode_load(&e->hot, SCRATCH, STATE(translated.target));
    encode_store(&e->hot, emit_checked(e), SCRATCH);
    stack_move(e, -8);
}

static void push_memory(struct emitter *e)
{
    emit_address(e);
    emit_check(e, (struct access_check){.size = 8, .segment = e->instruction->segment});
    encode_load(&e->hot, SCRATCH, emit_checked(e));
    stack_push_scratch(e);
}

/* POP RSP: the value counts, not the moved pointer. */
static void pop_register(struct emitter *e, unsigned number)
{
    stack_check_pop(e);
    if (number == X86_RSP) {
        encode_load(&e->hot, STACK, emit_checked(e));
        emit_written(e, X86_RSP);
        return;
    }
    emit_written(e, number);
    if (register_is_homeless(number)) {
        encode_load(&e->hot, SCRATCH, emit_checked(e));
        encode_store(&e->hot, emit_register_slot(number), SCRATCH);
    } else {
        encode_load(&e->hot, number, emit_checked(e));
    }
    stack_move(e, 8);
}

static void leave(struct emitter *e)
{
    emit_access_at(e, X86_RBP, 0, frame_check);
    encode_load(&e->hot, SCRATCH, emit_checked(e));
    encode_lea(&e->hot, STACK, host_at(X86_RBP, 8), true);
    encode_move(&e->hot, X86_RBP, SCRATCH);
}

static bool is_native(const struct instruction *instruction)
{
    switch (instruction->form->variant) {
    case STACK_PUSH_REGISTER:
    case STACK_PUSH_IMMEDIATE:
    case STACK_PUSH_RM:
    case STACK_POP_REGISTER:
    case STACK_LEAVE:
    case STACK_PUSHF:
        return instruction->operand_size == 8;
    default:
        return false;
    }
}

/* Nothing is looked at: flags stay where they are. */
static bool is_done(const struct emitter *e)
{
    switch (e->instruction->form->variant) {
    case STACK_PUSH_REGISTER:
    case STACK_PUSH_IMMEDIATE:
        return stack_push_is_done(e);
    case STACK_PUSH_RM:
        return !e->instruction->memory && stack_push_is_done(e);
    case STACK_POP_REGISTER:
        return emit_is_done_at(e, X86_RSP, 0, pop_check);
    default:
        return false;
    }
}

bool stack_may_be_behind(const struct emitter *e)
{
    const struct instruction *instruction = e->instruction;

    if (instruction->form->select != select_stack || !is_native(instruction) ||
        !is_done(e))
        return false;
    switch (instruction->form->variant) {
    case STACK_PUSH_IMMEDIATE:
        return true;
    case STACK_PUSH_RM:
        return instruction->rm != X86_RSP;
    default:
        return instruction->reg != X86_RSP;
    }
}

bool rule_stack(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;
    uint32_t first_site = e->translator->site_count;

    if (!is_native(instruction))
        return false;
    if (!is_done(e))
        emit_spill_flags(e);
    switch (instruction->form->variant) {
    case STACK_PUSH_REGISTER:
        push_register(e, instruction->reg);
        emit_keep_group(e);
        break;
    case STACK_PUSH_IMMEDIATE:
        stack_check_push(e);
        stack_put_constant(e, instruction->immediate);
        stack_move(e, -8);
        emit_keep_group(e);
        break;
    case STACK_PUSH_RM:
        if (instruction->memory)
            push_memory(e);
        else
            push_register(e, instruction->rm);
        break;
    case STACK_POP_REGISTER:
        pop_register(e, instruction->reg);
        emit_keep_group(e);
        break;
    case STACK_PUSHF:
        push_flags(e);
        break;
    default:
        leave(e);
        break;
    }
    emit_next(e, first_site);
    return true;
}
