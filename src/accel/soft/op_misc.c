/* SPDX-License-Identifier: Apache-2.0 */
/* Single flags, LAHF SAHF SALC, NOP PAUSE, fences, XLAT, BOUND, UD. */
#include <sched.h>

#include "accel/soft/address_private.h"
#include "accel/soft/decimal_private.h"
#include "accel/soft/flags_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/operand_private.h"
#include "accel/soft/soft_private.h"

#define AL (X86_RAX * 8)
#define AH (X86_RAX * 8 + 1)

/* ---- flags
 * ---------------------------------------------------------------- */

static void clc(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->flags_status &= (uint8_t)~STATUS_CF;
    NEXT(cpu, uop);
}

static void stc(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->flags_status |= STATUS_CF;
    NEXT(cpu, uop);
}

static void cmc(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->flags_status ^= STATUS_CF;
    NEXT(cpu, uop);
}

static void cld(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->direction = false;
    NEXT(cpu, uop);
}

static void std(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->direction = true;
    NEXT(cpu, uop);
}

static void lahf(struct soft_cpu *cpu, const struct uop *uop)
{
    register_set8(cpu, AH, (uint8_t)soft_flags_get(cpu));
    NEXT(cpu, uop);
}

static void sahf(struct soft_cpu *cpu, const struct uop *uop)
{
    const uint8_t loaded = STATUS_SF | STATUS_ZF | STATUS_AF | STATUS_PF | STATUS_CF;

    cpu->flags_status = (uint8_t)((register_get8(cpu, AH) & loaded) | STATUS_FIXED);
    NEXT(cpu, uop);
}

/* Not in the SDM's list, but in every processor: AL = CF ? ff : 0. */
static void salc(struct soft_cpu *cpu, const struct uop *uop)
{
    register_set8(cpu, AL, (cpu->flags_status & STATUS_CF) != 0 ? 0xff : 0);
    NEXT(cpu, uop);
}

/* ---- nothing, and fences
 * ---------------------------------------------------------------- */

static void no_operation(struct soft_cpu *cpu, const struct uop *uop)
{
    NEXT(cpu, uop);
}

/* Whom a loop with PAUSE waits for may wait for this very processor of the host. */
#define PAUSES_BEFORE_YIELD 64

static void pause_hint(struct soft_cpu *cpu, const struct uop *uop)
{
    if (cpu->vm->cpu_count > 1 && ++cpu->pauses % PAUSES_BEFORE_YIELD == 0)
        (void)sched_yield();
    __builtin_ia32_pause();
    NEXT(cpu, uop);
}

/* Loads are done in order as it is, and nothing here runs ahead of them. */
static void lfence(struct soft_cpu *cpu, const struct uop *uop)
{
    atomic_signal_fence(memory_order_seq_cst);
    NEXT(cpu, uop);
}

static void mfence(struct soft_cpu *cpu, const struct uop *uop)
{
    atomic_thread_fence(memory_order_seq_cst);
    NEXT(cpu, uop);
}

static void undefined(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_raise(cpu, uop, X86_VECTOR_UD);
}

/* ---- XLAT, BOUND
 * ---------------------------------------------------------------- */

static void xlat(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t offset = cpu->r[X86_RBX] + register_get8(cpu, AL);

    if (uop->address_size == 2)
        offset = (uint16_t)offset;
    else if (uop->address_size == 4)
        offset = (uint32_t)offset;
    register_set8(
        cpu, AL,
        soft_load8(cpu, uop, address_linear(cpu, uop, uop->segment, offset, 1, false)));
    NEXT(cpu, uop);
}

/* The lower bound is the memory operand, the upper one lies behind it; both signed. */
static void bound16(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t linear = soft_address(cpu, uop);
    int16_t lower = (int16_t)soft_load16(cpu, uop, linear);
    int16_t upper = (int16_t)soft_load16(cpu, uop, linear + 2);
    int16_t index = (int16_t)REGISTER(16);

    if (index < lower || index > upper)
        soft_raise(cpu, uop, X86_VECTOR_BR);
    NEXT(cpu, uop);
}

static void bound32(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t linear = soft_address(cpu, uop);
    int32_t lower = (int32_t)soft_load32(cpu, uop, linear);
    int32_t upper = (int32_t)soft_load32(cpu, uop, linear + 4);
    int32_t index = (int32_t)REGISTER(32);

    if (index < lower || index > upper)
        soft_raise(cpu, uop, X86_VECTOR_BR);
    NEXT(cpu, uop);
}

soft_handler *select_misc(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {
        [MISC_NOP] = no_operation, [MISC_PAUSE] = pause_hint,
        [MISC_LFENCE] = lfence,    [MISC_MFENCE] = mfence,
        [MISC_SFENCE] = lfence,    [MISC_UNDEFINED] = undefined,
        [MISC_CLC] = clc,          [MISC_STC] = stc,
        [MISC_CMC] = cmc,          [MISC_CLD] = cld,
        [MISC_STD] = std,          [MISC_LAHF] = lahf,
        [MISC_SAHF] = sahf,        [MISC_SALC] = salc,
        [MISC_XLAT] = xlat,        [MISC_BOUND] = bound32,
        [MISC_AAA] = decimal_aaa,  [MISC_AAS] = decimal_aas,
        [MISC_AAM] = decimal_aam,  [MISC_AAD] = decimal_aad,
        [MISC_DAA] = decimal_daa,  [MISC_DAS] = decimal_das,
    };

    (void)flags_dead;
    if (instruction->form->variant == MISC_BOUND && instruction->operand_size == 2)
        return bound16;
    return handlers[instruction->form->variant];
}
