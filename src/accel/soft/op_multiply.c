/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MUL IMUL DIV IDIV on the host's instructions. A division that would trap there is found
 * out before and raises #DE in the guest.
 */
#include "accel/soft/flags_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/operand_private.h"

#define ACCUMULATOR (X86_RAX * 8)
#define HIGH (X86_RDX * 8)

/* ---- MUL and IMUL with the accumulator
 * ------------------------------------------------------------- */

/* The product's low half is moved away because FLAGS_SAVE needs the accumulator. */
#define DEFINE_WIDE(name, bits, suffix)                                                  \
    static ALWAYS_INLINE void name##bits##_step(struct soft_cpu *cpu,                    \
                                                uint##bits##_t source)                   \
    {                                                                                    \
        uint64_t accumulator = register_get##bits(cpu, ACCUMULATOR);                     \
        uint64_t low;                                                                    \
        uint64_t high;                                                                   \
                                                                                         \
        asm(#name suffix " %[source]\n\t"                                                \
                         "mov %%rax, %[low]\n\t" FLAGS_SAVE                              \
            : "+a"(accumulator), "=d"(high), [low] "=&r"(low)                            \
            : [source] "r"(source)                                                       \
            : "cc");                                                                     \
        flags_store(cpu, (uint16_t)accumulator);                                         \
        register_set##bits(cpu, ACCUMULATOR, (uint##bits##_t)low);                       \
        register_set##bits(cpu, HIGH, (uint##bits##_t)high);                             \
    }
DEFINE_WIDE(mul, 16, "w")
DEFINE_WIDE(mul, 32, "l")
DEFINE_WIDE(mul, 64, "q")
DEFINE_WIDE(imul, 16, "w")
DEFINE_WIDE(imul, 32, "l")
DEFINE_WIDE(imul, 64, "q")

/* Bytes: the product is AX. */
#define DEFINE_WIDE8(name)                                                               \
    static ALWAYS_INLINE void name##8_step(struct soft_cpu * cpu, uint8_t source)        \
    {                                                                                    \
        uint32_t accumulator = register_get8(cpu, ACCUMULATOR);                          \
        uint32_t product;                                                                \
                                                                                         \
        asm(#name "b %[source]\n\t"                                                      \
                  "mov %%eax, %[product]\n\t" FLAGS_SAVE                                 \
            : "+a"(accumulator), [product] "=&r"(product)                                \
            : [source] "r"(source)                                                       \
            : "cc");                                                                     \
        flags_store(cpu, (uint16_t)accumulator);                                         \
        register_set16(cpu, ACCUMULATOR, (uint16_t)product);                             \
    }
DEFINE_WIDE8(mul)
DEFINE_WIDE8(imul)

static ALWAYS_INLINE void quiet_mul64_step(struct soft_cpu *cpu, uint64_t source)
{
    unsigned __int128 product = (unsigned __int128)cpu->r[X86_RAX] * source;

    cpu->r[X86_RAX] = (uint64_t)product;
    cpu->r[X86_RDX] = (uint64_t)(product >> 64);
}

/* ---- DIV and IDIV
 * ------------------------------------------------------------- */

/* The quotient fits if the dividend's high half is less than the divisor. */
#define DEFINE_DIV_CHECK(name, bits, suffix)                                             \
    static ALWAYS_INLINE bool name##bits(uint##bits##_t high, uint##bits##_t low,        \
                                         uint##bits##_t divisor)                         \
    {                                                                                    \
        (void)low;                                                                       \
        return high < divisor;                                                           \
    }
FOR_EACH_SIZE(DEFINE_DIV_CHECK, div_fits)

/* By magnitudes: the quotient's may be 2^(bits - 1) if it is negative, else one less. */
#define DEFINE_IDIV_CHECK(bits, wide)                                                    \
    static ALWAYS_INLINE bool idiv_fits##bits(uint##bits##_t high, uint##bits##_t low,   \
                                              uint##bits##_t divisor)                    \
    {                                                                                    \
        bool negative = (int##bits##_t)high < 0;                                         \
        bool negative_divisor = (int##bits##_t)divisor < 0;                              \
        unsigned wide dividend = (unsigned wide)(wide)(int##bits##_t)high << bits | low; \
        unsigned wide magnitude = negative ? 0 - dividend : dividend;                    \
        uint##bits##_t by = (uint##bits##_t)(negative_divisor ? 0u - divisor : divisor); \
        uint##bits##_t limit = (uint##bits##_t)1 << (bits - 1);                          \
                                                                                         \
        if (negative == negative_divisor)                                                \
            limit--;                                                                     \
        /* quotient <= limit, without dividing */                                        \
        return by != 0 && magnitude < ((unsigned wide)limit + 1) * by;                   \
    }
DEFINE_IDIV_CHECK(8, long)
DEFINE_IDIV_CHECK(16, long)
DEFINE_IDIV_CHECK(32, long)
DEFINE_IDIV_CHECK(64, __int128)

/* Flags are undefined; the host's become the guest's. */
#define DEFINE_DIVIDE(name, bits, suffix)                                                \
    static ALWAYS_INLINE void name##bits##_step(                                         \
        struct soft_cpu *cpu, const struct uop *uop, uint##bits##_t divisor)             \
    {                                                                                    \
        uint##bits##_t dividend = register_get##bits(cpu, ACCUMULATOR);                  \
        uint64_t high = register_get##bits(cpu, HIGH);                                   \
        uint64_t packed = cpu->flags_packed;                                             \
        uint64_t quotient;                                                               \
                                                                                         \
        if (!name##_fits##bits((uint##bits##_t)high, dividend, divisor))                 \
            soft_raise(cpu, uop, X86_VECTOR_DE);                                         \
        asm(FLAGS_LOAD "mov %[low], %%rax\n\t" #name suffix " %[divisor]\n\t"            \
                       "mov %%rax, %[quotient]\n\t" FLAGS_SAVE                           \
            : "+a"(packed), "+d"(high), [quotient] "=&r"(quotient)                       \
            : [low] "r"((uint64_t)dividend), [divisor] "r"(divisor)                      \
            : "cc");                                                                     \
        flags_store(cpu, (uint16_t)packed);                                              \
        register_set##bits(cpu, ACCUMULATOR, (uint##bits##_t)quotient);                  \
        register_set##bits(cpu, HIGH, (uint##bits##_t)high);                             \
    }
DEFINE_DIVIDE(div, 16, "w")
DEFINE_DIVIDE(div, 32, "l")
DEFINE_DIVIDE(div, 64, "q")
DEFINE_DIVIDE(idiv, 16, "w")
DEFINE_DIVIDE(idiv, 32, "l")
DEFINE_DIVIDE(idiv, 64, "q")

/* Bytes: the dividend is AX; quotient AL, remainder AH. */
#define DEFINE_DIVIDE8(name)                                                             \
    static ALWAYS_INLINE void name##8_step(struct soft_cpu * cpu, const struct uop *uop, \
                                           uint8_t divisor)                              \
    {                                                                                    \
        uint64_t dividend = register_get16(cpu, ACCUMULATOR);                            \
        uint64_t packed = cpu->flags_packed;                                             \
        uint64_t result;                                                                 \
                                                                                         \
        if (!name##_fits8((uint8_t)(dividend >> 8), (uint8_t)dividend, divisor))         \
            soft_raise(cpu, uop, X86_VECTOR_DE);                                         \
        asm(FLAGS_LOAD "mov %[dividend], %%rax\n\t" #name "b %[divisor]\n\t"             \
                       "mov %%rax, %[result]\n\t" FLAGS_SAVE                             \
            : "+a"(packed), [result] "=&r"(result)                                       \
            : [dividend] "r"(dividend), [divisor] "r"(divisor)                           \
            : "cc");                                                                     \
        flags_store(cpu, (uint16_t)packed);                                              \
        register_set16(cpu, ACCUMULATOR, (uint16_t)result);                              \
    }
DEFINE_DIVIDE8(div)
DEFINE_DIVIDE8(idiv)

/* ---- handlers
 * ------------------------------------------------------------- */

#define DEFINE_MULTIPLY(name, bits, suffix)                                              \
    DEFINE_HANDLER(name, bits, r, name##bits##_step(cpu, RM_REGISTER(bits)))             \
    DEFINE_WITH_MEMORY(name, bits, m, name##bits##_step(cpu, memory))
#define DEFINE_DIVISION(name, bits, suffix)                                              \
    DEFINE_HANDLER(name, bits, r, name##bits##_step(cpu, uop, RM_REGISTER(bits)))        \
    DEFINE_WITH_MEMORY(name, bits, m, name##bits##_step(cpu, uop, memory))
FOR_EACH_SIZE(DEFINE_MULTIPLY, mul)
FOR_EACH_SIZE(DEFINE_MULTIPLY, imul)
FOR_EACH_SIZE(DEFINE_DIVISION, div)
FOR_EACH_SIZE(DEFINE_DIVISION, idiv)
DEFINE_MULTIPLY(quiet_mul, 64, "q")

/* By size; register, memory. */
#define SIZES(name)                                                                      \
    {                                                                                    \
        {name##8_r, name##8_m}, {name##16_r, name##16_m}, {name##32_r, name##32_m},      \
            {name##64_r, name##64_m},                                                    \
    }

soft_handler *select_multiply_wide(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[][SIZE_INDEXES][2] = {
        [MULTIPLY_MUL] = SIZES(mul),
        [MULTIPLY_IMUL] = SIZES(imul),
        [MULTIPLY_DIV] = SIZES(div),
        [MULTIPLY_IDIV] = SIZES(idiv),
    };
    uint16_t variant = instruction->form->variant;

    if (variant == MULTIPLY_MUL && instruction->operand_size == 8 && flags_dead)
        return instruction->memory ? quiet_mul64_m : quiet_mul64_r;
    return handlers[variant][size_index(instruction->operand_size)][instruction->memory];
}

/* ---- IMUL with two and three operands
 * ------------------------------------------------------------- */

#define DEFINE_IMUL(bits, suffix)                                                        \
    static ALWAYS_INLINE uint##bits##_t product##bits(                                   \
        struct soft_cpu *cpu, uint##bits##_t target, uint##bits##_t source)              \
    {                                                                                    \
        uint16_t packed;                                                                 \
                                                                                         \
        asm("imul" suffix " %[source], %[target]\n\t" FLAGS_SAVE                         \
            : [target] "+r"(target), "=a"(packed)                                        \
            : [source] "r"(source)                                                       \
            : "cc");                                                                     \
        flags_store(cpu, packed);                                                        \
        return target;                                                                   \
    }                                                                                    \
    static ALWAYS_INLINE uint##bits##_t quiet_product##bits(                             \
        struct soft_cpu *cpu, uint##bits##_t target, uint##bits##_t source)              \
    {                                                                                    \
        (void)cpu;                                                                       \
        return (uint##bits##_t)((uint64_t)target * source);                              \
    }                                                                                    \
    DEFINE_IMUL_HANDLERS(product, bits)                                                  \
    DEFINE_IMUL_HANDLERS(quiet_product, bits)
#define DEFINE_IMUL_HANDLERS(name, bits)                                                 \
    DEFINE_REG_FORMS(name, bits)                                                         \
    DEFINE_HANDLER(                                                                      \
        name, bits, ri,                                                                  \
        register_set##bits(cpu, uop->reg,                                                \
                           name##bits(cpu, RM_REGISTER(bits), IMMEDIATE(bits))))         \
    DEFINE_WITH_MEMORY(                                                                  \
        name, bits, mi,                                                                  \
        register_set##bits(cpu, uop->reg, name##bits(cpu, memory, IMMEDIATE(bits))))
DEFINE_IMUL(16, "w")
DEFINE_IMUL(32, "l")
DEFINE_IMUL(64, "q")

/* Two operands: register, memory; three operands: register, memory. */
#define FORMS(name, bits)                                                                \
    {                                                                                    \
        name##bits##_gr, name##bits##_gm, name##bits##_ri, name##bits##_mi               \
    }

soft_handler *select_imul(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[2][3][4] = {
        {FORMS(product, 16), FORMS(product, 32), FORMS(product, 64)},
        {FORMS(quiet_product, 16), FORMS(quiet_product, 32), FORMS(quiet_product, 64)},
    };
    unsigned form = (instruction->form->operands[2] != OPERAND_NONE ? 2u : 0u) +
                    (instruction->memory ? 1u : 0u);

    return handlers[flags_dead][size_index(instruction->operand_size) - 1][form];
}
