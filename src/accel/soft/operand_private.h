/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of general instructions by size, for handlers that are stamped out for 8, 16,
 * 32 and 64 bits: registers, the memory operand, and the memory operand replaced by an
 * operation's result, plain or under LOCK.
 */
#ifndef HUSK_SOFT_OPERAND_PRIVATE_H
#define HUSK_SOFT_OPERAND_PRIVATE_H

#include "accel/soft/access_private.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* What flag capture leaves in AX goes to both bytes at once. */
static ALWAYS_INLINE void flags_store(struct soft_cpu *cpu, uint16_t packed)
{
    cpu->flags_packed = packed;
}

/* A write of 32 bits clears the upper half; the narrower ones keep what is around them
 * (SDM vol. 1, 3.4.1.1). */
static ALWAYS_INLINE void register_set8(struct soft_cpu *cpu, uint8_t offset,
                                        uint8_t value)
{
    *((guest_u8 *)cpu->r + offset) = value;
}
static ALWAYS_INLINE void register_set16(struct soft_cpu *cpu, uint8_t offset,
                                         uint16_t value)
{
    *(guest_u16 *)((guest_u8 *)cpu->r + offset) = value;
}
static ALWAYS_INLINE void register_set32(struct soft_cpu *cpu, uint8_t offset,
                                         uint32_t value)
{
    *(guest_u64 *)((guest_u8 *)cpu->r + offset) = value;
}
static ALWAYS_INLINE void register_set64(struct soft_cpu *cpu, uint8_t offset,
                                         uint64_t value)
{
    *(guest_u64 *)((guest_u8 *)cpu->r + offset) = value;
}

/*
 * memory_get, memory_set: the memory operand.
 *
 * place_open: the memory operand as a place to change in one step, faults raised: where
 * it is on the host; or, if it has no host address, its value in cpu->scratch, which
 * place_close stores.
 *
 * finish_*: a handler's last statement, with NEXT in it, so that what is done when a page
 * has no host address (operand.c) can be a tail call and costs the fast way no registers:
 *   finish_read           goes on with then(cpu, uop, the memory operand)
 *   finish_write          stores
 *   finish_update         replaces it by operation(cpu, it, source)
 *   finish_update_locked  in one atomic step, by `locked` on host memory; in two where
 *                         there is no host address
 * A fault comes before the operation is done.
 */
#define DEFINE_OPERANDS(bits)                                                            \
    typedef uint##bits##_t operation##bits(struct soft_cpu *cpu, uint##bits##_t target,  \
                                           uint##bits##_t source);                       \
    typedef void locked_operation##bits(struct soft_cpu *cpu, guest_u##bits *target,     \
                                        uint##bits##_t source);                          \
    typedef void with_value##bits(struct soft_cpu *cpu, const struct uop *uop,           \
                                  uint##bits##_t value);                                 \
                                                                                         \
    void operand_read_slow##bits(struct soft_cpu *cpu, const struct uop *uop,            \
                                 with_value##bits *then);                                \
    void operand_write_slow##bits(struct soft_cpu *cpu, const struct uop *uop,           \
                                  uint##bits##_t value);                                 \
    void operand_update_slow##bits(struct soft_cpu *cpu, const struct uop *uop,          \
                                   operation##bits *operation, uint##bits##_t source);   \
                                                                                         \
    static ALWAYS_INLINE uint##bits##_t register_get##bits(const struct soft_cpu *cpu,   \
                                                           uint8_t offset)               \
    {                                                                                    \
        return *(const guest_u##bits *)((const guest_u8 *)cpu->r + offset);              \
    }                                                                                    \
    static ALWAYS_INLINE uint##bits##_t memory_get##bits(struct soft_cpu *cpu,           \
                                                         const struct uop *uop)          \
    {                                                                                    \
        return soft_load##bits(cpu, uop, soft_address(cpu, uop));                        \
    }                                                                                    \
    static ALWAYS_INLINE void memory_set##bits(                                          \
        struct soft_cpu *cpu, const struct uop *uop, uint##bits##_t value)               \
    {                                                                                    \
        soft_store##bits(cpu, uop, soft_address(cpu, uop), value);                       \
    }                                                                                    \
    static ALWAYS_INLINE guest_u##bits *place_open##bits(                                \
        struct soft_cpu *cpu, const struct uop *uop, uint64_t linear)                    \
    {                                                                                    \
        guest_u##bits *place = soft_lockable(cpu, uop, linear, bits / 8);                \
                                                                                         \
        if (LIKELY(place))                                                               \
            return place;                                                                \
        cpu->scratch[0] = soft_load_for_store_slow(cpu, uop, linear, bits / 8);          \
        return (guest_u##bits *)cpu->scratch;                                            \
    }                                                                                    \
    static ALWAYS_INLINE void place_close##bits(struct soft_cpu *cpu,                    \
                                                const struct uop *uop, uint64_t linear,  \
                                                const guest_u##bits *place)              \
    {                                                                                    \
        if (!LIKELY((const void *)place != (const void *)cpu->scratch))                  \
            soft_store_slow(cpu, uop, linear, bits / 8, cpu->scratch[0]);                \
        soft_lock_done(cpu);                                                             \
    }                                                                                    \
    static ALWAYS_INLINE void finish_read##bits(                                         \
        struct soft_cpu *cpu, const struct uop *uop, with_value##bits *then)             \
    {                                                                                    \
        const guest_u##bits *from =                                                      \
            soft_readable(cpu, soft_address(cpu, uop), bits / 8);                        \
                                                                                         \
        if (LIKELY(from))                                                                \
            then(cpu, uop, *from);                                                       \
        else                                                                             \
            operand_read_slow##bits(cpu, uop, then);                                     \
    }                                                                                    \
    static ALWAYS_INLINE void finish_write##bits(                                        \
        struct soft_cpu *cpu, const struct uop *uop, uint##bits##_t value)               \
    {                                                                                    \
        guest_u##bits *to = soft_writable(cpu, soft_address(cpu, uop), bits / 8);        \
                                                                                         \
        if (!LIKELY(to)) {                                                               \
            operand_write_slow##bits(cpu, uop, value);                                   \
            return;                                                                      \
        }                                                                                \
        *to = value;                                                                     \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    static ALWAYS_INLINE void finish_update##bits(                                       \
        struct soft_cpu *cpu, const struct uop *uop, operation##bits *operation,         \
        uint##bits##_t source)                                                           \
    {                                                                                    \
        guest_u##bits *target = soft_writable(cpu, soft_address(cpu, uop), bits / 8);    \
                                                                                         \
        if (!LIKELY(target)) {                                                           \
            operand_update_slow##bits(cpu, uop, operation, source);                      \
            return;                                                                      \
        }                                                                                \
        *target = operation(cpu, *target, source);                                       \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    static ALWAYS_INLINE void finish_update_locked##bits(                                \
        struct soft_cpu *cpu, const struct uop *uop, operation##bits *operation,         \
        locked_operation##bits *locked, uint##bits##_t source)                           \
    {                                                                                    \
        guest_u##bits *target =                                                          \
            soft_lockable(cpu, uop, soft_address(cpu, uop), bits / 8);                   \
                                                                                         \
        if (!LIKELY(target)) {                                                           \
            operand_update_slow##bits(cpu, uop, operation, source);                      \
            return;                                                                      \
        }                                                                                \
        locked(cpu, target, source);                                                     \
        soft_lock_done(cpu);                                                             \
        NEXT(cpu, uop);                                                                  \
    }
DEFINE_OPERANDS(8)
DEFINE_OPERANDS(16)
DEFINE_OPERANDS(32)
DEFINE_OPERANDS(64)
#undef DEFINE_OPERANDS

/* Index of an operand size in tables of handlers: 1, 2, 4, 8 bytes. */
#define SIZE_INDEXES 4
static inline unsigned size_index(unsigned size)
{
    return (unsigned)__builtin_ctz(size);
}

/* ---- stamping out handlers: name ## bits ## _ ## form
 * ------------------------------------------------------------- */

#define FOR_EACH_SIZE(apply, operation)                                                  \
    apply(operation, 8, "b") apply(operation, 16, "w") apply(operation, 32, "l")         \
        apply(operation, 64, "q")

#define DEFINE_HANDLER(name, bits, form, body)                                           \
    static void name##bits##_##form(struct soft_cpu *cpu, const struct uop *uop)         \
    {                                                                                    \
        body;                                                                            \
        NEXT(cpu, uop);                                                                  \
    }
/* The body ends by NEXT itself. */
#define DEFINE_FINISHED(name, bits, form, body)                                          \
    static void name##bits##_##form(struct soft_cpu *cpu, const struct uop *uop)         \
    {                                                                                    \
        body;                                                                            \
    }
/* The body has the memory operand in `memory`. */
#define DEFINE_WITH_MEMORY(name, bits, form, body)                                       \
    static void name##bits##_##form##_then(struct soft_cpu *cpu, const struct uop *uop,  \
                                           uint##bits##_t memory)                        \
    {                                                                                    \
        body;                                                                            \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    DEFINE_FINISHED(name, bits, form,                                                    \
                    finish_read##bits(cpu, uop, name##bits##_##form##_then))

#define RM_REGISTER(bits) register_get##bits(cpu, uop->rm)
#define REGISTER(bits) register_get##bits(cpu, uop->reg)
#define IMMEDIATE(bits) ((uint##bits##_t)uop->immediate)

/* A register becomes name(it, source). Target rm: sources reg, immediate. */
#define DEFINE_RM_FORMS(name, bits)                                                      \
    DEFINE_HANDLER(                                                                      \
        name, bits, rg,                                                                  \
        register_set##bits(cpu, uop->rm,                                                 \
                           name##bits(cpu, RM_REGISTER(bits), REGISTER(bits))))          \
    DEFINE_HANDLER(                                                                      \
        name, bits, ri,                                                                  \
        register_set##bits(cpu, uop->rm,                                                 \
                           name##bits(cpu, RM_REGISTER(bits), IMMEDIATE(bits))))
/* Target reg: sources rm, memory. */
#define DEFINE_REG_FORMS(name, bits)                                                     \
    DEFINE_HANDLER(                                                                      \
        name, bits, gr,                                                                  \
        register_set##bits(cpu, uop->reg,                                                \
                           name##bits(cpu, REGISTER(bits), RM_REGISTER(bits))))          \
    DEFINE_WITH_MEMORY(                                                                  \
        name, bits, gm,                                                                  \
        register_set##bits(cpu, uop->reg, name##bits(cpu, REGISTER(bits), memory)))

#endif
