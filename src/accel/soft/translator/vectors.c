/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's vector registers to the host's and back; see vectors_private.h. */
#include "accel/soft/translator/vectors_private.h"

#include "accel/soft/handlers_private.h"

/* MXCSR bits 12 to 7 and FCW bits 5 to 0 mask exceptions; FSW bit 7 says that one is
 * pending (SDM vol. 1, 8.1 and 10.2.3). */
#define MXCSR_MASKS 0x1f80u
#define FCW_MASKS 0x3fu
#define FSW_PENDING 0x80u

/* What C expects: x87 empty, all exceptions masked. */
static void set_host_defaults(void)
{
    static const uint32_t mxcsr = MXCSR_MASKS;

    asm volatile("fninit\n\tldmxcsr %0" : : "m"(mxcsr));
}

/* The host's instruction and data pointers are none of the guest's business. */
void vectors_save_resident(struct soft_cpu *cpu)
{
    uint32_t mask = cpu->fx.mxcsr_mask;

    asm volatile("fxsave64 %0" : "+m"(cpu->fx));
    cpu->fx.mxcsr_mask = mask;
    cpu->fx.fop = 0;
    cpu->fx.fip = 0;
    cpu->fx.fdp = 0;
    cpu->translated.vectors_resident = 0;
    set_host_defaults();
}

/* Upper halves of YMM registers that are in use slow down SSE instructions. */
static void clear_upper_halves(void)
{
    if (__builtin_cpu_supports("avx") != 0)
        asm volatile("vzeroupper");
}

bool vectors_load(struct soft_cpu *cpu)
{
    if (cpu->translated.vectors_resident)
        return true;
    if ((cpu->fx.mxcsr & MXCSR_MASKS) != MXCSR_MASKS ||
        (cpu->fx.fcw & FCW_MASKS) != FCW_MASKS || (cpu->fx.fsw & FSW_PENDING) != 0)
        return false;
    clear_upper_halves();
    asm volatile("fxrstor64 %0" : : "m"(cpu->fx));
    cpu->translated.vectors_resident = 1;
    return true;
}

bool vectors_supported(void)
{
    return vector_host_has(NEED_SSE3) && vector_host_has(NEED_SSSE3) &&
           vector_host_has(NEED_SSE41) && vector_host_has(NEED_SSE42) &&
           vector_host_has(NEED_AES) && vector_host_has(NEED_PCLMUL);
}
