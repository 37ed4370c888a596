/* SPDX-License-Identifier: Apache-2.0 */
/* FXSAVE FXRSTOR LDMXCSR STMXCSR. */
#include <stddef.h>
#include <string.h>

#include "accel/soft/vector_private.h"
#include "accel/soft/x87_private.h"

/* What software may set in MXCSR: all of bits 0 to 15, DAZ among them. */
#define MXCSR_MASK 0xffffu

/* The area without XMM8 to XMM15, which only 64-bit code has, and without the last 96
 * bytes, which are software's (SDM vol. 1, 10.5.1). */
#define AREA_BYTES_32 offsetof(struct fx_state, xmm[8])
#define AREA_BYTES_64 offsetof(struct fx_state, unused)

static unsigned area_bytes(const struct soft_cpu *cpu)
{
    return soft_in_64bit_code(cpu) ? AREA_BYTES_64 : AREA_BYTES_32;
}

static uint64_t area_address(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t linear = soft_address(cpu, uop);

    if (linear % 16 != 0)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    return linear;
}

static void check_mxcsr(struct soft_cpu *cpu, const struct uop *uop, uint32_t mxcsr)
{
    if ((mxcsr & ~MXCSR_MASK) != 0)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

/* FXSAVE and FXSAVE64 differ in the pointers only, which are 0 (x87_private.h). */
static void fxsave(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t linear = area_address(cpu, uop);

    cpu->fx.reserved = 0;
    cpu->fx.mxcsr_mask = MXCSR_MASK;
    soft_store_bytes(cpu, uop, linear, &cpu->fx, area_bytes(cpu));
    NEXT(cpu, uop);
}

static __attribute__((noinline)) void restore(struct soft_cpu *cpu, const struct uop *uop)
{
    unsigned size = area_bytes(cpu);
    struct fx_state area;

    soft_load_bytes(cpu, uop, area_address(cpu, uop), &area, size);
    check_mxcsr(cpu, uop, area.mxcsr);
    area.fop = 0;
    area.fip = 0;
    area.fdp = 0;
    for (unsigned i = 0; i < 8; i++)
        memset(area.st[i] + 10, 0, 6);
    memcpy(&cpu->fx, &area, size);
    x87_set_control(cpu, area.fcw);
    x87_update_summary(cpu);
}

static void fxrstor(struct soft_cpu *cpu, const struct uop *uop)
{
    restore(cpu, uop);
    NEXT(cpu, uop);
}

static void stmxcsr(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_store32(cpu, uop, soft_address(cpu, uop), cpu->fx.mxcsr);
    NEXT(cpu, uop);
}

static void ldmxcsr(struct soft_cpu *cpu, const struct uop *uop)
{
    uint32_t mxcsr = soft_load32(cpu, uop, soft_address(cpu, uop));

    check_mxcsr(cpu, uop, mxcsr);
    cpu->fx.mxcsr = mxcsr;
    NEXT(cpu, uop);
}

soft_handler *select_fxsave(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {
        [FXSAVE_SAVE] = fxsave,
        [FXSAVE_RESTORE] = fxrstor,
        [FXSAVE_STMXCSR] = stmxcsr,
        [FXSAVE_LDMXCSR] = ldmxcsr,
    };
    soft_handler *unavailable = vector_unavailable(instruction, NEED_SSE2);

    (void)flags_dead;
    return unavailable != NULL ? unavailable : handlers[instruction->form->variant];
}
