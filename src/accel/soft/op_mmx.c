/* SPDX-License-Identifier: Apache-2.0 */
/* MMX operations on the host's MMX unit, which is left empty again; EMMS. */
#include <string.h>

#include "accel/soft/vector_private.h"
#include "accel/soft/x87_private.h"

void x87_set_top(struct soft_cpu *cpu, unsigned top)
{
    uint8_t before[8][16];
    unsigned shift = x87_top(cpu) - top;

    if (shift == 0)
        return;
    memcpy(before, cpu->fx.st, sizeof(before));
    for (unsigned i = 0; i < 8; i++)
        memcpy(cpu->fx.st[(shift + i) & 7], before[i], sizeof(before[i]));
    cpu->fx.fsw =
        (uint16_t)((cpu->fx.fsw & ~X87_STATUS_TOP) | top << X87_STATUS_TOP_SHIFT);
}

void mmx_enter(struct soft_cpu *cpu)
{
    x87_set_top(cpu, 0);
    cpu->fx.ftw = 0xff;
}

#define DEFINE(opcode, name)                                                             \
    static vector name(vector destination, vector source, const struct uop *uop)         \
    {                                                                                    \
        (void)uop;                                                                       \
        asm volatile("movdq2q %0, %%mm0\n\tmovdq2q %1, %%mm1\n\t" #name                  \
                     " %%mm1, %%mm0\n\tmovq2dq %%mm0, %0\n\temms"                        \
                     : "+x"(destination)                                                 \
                     : "x"(source)                                                       \
                     : "mm0", "mm1", "st", "st(1)");                                     \
        return destination;                                                              \
    }
VECTOR_PAIRED(DEFINE)
VECTOR_PAIRED_LOW(DEFINE)
VECTOR_PAIRED_38(DEFINE)
#undef DEFINE

#define ROW(opcode, name) [MMX_##name] = {name, 0, NEED_SSE2},
#define ROW_38(opcode, name) [MMX_##name] = {name, 0, NEED_SSSE3},
/* clang-format off */
const struct vector_row vector_mmx_rows[] = {
    VECTOR_PAIRED(ROW)
    VECTOR_PAIRED_LOW(ROW)
    VECTOR_PAIRED_38(ROW_38)
};
/* clang-format on */

static void emms(struct soft_cpu *cpu, const struct uop *uop)
{
    x87_check_pending(cpu, uop);
    x87_set_top(cpu, 0);
    cpu->fx.ftw = 0;
    NEXT(cpu, uop);
}

soft_handler *select_emms(const struct instruction *instruction, bool flags_dead)
{
    soft_handler *unavailable = vector_unavailable(instruction, NEED_SSE2);

    (void)flags_dead;
    return unavailable != NULL ? unavailable : emms;
}
