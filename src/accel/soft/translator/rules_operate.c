/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions on general registers and memory: the guest's own instruction, with other
 * registers where it names one that the host's code has elsewhere, and with the memory
 * operand behind a check.
 */
#include <cpuid.h>

#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/emit_private.h"
#include "accel/soft/translator/raw_private.h"

/* ---- operands ---- */

static bool is_rm(uint8_t operand)
{
    return operand >= OPERAND_E && operand <= OPERAND_E64;
}

static bool is_reg(uint8_t operand)
{
    return operand >= OPERAND_G && operand <= OPERAND_G64;
}

/* What its operands are, as far as rewriting goes. */
struct shape {
    bool reg;         /* ModRM.reg is a general register */
    bool rm;          /* ModRM.rm is one (not memory) */
    bool low;         /* the opcode's low bits are one */
    bool accumulator; /* one of them is it, by the form */
    bool high;        /* one of them is AH, CH, DH or BH */
    bool renamed;     /* one of them has another number here, or no host register */
    bool reg_written;
    bool rm_written;
};

static bool exchanges(const struct form *form)
{
    return form->select == select_exchange ||
           form->select == select_exchange_accumulator ||
           (form->select == select_exchange_operate && form->variant == EXCHANGE_XADD);
}

static unsigned operand_bytes(const struct instruction *instruction, uint8_t operand)
{
    if (operand == OPERAND_E8 || operand == OPERAND_G8)
        return 1;
    return operand == OPERAND_E || operand == OPERAND_G || operand == OPERAND_O
               ? instruction->operand_size
               : 2;
}

static bool is_renamed(unsigned number)
{
    return number == X86_RSP || register_is_homeless(number);
}

/* Byte registers 4 to 7 are AH to BH without a REX prefix. */
static bool is_high(const struct instruction *instruction, uint8_t operand,
                    unsigned number)
{
    return operand_bytes(instruction, operand) == 1 && !instruction->has_rex &&
           number >= 4 && number < 8;
}

static void add_operand(struct shape *shape, const struct instruction *instruction,
                        uint8_t operand, bool written)
{
    uint8_t number;

    if (is_rm(operand)) {
        if (instruction->memory)
            return;
        number = instruction->rm;
        shape->rm = true;
        shape->rm_written |= written;
    } else if (is_reg(operand) || operand == OPERAND_O) {
        number = instruction->reg;
        shape->reg |= operand != OPERAND_O;
        shape->low |= operand == OPERAND_O;
        shape->reg_written |= written;
    } else {
        shape->accumulator |= operand == OPERAND_A;
        return;
    }
    if (is_high(instruction, operand, number))
        shape->high = true;
    else
        shape->renamed |= is_renamed(number);
}

static struct shape shape_of(const struct instruction *instruction)
{
    const struct form *form = instruction->form;
    const bool written = exchanges(form);
    struct shape shape = {.reg = false};

    add_operand(&shape, instruction, form->operands[0],
                (form->attributes & FORM_READS) == 0);
    for (unsigned i = 1;
         i < ARRAY_SIZE(form->operands) && form->operands[i] != OPERAND_NONE; i++)
        add_operand(&shape, instruction, form->operands[i], written);
    return shape;
}

/* XOR or SUB of a register with itself. */
static bool clears(const struct instruction *instruction, const struct shape *shape)
{
    const struct form *form = instruction->form;

    return form->select == select_alu &&
           (form->variant == ALU_XOR || form->variant == ALU_SUB) && shape->reg &&
           shape->rm && instruction->reg == instruction->rm;
}

/* The register that it writes it does not read. */
static bool only_writes(const struct instruction *instruction, const struct shape *shape)
{
    const struct form *form = instruction->form;
    bool moves = form->select == select_move || form->select == select_move_extend;
    bool same = shape->reg && shape->rm && instruction->reg == instruction->rm;

    return instruction->operand_size >= 4 &&
           (clears(instruction, shape) || (moves && !same));
}

/* A register to write a guest's to, which has its value if it is read, too. */
static unsigned register_to_write(struct emitter *e, unsigned number, unsigned scratch,
                                  bool read)
{
    if (read || !register_is_homeless(number))
        return emit_register(e, number, scratch);
    if (scratch == ADDRESS)
        e->group.shared = false;
    return scratch;
}

static void store_homeless(struct emitter *e, unsigned number, unsigned from)
{
    if (register_is_homeless(number))
        encode_store(&e->hot, emit_register_slot(number), from);
}

/* ---- memory ---- */

/* Writes registers that its operands do not name. */
static bool has_hidden_results(const struct form *form)
{
    return form->select == select_multiply_wide ||
           form->select == select_exchange_operate ||
           form->select == select_exchange_double ||
           form->select == select_exchange_accumulator ||
           form->select == select_move_accumulator ||
           form->select == select_vector_string || form->select == select_x87_control ||
           form->select == select_misc;
}

static void keep_group(struct emitter *e, const struct shape *shape)
{
    const struct instruction *instruction = e->instruction;
    int64_t step;

    if (has_hidden_results(instruction->form) || shape->high)
        return; /* AH is not the register of its number */
    if (shape->reg_written)
        emit_written(e, instruction->reg);
    if (stack_step(instruction, &step))
        emit_stack_moved(e, step);
    else if (shape->rm_written)
        emit_written(e, instruction->rm);
    if (shape->accumulator)
        emit_written(e, X86_RAX);
    emit_keep_group(e);
}

/* Where there is one processor nobody else changes what it changes by LOCK, but devices
 * have threads of their own: LOCK on the stack, or with nothing to do, is there for its
 * barrier (Linux's smp_mb between making a buffer available and asking whether to tell).
 */
static bool is_barrier(const struct instruction *instruction)
{
    return instruction->base == X86_RSP ||
           (instruction->immediate_bytes != 0 && instruction->immediate == 0);
}

static void operate_memory(struct emitter *e, const struct shape *shape)
{
    const struct instruction *instruction = e->instruction;
    struct host_instruction raw = raw_parse(instruction);
    uint32_t first_site = e->translator->site_count;
    bool homeless = shape->reg && register_is_homeless(instruction->reg);
    bool read = !shape->reg_written || !only_writes(instruction, shape);
    bool flags = flags_needed(instruction, emit_live_out(e)) != 0;
    const struct access_check check = access_check_of(instruction);

    if (!emit_is_done(e, check))
        emit_spill_flags(e);
    emit_access(e, check);
    if ((homeless && read) || (flags && e->flags == FLAGS_STATE))
        emit_join(e);
    raw.is_memory = true;
    raw.memory = emit_checked(e);
    raw.lock = raw.lock && (!e->one_cpu || is_barrier(instruction));
    raw.rex = instruction->has_rex;
    if (shape->reg)
        raw.reg = (uint8_t)register_host(instruction->reg);
    if (flags)
        emit_flags_to_host(e);
    if (homeless)
        raw.reg = (uint8_t)register_to_write(e, instruction->reg, SCRATCH, read);
    encode(&e->hot, &raw);
    if (homeless && shape->reg_written)
        encode_store(&e->hot, emit_register_slot(instruction->reg), SCRATCH);
    emit_flags_written(e);
    emit_next(e, first_site);
    keep_group(e, shape);
}

/* ---- registers ---- */

/* With the register in the opcode. */
static void encode_low(struct code_writer *writer, const struct host_instruction *raw,
                       unsigned number)
{
    struct host_instruction low = *raw;
    uint8_t rex = (uint8_t)((raw->wide ? 0x48 : 0) | (raw->rex ? 0x40 : 0) |
                            (number >= 8 ? 0x41 : 0));

    low.opcode[low.opcode_bytes - 1] =
        (uint8_t)((low.opcode[low.opcode_bytes - 1] & ~7u) | (number & 7));
    if (low.prefix_66 != 0)
        encode_u8(writer, low.prefix_66);
    if (rex != 0)
        encode_u8(writer, rex);
    encode_bytes(writer, low.opcode, low.opcode_bytes);
    encode_bytes(writer, &low.immediate, low.immediate_bytes);
}

/* ModRM.rm is homeless and may be its slot: the host's instruction treats that as it
 * would the register, unless it clears an upper half. */
static bool fits_slot(const struct instruction *instruction, const struct shape *shape)
{
    return shape->rm && register_is_homeless(instruction->rm) &&
           !(shape->reg && instruction->reg == instruction->rm) &&
           instruction->form->modrm == MODRM_ANY &&
           (!shape->rm_written || instruction->operand_size == 8 ||
            instruction->operand_size == 1);
}

/* A constant that is sign-extended, into a slot. */
static void put_constant(struct emitter *e, unsigned number, uint64_t value)
{
    encode(&e->hot, &(struct host_instruction){.wide = true,
                                               .opcode = {0xc7},
                                               .opcode_bytes = 1,
                                               .is_memory = true,
                                               .memory = emit_register_slot(number),
                                               .immediate_bytes = 4,
                                               .immediate = value});
}

/* ModRM.reg is homeless, ModRM.rm is not: the instruction with both exchanged, so that
 * the slot can be ModRM.rm. Of MOV and arithmetic, bit 1 of the opcode is the direction
 * (SDM vol. 2, B.1.4.8); TEST has none. */
static bool exchange_operands(const struct instruction *instruction,
                              const struct shape *shape, struct host_instruction *raw)
{
    const struct form *form = instruction->form;
    bool test = form->select == select_alu && form->variant == ALU_TEST;

    if ((form->select != select_alu && form->select != select_move) || !shape->reg ||
        !shape->rm || !is_rm(form->operands[0]) || form->map != MAP_ONE ||
        !register_is_homeless(instruction->reg) || register_is_homeless(instruction->rm))
        return false;
    if (!test)
        raw->opcode[0] |= 2;
    raw->rex = instruction->has_rex;
    raw->reg = (uint8_t)register_host(instruction->rm);
    raw->is_memory = true;
    raw->memory = emit_register_slot(instruction->reg);
    return true;
}

static void operate_registers(struct emitter *e, const struct shape *shape)
{
    const struct instruction *instruction = e->instruction;
    struct host_instruction raw = raw_parse(instruction);
    bool same = shape->reg && shape->rm && instruction->reg == instruction->rm;
    bool read = !only_writes(instruction, shape);
    bool other = !same && (shape->reg || shape->low);
    unsigned rm = raw.rm;
    unsigned reg = raw.reg;

    if (exchange_operands(instruction, shape, &raw)) {
        encode(&e->hot, &raw);
        return;
    }
    if (clears(instruction, shape) && register_is_homeless(instruction->rm) &&
        instruction->operand_size >= 4 && emit_live_out(e) == 0) {
        put_constant(e, instruction->rm, 0);
        return;
    }
    if (fits_slot(instruction, shape)) {
        raw.is_memory = true;
        raw.memory = emit_register_slot(instruction->rm);
    } else if (shape->rm) {
        rm = register_to_write(e, instruction->rm,
                               other && register_is_homeless(instruction->reg) ? ADDRESS
                                                                               : SCRATCH,
                               read || !shape->rm_written);
    }
    if (same)
        reg = rm;
    else if (other)
        reg =
            register_to_write(e, instruction->reg, SCRATCH, read || !shape->reg_written);
    raw.rex = instruction->has_rex;
    raw.reg = (uint8_t)reg;
    raw.rm = (uint8_t)rm;
    if (shape->low)
        encode_low(&e->hot, &raw, reg);
    else
        encode(&e->hot, &raw);
    if (shape->rm && !raw.is_memory &&
        (shape->rm_written || (same && shape->reg_written)))
        store_homeless(e, instruction->rm, rm);
    if (other && shape->reg_written)
        store_homeless(e, instruction->reg, reg);
}

/* Without its registers renamed it is copied as it is. */
static void operate_plain(struct emitter *e, const struct shape *shape)
{
    if (flags_needed(e->instruction, emit_live_out(e)) != 0)
        emit_flags_to_host(e);
    if (shape->renamed)
        operate_registers(e, shape);
    else
        encode_bytes(&e->hot, e->bytes, e->instruction->length);
    emit_flags_written(e);
    keep_group(e, shape);
}

bool rule_operate(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;
    struct shape shape = shape_of(instruction);

    /* AH cannot be named beside registers that need a REX prefix. */
    if (shape.high && (shape.renamed || instruction->memory))
        return false;
    if (!instruction->memory) {
        operate_plain(e, &shape);
        return true;
    }
    if ((instruction->form->attributes & FORM_OFFSET_ONLY) != 0)
        return false;
    operate_memory(e, &shape);
    return true;
}

/* ---- special cases ---- */

/* CPUID 0x80000001, ECX bit 5 (AMD APM vol. 3, appendix E); not all compilers name it. */
static bool host_has_lzcnt(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0 && (ecx & 1u << 5) != 0;
}

bool rule_bit_scan(struct emitter *e)
{
    switch (e->instruction->form->variant) {
    case BITS_TZCNT:
        return __builtin_cpu_supports("bmi") != 0 && rule_operate(e);
    case BITS_LZCNT:
        return host_has_lzcnt() && rule_operate(e);
    case BITS_POPCNT:
        return __builtin_cpu_supports("popcnt") != 0 && rule_operate(e);
    default:
        return rule_operate(e);
    }
}

bool rule_constant(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;

    if (instruction->form->operands[0] != OPERAND_O || instruction->operand_size < 4)
        return rule_operate(e);
    if (!register_is_homeless(instruction->reg)) {
        encode_constant(&e->hot, register_host(instruction->reg), instruction->immediate);
    } else if (instruction->immediate == (uint64_t)(int32_t)instruction->immediate) {
        put_constant(e, instruction->reg, instruction->immediate);
    } else {
        encode_constant(&e->hot, SCRATCH, instruction->immediate);
        store_homeless(e, instruction->reg, SCRATCH);
    }
    emit_written(e, instruction->reg);
    emit_keep_group(e);
    return true;
}

bool rule_lea(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;
    unsigned to = register_is_homeless(instruction->reg)
                      ? SCRATCH
                      : register_host(instruction->reg);
    int64_t step;

    if (instruction->operand_size == 2)
        return false;
    emit_offset(e, to, instruction->operand_size == 8 && instruction->address_size == 8);
    store_homeless(e, instruction->reg, to);
    if (stack_step(instruction, &step))
        emit_stack_moved(e, step);
    else
        emit_written(e, instruction->reg);
    emit_keep_group(e);
    return true;
}

bool rule_misc(struct emitter *e)
{
    switch (e->instruction->form->variant) {
    case MISC_NOP:
        emit_keep_group(e);
        return true;
    case MISC_CLD:
    case MISC_STD:
        encode(&e->hot, &(struct host_instruction){
                            .opcode = {0xc6},
                            .opcode_bytes = 1,
                            .is_memory = true,
                            .memory = STATE(direction),
                            .immediate_bytes = 1,
                            .immediate = e->instruction->form->variant == MISC_STD});
        return true;
    case MISC_LFENCE:
    case MISC_MFENCE:
    case MISC_SFENCE:
    case MISC_CLC:
    case MISC_STC:
    case MISC_CMC:
    case MISC_LAHF:
    case MISC_SAHF:
        return rule_operate(e);
    default:
        return false;
    }
}
