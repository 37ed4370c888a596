/* SPDX-License-Identifier: Apache-2.0 */
/* MOV, MOVZX, MOVSX, LEA, XCHG, CMOVcc, SETcc, and widening of the accumulator. */
#include "accel/soft/address_private.h"
#include "accel/soft/flags_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/operand_private.h"

/* ---- MOV
 * ---------------------------------------------------------------------------------- */

/* Target first: R register (rm), G register (reg), I immediate, M memory. */
enum move_form {
    MOVE_RG,
    MOVE_GR,
    MOVE_RI,
    MOVE_GI,
    MOVE_GM,
    MOVE_MG,
    MOVE_MI,
    MOVE_FORMS
};

#define DEFINE_MOVE(name, bits, suffix)                                                  \
    DEFINE_HANDLER(name, bits, rg, register_set##bits(cpu, uop->rm, REGISTER(bits)))     \
    DEFINE_HANDLER(name, bits, gr, register_set##bits(cpu, uop->reg, RM_REGISTER(bits))) \
    DEFINE_HANDLER(name, bits, ri, register_set##bits(cpu, uop->rm, IMMEDIATE(bits)))    \
    DEFINE_HANDLER(name, bits, gi, register_set##bits(cpu, uop->reg, IMMEDIATE(bits)))   \
    DEFINE_WITH_MEMORY(name, bits, gm, register_set##bits(cpu, uop->reg, memory))        \
    DEFINE_FINISHED(name, bits, mg, finish_write##bits(cpu, uop, REGISTER(bits)))        \
    DEFINE_FINISHED(name, bits, mi, finish_write##bits(cpu, uop, IMMEDIATE(bits)))       \
    DEFINE_WITH_MEMORY(name, bits, from, register_set##bits(cpu, 0, memory))             \
    DEFINE_FINISHED(name, bits, to,                                                      \
                    finish_write##bits(cpu, uop, register_get##bits(cpu, 0)))
FOR_EACH_SIZE(DEFINE_MOVE, mov)
#undef DEFINE_MOVE

static uint64_t flat_operand(struct soft_cpu *cpu, const struct uop *uop, bool write)
{
    return address_linear(cpu, uop, uop->segment, (uint32_t)soft_address(cpu, uop),
                          uop->size, write);
}

/* Flat 32-bit addressing without an address uop. Limits count in the slow way. */
#define DEFINE_MOVE_FLAT(bits)                                                           \
    static void load_flat_slow##bits(struct soft_cpu *cpu, const struct uop *uop)        \
    {                                                                                    \
        uint64_t linear = flat_operand(cpu, uop, false);                                 \
                                                                                         \
        register_set##bits(cpu, uop->reg,                                                \
                           (uint##bits##_t)soft_load_slow(cpu, uop, linear, uop->size)); \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    static void store_flat_slow##bits(struct soft_cpu *cpu, const struct uop *uop,       \
                                      uint##bits##_t value)                              \
    {                                                                                    \
        soft_store_slow(cpu, uop, flat_operand(cpu, uop, true), uop->size, value);       \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    static ALWAYS_INLINE void store_flat##bits(                                          \
        struct soft_cpu *cpu, const struct uop *uop, uint##bits##_t value)               \
    {                                                                                    \
        guest_u##bits *to =                                                              \
            soft_writable(cpu, (uint32_t)soft_address(cpu, uop), (bits) / 8);            \
                                                                                         \
        if (!LIKELY(to)) {                                                               \
            store_flat_slow##bits(cpu, uop, value);                                      \
            return;                                                                      \
        }                                                                                \
        *to = value;                                                                     \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    static void flat##bits##_gm(struct soft_cpu *cpu, const struct uop *uop)             \
    {                                                                                    \
        const guest_u##bits *from =                                                      \
            soft_readable(cpu, (uint32_t)soft_address(cpu, uop), (bits) / 8);            \
                                                                                         \
        if (!LIKELY(from)) {                                                             \
            load_flat_slow##bits(cpu, uop);                                              \
            return;                                                                      \
        }                                                                                \
        register_set##bits(cpu, uop->reg, *from);                                        \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    DEFINE_FINISHED(flat, bits, mg, store_flat##bits(cpu, uop, REGISTER(bits)))          \
    DEFINE_FINISHED(flat, bits, mi, store_flat##bits(cpu, uop, IMMEDIATE(bits)))
DEFINE_MOVE_FLAT(8)
DEFINE_MOVE_FLAT(16)
DEFINE_MOVE_FLAT(32)
#undef DEFINE_MOVE_FLAT

#define FORMS(bits)                                                                      \
    {                                                                                    \
        [MOVE_RG] = mov##bits##_rg, [MOVE_GR] = mov##bits##_gr,                          \
        [MOVE_RI] = mov##bits##_ri, [MOVE_GI] = mov##bits##_gi,                          \
        [MOVE_GM] = mov##bits##_gm, [MOVE_MG] = mov##bits##_mg,                          \
        [MOVE_MI] = mov##bits##_mi,                                                      \
    }
static soft_handler *const move_handlers[SIZE_INDEXES][MOVE_FORMS] = {
    FORMS(8), FORMS(16), FORMS(32), FORMS(64)};
#undef FORMS

#define FLAT_FORMS(bits)                                                                 \
    {                                                                                    \
        [MOVE_GM] = flat##bits##_gm, [MOVE_MG] = flat##bits##_mg,                        \
        [MOVE_MI] = flat##bits##_mi,                                                     \
    }
static soft_handler *const flat_handlers[][MOVE_FORMS] = {FLAT_FORMS(8), FLAT_FORMS(16),
                                                          FLAT_FORMS(32)};
#undef FLAT_FORMS

static enum move_form move_form(const struct instruction *instruction)
{
    const uint8_t *operands = instruction->form->operands;

    if (operands[0] == OPERAND_O)
        return MOVE_GI;
    if (operands[0] >= OPERAND_G && operands[0] <= OPERAND_G64)
        return instruction->memory ? MOVE_GM : MOVE_GR;
    if (operands[1] >= OPERAND_G && operands[1] <= OPERAND_G64)
        return instruction->memory ? MOVE_MG : MOVE_RG;
    return instruction->memory ? MOVE_MI : MOVE_RI;
}

soft_handler *select_move(const struct instruction *instruction, bool flags_dead)
{
    bool flat = instruction->memory && address_is_flat(instruction) &&
                (instruction->form->attributes & FORM_FLAT) != 0;

    (void)flags_dead;
    return (flat ? flat_handlers : move_handlers)[size_index(instruction->operand_size)]
                                                 [move_form(instruction)];
}

soft_handler *select_move_offset(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const from[] = {mov8_from, mov16_from, mov32_from, mov64_from};
    static soft_handler *const to[] = {mov8_to, mov16_to, mov32_to, mov64_to};
    unsigned size = size_index(instruction->operand_size);

    (void)flags_dead;
    return instruction->form->variant == MOVE_FROM_OFFSET ? from[size] : to[size];
}

/* ---- MOVZX, MOVSX, MOVSXD
 * ------------------------------------------------------------- */

/* Named by target size; `from` is the source's. */
#define DEFINE_EXTEND(name, from, bits, type)                                            \
    DEFINE_HANDLER(                                                                      \
        name##from##_, bits, r,                                                          \
        register_set##bits(cpu, uop->reg, (uint##bits##_t)(type)RM_REGISTER(from)))      \
    static void name##from##_##bits##_then(struct soft_cpu *cpu, const struct uop *uop,  \
                                           uint##from##_t memory)                        \
    {                                                                                    \
        register_set##bits(cpu, uop->reg, (uint##bits##_t)(type)memory);                 \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    DEFINE_FINISHED(name##from##_, bits, m,                                              \
                    finish_read##from(cpu, uop, name##from##_##bits##_then))
DEFINE_EXTEND(zero, 8, 16, uint8_t)
DEFINE_EXTEND(zero, 8, 32, uint8_t)
DEFINE_EXTEND(zero, 8, 64, uint8_t)
DEFINE_EXTEND(zero, 16, 16, uint16_t)
DEFINE_EXTEND(zero, 16, 32, uint16_t)
DEFINE_EXTEND(zero, 16, 64, uint16_t)
DEFINE_EXTEND(sign, 8, 16, int8_t)
DEFINE_EXTEND(sign, 8, 32, int8_t)
DEFINE_EXTEND(sign, 8, 64, int8_t)
DEFINE_EXTEND(sign, 16, 16, int16_t)
DEFINE_EXTEND(sign, 16, 32, int16_t)
DEFINE_EXTEND(sign, 16, 64, int16_t)
DEFINE_EXTEND(sign, 32, 16, int32_t)
DEFINE_EXTEND(sign, 32, 32, int32_t)
DEFINE_EXTEND(sign, 32, 64, int32_t)
#undef DEFINE_EXTEND

/* By target size from 16 bits; register, memory. */
#define EXTENDS(name)                                                                    \
    {                                                                                    \
        {name##_16_r, name##_16_m}, {name##_32_r, name##_32_m},                          \
        {                                                                                \
            name##_64_r, name##_64_m                                                     \
        }                                                                                \
    }
soft_handler *select_move_extend(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const zero[][3][2] = {EXTENDS(zero8), EXTENDS(zero16)};
    static soft_handler *const sign[][3][2] = {EXTENDS(sign8), EXTENDS(sign16),
                                               EXTENDS(sign32)};
    unsigned from = instruction->form->operands[1] - (unsigned)OPERAND_E8;
    unsigned to = size_index(instruction->operand_size) - 1;

    (void)flags_dead;
    if (instruction->form->variant == MOVE_ZERO_EXTEND)
        return zero[from][to][instruction->memory];
    return sign[from][to][instruction->memory];
}
#undef EXTENDS

/* ---- the accumulator widened
 * ------------------------------------------------------------- */

#define DEFINE_WIDEN(half, bits)                                                         \
    DEFINE_HANDLER(                                                                      \
        widen, bits, a,                                                                  \
        register_set##bits(cpu, 0,                                                       \
                           (uint##bits##_t)(int##half##_t)register_get##half(cpu, 0)))   \
    DEFINE_HANDLER(sign, bits, d,                                                        \
                   register_set##bits(cpu, X86_RDX * 8,                                  \
                                      (int##bits##_t)register_get##bits(cpu, 0) < 0      \
                                          ? UINT##bits##_MAX                             \
                                          : 0))
DEFINE_WIDEN(8, 16)
DEFINE_WIDEN(16, 32)
DEFINE_WIDEN(32, 64)
#undef DEFINE_WIDEN

soft_handler *select_move_accumulator(const struct instruction *instruction,
                                      bool flags_dead)
{
    static soft_handler *const widen[] = {widen16_a, widen32_a, widen64_a};
    static soft_handler *const sign[] = {sign16_d, sign32_d, sign64_d};
    unsigned size = size_index(instruction->operand_size) - 1;

    (void)flags_dead;
    return instruction->form->variant == MOVE_WIDEN_ACCUMULATOR ? widen[size]
                                                                : sign[size];
}

/* ---- LEA
 * ---------------------------------------------------------------------------------- */

#define DEFINE_LEA(bits)                                                                 \
    DEFINE_HANDLER(                                                                      \
        lea, bits, m,                                                                    \
        register_set##bits(cpu, uop->reg, (uint##bits##_t)soft_address(cpu, uop)))
DEFINE_LEA(16)
DEFINE_LEA(32)
DEFINE_LEA(64)
#undef DEFINE_LEA

soft_handler *select_lea(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {lea16_m, lea32_m, lea64_m};

    (void)flags_dead;
    return handlers[size_index(instruction->operand_size) - 1];
}

/* ---- XCHG
 * ---------------------------------------------------------------------------------- */

/* With memory it is locked, prefix or not (SDM 8.1.2.1). */
#define DEFINE_EXCHANGE(name, bits, suffix)                                              \
    static void name##bits##_r(struct soft_cpu *cpu, const struct uop *uop)              \
    {                                                                                    \
        uint##bits##_t value = REGISTER(bits);                                           \
                                                                                         \
        register_set##bits(cpu, uop->reg, RM_REGISTER(bits));                            \
        register_set##bits(cpu, uop->rm, value);                                         \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    static void name##bits##_m(struct soft_cpu *cpu, const struct uop *uop)              \
    {                                                                                    \
        uint64_t linear = soft_address(cpu, uop);                                        \
        guest_u##bits *place = place_open##bits(cpu, uop, linear);                       \
        uint##bits##_t value = REGISTER(bits);                                           \
                                                                                         \
        asm volatile("xchg %[value], %[memory]"                                          \
                     : [value] "+r"(value), [memory] "+m"(*place)                        \
                     :                                                                   \
                     : "memory");                                                        \
        place_close##bits(cpu, uop, linear, place);                                      \
        register_set##bits(cpu, uop->reg, value);                                        \
        NEXT(cpu, uop);                                                                  \
    }
FOR_EACH_SIZE(DEFINE_EXCHANGE, exchange)
#undef DEFINE_EXCHANGE

soft_handler *select_exchange(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const registers[] = {exchange8_r, exchange16_r, exchange32_r,
                                              exchange64_r};
    static soft_handler *const memory[] = {exchange8_m, exchange16_m, exchange32_m,
                                           exchange64_m};
    unsigned size = size_index(instruction->operand_size);

    (void)flags_dead;
    return instruction->memory ? memory[size] : registers[size];
}

static void exchange_accumulator(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t value = soft_register_get(cpu, uop->reg, uop->size);

    soft_register_set(cpu, uop->reg, uop->size, soft_register_get(cpu, 0, uop->size));
    soft_register_set(cpu, 0, uop->size, value);
    NEXT(cpu, uop);
}

static void no_operation(struct soft_cpu *cpu, const struct uop *uop)
{
    NEXT(cpu, uop);
}

/* 90 is NOP, not an exchange of EAX with itself, which would clear the upper half (SDM
 * vol. 2, XCHG). */
soft_handler *select_exchange_accumulator(const struct instruction *instruction,
                                          bool flags_dead)
{
    (void)flags_dead;
    return instruction->reg == X86_RAX ? no_operation : exchange_accumulator;
}

/* ---- CMOVcc and SETcc: one handler a condition
 * ------------------------------------------------------------- */

#define FOR_EACH_CONDITION(apply)                                                        \
    apply(0) apply(1) apply(2) apply(3) apply(4) apply(5) apply(6) apply(7) apply(8)     \
        apply(9) apply(10) apply(11) apply(12) apply(13) apply(14) apply(15)

/* The memory operand is read whether the condition is met or not, and a 32-bit target is
 * written either way (SDM vol. 2, CMOVcc). */
#define DEFINE_MOVE_CONDITION_SIZE(condition, bits)                                      \
    DEFINE_HANDLER(move_if##condition##_, bits, r,                                       \
                   register_set##bits(cpu, uop->reg,                                     \
                                      soft_condition(cpu, condition) ? RM_REGISTER(bits) \
                                                                     : REGISTER(bits)))  \
    DEFINE_WITH_MEMORY(                                                                  \
        move_if##condition##_, bits, m,                                                  \
        register_set##bits(cpu, uop->reg,                                                \
                           soft_condition(cpu, condition) ? memory : REGISTER(bits)))
#define DEFINE_CONDITION(condition)                                                      \
    DEFINE_MOVE_CONDITION_SIZE(condition, 16)                                            \
    DEFINE_MOVE_CONDITION_SIZE(condition, 32)                                            \
    DEFINE_MOVE_CONDITION_SIZE(condition, 64)                                            \
    DEFINE_HANDLER(set_if##condition##_, 8, r,                                           \
                   register_set8(cpu, uop->rm, soft_condition(cpu, condition)))          \
    DEFINE_FINISHED(set_if##condition##_, 8, m,                                          \
                    finish_write8(cpu, uop, soft_condition(cpu, condition)))
FOR_EACH_CONDITION(DEFINE_CONDITION)
#undef DEFINE_CONDITION
#undef DEFINE_MOVE_CONDITION_SIZE

soft_handler *select_move_condition(const struct instruction *instruction,
                                    bool flags_dead)
{
#define HANDLERS(condition)                                                              \
    {{move_if##condition##_16_r, move_if##condition##_16_m},                             \
     {move_if##condition##_32_r, move_if##condition##_32_m},                             \
     {move_if##condition##_64_r, move_if##condition##_64_m}},
    static soft_handler *const handlers[][3][2] = {FOR_EACH_CONDITION(HANDLERS)};
#undef HANDLERS

    (void)flags_dead;
    return handlers[instruction->opcode & 15][size_index(instruction->operand_size) - 1]
                   [instruction->memory];
}

soft_handler *select_set_condition(const struct instruction *instruction, bool flags_dead)
{
#define HANDLERS(condition) {set_if##condition##_8_r, set_if##condition##_8_m},
    static soft_handler *const handlers[][2] = {FOR_EACH_CONDITION(HANDLERS)};
#undef HANDLERS

    (void)flags_dead;
    return handlers[instruction->opcode & 15][instruction->memory];
}
