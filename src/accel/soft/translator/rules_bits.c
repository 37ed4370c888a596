/* SPDX-License-Identifier: Apache-2.0 */
/* BT BTS BTR BTC: a bit offset in a register reaches beyond the memory operand. */
#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/raw_private.h"
#include "accel/soft/translator/rules_private.h"

/* SCRATCH = the bit offset, sign-extended. */
static void load_offset(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;
    struct host_instruction load = {.wide = true,
                                    .opcode = {0x63}, /* movsxd */
                                    .opcode_bytes = 1,
                                    .reg = SCRATCH,
                                    .rm = (uint8_t)register_host(instruction->reg)};

    if (instruction->operand_size == 8)
        load.opcode[0] = 0x8b;
    if (register_is_homeless(instruction->reg)) {
        load.is_memory = true;
        load.memory = emit_register_slot(instruction->reg);
    }
    encode(&e->hot, &load);
}

static void scratch_immediate(struct emitter *e, uint8_t opcode, unsigned extension,
                              uint8_t immediate)
{
    encode(&e->hot, &(struct host_instruction){.wide = true,
                                               .opcode = {opcode},
                                               .opcode_bytes = 1,
                                               .reg = (uint8_t)extension,
                                               .rm = SCRATCH,
                                               .immediate_bytes = 1,
                                               .immediate = immediate});
}

static void operate_string(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;
    struct host_instruction raw = raw_parse(instruction);
    uint8_t bytes_shift = instruction->operand_size == 8 ? 3 : 2;
    struct host_memory piece = {.base = ADDRESS, .index = SCRATCH, .scale = bytes_shift};

    load_offset(e);
    scratch_immediate(e, 0xc1, 7, (uint8_t)(bytes_shift + 3)); /* sar */
    encode_lea(&e->hot, ADDRESS, piece, true);
    emit_check(e, (struct access_check){.size = instruction->operand_size,
                                        .write = form_writes_memory(instruction->form),
                                        .segment = instruction->segment});
    emit_join(e);
    load_offset(e);
    scratch_immediate(e, 0x83, 4, (uint8_t)(instruction->operand_size * 8 - 1)); /* and */
    raw.reg = SCRATCH;
    raw.is_memory = true;
    raw.memory = emit_checked(e);
    raw.lock = raw.lock && !e->one_cpu;
    encode(&e->hot, &raw);
}

bool rule_bit_test(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;
    uint32_t first_site = e->translator->site_count;

    if (!instruction->memory || instruction->form->operands[1] != OPERAND_G)
        return rule_operate(e);
    /* Scratch registers are too few for the rest. */
    if (instruction->operand_size < 4 || instruction->address_size != 8 ||
        flags_needed(instruction, emit_live_out(e)) != 0)
        return false;
    emit_spill_flags(e);
    emit_address(e);
    operate_string(e);
    emit_flags_written(e);
    emit_next(e, first_site);
    return true;
}
