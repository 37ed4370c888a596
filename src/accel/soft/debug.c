/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug registers and instruction breakpoints (SDM vol. 3, 17.2 and 17.3).
 *
 * Breakpoints on data and on ports are kept but do not hit: loads and stores do not look
 * at them.
 */
#include "accel/soft/debug_private.h"

#include "accel/soft/flow_private.h"
#include "accel/soft/segments_private.h"
#include "accel/soft/soft_private.h"

#define BREAKPOINTS 4

#define DR6_BREAKPOINTS UINT64_C(0xf)
/* Bits that can be written. */
#define DR6_WRITABLE UINT64_C(0xe00f)
#define DR7_WRITABLE UINT64_C(0xffff23ff)

void debug_note(struct soft_cpu *cpu, uint64_t reasons)
{
    cpu->dr[6] = (cpu->dr[6] & ~DR6_BREAKPOINTS) | reasons;
}

unsigned debug_register(struct soft_cpu *cpu, const struct uop *uop, unsigned number)
{
    if (number > 7)
        soft_raise(cpu, uop, X86_VECTOR_UD);
    soft_check_supervisor(cpu, uop);
    if ((number == 4 || number == 5) && (cpu->cr4 & X86_CR4_DE) != 0)
        soft_raise(cpu, uop, X86_VECTOR_UD);
    if ((cpu->dr[7] & X86_DR7_GD) != 0) {
        debug_note(cpu, X86_DR6_BD);
        soft_raise(cpu, uop, X86_VECTOR_DB);
    }
    return number == 4 || number == 5 ? number + 2 : number;
}

void debug_write(struct soft_cpu *cpu, const struct uop *uop, unsigned number,
                 uint64_t value)
{
    if (number >= 6 && value > UINT32_MAX)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    if (number == 6)
        value = X86_DR6_FIXED | (value & DR6_WRITABLE);
    if (number == 7)
        value = X86_DR7_FIXED | (value & DR7_WRITABLE);
    cpu->dr[number] = value;
    soft_cpu_update_trap(cpu);
}

/* DR7: two enable bits a breakpoint, and from bit 16 on four bits of kind and length; an
 * instruction's are all 0. */
static bool is_execute_breakpoint(const struct soft_cpu *cpu, unsigned number)
{
    return (cpu->dr[7] >> 2 * number & 3) != 0 &&
           (cpu->dr[7] >> (16 + 4 * number) & 0xf) == 0;
}

void soft_debug_check_execute(struct soft_cpu *cpu)
{
    uint64_t linear = soft_code_linear(cpu, cpu->rip);
    uint64_t hit = 0;

    /* RF counts for this one instruction; if it faults, the image has RF again. */
    if ((cpu->flags_system & X86_FLAGS_RF) != 0) {
        cpu->flags_system &= ~(uint32_t)X86_FLAGS_RF;
        return;
    }
    for (unsigned i = 0; i < BREAKPOINTS; i++)
        if (is_execute_breakpoint(cpu, i) && cpu->dr[i] == linear)
            hit |= UINT64_C(1) << i;
    if (hit == 0)
        return;
    debug_note(cpu, hit);
    soft_raise(cpu, NULL, X86_VECTOR_DB);
}
