/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ADD OR ADC SBB AND SUB XOR CMP TEST, INC DEC NOT NEG.
 *
 * Each operation exists twice: on the host's instruction with its flags taken, and in C
 * ("quiet") for when nobody will look at them. Handlers are stamped out of both by size
 * and operand kinds.
 */
#include "accel/soft/flags_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/operand_private.h"

/* ---- operations with flags
 * --------------------------------------------------------------- */

/* The carry that goes in is bit 8 of the packed flags. */
#define CARRY_IN "bt $8, %%eax\n\t"

#define DEFINE_OPERATION(name, bits, suffix)                                             \
    static ALWAYS_INLINE uint##bits##_t name##bits(                                      \
        struct soft_cpu *cpu, uint##bits##_t target, uint##bits##_t source)              \
    {                                                                                    \
        uint16_t packed;                                                                 \
                                                                                         \
        asm(#name suffix " %[source], %[target]\n\t" FLAGS_SAVE                          \
            : [target] "+r"(target), "=a"(packed)                                        \
            : [source] "r"(source)                                                       \
            : "cc");                                                                     \
        flags_store(cpu, packed);                                                        \
        return target;                                                                   \
    }                                                                                    \
    static ALWAYS_INLINE void lock_##name##bits(                                         \
        struct soft_cpu *cpu, guest_u##bits *target, uint##bits##_t source)              \
    {                                                                                    \
        uint16_t packed;                                                                 \
                                                                                         \
        asm volatile("lock " #name suffix " %[source], %[target]\n\t" FLAGS_SAVE         \
                     : [target] "+m"(*target), "=a"(packed)                              \
                     : [source] "r"(source)                                              \
                     : "cc", "memory");                                                  \
        flags_store(cpu, packed);                                                        \
    }

#define DEFINE_CARRY_OPERATION(name, bits, suffix)                                       \
    static ALWAYS_INLINE uint##bits##_t name##bits(                                      \
        struct soft_cpu *cpu, uint##bits##_t target, uint##bits##_t source)              \
    {                                                                                    \
        uint16_t packed = cpu->flags_packed;                                             \
                                                                                         \
        asm(CARRY_IN #name suffix " %[source], %[target]\n\t" FLAGS_SAVE                 \
            : [target] "+r"(target), "+a"(packed)                                        \
            : [source] "r"(source)                                                       \
            : "cc");                                                                     \
        flags_store(cpu, packed);                                                        \
        return target;                                                                   \
    }                                                                                    \
    static ALWAYS_INLINE void lock_##name##bits(                                         \
        struct soft_cpu *cpu, guest_u##bits *target, uint##bits##_t source)              \
    {                                                                                    \
        uint16_t packed = cpu->flags_packed;                                             \
                                                                                         \
        asm volatile(CARRY_IN "lock " #name suffix                                       \
                              " %[source], %[target]\n\t" FLAGS_SAVE                     \
                     : [target] "+m"(*target), "+a"(packed)                              \
                     : [source] "r"(source)                                              \
                     : "cc", "memory");                                                  \
        flags_store(cpu, packed);                                                        \
    }

/* One operand; `source` is not used. INC and DEC leave CF as it is. */
#define DEFINE_UNARY_OPERATION(name, bits, suffix)                                       \
    static ALWAYS_INLINE uint##bits##_t name##bits(                                      \
        struct soft_cpu *cpu, uint##bits##_t target, uint##bits##_t source)              \
    {                                                                                    \
        uint16_t packed = cpu->flags_packed;                                             \
                                                                                         \
        (void)source;                                                                    \
        asm(CARRY_IN #name suffix " %[target]\n\t" FLAGS_SAVE                            \
            : [target] "+r"(target), "+a"(packed)                                        \
            :                                                                            \
            : "cc");                                                                     \
        flags_store(cpu, packed);                                                        \
        return target;                                                                   \
    }                                                                                    \
    static ALWAYS_INLINE void lock_##name##bits(                                         \
        struct soft_cpu *cpu, guest_u##bits *target, uint##bits##_t source)              \
    {                                                                                    \
        uint16_t packed = cpu->flags_packed;                                             \
                                                                                         \
        (void)source;                                                                    \
        asm volatile(CARRY_IN "lock " #name suffix " %[target]\n\t" FLAGS_SAVE           \
                     : [target] "+m"(*target), "+a"(packed)                              \
                     :                                                                   \
                     : "cc", "memory");                                                  \
        flags_store(cpu, packed);                                                        \
    }

FOR_EACH_SIZE(DEFINE_OPERATION, add)
FOR_EACH_SIZE(DEFINE_OPERATION, or)
FOR_EACH_SIZE(DEFINE_CARRY_OPERATION, adc)
FOR_EACH_SIZE(DEFINE_CARRY_OPERATION, sbb)
FOR_EACH_SIZE(DEFINE_OPERATION, and)
FOR_EACH_SIZE(DEFINE_OPERATION, sub)
FOR_EACH_SIZE(DEFINE_OPERATION, xor)
FOR_EACH_SIZE(DEFINE_UNARY_OPERATION, inc)
FOR_EACH_SIZE(DEFINE_UNARY_OPERATION, dec)
FOR_EACH_SIZE(DEFINE_UNARY_OPERATION, neg)

/* CMP and TEST: only the flags of SUB and AND count. */
#define DEFINE_COMPARISON(name, bits, suffix)                                            \
    static ALWAYS_INLINE void name##bits(struct soft_cpu *cpu, uint##bits##_t target,    \
                                         uint##bits##_t source)                          \
    {                                                                                    \
        uint16_t packed;                                                                 \
                                                                                         \
        asm(#name suffix " %[source], %[target]\n\t" FLAGS_SAVE                          \
            : "=a"(packed)                                                               \
            : [target] "r"(target), [source] "r"(source)                                 \
            : "cc");                                                                     \
        flags_store(cpu, packed);                                                        \
    }

FOR_EACH_SIZE(DEFINE_COMPARISON, cmp)
FOR_EACH_SIZE(DEFINE_COMPARISON, test)

/* ---- operations without flags
 * ------------------------------------------------------------ */

#define DEFINE_QUIET(name, bits, expression)                                             \
    static ALWAYS_INLINE uint##bits##_t quiet_##name##bits(                              \
        struct soft_cpu *cpu, uint##bits##_t target, uint##bits##_t source)              \
    {                                                                                    \
        (void)cpu;                                                                       \
        (void)source;                                                                    \
        return (uint##bits##_t)(expression);                                             \
    }
#define DEFINE_QUIET_SIZES(name, expression)                                             \
    DEFINE_QUIET(name, 8, expression)                                                    \
    DEFINE_QUIET(name, 16, expression)                                                   \
    DEFINE_QUIET(name, 32, expression)                                                   \
    DEFINE_QUIET(name, 64, expression)
#define CARRY(cpu) ((cpu)->flags_status & STATUS_CF)

DEFINE_QUIET_SIZES(add, target + source)
DEFINE_QUIET_SIZES(or, target | source)
DEFINE_QUIET_SIZES(adc, target + source + CARRY(cpu))
DEFINE_QUIET_SIZES(sbb, target - source - CARRY(cpu))
DEFINE_QUIET_SIZES(and, target &source)
DEFINE_QUIET_SIZES(sub, target - source)
DEFINE_QUIET_SIZES(xor, target ^ source)
DEFINE_QUIET_SIZES(inc, target + 1u)
DEFINE_QUIET_SIZES(dec, target - 1u)
DEFINE_QUIET_SIZES(not, ~target)
DEFINE_QUIET_SIZES(neg, 0u - target)

/* ---- handlers of two operands
 * ------------------------------------------------------------ */

/* Operand kinds, target first: R register (rm), G register (reg), I immediate, M memory.
 */
enum alu_form { FORM_RG, FORM_GR, FORM_RI, FORM_GM, FORM_MG, FORM_MI, ALU_FORMS };

#define DEFINE_WRITERS(name, bits, suffix)                                               \
    DEFINE_RM_FORMS(name, bits)                                                          \
    DEFINE_REG_FORMS(name, bits)                                                         \
    DEFINE_FINISHED(name, bits, mg,                                                      \
                    finish_update##bits(cpu, uop, name##bits, REGISTER(bits)))           \
    DEFINE_FINISHED(name, bits, mi,                                                      \
                    finish_update##bits(cpu, uop, name##bits, IMMEDIATE(bits)))

#define DEFINE_READERS(name, bits, suffix)                                               \
    DEFINE_HANDLER(name, bits, rg, name##bits(cpu, RM_REGISTER(bits), REGISTER(bits)))   \
    DEFINE_HANDLER(name, bits, gr, name##bits(cpu, REGISTER(bits), RM_REGISTER(bits)))   \
    DEFINE_HANDLER(name, bits, ri, name##bits(cpu, RM_REGISTER(bits), IMMEDIATE(bits)))  \
    DEFINE_WITH_MEMORY(name, bits, gm, name##bits(cpu, REGISTER(bits), memory))          \
    DEFINE_WITH_MEMORY(name, bits, mg, name##bits(cpu, memory, REGISTER(bits)))          \
    DEFINE_WITH_MEMORY(name, bits, mi, name##bits(cpu, memory, IMMEDIATE(bits)))

#define DEFINE_LOCKED(name, bits, suffix)                                                \
    DEFINE_FINISHED(locked_##name, bits, mg,                                             \
                    finish_update_locked##bits(cpu, uop, name##bits, lock_##name##bits,  \
                                               REGISTER(bits)))                          \
    DEFINE_FINISHED(locked_##name, bits, mi,                                             \
                    finish_update_locked##bits(cpu, uop, name##bits, lock_##name##bits,  \
                                               IMMEDIATE(bits)))

#define DEFINE_BINARY(name)                                                              \
    FOR_EACH_SIZE(DEFINE_WRITERS, name)                                                  \
    FOR_EACH_SIZE(DEFINE_WRITERS, quiet_##name)                                          \
    FOR_EACH_SIZE(DEFINE_LOCKED, name)

DEFINE_BINARY(add)
DEFINE_BINARY(or)
DEFINE_BINARY(adc)
DEFINE_BINARY(sbb)
DEFINE_BINARY(and)
DEFINE_BINARY(sub)
DEFINE_BINARY(xor)
FOR_EACH_SIZE(DEFINE_READERS, cmp)
FOR_EACH_SIZE(DEFINE_READERS, test)

#define FORMS(name, bits)                                                                \
    {                                                                                    \
        [FORM_RG] = name##bits##_rg, [FORM_GR] = name##bits##_gr,                        \
        [FORM_RI] = name##bits##_ri, [FORM_GM] = name##bits##_gm,                        \
        [FORM_MG] = name##bits##_mg, [FORM_MI] = name##bits##_mi,                        \
    }
#define SIZES(name)                                                                      \
    {                                                                                    \
        FORMS(name, 8), FORMS(name, 16), FORMS(name, 32), FORMS(name, 64)                \
    }
#define LOCKED_SIZES(name)                                                               \
    {                                                                                    \
        {locked_##name##8_mg, locked_##name##8_mi},                                      \
            {locked_##name##16_mg, locked_##name##16_mi},                                \
            {locked_##name##32_mg, locked_##name##32_mi},                                \
            {locked_##name##64_mg, locked_##name##64_mi},                                \
    }

/* By flags_dead, size, form. */
static soft_handler *const binary_handlers[][2][SIZE_INDEXES][ALU_FORMS] = {
    [ALU_ADD] = {SIZES(add), SIZES(quiet_add)},
    [ALU_OR] = {SIZES(or), SIZES(quiet_or)},
    [ALU_ADC] = {SIZES(adc), SIZES(quiet_adc)},
    [ALU_SBB] = {SIZES(sbb), SIZES(quiet_sbb)},
    [ALU_AND] = {SIZES(and), SIZES(quiet_and)},
    [ALU_SUB] = {SIZES(sub), SIZES(quiet_sub)},
    [ALU_XOR] = {SIZES(xor), SIZES(quiet_xor)},
    [ALU_CMP] = {SIZES(cmp), SIZES(cmp)},
    [ALU_TEST] = {SIZES(test), SIZES(test)},
};

/* By size; source register, source immediate. */
static soft_handler *const locked_handlers[][SIZE_INDEXES][2] = {
    [ALU_ADD] = LOCKED_SIZES(add), [ALU_OR] = LOCKED_SIZES(or),
    [ALU_ADC] = LOCKED_SIZES(adc), [ALU_SBB] = LOCKED_SIZES(sbb),
    [ALU_AND] = LOCKED_SIZES(and), [ALU_SUB] = LOCKED_SIZES(sub),
    [ALU_XOR] = LOCKED_SIZES(xor),
};

static bool is_immediate(uint8_t operand)
{
    return operand >= OPERAND_I8 && operand <= OPERAND_IV;
}

static bool is_reg_operand(uint8_t operand)
{
    return operand >= OPERAND_G && operand <= OPERAND_G64;
}

static enum alu_form alu_form(const struct instruction *instruction)
{
    const uint8_t *operands = instruction->form->operands;

    if (is_immediate(operands[1])) /* the accumulator is rm 0 */
        return instruction->memory ? FORM_MI : FORM_RI;
    if (is_reg_operand(operands[0]))
        return instruction->memory ? FORM_GM : FORM_GR;
    return instruction->memory ? FORM_MG : FORM_RG;
}

soft_handler *select_alu(const struct instruction *instruction, bool flags_dead)
{
    enum alu_form form = alu_form(instruction);
    unsigned size = size_index(instruction->operand_size);

    if (instruction->lock)
        return locked_handlers[instruction->form->variant][size][form == FORM_MI];
    return binary_handlers[instruction->form->variant][flags_dead][size][form];
}

/* ---- handlers of one operand
 * ------------------------------------------------------------- */

#define DEFINE_UNARY(name, bits, suffix)                                                 \
    DEFINE_HANDLER(                                                                      \
        name, bits, r,                                                                   \
        register_set##bits(cpu, uop->rm, name##bits(cpu, RM_REGISTER(bits), 0)))         \
    DEFINE_FINISHED(name, bits, m, finish_update##bits(cpu, uop, name##bits, 0))
#define DEFINE_UNARY_LOCKED(name, bits, suffix)                                          \
    DEFINE_FINISHED(                                                                     \
        locked_##name, bits, m,                                                          \
        finish_update_locked##bits(cpu, uop, name##bits, lock_##name##bits, 0))

FOR_EACH_SIZE(DEFINE_UNARY, inc)
FOR_EACH_SIZE(DEFINE_UNARY, dec)
FOR_EACH_SIZE(DEFINE_UNARY, neg)
FOR_EACH_SIZE(DEFINE_UNARY, quiet_inc)
FOR_EACH_SIZE(DEFINE_UNARY, quiet_dec)
FOR_EACH_SIZE(DEFINE_UNARY, quiet_neg)
FOR_EACH_SIZE(DEFINE_UNARY, quiet_not)
FOR_EACH_SIZE(DEFINE_UNARY_LOCKED, inc)
FOR_EACH_SIZE(DEFINE_UNARY_LOCKED, dec)
FOR_EACH_SIZE(DEFINE_UNARY_LOCKED, neg)

#define DEFINE_LOCK_NOT(name, bits, suffix)                                              \
    static ALWAYS_INLINE void lock_##name##bits(                                         \
        struct soft_cpu *cpu, guest_u##bits *target, uint##bits##_t source)              \
    {                                                                                    \
        (void)cpu;                                                                       \
        (void)source;                                                                    \
        asm volatile("lock not" suffix " %[target]"                                      \
                     : [target] "+m"(*target)                                            \
                     :                                                                   \
                     : "memory");                                                        \
    }
FOR_EACH_SIZE(DEFINE_LOCK_NOT, quiet_not)
FOR_EACH_SIZE(DEFINE_UNARY_LOCKED, quiet_not)

/* Register or memory, by size. */
#define UNARY_SIZES(name)                                                                \
    {                                                                                    \
        {name##8_r, name##8_m}, {name##16_r, name##16_m}, {name##32_r, name##32_m},      \
            {name##64_r, name##64_m},                                                    \
    }
#define UNARY_LOCKED_SIZES(name)                                                         \
    {                                                                                    \
        locked_##name##8_m, locked_##name##16_m, locked_##name##32_m,                    \
            locked_##name##64_m,                                                         \
    }

static soft_handler *const unary_handlers[][2][SIZE_INDEXES][2] = {
    [ALU_INC] = {UNARY_SIZES(inc), UNARY_SIZES(quiet_inc)},
    [ALU_DEC] = {UNARY_SIZES(dec), UNARY_SIZES(quiet_dec)},
    [ALU_NEG] = {UNARY_SIZES(neg), UNARY_SIZES(quiet_neg)},
    [ALU_NOT] = {UNARY_SIZES(quiet_not), UNARY_SIZES(quiet_not)},
};

static soft_handler *const unary_locked_handlers[][SIZE_INDEXES] = {
    [ALU_INC] = UNARY_LOCKED_SIZES(inc),
    [ALU_DEC] = UNARY_LOCKED_SIZES(dec),
    [ALU_NEG] = UNARY_LOCKED_SIZES(neg),
    [ALU_NOT] = UNARY_LOCKED_SIZES(quiet_not),
};

soft_handler *select_alu_unary(const struct instruction *instruction, bool flags_dead)
{
    unsigned size = size_index(instruction->operand_size);
    uint16_t variant = instruction->form->variant;

    if (instruction->lock)
        return unary_locked_handlers[variant][size];
    return unary_handlers[variant][flags_dead][size][instruction->memory];
}

/* ---- INC and DEC with the register in the opcode (not in 64-bit code)
 * ------------------------------------------------------------- */

#define DEFINE_SHORT(name, bits, suffix)                                                 \
    DEFINE_HANDLER(                                                                      \
        name, bits, o,                                                                   \
        register_set##bits(cpu, uop->reg, name##bits(cpu, REGISTER(bits), 0)))

DEFINE_SHORT(inc, 16, "w")
DEFINE_SHORT(inc, 32, "l")
DEFINE_SHORT(dec, 16, "w")
DEFINE_SHORT(dec, 32, "l")

soft_handler *select_alu_short(const struct instruction *instruction, bool flags_dead)
{
    (void)flags_dead;
    if (instruction->form->variant == ALU_INC)
        return instruction->operand_size == 2 ? inc16_o : inc32_o;
    return instruction->operand_size == 2 ? dec16_o : dec32_o;
}
