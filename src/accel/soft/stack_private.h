/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack in any mode: 64-bit code has a flat one; elsewhere the pointer is as wide as
 * SS says, and wraps there (SDM vol. 1, 6.2.3).
 */
#ifndef HUSK_SOFT_STACK_PRIVATE_H
#define HUSK_SOFT_STACK_PRIVATE_H

#include "accel/soft/access_private.h"
#include "accel/soft/address_private.h"

/* What an instruction that pushes or pops may take the stack for. A flat one is as wide
 * as its slots: the handlers for it need no segment. */
enum stack_kind { STACK_ANY, STACK_FLAT32, STACK_FLAT64 };

static inline enum stack_kind stack_kind(const struct instruction *instruction)
{
    if (instruction->operand_size == 8)
        return STACK_FLAT64;
    return instruction->operand_size == 4 && (instruction->mode & MODE_FLAT) != 0
               ? STACK_FLAT32
               : STACK_ANY;
}

static inline uint64_t stack_mask(const struct soft_cpu *cpu)
{
    if ((cpu->mode & MODE_CODE64) != 0)
        return UINT64_MAX;
    return (cpu->mode & MODE_STACK32) != 0 ? UINT32_MAX : UINT16_MAX;
}

/* Writes a register that points into the stack: SP, ESP or RSP. */
static inline void stack_set_pointer(struct soft_cpu *cpu, uint64_t value)
{
    uint64_t mask = stack_mask(cpu);

    if (mask == UINT16_MAX)
        value = (cpu->r[X86_RSP] & ~mask) | (value & mask);
    cpu->r[X86_RSP] = mask == UINT16_MAX ? value : value & mask;
}

/* The linear address of `size` bytes at `pointer` in the stack segment. */
static inline uint64_t stack_linear(struct soft_cpu *cpu, const struct uop *uop,
                                    uint64_t pointer, unsigned size, bool write)
{
    return address_linear(cpu, uop, X86_SS, pointer & stack_mask(cpu), size, write);
}

/* Reads and writes at `pointer`; the stack pointer stays. Sizes 2, 4, 8. */
uint64_t stack_read(struct soft_cpu *cpu, const struct uop *uop, uint64_t pointer,
                    unsigned size);
void stack_write(struct soft_cpu *cpu, const struct uop *uop, uint64_t pointer,
                 unsigned size, uint64_t value);

/* Writes below the stack pointer, then moves it. */
static inline void stack_push(struct soft_cpu *cpu, const struct uop *uop, unsigned size,
                              uint64_t value)
{
    stack_write(cpu, uop, cpu->r[X86_RSP] - size, size, value);
    stack_set_pointer(cpu, cpu->r[X86_RSP] - size);
}

/* The same in a flat stack. stack_push_fast: false, and nothing is done, where stack_push
 * must do it. stack_top: NULL where stack_read must. An access that wraps crosses pages,
 * so it goes there too, and faults. */
#define DEFINE_FLAT_STACK(bits)                                                          \
    static inline bool stack_push_fast##bits(struct soft_cpu *cpu, uint##bits##_t value) \
    {                                                                                    \
        uint##bits##_t linear = (uint##bits##_t)(cpu->r[X86_RSP] - (bits) / 8);          \
        guest_u##bits *to = soft_writable(cpu, linear, (bits) / 8);                      \
                                                                                         \
        if (!LIKELY(to))                                                                 \
            return false;                                                                \
        *to = value;                                                                     \
        cpu->r[X86_RSP] = linear;                                                        \
        return true;                                                                     \
    }                                                                                    \
    static inline const guest_u##bits *stack_top##bits(const struct soft_cpu *cpu)       \
    {                                                                                    \
        return soft_readable(cpu, (uint##bits##_t)cpu->r[X86_RSP], (bits) / 8);          \
    }
DEFINE_FLAT_STACK(32)
DEFINE_FLAT_STACK(64)
#undef DEFINE_FLAT_STACK

#endif
