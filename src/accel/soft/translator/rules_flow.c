/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JMP, CALL, RET, Jcc. Indirect branches look into the jump cache before anything has
 * changed; what it does not know the interpreter does.
 */
#include "accel/soft/handlers_private.h"
#include "accel/soft/segments_private.h"
#include "accel/soft/translator/rules_private.h"

/* ---- direct ---- */

bool rule_jump_condition(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;

    if (!linear_is_canonical(instruction->immediate))
        return false;
    emit_flags_to_host(e);
    emit_exit_if(e, instruction->opcode & 15, instruction->immediate,
                 e->live_there[e->ordinal]);
    emit_keep_group(e);
    return true;
}

bool rule_flow(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;
    uint64_t target = instruction->immediate;

    if (!linear_is_canonical(target))
        return false;
    switch (instruction->form->variant) {
    case FLOW_JUMP:
        emit_exit(e, target, e->live_there[e->ordinal]);
        return true;
    case FLOW_CALL:
        if (!stack_push_is_done(e))
            emit_spill_flags(e);
        stack_check_push(e);
        stack_put_constant(e, instruction->rip + instruction->length);
        stack_move(e, -8);
        emit_stack(e);
        emit_exit(e, target, e->live_there[e->ordinal]);
        return true;
    default:
        return false;
    }
}

/* ---- indirect ---- */

/* Compares the jump cache's key for the address in ADDRESS: SCRATCH is its index then, or
 * the interpreter does the instruction. */
static void look_up(struct emitter *e)
{
    /* mov r10d, r11d; and r10d, mask */
    static const uint8_t index[] = {0x45, 0x89, 0xda, 0x41, 0x81, 0xe2};
    struct host_memory key = STATE(translated.jumps[0].key);
    uint32_t site = emit_site(e);

    e->group.shared = false;
    key.index = SCRATCH;
    key.scale = 3;
    encode_bytes(&e->hot, index, sizeof(index));
    encode_u32(&e->hot, JUMP_CACHE_MASK);
    encode_alu(&e->hot, 0x33, ADDRESS, SCRATCH); /* xor: see jump_key */
    encode_alu_memory(&e->hot, 0x33, ADDRESS, STATE(mode_salt));
    encode_alu_memory(&e->hot, 0x3b, ADDRESS, key);
    encode_jump_if(&e->hot, CONDITION_NE, emit_cold_call(e, e->translator->step, site));
}

static void jump_to_memory(struct emitter *e, struct host_memory memory)
{
    encode(&e->hot, &(struct host_instruction){.opcode = {0xff},
                                               .opcode_bytes = 1,
                                               .reg = 4,
                                               .is_memory = true,
                                               .memory = memory});
}

static struct host_memory cached_code(void)
{
    struct host_memory code = STATE(translated.jumps[0].code);

    code.index = SCRATCH;
    code.scale = 3;
    return code;
}

static void call_indirect(struct emitter *e)
{
    encode_load(&e->hot, SCRATCH, cached_code());
    encode_store(&e->hot, STATE(translated.target), SCRATCH);
    stack_check_push(e);
    stack_put_constant(e, e->instruction->rip + e->instruction->length);
    stack_move(e, -8);
    emit_stack(e);
    jump_to_memory(e, STATE(translated.target));
}

/* ADDRESS = the target. */
static void load_target(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;

    if (instruction->form->variant == FLOW_RETURN) {
        stack_check_pop(e);
        encode_load(&e->hot, ADDRESS, emit_checked(e));
    } else if (instruction->memory) {
        emit_access(e, (struct access_check){.size = 8, .segment = instruction->segment});
        encode_load(&e->hot, ADDRESS, emit_checked(e));
    } else if (register_is_homeless(instruction->rm)) {
        encode_load(&e->hot, ADDRESS, emit_register_slot(instruction->rm));
    } else {
        encode_move(&e->hot, ADDRESS, register_host(instruction->rm));
    }
}

bool rule_flow_indirect(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;

    if (instruction->operand_size != 8)
        return false;
    emit_spill_flags(e);
    if (instruction->form->variant == FLOW_CALL)
        e->group.shared = false; /* its push may begin the instruction anew */
    load_target(e);
    look_up(e);
    switch (instruction->form->variant) {
    case FLOW_CALL:
        call_indirect(e);
        return true;
    case FLOW_RETURN:
        stack_move(e, (int32_t)(8 + instruction->immediate));
        break;
    default:
        break;
    }
    jump_to_memory(e, cached_code());
    return true;
}
