/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MUL, IMUL, DIV, IDIV with the accumulator. A division that might trap on the host is
 * the interpreter's: DIV unless the high half is below the divisor, IDIV unless the
 * dividend is the sign-extended low half and the divisor neither 0 nor -1.
 */
#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/emit_private.h"

/* The divisor in a register that is not SCRATCH: its own, or ADDRESS. */
static unsigned load_divisor(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;

    if (!instruction->memory)
        return emit_register(e, instruction->rm, ADDRESS);
    emit_access(e, access_check_of(instruction));
    encode(&e->hot, &(struct host_instruction){.wide = instruction->operand_size == 8,
                                               .opcode = {0x8b},
                                               .opcode_bytes = 1,
                                               .reg = ADDRESS,
                                               .is_memory = true,
                                               .memory = emit_checked(e)});
    return ADDRESS;
}

/* One instruction between registers, of the operand size. */
static void operate(struct emitter *e, uint8_t opcode, unsigned reg, unsigned rm)
{
    encode(&e->hot, &(struct host_instruction){.wide = e->instruction->operand_size == 8,
                                               .opcode = {opcode},
                                               .opcode_bytes = 1,
                                               .reg = (uint8_t)reg,
                                               .rm = (uint8_t)rm});
}

static void with_immediate(struct emitter *e, uint8_t opcode, unsigned extension,
                           unsigned rm, uint8_t immediate)
{
    encode(&e->hot, &(struct host_instruction){.wide = e->instruction->operand_size == 8,
                                               .opcode = {opcode},
                                               .opcode_bytes = 1,
                                               .reg = (uint8_t)extension,
                                               .rm = (uint8_t)rm,
                                               .immediate_bytes = 1,
                                               .immediate = immediate});
}

static void check_unsigned(struct emitter *e, unsigned divisor, uint32_t cold)
{
    operate(e, 0x3b, X86_RDX, divisor); /* cmp rdx, divisor */
    encode_jump_if(&e->hot, CONDITION_AE, cold);
}

/* divisor + 1 is 0 or 1 for what is excluded. */
static void check_signed(struct emitter *e, unsigned divisor, uint32_t cold)
{
    uint8_t sign = (uint8_t)(e->instruction->operand_size * 8 - 1);

    encode_lea(&e->hot, SCRATCH, host_at(divisor, 1), e->instruction->operand_size == 8);
    with_immediate(e, 0x83, 7, SCRATCH, 1); /* cmp scratch, 1 */
    encode_jump_if(&e->hot, CONDITION_BE, cold);
    operate(e, 0x8b, SCRATCH, X86_RAX);
    with_immediate(e, 0xc1, 7, SCRATCH, sign); /* sar scratch, sign */
    operate(e, 0x3b, SCRATCH, X86_RDX);
    encode_jump_if(&e->hot, CONDITION_NE, cold);
}

static bool divide(struct emitter *e, bool has_sign)
{
    uint32_t first_site = e->translator->site_count;
    unsigned divisor;
    uint32_t cold;

    if (e->instruction->operand_size < 4)
        return false;
    emit_spill_flags(e);
    divisor = load_divisor(e);
    cold = emit_cold_call(e, e->translator->step, emit_site(e));
    if (has_sign)
        check_signed(e, divisor, cold);
    else
        check_unsigned(e, divisor, cold);
    operate(e, 0xf7, has_sign ? 7 : 6, divisor);
    emit_flags_written(e);
    emit_next(e, first_site);
    return true;
}

bool rule_divide(struct emitter *e)
{
    switch (e->instruction->form->variant) {
    case MULTIPLY_DIV:
        return divide(e, false);
    case MULTIPLY_IDIV:
        return divide(e, true);
    default:
        return rule_operate(e);
    }
}
