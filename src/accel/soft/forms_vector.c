/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms of x87, MMX and SSE up to SSE4.2, with AES and PCLMULQDQ (SDM vol. 2).
 *
 * None is FORM_PURE: while CR0.TS is set, or an x87 exception is pending, they all fault.
 */
#include "accel/soft/handlers_private.h"
#include "accel/soft/vector_private.h"
#include "base/bytes.h"

/* clang-format off */

/* ---- MMX and SSE ---- */

#define INTEGER(place)   select_vector, VECTOR_VARIANT(FAMILY_INTEGER, INTEGER_##place)
#define MMX(place)       select_vector, VECTOR_VARIANT(FAMILY_MMX, MMX_##place)
#define FLOAT(place)     select_vector, VECTOR_VARIANT(FAMILY_FLOAT, FLOAT_##place)
#define CONVERT(place)   select_vector, VECTOR_VARIANT(FAMILY_CONVERT, CONVERT_##place)
#define MOVE(place)      select_vector, VECTOR_VARIANT(FAMILY_MOVE, MOVE_##place)
#define IMMEDIATE(place) select_vector, VECTOR_VARIANT(FAMILY_IMMEDIATE, IMMEDIATE_##place)
#define MASKED(place)    select_vector_masked, MASKED_##place
#define MASK_STORE       select_vector_mask_store, 0
#define STRING(place)    select_vector_string, STRING_##place

#define NO_FLAGS {0, 0, 0}
#define ALL_FLAGS {0, FLAGS_ARITHMETIC, 0}

/* The lists of vector_private.h. */
#define ROWS_PAIRED(map, code, name, narrow)                                             \
    {map, code, 1, PREFIX_NONE, MODRM_ANY, -1, -1, #name, {OPERAND_P, narrow},           \
     SIZE_NONE, NO_FLAGS, FORM_MMX, MMX(name)},                                          \
    {map, code, 1, PREFIX_66, MODRM_ANY, -1, -1, #name, {OPERAND_V, OPERAND_W},          \
     SIZE_NONE, NO_FLAGS, FORM_SSE, INTEGER(name)},
#define ROWS(code, name)     ROWS_PAIRED(MAP_0F, code, name, OPERAND_Q)
#define ROWS_LOW(code, name) ROWS_PAIRED(MAP_0F, code, name, OPERAND_Q32)
#define ROWS_38(code, name)  ROWS_PAIRED(MAP_0F38, code, name, OPERAND_Q)
#define ROW_INTEGER(map, prefix, code, name, source, need)                               \
    {map, code, 1, prefix, MODRM_ANY, -1, -1, #name, {OPERAND_V, source},                \
     SIZE_NONE, NO_FLAGS, FORM_SSE, INTEGER(name)},
#define ROW_FLOAT(prefix, code, name, source, need)                                      \
    {MAP_0F, code, 1, prefix, MODRM_ANY, -1, -1, #name, {OPERAND_V, source},             \
     SIZE_NONE, NO_FLAGS, FORM_SSE, FLOAT(name)},
#define ROW_CONSTANT(map, prefix, code, name, source, stubs, attributes, need)           \
    {map, code, 1, prefix, MODRM_ANY, -1, -1, #name, {OPERAND_V, source, OPERAND_I8},    \
     SIZE_NONE, NO_FLAGS, FORM_SSE, IMMEDIATE(name)},

/* Two operands. */
#define ROW(map, code, prefix, modrm, name, to, from, size, attributes, handler)         \
    {map, code, 1, prefix, MODRM_##modrm, -1, -1, name, {OPERAND_##to, OPERAND_##from},  \
     SIZE_##size, NO_FLAGS, attributes, handler}
/* ... and an immediate. */
#define ROW_I8(map, code, prefix, modrm, name, to, from, size, attributes, handler)      \
    {map, code, 1, prefix, MODRM_##modrm, -1, -1, name,                                  \
     {OPERAND_##to, OPERAND_##from, OPERAND_I8}, SIZE_##size, NO_FLAGS, attributes, handler}
/* Shifts by an immediate. */
#define ROW_SHIFT(code, prefix, extension, name, to, attributes, handler)                \
    {MAP_0F, code, 1, prefix, MODRM_REGISTER, extension, -1, name,                       \
     {OPERAND_##to, OPERAND_I8}, SIZE_NONE, NO_FLAGS, attributes, handler}
#define ROWS_SHIFT(code, extension, name)                                                \
    ROW_SHIFT(code, PREFIX_NONE, extension, #name, Q, FORM_MMX, MMX(name)),              \
    ROW_SHIFT(code, PREFIX_66, extension, #name, W, FORM_SSE, INTEGER(name))
#define ROW_FLAGS(map, code, prefix, name, from, handler)                                \
    {map, code, 1, prefix, MODRM_ANY, -1, -1, name, {OPERAND_V, OPERAND_##from},         \
     SIZE_NONE, ALL_FLAGS, FORM_SSE, handler}
#define ROW_STRING(code, name, size, place)                                              \
    {MAP_0F3A, code, 1, PREFIX_66, MODRM_ANY, -1, -1, name,                              \
     {OPERAND_V, OPERAND_W, OPERAND_I8}, size, ALL_FLAGS, FORM_SSE | FORM_UNALIGNED,     \
     STRING(place)}
#define ROW_STATE(extension, name, size, attributes, variant)                            \
    {MAP_0F, 0xae, 1, PREFIX_NONE, MODRM_MEMORY, extension, -1, name, {OPERAND_M},       \
     size, NO_FLAGS, attributes, select_fxsave, variant}

#define UNALIGNED (FORM_SSE | FORM_UNALIGNED)
#define BOTH (FORM_SSE | FORM_MMX)

/* ---- x87 ---- */

#define X87_MEMORY(code, extension, name, size, attributes, variant)                     \
    {MAP_ONE, code, 1, PREFIX_ANY, MODRM_MEMORY, extension, -1, name, {OPERAND_M},       \
     SIZE_##size, NO_FLAGS, FORM_X87 | (attributes), select_x87, variant}
#define X87_READ(code, extension, name, size)                                            \
    X87_MEMORY(code, extension, name, size, FORM_READS, X87_LOAD)
#define X87_WRITE(code, extension, name, size)                                           \
    X87_MEMORY(code, extension, name, size, 0, X87_STORE)
/* With any register of the stack, and with a fixed rm. */
#define X87_ANY(code, extension, name)                                                   \
    {MAP_ONE, code, 1, PREFIX_ANY, MODRM_REGISTER, extension, -1, name, {OPERAND_NONE},  \
     SIZE_NONE, NO_FLAGS, FORM_X87, select_x87, X87_STACK}
#define X87_ONE(code, extension, rm, name)                                               \
    {MAP_ONE, code, 1, PREFIX_ANY, MODRM_REGISTER, extension, rm, name, {OPERAND_NONE},  \
     SIZE_NONE, NO_FLAGS, FORM_X87, select_x87, X87_STACK}
#define X87_MOVE_IF(code, extension, name, flags)                                        \
    {MAP_ONE, code, 1, PREFIX_ANY, MODRM_REGISTER, extension, -1, name, {OPERAND_NONE},  \
     SIZE_NONE, {flags, 0, 0}, FORM_X87, select_x87, X87_STACK}
#define X87_FLAGS(code, extension, name)                                                 \
    {MAP_ONE, code, 1, PREFIX_ANY, MODRM_REGISTER, extension, -1, name, {OPERAND_NONE},  \
     SIZE_NONE, ALL_FLAGS, FORM_X87, select_x87, X87_COMPARE_FLAGS}
#define X87_CONTROL(code, modrm, extension, rm, name, operand, size, variant)            \
    {MAP_ONE, code, 1, PREFIX_ANY, MODRM_##modrm, extension, rm, name,                   \
     {OPERAND_##operand}, SIZE_##size, NO_FLAGS, FORM_X87, select_x87_control, variant}
#define X87_CONTROL_LOAD(code, extension, name, size, variant)                           \
    {MAP_ONE, code, 1, PREFIX_ANY, MODRM_MEMORY, extension, -1, name, {OPERAND_M},       \
     SIZE_##size, NO_FLAGS, FORM_X87 | FORM_READS, select_x87_control, variant}
/* The eight arithmetic operations that a whole opcode offers. */
#define X87_READ_ALL(code, size, prefix)                                                 \
    X87_READ(code, 0, prefix "add", size),  X87_READ(code, 1, prefix "mul", size),       \
    X87_READ(code, 2, prefix "com", size),  X87_READ(code, 3, prefix "comp", size),      \
    X87_READ(code, 4, prefix "sub", size),  X87_READ(code, 5, prefix "subr", size),      \
    X87_READ(code, 6, prefix "div", size),  X87_READ(code, 7, prefix "divr", size)

const struct form soft_vector_forms[] = {
    VECTOR_PAIRED(ROWS)
    VECTOR_PAIRED_LOW(ROWS_LOW)
    VECTOR_PAIRED_38(ROWS_38)
    VECTOR_INTEGER(ROW_INTEGER)
    VECTOR_FLOATING(ROW_FLOAT)
    VECTOR_CONSTANT(ROW_CONSTANT)

    /* whole registers */
    ROW(MAP_0F,   0x10, PREFIX_NONE, ANY,    "movups",   V, W, NONE, UNALIGNED, MOVE(ALL)),
    ROW(MAP_0F,   0x10, PREFIX_66,   ANY,    "movupd",   V, W, NONE, UNALIGNED, MOVE(ALL)),
    ROW(MAP_0F,   0x11, PREFIX_NONE, ANY,    "movups",   W, V, NONE, UNALIGNED, MOVE(ALL)),
    ROW(MAP_0F,   0x11, PREFIX_66,   ANY,    "movupd",   W, V, NONE, UNALIGNED, MOVE(ALL)),
    ROW(MAP_0F,   0x28, PREFIX_NONE, ANY,    "movaps",   V, W, NONE, FORM_SSE,  MOVE(ALL)),
    ROW(MAP_0F,   0x28, PREFIX_66,   ANY,    "movapd",   V, W, NONE, FORM_SSE,  MOVE(ALL)),
    ROW(MAP_0F,   0x29, PREFIX_NONE, ANY,    "movaps",   W, V, NONE, FORM_SSE,  MOVE(ALL)),
    ROW(MAP_0F,   0x29, PREFIX_66,   ANY,    "movapd",   W, V, NONE, FORM_SSE,  MOVE(ALL)),
    ROW(MAP_0F,   0x2b, PREFIX_NONE, MEMORY, "movntps",  W, V, NONE, FORM_SSE,  MOVE(ALL)),
    ROW(MAP_0F,   0x2b, PREFIX_66,   MEMORY, "movntpd",  W, V, NONE, FORM_SSE,  MOVE(ALL)),
    ROW(MAP_0F,   0x6f, PREFIX_66,   ANY,    "movdqa",   V, W, NONE, FORM_SSE,  MOVE(ALL)),
    ROW(MAP_0F,   0x6f, PREFIX_F3,   ANY,    "movdqu",   V, W, NONE, UNALIGNED, MOVE(ALL)),
    ROW(MAP_0F,   0x7f, PREFIX_66,   ANY,    "movdqa",   W, V, NONE, FORM_SSE,  MOVE(ALL)),
    ROW(MAP_0F,   0x7f, PREFIX_F3,   ANY,    "movdqu",   W, V, NONE, UNALIGNED, MOVE(ALL)),
    ROW(MAP_0F,   0xe7, PREFIX_66,   MEMORY, "movntdq",  W, V, NONE, FORM_SSE,  MOVE(ALL)),
    ROW(MAP_0F,   0xf0, PREFIX_F2,   MEMORY, "lddqu",    V, W, NONE, UNALIGNED, MOVE(ALL)),
    ROW(MAP_0F38, 0x2a, PREFIX_66,   MEMORY, "movntdqa", V, W, NONE, FORM_SSE,  MOVE(ALL)),

    /* parts of registers */
    ROW(MAP_0F, 0x10, PREFIX_F3,   REGISTER, "movss",   V,   W32, NONE, FORM_SSE, MOVE(LOW32)),
    ROW(MAP_0F, 0x10, PREFIX_F3,   MEMORY,   "movss",   V,   W32, NONE, FORM_SSE, MOVE(ALL)),
    ROW(MAP_0F, 0x10, PREFIX_F2,   REGISTER, "movsd",   V,   W64, NONE, FORM_SSE, MOVE(LOW64)),
    ROW(MAP_0F, 0x10, PREFIX_F2,   MEMORY,   "movsd",   V,   W64, NONE, FORM_SSE, MOVE(ALL)),
    ROW(MAP_0F, 0x11, PREFIX_F3,   ANY,      "movss",   W32, V,   NONE, FORM_SSE, MOVE(LOW32)),
    ROW(MAP_0F, 0x11, PREFIX_F2,   ANY,      "movsd",   W64, V,   NONE, FORM_SSE, MOVE(LOW64)),
    ROW(MAP_0F, 0x12, PREFIX_NONE, REGISTER, "movhlps", V,   W64, NONE, FORM_SSE, MOVE(HIGH_TO_LOW)),
    ROW(MAP_0F, 0x12, PREFIX_NONE, MEMORY,   "movlps",  V,   W64, NONE, FORM_SSE, MOVE(LOW64)),
    ROW(MAP_0F, 0x12, PREFIX_66,   MEMORY,   "movlpd",  V,   W64, NONE, FORM_SSE, MOVE(LOW64)),
    ROW(MAP_0F, 0x13, PREFIX_NONE, MEMORY,   "movlps",  W64, V,   NONE, FORM_SSE, MOVE(LOW64)),
    ROW(MAP_0F, 0x13, PREFIX_66,   MEMORY,   "movlpd",  W64, V,   NONE, FORM_SSE, MOVE(LOW64)),
    ROW(MAP_0F, 0x16, PREFIX_NONE, REGISTER, "movlhps", V,   W64, NONE, FORM_SSE, MOVE(LOW_TO_HIGH)),
    ROW(MAP_0F, 0x16, PREFIX_NONE, MEMORY,   "movhps",  V,   W64, NONE, FORM_SSE, MOVE(LOW_TO_HIGH)),
    ROW(MAP_0F, 0x16, PREFIX_66,   MEMORY,   "movhpd",  V,   W64, NONE, FORM_SSE, MOVE(LOW_TO_HIGH)),
    ROW(MAP_0F, 0x17, PREFIX_NONE, MEMORY,   "movhps",  W64, V,   NONE, FORM_SSE, MOVE(HIGH)),
    ROW(MAP_0F, 0x17, PREFIX_66,   MEMORY,   "movhpd",  W64, V,   NONE, FORM_SSE, MOVE(HIGH)),
    ROW(MAP_0F, 0x6e, PREFIX_NONE, ANY,      "movd",    P,   E,   Y,    FORM_MMX, MOVE(ALL)),
    ROW(MAP_0F, 0x6e, PREFIX_66,   ANY,      "movd",    V,   E,   Y,    FORM_SSE, MOVE(ALL)),
    ROW(MAP_0F, 0x7e, PREFIX_NONE, ANY,      "movd",    E,   P,   Y,    FORM_MMX, MOVE(ALL)),
    ROW(MAP_0F, 0x7e, PREFIX_66,   ANY,      "movd",    E,   V,   Y,    FORM_SSE, MOVE(ALL)),
    ROW(MAP_0F, 0x7e, PREFIX_F3,   ANY,      "movq",    V,   W64, NONE, FORM_SSE, MOVE(ZERO64)),
    ROW(MAP_0F, 0xd6, PREFIX_66,   ANY,      "movq",    W64, V,   NONE, FORM_SSE, MOVE(ZERO64)),
    ROW(MAP_0F, 0x6f, PREFIX_NONE, ANY,      "movq",    P,   Q,   NONE, FORM_MMX, MOVE(ALL)),
    ROW(MAP_0F, 0x7f, PREFIX_NONE, ANY,      "movq",    Q,   P,   NONE, FORM_MMX, MOVE(ALL)),
    ROW(MAP_0F, 0xe7, PREFIX_NONE, MEMORY,   "movntq",  Q,   P,   NONE, FORM_MMX, MOVE(ALL)),
    ROW(MAP_0F, 0xd6, PREFIX_F3,   REGISTER, "movq2dq", V,   Q,   NONE, BOTH,     MOVE(ALL)),
    ROW(MAP_0F, 0xd6, PREFIX_F2,   REGISTER, "movdq2q", P,   W64, NONE, BOTH,     MOVE(ALL)),

    /* numbers and general or MMX registers; two of MMX use no
     * MMX register when their operand is memory (CVTPI2PS as on AMD; the SDM differs) */
    ROW(MAP_0F, 0x2a, PREFIX_NONE, REGISTER, "cvtpi2ps",  V, Q,   NONE, BOTH,     CONVERT(PI_TO_PS)),
    ROW(MAP_0F, 0x2a, PREFIX_NONE, MEMORY,   "cvtpi2ps",  V, Q,   NONE, FORM_SSE, CONVERT(PI_TO_PS)),
    ROW(MAP_0F, 0x2a, PREFIX_66,   REGISTER, "cvtpi2pd",  V, Q,   NONE, BOTH,     CONVERT(PI_TO_PD)),
    ROW(MAP_0F, 0x2a, PREFIX_66,   MEMORY,   "cvtpi2pd",  V, Q,   NONE, FORM_SSE, CONVERT(PI_TO_PD)),
    ROW(MAP_0F, 0x2a, PREFIX_F3,   ANY,      "cvtsi2ss",  V, E,   Y,    FORM_SSE, CONVERT(SI_TO_SS)),
    ROW(MAP_0F, 0x2a, PREFIX_F2,   ANY,      "cvtsi2sd",  V, E,   Y,    FORM_SSE, CONVERT(SI_TO_SD)),
    ROW(MAP_0F, 0x2c, PREFIX_NONE, ANY,      "cvttps2pi", P, W64, NONE, BOTH,     CONVERT(PS_CUT_PI)),
    ROW(MAP_0F, 0x2c, PREFIX_66,   ANY,      "cvttpd2pi", P, W,   NONE, BOTH,     CONVERT(PD_CUT_PI)),
    ROW(MAP_0F, 0x2c, PREFIX_F3,   ANY,      "cvttss2si", G, W32, Y,    FORM_SSE, CONVERT(SS_CUT_SI)),
    ROW(MAP_0F, 0x2c, PREFIX_F2,   ANY,      "cvttsd2si", G, W64, Y,    FORM_SSE, CONVERT(SD_CUT_SI)),
    ROW(MAP_0F, 0x2d, PREFIX_NONE, ANY,      "cvtps2pi",  P, W64, NONE, BOTH,     CONVERT(PS_TO_PI)),
    ROW(MAP_0F, 0x2d, PREFIX_66,   ANY,      "cvtpd2pi",  P, W,   NONE, BOTH,     CONVERT(PD_TO_PI)),
    ROW(MAP_0F, 0x2d, PREFIX_F3,   ANY,      "cvtss2si",  G, W32, Y,    FORM_SSE, CONVERT(SS_TO_SI)),
    ROW(MAP_0F, 0x2d, PREFIX_F2,   ANY,      "cvtsd2si",  G, W64, Y,    FORM_SSE, CONVERT(SD_TO_SI)),
    ROW(MAP_0F, 0x50, PREFIX_NONE, REGISTER, "movmskps",  G, W,   Y,    FORM_SSE, CONVERT(MOVMSKPS)),
    ROW(MAP_0F, 0x50, PREFIX_66,   REGISTER, "movmskpd",  G, W,   Y,    FORM_SSE, CONVERT(MOVMSKPD)),
    ROW(MAP_0F, 0xd7, PREFIX_NONE, REGISTER, "pmovmskb",  G, Q,   Y,    FORM_MMX, CONVERT(PMOVMSKB_MMX)),
    ROW(MAP_0F, 0xd7, PREFIX_66,   REGISTER, "pmovmskb",  G, W,   Y,    FORM_SSE, CONVERT(PMOVMSKB)),

    /* comparisons into flags */
    ROW_FLAGS(MAP_0F,   0x2e, PREFIX_NONE, "ucomiss", W32, CONVERT(UCOMISS)),
    ROW_FLAGS(MAP_0F,   0x2e, PREFIX_66,   "ucomisd", W64, CONVERT(UCOMISD)),
    ROW_FLAGS(MAP_0F,   0x2f, PREFIX_NONE, "comiss",  W32, CONVERT(COMISS)),
    ROW_FLAGS(MAP_0F,   0x2f, PREFIX_66,   "comisd",  W64, CONVERT(COMISD)),
    ROW_FLAGS(MAP_0F38, 0x17, PREFIX_66,   "ptest",   W,   CONVERT(PTEST)),
    ROW_STRING(0x60, "pcmpestrm", SIZE_Y, PCMPESTRM),
    ROW_STRING(0x61, "pcmpestri", SIZE_Y, PCMPESTRI),
    ROW_STRING(0x62, "pcmpistrm", SIZE_NONE, PCMPISTRM),
    ROW_STRING(0x63, "pcmpistri", SIZE_NONE, PCMPISTRI),

    /* immediates */
    ROW_I8(MAP_0F,   0x70, PREFIX_NONE, ANY,      "pshufw",     P,   Q,   NONE, FORM_MMX, IMMEDIATE(PSHUFLW)),
    ROW_I8(MAP_0F,   0x70, PREFIX_66,   ANY,      "pshufd",     V,   W,   NONE, FORM_SSE, IMMEDIATE(PSHUFD)),
    ROW_I8(MAP_0F,   0x70, PREFIX_F3,   ANY,      "pshufhw",    V,   W,   NONE, FORM_SSE, IMMEDIATE(PSHUFHW)),
    ROW_I8(MAP_0F,   0x70, PREFIX_F2,   ANY,      "pshuflw",    V,   W,   NONE, FORM_SSE, IMMEDIATE(PSHUFLW)),
    ROW_I8(MAP_0F,   0xc4, PREFIX_NONE, REGISTER, "pinsrw",     P,   E32, NONE, FORM_MMX, IMMEDIATE(PINSRW_MMX)),
    ROW_I8(MAP_0F,   0xc4, PREFIX_NONE, MEMORY,   "pinsrw",     P,   E16, 16,   FORM_MMX, IMMEDIATE(PINSRW_MMX)),
    ROW_I8(MAP_0F,   0xc4, PREFIX_66,   REGISTER, "pinsrw",     V,   E32, NONE, FORM_SSE, IMMEDIATE(PINSRW)),
    ROW_I8(MAP_0F,   0xc4, PREFIX_66,   MEMORY,   "pinsrw",     V,   E16, 16,   FORM_SSE, IMMEDIATE(PINSRW)),
    ROW_I8(MAP_0F,   0xc5, PREFIX_NONE, REGISTER, "pextrw",     G,   Q,   Y,    FORM_MMX, IMMEDIATE(PEXTRW_MMX)),
    ROW_I8(MAP_0F,   0xc5, PREFIX_66,   REGISTER, "pextrw",     G,   W,   Y,    FORM_SSE, IMMEDIATE(PEXTRW)),
    ROW_I8(MAP_0F,   0xc6, PREFIX_NONE, ANY,      "shufps",     V,   W,   NONE, FORM_SSE, IMMEDIATE(SHUFPS)),
    ROW_I8(MAP_0F,   0xc6, PREFIX_66,   ANY,      "shufpd",     V,   W,   NONE, FORM_SSE, IMMEDIATE(SHUFPD)),
    ROW_I8(MAP_0F3A, 0x0c, PREFIX_66,   ANY,      "blendps",    V,   W,   NONE, FORM_SSE, IMMEDIATE(BLENDPS)),
    ROW_I8(MAP_0F3A, 0x0d, PREFIX_66,   ANY,      "blendpd",    V,   W,   NONE, FORM_SSE, IMMEDIATE(BLENDPD)),
    ROW_I8(MAP_0F3A, 0x0e, PREFIX_66,   ANY,      "pblendw",    V,   W,   NONE, FORM_SSE, IMMEDIATE(PBLENDW)),
    ROW_I8(MAP_0F3A, 0x0f, PREFIX_NONE, ANY,      "palignr",    P,   Q,   NONE, FORM_MMX, IMMEDIATE(PALIGNR_MMX)),
    ROW_I8(MAP_0F3A, 0x0f, PREFIX_66,   ANY,      "palignr",    V,   W,   NONE, FORM_SSE, IMMEDIATE(PALIGNR)),
    ROW_I8(MAP_0F3A, 0x14, PREFIX_66,   REGISTER, "pextrb",     E32, V,   NONE, FORM_SSE, IMMEDIATE(PEXTRB)),
    ROW_I8(MAP_0F3A, 0x14, PREFIX_66,   MEMORY,   "pextrb",     E8,  V,   8,    FORM_SSE, IMMEDIATE(PEXTRB)),
    ROW_I8(MAP_0F3A, 0x15, PREFIX_66,   REGISTER, "pextrw",     E32, V,   NONE, FORM_SSE, IMMEDIATE(PEXTRW)),
    ROW_I8(MAP_0F3A, 0x15, PREFIX_66,   MEMORY,   "pextrw",     E16, V,   16,   FORM_SSE, IMMEDIATE(PEXTRW)),
    ROW_I8(MAP_0F3A, 0x16, PREFIX_66,   ANY,      "pextrd",     E,   V,   Y,    FORM_SSE, IMMEDIATE(PEXTRD)),
    ROW_I8(MAP_0F3A, 0x17, PREFIX_66,   ANY,      "extractps",  E32, V,   32,   FORM_SSE, IMMEDIATE(PEXTRD)),
    ROW_I8(MAP_0F3A, 0x20, PREFIX_66,   REGISTER, "pinsrb",     V,   E32, NONE, FORM_SSE, IMMEDIATE(PINSRB)),
    ROW_I8(MAP_0F3A, 0x20, PREFIX_66,   MEMORY,   "pinsrb",     V,   E8,  8,    FORM_SSE, IMMEDIATE(PINSRB)),
    ROW_I8(MAP_0F3A, 0x21, PREFIX_66,   REGISTER, "insertps",   V,   W32, NONE, FORM_SSE, IMMEDIATE(INSERTPS)),
    ROW_I8(MAP_0F3A, 0x21, PREFIX_66,   MEMORY,   "insertps",   V,   W32, NONE, FORM_SSE, IMMEDIATE(INSERTPS)),
    ROW_I8(MAP_0F3A, 0x22, PREFIX_66,   ANY,      "pinsrd",     V,   E,   Y,    FORM_SSE, IMMEDIATE(PINSRD)),
    ROWS_SHIFT(0x71, 2, psrlw),
    ROWS_SHIFT(0x71, 4, psraw),
    ROWS_SHIFT(0x71, 6, psllw),
    ROWS_SHIFT(0x72, 2, psrld),
    ROWS_SHIFT(0x72, 4, psrad),
    ROWS_SHIFT(0x72, 6, pslld),
    ROWS_SHIFT(0x73, 2, psrlq),
    ROWS_SHIFT(0x73, 6, psllq),
    ROW_SHIFT(0x73, PREFIX_66, 3, "psrldq", W, FORM_SSE, IMMEDIATE(PSRLDQ)),
    ROW_SHIFT(0x73, PREFIX_66, 7, "pslldq", W, FORM_SSE, IMMEDIATE(PSLLDQ)),

    /* masks */
    ROW(MAP_0F38, 0x10, PREFIX_66,   ANY,      "pblendvb",    V, W, NONE, FORM_SSE, MASKED(PBLENDVB)),
    ROW(MAP_0F38, 0x14, PREFIX_66,   ANY,      "blendvps",    V, W, NONE, FORM_SSE, MASKED(BLENDVPS)),
    ROW(MAP_0F38, 0x15, PREFIX_66,   ANY,      "blendvpd",    V, W, NONE, FORM_SSE, MASKED(BLENDVPD)),
    ROW(MAP_0F,   0xf7, PREFIX_NONE, REGISTER, "maskmovq",    P, Q, NONE, FORM_MMX, MASK_STORE),
    ROW(MAP_0F,   0xf7, PREFIX_66,   REGISTER, "maskmovdqu",  V, W, NONE, FORM_SSE, MASK_STORE),

    /* state */
    {MAP_0F, 0x77, 1, PREFIX_NONE, MODRM_ABSENT, -1, -1, "emms", {OPERAND_NONE}, SIZE_NONE, NO_FLAGS, FORM_MMX, select_emms, 0},
    ROW_STATE(0, "fxsave",  SIZE_NONE, FORM_X87,              FXSAVE_SAVE),
    ROW_STATE(1, "fxrstor", SIZE_NONE, FORM_X87 | FORM_READS, FXSAVE_RESTORE),
    ROW_STATE(2, "ldmxcsr", SIZE_32,   FORM_SSE | FORM_READS, FXSAVE_LDMXCSR),
    ROW_STATE(3, "stmxcsr", SIZE_32,   FORM_SSE,              FXSAVE_STMXCSR),

    /* x87 */
    {MAP_ONE, 0x9b, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "fwait", {OPERAND_NONE}, SIZE_NONE, NO_FLAGS, 0, select_x87_control, X87_FWAIT},

    X87_READ_ALL(0xd8, 32, "f"),
    X87_ANY(0xd8, 0, "fadd"),  X87_ANY(0xd8, 1, "fmul"),  X87_ANY(0xd8, 2, "fcom"),
    X87_ANY(0xd8, 3, "fcomp"), X87_ANY(0xd8, 4, "fsub"),  X87_ANY(0xd8, 5, "fsubr"),
    X87_ANY(0xd8, 6, "fdiv"),  X87_ANY(0xd8, 7, "fdivr"),

    X87_READ(0xd9, 0, "fld", 32),
    X87_WRITE(0xd9, 2, "fst", 32),
    X87_WRITE(0xd9, 3, "fstp", 32),
    X87_CONTROL_LOAD(0xd9, 4, "fldenv", V, X87_FLDENV),
    X87_CONTROL_LOAD(0xd9, 5, "fldcw", 16, X87_FLDCW),
    X87_CONTROL(0xd9, MEMORY, 6, -1, "fnstenv", M, V,  X87_FNSTENV),
    X87_CONTROL(0xd9, MEMORY, 7, -1, "fnstcw",  M, 16, X87_FNSTCW),
    X87_ANY(0xd9, 0, "fld"),
    X87_ANY(0xd9, 1, "fxch"),
    X87_ONE(0xd9, 2, 0, "fnop"),
    X87_ANY(0xd9, 3, "fstpnce"),
    X87_ONE(0xd9, 4, 0, "fchs"),    X87_ONE(0xd9, 4, 1, "fabs"),    X87_ONE(0xd9, 4, 4, "ftst"),
    X87_ONE(0xd9, 4, 5, "fxam"),    X87_ONE(0xd9, 5, 0, "fld1"),    X87_ONE(0xd9, 5, 1, "fldl2t"),
    X87_ONE(0xd9, 5, 2, "fldl2e"),  X87_ONE(0xd9, 5, 3, "fldpi"),   X87_ONE(0xd9, 5, 4, "fldlg2"),
    X87_ONE(0xd9, 5, 5, "fldln2"),  X87_ONE(0xd9, 5, 6, "fldz"),    X87_ONE(0xd9, 6, 0, "f2xm1"),
    X87_ONE(0xd9, 6, 1, "fyl2x"),   X87_ONE(0xd9, 6, 2, "fptan"),   X87_ONE(0xd9, 6, 3, "fpatan"),
    X87_ONE(0xd9, 6, 4, "fxtract"), X87_ONE(0xd9, 6, 5, "fprem1"),  X87_ONE(0xd9, 6, 6, "fdecstp"),
    X87_ONE(0xd9, 6, 7, "fincstp"), X87_ONE(0xd9, 7, 0, "fprem"),   X87_ONE(0xd9, 7, 1, "fyl2xp1"),
    X87_ONE(0xd9, 7, 2, "fsqrt"),   X87_ONE(0xd9, 7, 3, "fsincos"), X87_ONE(0xd9, 7, 4, "frndint"),
    X87_ONE(0xd9, 7, 5, "fscale"),  X87_ONE(0xd9, 7, 6, "fsin"),    X87_ONE(0xd9, 7, 7, "fcos"),

    X87_READ_ALL(0xda, 32, "fi"),
    X87_MOVE_IF(0xda, 0, "fcmovb",  FLAG_CF),
    X87_MOVE_IF(0xda, 1, "fcmove",  FLAG_ZF),
    X87_MOVE_IF(0xda, 2, "fcmovbe", FLAG_CF | FLAG_ZF),
    X87_MOVE_IF(0xda, 3, "fcmovu",  FLAG_PF),
    X87_ONE(0xda, 5, 1, "fucompp"),

    X87_READ(0xdb, 0, "fild", 32),
    X87_WRITE(0xdb, 1, "fisttp", 32),
    X87_WRITE(0xdb, 2, "fist", 32),
    X87_WRITE(0xdb, 3, "fistp", 32),
    X87_READ(0xdb, 5, "fld", NONE),
    X87_WRITE(0xdb, 7, "fstp", NONE),
    X87_MOVE_IF(0xdb, 0, "fcmovnb",  FLAG_CF),
    X87_MOVE_IF(0xdb, 1, "fcmovne",  FLAG_ZF),
    X87_MOVE_IF(0xdb, 2, "fcmovnbe", FLAG_CF | FLAG_ZF),
    X87_MOVE_IF(0xdb, 3, "fcmovnu",  FLAG_PF),
    X87_CONTROL(0xdb, REGISTER, 4, 0, "fneni",   NONE, NONE, X87_NOTHING),
    X87_CONTROL(0xdb, REGISTER, 4, 1, "fndisi",  NONE, NONE, X87_NOTHING),
    X87_CONTROL(0xdb, REGISTER, 4, 2, "fnclex",  NONE, NONE, X87_FNCLEX),
    X87_CONTROL(0xdb, REGISTER, 4, 3, "fninit",  NONE, NONE, X87_FNINIT),
    X87_CONTROL(0xdb, REGISTER, 4, 4, "fnsetpm", NONE, NONE, X87_NOTHING),
    X87_FLAGS(0xdb, 5, "fucomi"),
    X87_FLAGS(0xdb, 6, "fcomi"),

    X87_READ_ALL(0xdc, 64, "f"),
    X87_ANY(0xdc, 0, "fadd"),  X87_ANY(0xdc, 1, "fmul"), X87_ANY(0xdc, 2, "fcom2"),
    X87_ANY(0xdc, 3, "fcomp3"), X87_ANY(0xdc, 4, "fsubr"), X87_ANY(0xdc, 5, "fsub"),
    X87_ANY(0xdc, 6, "fdivr"), X87_ANY(0xdc, 7, "fdiv"),

    X87_READ(0xdd, 0, "fld", 64),
    X87_WRITE(0xdd, 1, "fisttp", 64),
    X87_WRITE(0xdd, 2, "fst", 64),
    X87_WRITE(0xdd, 3, "fstp", 64),
    X87_CONTROL_LOAD(0xdd, 4, "frstor", V, X87_FRSTOR),
    X87_CONTROL(0xdd, MEMORY, 6, -1, "fnsave", M, V,  X87_FNSAVE),
    X87_CONTROL(0xdd, MEMORY, 7, -1, "fnstsw", M, 16, X87_FNSTSW),
    X87_ANY(0xdd, 0, "ffree"), X87_ANY(0xdd, 1, "fxch4"), X87_ANY(0xdd, 2, "fst"),
    X87_ANY(0xdd, 3, "fstp"),  X87_ANY(0xdd, 4, "fucom"), X87_ANY(0xdd, 5, "fucomp"),

    X87_READ_ALL(0xde, 16, "fi"),
    X87_ANY(0xde, 0, "faddp"),     X87_ANY(0xde, 1, "fmulp"),  X87_ANY(0xde, 2, "fcomp5"),
    X87_ONE(0xde, 3, 1, "fcompp"), X87_ANY(0xde, 4, "fsubrp"), X87_ANY(0xde, 5, "fsubp"),
    X87_ANY(0xde, 6, "fdivrp"),    X87_ANY(0xde, 7, "fdivp"),

    X87_READ(0xdf, 0, "fild", 16),
    X87_WRITE(0xdf, 1, "fisttp", 16),
    X87_WRITE(0xdf, 2, "fist", 16),
    X87_WRITE(0xdf, 3, "fistp", 16),
    X87_READ(0xdf, 4, "fbld", NONE),
    X87_READ(0xdf, 5, "fild", 64),
    X87_WRITE(0xdf, 6, "fbstp", NONE),
    X87_WRITE(0xdf, 7, "fistp", 64),
    X87_ANY(0xdf, 0, "ffreep"), X87_ANY(0xdf, 1, "fxch7"), X87_ANY(0xdf, 2, "fstp8"),
    X87_ANY(0xdf, 3, "fstp9"),
    X87_CONTROL(0xdf, REGISTER, 4, 0, "fnstsw", NONE, NONE, X87_FNSTSW_AX),
    X87_FLAGS(0xdf, 5, "fucomip"),
    X87_FLAGS(0xdf, 6, "fcomip"),
};
const size_t soft_vector_form_count = ARRAY_SIZE(soft_vector_forms);
/* clang-format on */
