/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic flags. They are what the host's processor makes of the same operation, taken
 * by `lahf; seto %al` into soft_cpu.flags_packed, so even those that are left undefined
 * agree with hardware.
 */
#ifndef HUSK_SOFT_FLAGS_PRIVATE_H
#define HUSK_SOFT_FLAGS_PRIVATE_H

#include "accel/soft/cpu_private.h"

/* Bits of flags_status: the low byte of RFLAGS (SDM vol. 1, figure 3-8). */
#define STATUS_CF 0x01u
#define STATUS_PF 0x04u
#define STATUS_AF 0x10u
#define STATUS_ZF 0x40u
#define STATUS_SF 0x80u
#define STATUS_FIXED 0x02u

/* Assembly around one flag-writing instruction: with its flags as input and output.
 *   asm(FLAGS_LOAD "adc %[source], %[target]\n\t" FLAGS_SAVE
 *       : [target] "+r"(target), "+a"(packed) : [source] "r"(source) : "cc");
 * FLAGS_LOAD turns AX into host flags (OF from AL = 0 or 1: 1 + 127 overflows). */
#define FLAGS_LOAD "addb $127, %%al\n\tsahf\n\t"
#define FLAGS_SAVE "lahf\n\tseto %%al\n\t"

/* The sixteen conditions in encoding order (SDM vol. 1, table B-1). */
static inline bool soft_condition(const struct soft_cpu *cpu, unsigned condition)
{
    uint8_t status = cpu->flags_status;
    bool overflow = cpu->flags_overflow != 0;
    bool sign = (status & STATUS_SF) != 0;
    bool met;

    switch (condition >> 1) {
    case 0:
        met = overflow;
        break;
    case 1:
        met = (status & STATUS_CF) != 0;
        break;
    case 2:
        met = (status & STATUS_ZF) != 0;
        break;
    case 3:
        met = (status & (STATUS_CF | STATUS_ZF)) != 0;
        break;
    case 4:
        met = sign;
        break;
    case 5:
        met = (status & STATUS_PF) != 0;
        break;
    case 6:
        met = sign != overflow;
        break;
    default:
        met = (status & STATUS_ZF) != 0 || sign != overflow;
        break;
    }
    return met != ((condition & 1) != 0);
}

#endif
