/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SSE and MMX instructions: what their handlers share.
 *
 * Almost every one of them is an operation on two values and an immediate, whose result
 * goes to the first operand: struct vector_row names the operation, and op_sse.c brings
 * operands of all kinds (XMM, MMX, general register, memory) to and from it. Operations
 * run on the host's unit, by the very same instruction where it matters.
 */
#ifndef HUSK_SOFT_VECTOR_PRIVATE_H
#define HUSK_SOFT_VECTOR_PRIVATE_H

#include "accel/soft/access_private.h"
#include "accel/soft/flags_private.h"
#include "accel/soft/handlers_private.h"

/* The value of an operand. Narrower ones are in the low bytes, zero-extended. */
typedef uint64_t vector __attribute__((vector_size(16), may_alias));

union vector_lanes {
    vector whole;
    uint8_t u8[16];
    uint16_t u16[8];
    uint32_t u32[4];
    uint64_t u64[2];
};

static inline vector vector_from_u64(uint64_t value)
{
    return (vector){value, 0};
}

/* `uop` for the immediate and the operand size, where the operation depends on them. */
typedef vector vector_operation(vector destination, vector source, const struct uop *uop);

#define VECTOR_FLOAT 0x1u /* reads and writes MXCSR, may raise #XM */
#define VECTOR_FLAGS 0x2u /* the result is no value but flags, as in flags_packed */

struct vector_row {
    vector_operation *run;
    uint8_t attributes;
    uint8_t need; /* enum vector_need */
};

/* A form's variant: the table of operations, and the place in it. */
enum vector_family {
    FAMILY_INTEGER,   /* op_sse_integer.c */
    FAMILY_MMX,       /* op_mmx.c */
    FAMILY_FLOAT,     /* op_sse_float.c */
    FAMILY_CONVERT,   /* op_sse_convert.c */
    FAMILY_MOVE,      /* op_sse_move.c */
    FAMILY_IMMEDIATE, /* op_sse_immediate.c */
    FAMILY_COUNT,
};
#define VECTOR_VARIANT(family, place) ((uint16_t)((family) << 8 | (place)))

extern const struct vector_row vector_integer_rows[];
extern const struct vector_row vector_mmx_rows[];
extern const struct vector_row vector_float_rows[];
extern const struct vector_row vector_convert_rows[];
extern const struct vector_row vector_move_rows[];
extern const struct vector_row vector_immediate_rows[];

/* For families of their own handlers: what raises instead, as CR0 and CR4 are (and where
 * the host lacks something), or NULL. */
soft_handler *vector_unavailable(const struct instruction *instruction,
                                 enum vector_need need);

/* The 16-byte memory operand; #GP where it must be aligned and is not (op_sse.c). */
uint64_t vector_address(struct soft_cpu *cpu, const struct uop *uop);
vector vector_load(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                   unsigned size);
void vector_store(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                  unsigned size, vector value);

static inline vector *vector_xmm(struct soft_cpu *cpu, unsigned number)
{
    return (vector *)(void *)cpu->fx.xmm[number];
}

/* An operation that is one host instruction on two XMM registers. */
#define DEFINE_VECTOR_OPERATION(name)                                                    \
    static vector name(vector destination, vector source, const struct uop *uop)         \
    {                                                                                    \
        (void)uop;                                                                       \
        asm volatile(#name " %1, %0" : "+x"(destination) : "x"(source));                 \
        return destination;                                                              \
    }

/* ---- instructions that differ by nothing but opcode and operation, one line each ----
 */

/* clang-format off */

/* MMX without prefix and XMM with 66h: apply(opcode, mnemonic). Map 0F. */
#define VECTOR_PAIRED(apply)                                                             \
    apply(0x63, packsswb)   apply(0x64, pcmpgtb)    apply(0x65, pcmpgtw)                 \
    apply(0x66, pcmpgtd)    apply(0x67, packuswb)   apply(0x68, punpckhbw)               \
    apply(0x69, punpckhwd)  apply(0x6a, punpckhdq)  apply(0x6b, packssdw)                \
    apply(0x74, pcmpeqb)    apply(0x75, pcmpeqw)    apply(0x76, pcmpeqd)                 \
    apply(0xd1, psrlw)      apply(0xd2, psrld)      apply(0xd3, psrlq)                   \
    apply(0xd4, paddq)      apply(0xd5, pmullw)     apply(0xd8, psubusb)                 \
    apply(0xd9, psubusw)    apply(0xda, pminub)     apply(0xdb, pand)                    \
    apply(0xdc, paddusb)    apply(0xdd, paddusw)    apply(0xde, pmaxub)                  \
    apply(0xdf, pandn)      apply(0xe0, pavgb)      apply(0xe1, psraw)                   \
    apply(0xe2, psrad)      apply(0xe3, pavgw)      apply(0xe4, pmulhuw)                 \
    apply(0xe5, pmulhw)     apply(0xe8, psubsb)     apply(0xe9, psubsw)                  \
    apply(0xea, pminsw)     apply(0xeb, por)        apply(0xec, paddsb)                  \
    apply(0xed, paddsw)     apply(0xee, pmaxsw)     apply(0xef, pxor)                    \
    apply(0xf1, psllw)      apply(0xf2, pslld)      apply(0xf3, psllq)                   \
    apply(0xf4, pmuludq)    apply(0xf5, pmaddwd)    apply(0xf6, psadbw)                  \
    apply(0xf8, psubb)      apply(0xf9, psubw)      apply(0xfa, psubd)                   \
    apply(0xfb, psubq)      apply(0xfc, paddb)      apply(0xfd, paddw)                   \
    apply(0xfe, paddd)

/* The same, but the MMX form's memory operand has 32 bits. */
#define VECTOR_PAIRED_LOW(apply)                                                         \
    apply(0x60, punpcklbw)  apply(0x61, punpcklwd)  apply(0x62, punpckldq)

/* The same in map 0F38: SSSE3. */
#define VECTOR_PAIRED_38(apply)                                                          \
    apply(0x00, pshufb)     apply(0x01, phaddw)     apply(0x02, phaddd)                  \
    apply(0x03, phaddsw)    apply(0x04, pmaddubsw)  apply(0x05, phsubw)                  \
    apply(0x06, phsubd)     apply(0x07, phsubsw)    apply(0x08, psignb)                  \
    apply(0x09, psignw)     apply(0x0a, psignd)     apply(0x0b, pmulhrsw)                \
    apply(0x1c, pabsb)      apply(0x1d, pabsw)      apply(0x1e, pabsd)

/* XMM only: apply(map, prefix, opcode, mnemonic, source operand, need). */
#define VECTOR_INTEGER(apply)                                                            \
    apply(MAP_0F,   PREFIX_66,   0x6c, punpcklqdq,  OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_66,   0x6d, punpckhqdq,  OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_NONE, 0x14, unpcklps,    OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_66,   0x14, unpcklpd,    OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_NONE, 0x15, unpckhps,    OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_66,   0x15, unpckhpd,    OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_NONE, 0x54, andps,       OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_66,   0x54, andpd,       OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_NONE, 0x55, andnps,      OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_66,   0x55, andnpd,      OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_NONE, 0x56, orps,        OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_66,   0x56, orpd,        OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_NONE, 0x57, xorps,       OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_66,   0x57, xorpd,       OPERAND_W,   NEED_SSE2)              \
    apply(MAP_0F,   PREFIX_F3,   0x12, movsldup,    OPERAND_W,   NEED_SSE3)              \
    apply(MAP_0F,   PREFIX_F2,   0x12, movddup,     OPERAND_W64, NEED_SSE3)              \
    apply(MAP_0F,   PREFIX_F3,   0x16, movshdup,    OPERAND_W,   NEED_SSE3)              \
    apply(MAP_0F38, PREFIX_66,   0x20, pmovsxbw,    OPERAND_W64, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x21, pmovsxbd,    OPERAND_W32, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x22, pmovsxbq,    OPERAND_W16, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x23, pmovsxwd,    OPERAND_W64, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x24, pmovsxwq,    OPERAND_W32, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x25, pmovsxdq,    OPERAND_W64, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x28, pmuldq,      OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x29, pcmpeqq,     OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x2b, packusdw,    OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x30, pmovzxbw,    OPERAND_W64, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x31, pmovzxbd,    OPERAND_W32, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x32, pmovzxbq,    OPERAND_W16, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x33, pmovzxwd,    OPERAND_W64, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x34, pmovzxwq,    OPERAND_W32, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x35, pmovzxdq,    OPERAND_W64, NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x37, pcmpgtq,     OPERAND_W,   NEED_SSE42)             \
    apply(MAP_0F38, PREFIX_66,   0x38, pminsb,      OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x39, pminsd,      OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x3a, pminuw,      OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x3b, pminud,      OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x3c, pmaxsb,      OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x3d, pmaxsd,      OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x3e, pmaxuw,      OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x3f, pmaxud,      OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x40, pmulld,      OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0x41, phminposuw,  OPERAND_W,   NEED_SSE41)             \
    apply(MAP_0F38, PREFIX_66,   0xdb, aesimc,      OPERAND_W,   NEED_AES)               \
    apply(MAP_0F38, PREFIX_66,   0xdc, aesenc,      OPERAND_W,   NEED_AES)               \
    apply(MAP_0F38, PREFIX_66,   0xdd, aesenclast,  OPERAND_W,   NEED_AES)               \
    apply(MAP_0F38, PREFIX_66,   0xde, aesdec,      OPERAND_W,   NEED_AES)               \
    apply(MAP_0F38, PREFIX_66,   0xdf, aesdeclast,  OPERAND_W,   NEED_AES)

/* Floating point, XMM to XMM: apply(prefix, opcode, mnemonic, source operand, need). Map
 * 0F. */
#define VECTOR_FLOATING(apply)                                                           \
    apply(PREFIX_NONE, 0x51, sqrtps,    OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_66,   0x51, sqrtpd,    OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0x51, sqrtss,    OPERAND_W32, NEED_SSE2)                          \
    apply(PREFIX_F2,   0x51, sqrtsd,    OPERAND_W64, NEED_SSE2)                          \
    apply(PREFIX_NONE, 0x52, rsqrtps,   OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0x52, rsqrtss,   OPERAND_W32, NEED_SSE2)                          \
    apply(PREFIX_NONE, 0x53, rcpps,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0x53, rcpss,     OPERAND_W32, NEED_SSE2)                          \
    apply(PREFIX_NONE, 0x58, addps,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_66,   0x58, addpd,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0x58, addss,     OPERAND_W32, NEED_SSE2)                          \
    apply(PREFIX_F2,   0x58, addsd,     OPERAND_W64, NEED_SSE2)                          \
    apply(PREFIX_NONE, 0x59, mulps,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_66,   0x59, mulpd,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0x59, mulss,     OPERAND_W32, NEED_SSE2)                          \
    apply(PREFIX_F2,   0x59, mulsd,     OPERAND_W64, NEED_SSE2)                          \
    apply(PREFIX_NONE, 0x5a, cvtps2pd,  OPERAND_W64, NEED_SSE2)                          \
    apply(PREFIX_66,   0x5a, cvtpd2ps,  OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0x5a, cvtss2sd,  OPERAND_W32, NEED_SSE2)                          \
    apply(PREFIX_F2,   0x5a, cvtsd2ss,  OPERAND_W64, NEED_SSE2)                          \
    apply(PREFIX_NONE, 0x5b, cvtdq2ps,  OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_66,   0x5b, cvtps2dq,  OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0x5b, cvttps2dq, OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_NONE, 0x5c, subps,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_66,   0x5c, subpd,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0x5c, subss,     OPERAND_W32, NEED_SSE2)                          \
    apply(PREFIX_F2,   0x5c, subsd,     OPERAND_W64, NEED_SSE2)                          \
    apply(PREFIX_NONE, 0x5d, minps,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_66,   0x5d, minpd,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0x5d, minss,     OPERAND_W32, NEED_SSE2)                          \
    apply(PREFIX_F2,   0x5d, minsd,     OPERAND_W64, NEED_SSE2)                          \
    apply(PREFIX_NONE, 0x5e, divps,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_66,   0x5e, divpd,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0x5e, divss,     OPERAND_W32, NEED_SSE2)                          \
    apply(PREFIX_F2,   0x5e, divsd,     OPERAND_W64, NEED_SSE2)                          \
    apply(PREFIX_NONE, 0x5f, maxps,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_66,   0x5f, maxpd,     OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0x5f, maxss,     OPERAND_W32, NEED_SSE2)                          \
    apply(PREFIX_F2,   0x5f, maxsd,     OPERAND_W64, NEED_SSE2)                          \
    apply(PREFIX_66,   0x7c, haddpd,    OPERAND_W,   NEED_SSE3)                          \
    apply(PREFIX_F2,   0x7c, haddps,    OPERAND_W,   NEED_SSE3)                          \
    apply(PREFIX_66,   0x7d, hsubpd,    OPERAND_W,   NEED_SSE3)                          \
    apply(PREFIX_F2,   0x7d, hsubps,    OPERAND_W,   NEED_SSE3)                          \
    apply(PREFIX_66,   0xd0, addsubpd,  OPERAND_W,   NEED_SSE3)                          \
    apply(PREFIX_F2,   0xd0, addsubps,  OPERAND_W,   NEED_SSE3)                          \
    apply(PREFIX_66,   0xe6, cvttpd2dq, OPERAND_W,   NEED_SSE2)                          \
    apply(PREFIX_F3,   0xe6, cvtdq2pd,  OPERAND_W64, NEED_SSE2)                          \
    apply(PREFIX_F2,   0xe6, cvtpd2dq,  OPERAND_W,   NEED_SSE2)

/* Immediates that select what the host must be told as a constant (op_sse_immediate.c):
 * apply(map, prefix, opcode, mnemonic, source operand, stubs, attributes, need). Bits of
 * the immediate above the stubs' number are not looked at. */
#define VECTOR_CONSTANT(apply)                                                           \
    apply(MAP_0F,   PREFIX_NONE, 0xc2, cmpps,   OPERAND_W,   8, VECTOR_FLOAT, NEED_SSE2) \
    apply(MAP_0F,   PREFIX_66,   0xc2, cmppd,   OPERAND_W,   8, VECTOR_FLOAT, NEED_SSE2) \
    apply(MAP_0F,   PREFIX_F3,   0xc2, cmpss,   OPERAND_W32, 8, VECTOR_FLOAT, NEED_SSE2) \
    apply(MAP_0F,   PREFIX_F2,   0xc2, cmpsd,   OPERAND_W64, 8, VECTOR_FLOAT, NEED_SSE2) \
    apply(MAP_0F3A, PREFIX_66,   0x08, roundps, OPERAND_W,  16, VECTOR_FLOAT, NEED_SSE41) \
    apply(MAP_0F3A, PREFIX_66,   0x09, roundpd, OPERAND_W,  16, VECTOR_FLOAT, NEED_SSE41) \
    apply(MAP_0F3A, PREFIX_66,   0x0a, roundss, OPERAND_W32, 16, VECTOR_FLOAT, NEED_SSE41) \
    apply(MAP_0F3A, PREFIX_66,   0x0b, roundsd, OPERAND_W64, 16, VECTOR_FLOAT, NEED_SSE41) \
    apply(MAP_0F3A, PREFIX_66,   0x40, dpps,    OPERAND_W, 256, VECTOR_FLOAT, NEED_SSE41) \
    apply(MAP_0F3A, PREFIX_66,   0x41, dppd,    OPERAND_W,  64, VECTOR_FLOAT, NEED_SSE41) \
    apply(MAP_0F3A, PREFIX_66,   0x42, mpsadbw, OPERAND_W,   8, 0, NEED_SSE41)           \
    apply(MAP_0F3A, PREFIX_66,   0x44, pclmulqdq, OPERAND_W, 32, 0, NEED_PCLMUL)         \
    apply(MAP_0F3A, PREFIX_66,   0xdf, aeskeygenassist, OPERAND_W, 256, 0, NEED_AES)
/* clang-format on */

/* Places in the families' tables. */
#define PLACE(opcode, name) INTEGER_##name,
#define PLACE_WIDE(map, prefix, opcode, name, source, need) INTEGER_##name,
enum vector_integer {
    VECTOR_PAIRED(PLACE) VECTOR_PAIRED_LOW(PLACE) VECTOR_PAIRED_38(PLACE)
        VECTOR_INTEGER(PLACE_WIDE)
};
#undef PLACE
#undef PLACE_WIDE

#define PLACE(opcode, name) MMX_##name,
enum vector_mmx { VECTOR_PAIRED(PLACE) VECTOR_PAIRED_LOW(PLACE) VECTOR_PAIRED_38(PLACE) };
#undef PLACE

#define PLACE(prefix, opcode, name, source, need) FLOAT_##name,
enum vector_float { VECTOR_FLOATING(PLACE) };
#undef PLACE

enum vector_convert {
    CONVERT_UCOMISS,
    CONVERT_UCOMISD,
    CONVERT_COMISS,
    CONVERT_COMISD,
    CONVERT_PTEST,
    CONVERT_SI_TO_SS, /* CVTSI2SS */
    CONVERT_SI_TO_SD,
    CONVERT_SS_TO_SI, /* CVTSS2SI */
    CONVERT_SD_TO_SI,
    CONVERT_SS_CUT_SI, /* CVTTSS2SI */
    CONVERT_SD_CUT_SI,
    CONVERT_PI_TO_PS, /* MMX */
    CONVERT_PI_TO_PD,
    CONVERT_PS_TO_PI,
    CONVERT_PD_TO_PI,
    CONVERT_PS_CUT_PI,
    CONVERT_PD_CUT_PI,
    CONVERT_MOVMSKPS,
    CONVERT_MOVMSKPD,
    CONVERT_PMOVMSKB,
    CONVERT_PMOVMSKB_MMX,
};

enum vector_move {
    MOVE_ALL,         /* the source */
    MOVE_LOW32,       /* the source's low 32 bits, the rest as it was */
    MOVE_LOW64,       /* ... 64 */
    MOVE_ZERO64,      /* ... 64, the rest zero */
    MOVE_HIGH_TO_LOW, /* MOVHLPS */
    MOVE_LOW_TO_HIGH, /* MOVLHPS, MOVHPS from memory */
    MOVE_HIGH,        /* MOVHPS to memory */
};

#define PLACE(map, prefix, opcode, name, source, stubs, attributes, need)                \
    IMMEDIATE_##name,
enum vector_immediate {
    VECTOR_CONSTANT(PLACE) IMMEDIATE_PSHUFD,
    IMMEDIATE_PSHUFLW,
    IMMEDIATE_PSHUFHW,
    IMMEDIATE_SHUFPS,
    IMMEDIATE_SHUFPD,
    IMMEDIATE_PALIGNR,
    IMMEDIATE_PALIGNR_MMX,
    IMMEDIATE_BLENDPS,
    IMMEDIATE_BLENDPD,
    IMMEDIATE_PBLENDW,
    IMMEDIATE_INSERTPS,
    IMMEDIATE_PINSRB,
    IMMEDIATE_PINSRW,
    IMMEDIATE_PINSRW_MMX,
    IMMEDIATE_PINSRD,
    IMMEDIATE_PEXTRB,
    IMMEDIATE_PEXTRW,
    IMMEDIATE_PEXTRW_MMX,
    IMMEDIATE_PEXTRD,
    IMMEDIATE_PSRLDQ,
    IMMEDIATE_PSLLDQ,
};
#undef PLACE

enum vector_string {
    STRING_PCMPESTRI,
    STRING_PCMPISTRI,
    STRING_PCMPESTRM,
    STRING_PCMPISTRM,
};
enum vector_masked { MASKED_PBLENDVB, MASKED_BLENDVPS, MASKED_BLENDVPD };

#endif
