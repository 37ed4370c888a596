/* SPDX-License-Identifier: Apache-2.0 */
/* SSE operations between register files: comparisons into flags, conversions between
 * numbers and general or MMX registers, sign masks. */
#include "accel/soft/vector_private.h"

/* ---- flags ---- */

#define DEFINE_FLAGS(name)                                                               \
    static vector name(vector destination, vector source, const struct uop *uop)         \
    {                                                                                    \
        uint16_t packed;                                                                 \
                                                                                         \
        (void)uop;                                                                       \
        asm volatile(#name " %2, %1\n\t" FLAGS_SAVE                                      \
                     : "=a"(packed)                                                      \
                     : "x"(destination), "x"(source)                                     \
                     : "cc");                                                            \
        return vector_from_u64(packed);                                                  \
    }
DEFINE_FLAGS(ucomiss)
DEFINE_FLAGS(ucomisd)
DEFINE_FLAGS(comiss)
DEFINE_FLAGS(comisd)
DEFINE_FLAGS(ptest)
#undef DEFINE_FLAGS

/* ---- general registers ---- */

/* From an integer of the operand size. */
#define DEFINE_FROM_INTEGER(name, mnemonic)                                              \
    static vector name(vector destination, vector source, const struct uop *uop)         \
    {                                                                                    \
        if (uop->size == 8)                                                              \
            asm volatile(mnemonic "q %1, %0" : "+x"(destination) : "r"(source[0]));      \
        else                                                                             \
            asm volatile(mnemonic "l %1, %0"                                             \
                         : "+x"(destination)                                             \
                         : "r"((uint32_t)source[0]));                                    \
        return destination;                                                              \
    }
DEFINE_FROM_INTEGER(si_to_ss, "cvtsi2ss")
DEFINE_FROM_INTEGER(si_to_sd, "cvtsi2sd")
#undef DEFINE_FROM_INTEGER

/* To an integer of the operand size. */
#define DEFINE_TO_INTEGER(name, mnemonic)                                                \
    static vector name(vector destination, vector source, const struct uop *uop)         \
    {                                                                                    \
        uint64_t wide;                                                                   \
        uint32_t narrow;                                                                 \
                                                                                         \
        (void)destination;                                                               \
        if (uop->size == 8) {                                                            \
            asm volatile(mnemonic " %1, %0" : "=r"(wide) : "x"(source));                 \
            return vector_from_u64(wide);                                                \
        }                                                                                \
        asm volatile(mnemonic " %1, %0" : "=r"(narrow) : "x"(source));                   \
        return vector_from_u64(narrow);                                                  \
    }
DEFINE_TO_INTEGER(ss_to_si, "cvtss2si")
DEFINE_TO_INTEGER(sd_to_si, "cvtsd2si")
DEFINE_TO_INTEGER(ss_cut_si, "cvttss2si")
DEFINE_TO_INTEGER(sd_cut_si, "cvttsd2si")
#undef DEFINE_TO_INTEGER

#define DEFINE_MASK(name)                                                                \
    static vector name(vector destination, vector source, const struct uop *uop)         \
    {                                                                                    \
        uint32_t mask;                                                                   \
                                                                                         \
        (void)destination, (void)uop;                                                    \
        asm(#name " %1, %0" : "=r"(mask) : "x"(source));                                 \
        return vector_from_u64(mask);                                                    \
    }
DEFINE_MASK(movmskps)
DEFINE_MASK(movmskpd)
DEFINE_MASK(pmovmskb)
#undef DEFINE_MASK

static vector pmovmskb_mmx(vector destination, vector source, const struct uop *uop)
{
    return pmovmskb(destination, (vector){source[0], 0}, uop);
}

/* ---- MMX: the host's MMX registers are left empty again ---- */

#define DEFINE_FROM_MMX(name, mnemonic)                                                  \
    static vector name(vector destination, vector source, const struct uop *uop)         \
    {                                                                                    \
        (void)uop;                                                                       \
        asm volatile("movdq2q %1, %%mm0\n\t" mnemonic " %%mm0, %0\n\temms"               \
                     : "+x"(destination)                                                 \
                     : "x"(source)                                                       \
                     : "mm0", "st");                                                     \
        return destination;                                                              \
    }
DEFINE_FROM_MMX(pi_to_ps, "cvtpi2ps")
DEFINE_FROM_MMX(pi_to_pd, "cvtpi2pd")
#undef DEFINE_FROM_MMX

#define DEFINE_TO_MMX(name, mnemonic)                                                    \
    static vector name(vector destination, vector source, const struct uop *uop)         \
    {                                                                                    \
        (void)uop;                                                                       \
        asm volatile(mnemonic " %1, %%mm0\n\tmovq2dq %%mm0, %0\n\temms"                  \
                     : "=x"(destination)                                                 \
                     : "x"(source)                                                       \
                     : "mm0", "st");                                                     \
        return destination;                                                              \
    }
DEFINE_TO_MMX(ps_to_pi, "cvtps2pi")
DEFINE_TO_MMX(pd_to_pi, "cvtpd2pi")
DEFINE_TO_MMX(ps_cut_pi, "cvttps2pi")
DEFINE_TO_MMX(pd_cut_pi, "cvttpd2pi")
#undef DEFINE_TO_MMX

const struct vector_row vector_convert_rows[] = {
    [CONVERT_UCOMISS] = {ucomiss, VECTOR_FLOAT | VECTOR_FLAGS, NEED_SSE2},
    [CONVERT_UCOMISD] = {ucomisd, VECTOR_FLOAT | VECTOR_FLAGS, NEED_SSE2},
    [CONVERT_COMISS] = {comiss, VECTOR_FLOAT | VECTOR_FLAGS, NEED_SSE2},
    [CONVERT_COMISD] = {comisd, VECTOR_FLOAT | VECTOR_FLAGS, NEED_SSE2},
    [CONVERT_PTEST] = {ptest, VECTOR_FLAGS, NEED_SSE41},
    [CONVERT_SI_TO_SS] = {si_to_ss, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_SI_TO_SD] = {si_to_sd, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_SS_TO_SI] = {ss_to_si, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_SD_TO_SI] = {sd_to_si, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_SS_CUT_SI] = {ss_cut_si, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_SD_CUT_SI] = {sd_cut_si, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_PI_TO_PS] = {pi_to_ps, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_PI_TO_PD] = {pi_to_pd, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_PS_TO_PI] = {ps_to_pi, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_PD_TO_PI] = {pd_to_pi, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_PS_CUT_PI] = {ps_cut_pi, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_PD_CUT_PI] = {pd_cut_pi, VECTOR_FLOAT, NEED_SSE2},
    [CONVERT_MOVMSKPS] = {movmskps, 0, NEED_SSE2},
    [CONVERT_MOVMSKPD] = {movmskpd, 0, NEED_SSE2},
    [CONVERT_PMOVMSKB] = {pmovmskb, 0, NEED_SSE2},
    [CONVERT_PMOVMSKB_MMX] = {pmovmskb_mmx, 0, NEED_SSE2},
};
