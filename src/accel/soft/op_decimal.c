/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AAA AAS AAM AAD DAA DAS: decimal arithmetic (SDM vol. 2). The host cannot run them in
 * 64-bit code, so flags are worked out; those that are undefined follow the result.
 */
#include "accel/soft/decimal_private.h"

#include "accel/soft/flags_private.h"
#include "accel/soft/operand_private.h"

#define AL (X86_RAX * 8)
#define AX (X86_RAX * 8)

/* SF, ZF and PF of `result`, the others as told. */
static void set_flags(struct soft_cpu *cpu, uint8_t result, bool adjust, bool carry)
{
    unsigned status = STATUS_FIXED;

    if ((result & 0x80) != 0)
        status |= STATUS_SF;
    if (result == 0)
        status |= STATUS_ZF;
    if (__builtin_parity(result) == 0)
        status |= STATUS_PF;
    if (adjust)
        status |= STATUS_AF;
    if (carry)
        status |= STATUS_CF;
    cpu->flags_status = (uint8_t)status;
    cpu->flags_overflow = 0;
}

static bool needs_adjustment(const struct soft_cpu *cpu)
{
    return (register_get8(cpu, AL) & 0xf) > 9 || (cpu->flags_status & STATUS_AF) != 0;
}

static void finish_ascii(struct soft_cpu *cpu, bool adjust)
{
    uint8_t result = register_get8(cpu, AL) & 0xf;

    register_set8(cpu, AL, result);
    set_flags(cpu, result, adjust, adjust);
}

void decimal_aaa(struct soft_cpu *cpu, const struct uop *uop)
{
    bool adjust = needs_adjustment(cpu);

    if (adjust)
        register_set16(cpu, AX, (uint16_t)(register_get16(cpu, AX) + 0x106));
    finish_ascii(cpu, adjust);
    NEXT(cpu, uop);
}

void decimal_aas(struct soft_cpu *cpu, const struct uop *uop)
{
    bool adjust = needs_adjustment(cpu);

    if (adjust)
        register_set16(cpu, AX, (uint16_t)(register_get16(cpu, AX) - 0x106));
    finish_ascii(cpu, adjust);
    NEXT(cpu, uop);
}

void decimal_aam(struct soft_cpu *cpu, const struct uop *uop)
{
    uint8_t base = (uint8_t)uop->immediate;
    uint8_t value = register_get8(cpu, AL);

    if (base != 0) {
        register_set16(cpu, AX, (uint16_t)((value / base) << 8 | value % base));
        set_flags(cpu, value % base, false, false);
        NEXT(cpu, uop);
    }
    soft_raise(cpu, uop, X86_VECTOR_DE);
}

void decimal_aad(struct soft_cpu *cpu, const struct uop *uop)
{
    uint16_t value = register_get16(cpu, AX);
    uint8_t result = (uint8_t)((value & 0xff) + (value >> 8) * (uint8_t)uop->immediate);

    register_set16(cpu, AX, result);
    set_flags(cpu, result, false, false);
    NEXT(cpu, uop);
}

void decimal_daa(struct soft_cpu *cpu, const struct uop *uop)
{
    uint8_t value = register_get8(cpu, AL);
    bool adjust = needs_adjustment(cpu);
    bool carry = value > 0x99 || (cpu->flags_status & STATUS_CF) != 0;
    uint8_t result = (uint8_t)(value + (adjust ? 6 : 0) + (carry ? 0x60 : 0));

    register_set8(cpu, AL, result);
    set_flags(cpu, result, adjust, carry);
    NEXT(cpu, uop);
}

void decimal_das(struct soft_cpu *cpu, const struct uop *uop)
{
    uint8_t value = register_get8(cpu, AL);
    bool adjust = needs_adjustment(cpu);
    bool high = value > 0x99 || (cpu->flags_status & STATUS_CF) != 0;
    bool borrow = adjust && value < 6;
    uint8_t result = (uint8_t)(value - (adjust ? 6 : 0) - (high ? 0x60 : 0));

    register_set8(cpu, AL, result);
    set_flags(cpu, result, adjust, high || borrow);
    NEXT(cpu, uop);
}
