/* SPDX-License-Identifier: Apache-2.0 */
/* SSE moves that put parts of two registers together, and stores under a byte mask. */
#include "accel/soft/address_private.h"
#include "accel/soft/vector_private.h"
#include "accel/soft/x87_private.h"

static vector all(vector destination, vector source, const struct uop *uop)
{
    (void)destination, (void)uop;
    return source;
}

static vector low32(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes result = {.whole = destination};

    (void)uop;
    result.u32[0] = (uint32_t)source[0];
    return result.whole;
}

static vector low64(vector destination, vector source, const struct uop *uop)
{
    (void)uop;
    return (vector){source[0], destination[1]};
}

static vector zero64(vector destination, vector source, const struct uop *uop)
{
    (void)destination, (void)uop;
    return (vector){source[0], 0};
}

static vector high_to_low(vector destination, vector source, const struct uop *uop)
{
    (void)uop;
    return (vector){source[1], destination[1]};
}

static vector low_to_high(vector destination, vector source, const struct uop *uop)
{
    (void)uop;
    return (vector){destination[0], source[0]};
}

static vector high(vector destination, vector source, const struct uop *uop)
{
    (void)destination, (void)uop;
    return (vector){source[1], 0};
}

const struct vector_row vector_move_rows[] = {
    [MOVE_ALL] = {all, 0, NEED_SSE2},
    [MOVE_LOW32] = {low32, 0, NEED_SSE2},
    [MOVE_LOW64] = {low64, 0, NEED_SSE2},
    [MOVE_ZERO64] = {zero64, 0, NEED_SSE2},
    [MOVE_HIGH_TO_LOW] = {high_to_low, 0, NEED_SSE2},
    [MOVE_LOW_TO_HIGH] = {low_to_high, 0, NEED_SSE2},
    [MOVE_HIGH] = {high, 0, NEED_SSE2},
};

/* ---- MASKMOVDQU, MASKMOVQ: bytes of a register to [rDI] where the mask's bytes have
 * their top bit set. Bytes that are not written are not accessed either. ---- */

static void store_masked(struct soft_cpu *cpu, const struct uop *uop,
                         const uint8_t *bytes, const uint8_t *mask, unsigned count)
{
    uint64_t offset = cpu->r[X86_RDI];
    uint64_t linear;

    if (uop->address_size < 8)
        offset &= uop->address_size == 4 ? UINT32_MAX : UINT16_MAX;
    linear = address_linear(cpu, uop, uop->segment, offset, count, true);
    for (unsigned i = 0; i < count; i++)
        if ((mask[i] & 0x80) != 0)
            soft_check_store(cpu, uop, linear + i, 1);
    for (unsigned i = 0; i < count; i++)
        if ((mask[i] & 0x80) != 0)
            soft_store8(cpu, uop, linear + i, bytes[i]);
}

static void maskmovdqu(struct soft_cpu *cpu, const struct uop *uop)
{
    store_masked(cpu, uop, cpu->fx.xmm[uop->reg], cpu->fx.xmm[uop->rm], 16);
    NEXT(cpu, uop);
}

static void maskmovq(struct soft_cpu *cpu, const struct uop *uop)
{
    x87_check_pending(cpu, uop);
    store_masked(cpu, uop, mmx_register(cpu, uop->reg), mmx_register(cpu, uop->rm), 8);
    mmx_enter(cpu);
    NEXT(cpu, uop);
}

soft_handler *select_vector_mask_store(const struct instruction *instruction,
                                       bool flags_dead)
{
    soft_handler *unavailable = vector_unavailable(instruction, NEED_SSE2);

    (void)flags_dead;
    if (unavailable != NULL)
        return unavailable;
    return instruction->form->operands[0] == OPERAND_V ? maskmovdqu : maskmovq;
}
