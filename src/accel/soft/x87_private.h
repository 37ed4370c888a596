/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The x87 unit's state in soft_cpu.fx, and MMX registers in it.
 *
 * Instruction and operand pointers (FIP, FDP, FOP) are not kept: they read as 0. That is
 * within what AMD processors do, which save them only while an exception is pending, and
 * the pointers the host's unit has are the host's own business.
 *
 * Unmasked exceptions are always reported as #MF. CR0.NE = 0 would ask for IRQ 13, which
 * nothing since the 486 uses.
 */
#ifndef HUSK_SOFT_X87_PRIVATE_H
#define HUSK_SOFT_X87_PRIVATE_H

#include "accel/soft/cpu_private.h"

/* Status word (SDM vol. 1, figure 8-4). */
#define X87_STATUS_EXCEPTIONS 0x3fu /* IE DE ZE OE UE PE */
#define X87_STATUS_IE 0x1u
#define X87_STATUS_DE 0x2u
#define X87_STATUS_OE 0x8u
#define X87_STATUS_UE 0x10u
#define X87_STATUS_SF 0x40u
#define X87_STATUS_ES 0x80u
#define X87_STATUS_TOP 0x3800u
#define X87_STATUS_TOP_SHIFT 11
#define X87_STATUS_B 0x8000u /* a copy of ES */

/* Control word (SDM vol. 1, figure 8-6): what can be set, and the bit that is always 1.
 */
#define X87_CONTROL_BITS 0x1f3fu
#define X87_CONTROL_FIXED 0x40u
#define X87_CONTROL_INITIAL 0x37fu

static inline unsigned x87_top(const struct soft_cpu *cpu)
{
    return (cpu->fx.fsw & X87_STATUS_TOP) >> X87_STATUS_TOP_SHIFT;
}

/* ES and B follow from the exception flags and their masks, whenever either changes. */
static inline void x87_update_summary(struct soft_cpu *cpu)
{
    unsigned status = cpu->fx.fsw & ~(X87_STATUS_ES | X87_STATUS_B);

    if ((status & ~(unsigned)cpu->fx.fcw & X87_STATUS_EXCEPTIONS) != 0)
        status |= X87_STATUS_ES | X87_STATUS_B;
    cpu->fx.fsw = (uint16_t)status;
}

static inline void x87_set_control(struct soft_cpu *cpu, uint16_t control)
{
    cpu->fx.fcw = (uint16_t)((control & X87_CONTROL_BITS) | X87_CONTROL_FIXED);
}

/* Every waiting x87 instruction and every MMX instruction begins so (SDM vol. 1, 8.7). */
static inline void x87_check_pending(struct soft_cpu *cpu, const struct uop *uop)
{
    if ((cpu->fx.fsw & X87_STATUS_ES) != 0)
        soft_raise(cpu, uop, X86_VECTOR_MF);
}

/* MMX registers are physical x87 registers, while fx.st counts from the top of the
 * stack. */
static inline uint8_t *mmx_register(struct soft_cpu *cpu, unsigned number)
{
    return cpu->fx.st[(number - x87_top(cpu)) & 7];
}

/* MMX instructions set TOP to 0 and all tags to valid (SDM vol. 3, table 12-1). */
void mmx_enter(struct soft_cpu *cpu); /* op_mmx.c */

/* Changes TOP; the physical registers stay as they are (op_mmx.c). */
void x87_set_top(struct soft_cpu *cpu, unsigned top);

#endif
