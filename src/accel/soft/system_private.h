/* SPDX-License-Identifier: Apache-2.0 */
/* Small things that system instructions share. */
#ifndef HUSK_SOFT_SYSTEM_PRIVATE_H
#define HUSK_SOFT_SYSTEM_PRIVATE_H

#include "accel/soft/flags_private.h"
#include "accel/soft/flow_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/segments_private.h"
#include "accel/soft/soft_private.h"

/* The instruction is done and is the last of its block: the run loop is next. */
static inline void system_end(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->rip = uop_next_rip(uop);
    flow_retire(cpu, uop);
}

/* Bytes behind a memory operand's first; linear addresses wrap outside long mode. */
static inline uint64_t system_linear(const struct soft_cpu *cpu, uint64_t linear,
                                     unsigned offset)
{
    return soft_in_long_mode(cpu) ? linear + offset : (uint32_t)(linear + offset);
}

/* A source operand of 16 bits, register or memory. */
static inline uint16_t system_operand16(struct soft_cpu *cpu, const struct uop *uop,
                                        bool memory)
{
    return memory ? soft_load16(cpu, uop, soft_address(cpu, uop))
                  : *soft_register16(cpu, uop->rm);
}

static inline void system_set_zero_flag(struct soft_cpu *cpu, bool zero)
{
    cpu->flags_status =
        (uint8_t)((cpu->flags_status & ~STATUS_ZF) | (zero ? STATUS_ZF : 0));
}

/* SDM 2.5, CR4.UMIP: what the tables' registers hold is not for user programs. */
static inline void system_check_umip(struct soft_cpu *cpu, const struct uop *uop)
{
    if ((cpu->cr4 & X86_CR4_UMIP) != 0 && cpu->cpl != 0)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

#endif
