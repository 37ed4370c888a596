/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XADD, CMPXCHG, CMPXCHG8B, CMPXCHG16B. On host memory they are the host's instruction,
 * with LOCK if the guest's has it.
 */
#include "accel/soft/flags_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/operand_private.h"

#define ACCUMULATOR (X86_RAX * 8)

/* ---- XADD
 * ---------------------------------------------------------------------------------- */

/* Adds *source to the target, and leaves the old target in *source. */
#define DEFINE_XADD_STEP(name, bits, prefix)                                             \
    static ALWAYS_INLINE void name##bits(struct soft_cpu *cpu, guest_u##bits *target,    \
                                         uint##bits##_t *source)                         \
    {                                                                                    \
        uint##bits##_t value = *source;                                                  \
        uint16_t packed;                                                                 \
                                                                                         \
        asm volatile(prefix "xadd %[value], %[target]\n\t" FLAGS_SAVE                    \
                     : [target] "+m"(*target), [value] "+r"(value), "=a"(packed)         \
                     :                                                                   \
                     : "cc", "memory");                                                  \
        flags_store(cpu, packed);                                                        \
        *source = value;                                                                 \
    }

#define DEFINE_XADD_HANDLER(name, bits, step)                                            \
    static void name##bits##_m(struct soft_cpu *cpu, const struct uop *uop)              \
    {                                                                                    \
        uint64_t linear = soft_address(cpu, uop);                                        \
        guest_u##bits *place = place_open##bits(cpu, uop, linear);                       \
        uint##bits##_t value = REGISTER(bits);                                           \
                                                                                         \
        step##bits(cpu, place, &value);                                                  \
        place_close##bits(cpu, uop, linear, place);                                      \
        register_set##bits(cpu, uop->reg, value);                                        \
        NEXT(cpu, uop);                                                                  \
    }

/* The sum is written last, for it stays when both registers are the same. */
#define DEFINE_XADD(name, bits, suffix)                                                  \
    DEFINE_XADD_STEP(name##_step, bits, "")                                              \
    DEFINE_XADD_STEP(name##_locked_step, bits, "lock ")                                  \
    DEFINE_XADD_HANDLER(name, bits, name##_step)                                         \
    DEFINE_XADD_HANDLER(name##_locked, bits, name##_locked_step)                         \
    static void name##bits##_r(struct soft_cpu *cpu, const struct uop *uop)              \
    {                                                                                    \
        uint##bits##_t target = RM_REGISTER(bits);                                       \
        uint##bits##_t source = REGISTER(bits);                                          \
        uint16_t packed;                                                                 \
                                                                                         \
        asm("xadd %[source], %[target]\n\t" FLAGS_SAVE                                   \
            : [target] "+r"(target), [source] "+r"(source), "=a"(packed)                 \
            :                                                                            \
            : "cc");                                                                     \
        flags_store(cpu, packed);                                                        \
        register_set##bits(cpu, uop->reg, source);                                       \
        register_set##bits(cpu, uop->rm, target);                                        \
        NEXT(cpu, uop);                                                                  \
    }
FOR_EACH_SIZE(DEFINE_XADD, xadd)

/* ---- CMPXCHG
 * ---------------------------------------------------------------------------------- */

/* Returns the target's old value; puts `source` there if that was `expected`. FLAGS_SAVE
 * needs the accumulator, so that is moved away first. */
#define DEFINE_CMPXCHG_STEP(name, bits, prefix)                                          \
    static ALWAYS_INLINE uint##bits##_t name##bits(                                      \
        struct soft_cpu *cpu, guest_u##bits *target, uint##bits##_t expected,            \
        uint##bits##_t source)                                                           \
    {                                                                                    \
        uint64_t accumulator = expected;                                                 \
        uint64_t old;                                                                    \
                                                                                         \
        asm volatile(prefix "cmpxchg %[source], %[target]\n\t"                           \
                            "mov %%rax, %[old]\n\t" FLAGS_SAVE                           \
                     : [target] "+m"(*target), "+a"(accumulator), [old] "=&r"(old)       \
                     : [source] "r"(source)                                              \
                     : "cc", "memory");                                                  \
        flags_store(cpu, (uint16_t)accumulator);                                         \
        return (uint##bits##_t)old;                                                      \
    }

/* The target is written in any case (SDM vol. 2, CMPXCHG), so it must be writable. */
#define DEFINE_CMPXCHG_HANDLER(name, bits, step)                                         \
    static void name##bits##_m(struct soft_cpu *cpu, const struct uop *uop)              \
    {                                                                                    \
        uint64_t linear = soft_address(cpu, uop);                                        \
        guest_u##bits *place = place_open##bits(cpu, uop, linear);                       \
        uint##bits##_t expected = register_get##bits(cpu, ACCUMULATOR);                  \
        uint##bits##_t old = step##bits(cpu, place, expected, REGISTER(bits));           \
                                                                                         \
        place_close##bits(cpu, uop, linear, place);                                      \
        if (old != expected)                                                             \
            register_set##bits(cpu, ACCUMULATOR, old);                                   \
        NEXT(cpu, uop);                                                                  \
    }

#define DEFINE_CMPXCHG(name, bits, suffix)                                               \
    DEFINE_CMPXCHG_STEP(name##_step, bits, "")                                           \
    DEFINE_CMPXCHG_STEP(name##_locked_step, bits, "lock ")                               \
    DEFINE_CMPXCHG_HANDLER(name, bits, name##_step)                                      \
    DEFINE_CMPXCHG_HANDLER(name##_locked, bits, name##_locked_step)                      \
    static void name##bits##_r(struct soft_cpu *cpu, const struct uop *uop)              \
    {                                                                                    \
        uint##bits##_t expected = register_get##bits(cpu, ACCUMULATOR);                  \
        uint##bits##_t old;                                                              \
                                                                                         \
        cpu->scratch[0] = RM_REGISTER(bits);                                             \
        old = name##_step##bits(cpu, (guest_u##bits *)cpu->scratch, expected,            \
                                REGISTER(bits));                                         \
        if (old != expected)                                                             \
            register_set##bits(cpu, ACCUMULATOR, old);                                   \
        else                                                                             \
            register_set##bits(cpu, uop->rm, (uint##bits##_t)cpu->scratch[0]);           \
        NEXT(cpu, uop);                                                                  \
    }
FOR_EACH_SIZE(DEFINE_CMPXCHG, cmpxchg)

/* Register, memory, memory locked; by size. */
#define SIZES(name)                                                                      \
    {                                                                                    \
        {name##8_r, name##8_m, name##_locked8_m},                                        \
            {name##16_r, name##16_m, name##_locked16_m},                                 \
            {name##32_r, name##32_m, name##_locked32_m},                                 \
            {name##64_r, name##64_m, name##_locked64_m},                                 \
    }

soft_handler *select_exchange_operate(const struct instruction *instruction,
                                      bool flags_dead)
{
    static soft_handler *const handlers[][SIZE_INDEXES][3] = {
        [EXCHANGE_XADD] = SIZES(xadd),
        [EXCHANGE_CMPXCHG] = SIZES(cmpxchg),
    };
    unsigned form = instruction->lock ? 2 : instruction->memory;

    (void)flags_dead;
    return handlers[instruction->form->variant][size_index(instruction->operand_size)]
                   [form];
}

/* ---- CMPXCHG8B and CMPXCHG16B
 * ---------------------------------------------------------------------------------- */

/* On ZF: target = source halves; else rDX:rAX = target. Half the time the guest has LOCK,
 * and it never hurts. */
static void set_zero(struct soft_cpu *cpu, bool equal)
{
    cpu->flags_status =
        (uint8_t)((cpu->flags_status & ~STATUS_ZF) | (equal ? STATUS_ZF : 0));
}

static void cmpxchg8b(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t linear = soft_address(cpu, uop);
    guest_u64 *place = place_open64(cpu, uop, linear);
    uint64_t expected = cpu->r[X86_RDX] << 32 | (uint32_t)cpu->r[X86_RAX];
    uint64_t source = cpu->r[X86_RCX] << 32 | (uint32_t)cpu->r[X86_RBX];
    uint64_t old = expected;

    asm volatile("lock cmpxchgq %[source], %[target]"
                 : [target] "+m"(*place), "+a"(old)
                 : [source] "r"(source)
                 : "cc", "memory");
    place_close64(cpu, uop, linear, place);
    set_zero(cpu, old == expected);
    if (old != expected) {
        cpu->r[X86_RAX] = (uint32_t)old;
        cpu->r[X86_RDX] = old >> 32;
    }
    NEXT(cpu, uop);
}

static void cmpxchg16b_slow(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear)
{
    uint64_t low = soft_load_for_store_slow(cpu, uop, linear, 8);
    uint64_t high = soft_load_for_store_slow(cpu, uop, linear + 8, 8);
    bool equal = low == cpu->r[X86_RAX] && high == cpu->r[X86_RDX];

    soft_store_slow(cpu, uop, linear, 8, equal ? cpu->r[X86_RBX] : low);
    soft_store_slow(cpu, uop, linear + 8, 8, equal ? cpu->r[X86_RCX] : high);
    set_zero(cpu, equal);
    cpu->r[X86_RAX] = low;
    cpu->r[X86_RDX] = high;
}

static void cmpxchg16b(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t linear = soft_address(cpu, uop);
    uint8_t *host;
    bool equal;

    if (linear % 16 != 0)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    host = soft_lockable(cpu, uop, linear, 16);
    if (LIKELY(host)) {
        asm volatile("lock cmpxchg16b %[target]"
                     : [target] "+m"(*(guest_u8(*)[16])host), "+a"(cpu->r[X86_RAX]),
                       "+d"(cpu->r[X86_RDX]), "=@ccz"(equal)
                     : "b"(cpu->r[X86_RBX]), "c"(cpu->r[X86_RCX])
                     : "memory");
        soft_lock_done(cpu);
        set_zero(cpu, equal);
    } else {
        cmpxchg16b_slow(cpu, uop, linear);
    }
    NEXT(cpu, uop);
}

soft_handler *select_exchange_double(const struct instruction *instruction,
                                     bool flags_dead)
{
    (void)flags_dead;
    return instruction->rex_w ? cmpxchg16b : cmpxchg8b;
}
