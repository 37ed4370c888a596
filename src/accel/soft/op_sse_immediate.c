/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SSE operations with an immediate. The host's instructions want it as a constant: what
 * only moves lanes about is written in C, the rest jumps into a row of stubs, one for
 * each value.
 */
#include "accel/soft/vector_private.h"

/* ---- stubs: functions of two vectors that are one instruction each ---- */

#define STUB_BYTES 8 /* instructions have at most 6 with the immediate, RET 1 */
typedef vector vector_stub(vector destination, vector source);

/* The calling convention has the vectors in XMM0 and XMM1, and the result in XMM0. */
#define DEFINE_STUBS(map, prefix, opcode, name, source_operand, count, attributes, need) \
    extern const uint8_t name##_stubs[] __attribute__((visibility("hidden")));           \
    asm(".pushsection .text." #name "_stubs, \"ax\", @progbits\n"                        \
        ".balign 8\n" #name "_stubs:\n"                                                  \
        ".set stub_immediate, 0\n"                                                       \
        ".rept " #count "\n" #name " $stub_immediate, %xmm1, %xmm0\n"                    \
        "ret\n"                                                                          \
        ".balign 8\n"                                                                    \
        ".set stub_immediate, stub_immediate + 1\n"                                      \
        ".endr\n"                                                                        \
        ".popsection\n");                                                                \
    static vector name(vector destination, vector source, const struct uop *uop)         \
    {                                                                                    \
        const uint8_t *stub =                                                            \
            name##_stubs + (uop->immediate & ((count)-1)) * STUB_BYTES;                  \
                                                                                         \
        return ((vector_stub *)(uintptr_t)stub)(destination, source);                    \
    }
VECTOR_CONSTANT(DEFINE_STUBS)
#undef DEFINE_STUBS

/* ---- shuffles and blends ---- */

static unsigned two_bits(const struct uop *uop, unsigned lane)
{
    return (unsigned)(uop->immediate >> 2 * lane) & 3;
}

static vector pshufd(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes from = {.whole = source}, to = {.whole = destination};

    for (unsigned i = 0; i < 4; i++)
        to.u32[i] = from.u32[two_bits(uop, i)];
    return to.whole;
}

static vector pshuflw(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes from = {.whole = source}, to = from;

    (void)destination;
    for (unsigned i = 0; i < 4; i++)
        to.u16[i] = from.u16[two_bits(uop, i)];
    return to.whole;
}

static vector pshufhw(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes from = {.whole = source}, to = from;

    (void)destination;
    for (unsigned i = 0; i < 4; i++)
        to.u16[4 + i] = from.u16[4 + two_bits(uop, i)];
    return to.whole;
}

static vector shufps(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes low = {.whole = destination}, high = {.whole = source}, to;

    for (unsigned i = 0; i < 2; i++) {
        to.u32[i] = low.u32[two_bits(uop, i)];
        to.u32[2 + i] = high.u32[two_bits(uop, 2 + i)];
    }
    return to.whole;
}

static vector shufpd(vector destination, vector source, const struct uop *uop)
{
    return (vector){destination[uop->immediate & 1], source[uop->immediate >> 1 & 1]};
}

/* Bytes `first` to `first` + 15 of low, then high, then zeros. */
static vector bytes_from(vector low, vector high, uint64_t first)
{
    union vector_lanes parts[3] = {{.whole = low}, {.whole = high}, {.u64 = {0, 0}}}, to;

    for (unsigned i = 0; i < 16; i++) {
        uint64_t from = min_u64(first + i, 32);

        to.u8[i] = parts[from / 16].u8[from % 16];
    }
    return to.whole;
}

static vector palignr(vector destination, vector source, const struct uop *uop)
{
    return bytes_from(source, destination, uop->immediate);
}

static vector palignr_mmx(vector destination, vector source, const struct uop *uop)
{
    vector both = {source[0], destination[0]};

    return bytes_from(both, (vector){0, 0}, uop->immediate);
}

static vector psrldq(vector destination, vector source, const struct uop *uop)
{
    (void)source;
    return bytes_from(destination, (vector){0, 0}, uop->immediate);
}

static vector pslldq(vector destination, vector source, const struct uop *uop)
{
    (void)source;
    return bytes_from((vector){0, 0}, destination, 16 - min_u64(uop->immediate, 16));
}

static vector pblendw(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes from = {.whole = source}, to = {.whole = destination};

    for (unsigned i = 0; i < 8; i++)
        if ((uop->immediate >> i & 1) != 0)
            to.u16[i] = from.u16[i];
    return to.whole;
}

static vector blendps(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes from = {.whole = source}, to = {.whole = destination};

    for (unsigned i = 0; i < 4; i++)
        if ((uop->immediate >> i & 1) != 0)
            to.u32[i] = from.u32[i];
    return to.whole;
}

static vector blendpd(vector destination, vector source, const struct uop *uop)
{
    return (vector){(uop->immediate & 1) != 0 ? source[0] : destination[0],
                    (uop->immediate & 2) != 0 ? source[1] : destination[1]};
}

/* ---- one lane ---- */

/* From memory there is only one lane; the bits that choose one have no meaning then. */
static vector insertps(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes from = {.whole = source}, to = {.whole = destination};
    bool from_register = uop->form->modrm == MODRM_REGISTER;
    uint32_t lane = from.u32[from_register ? two_bits(uop, 3) : 0];

    to.u32[two_bits(uop, 2)] = lane;
    for (unsigned i = 0; i < 4; i++)
        if ((uop->immediate >> i & 1) != 0)
            to.u32[i] = 0;
    return to.whole;
}

static vector pinsrb(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes to = {.whole = destination};

    to.u8[uop->immediate & 15] = (uint8_t)source[0];
    return to.whole;
}

static vector pinsrw(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes to = {.whole = destination};

    to.u16[uop->immediate & 7] = (uint16_t)source[0];
    return to.whole;
}

static vector pinsrw_mmx(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes to = {.whole = destination};

    to.u16[uop->immediate & 3] = (uint16_t)source[0];
    return to.whole;
}

/* PINSRD and PINSRQ, by the operand size. */
static vector pinsrd(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes to = {.whole = destination};

    if (uop->size == 8)
        to.u64[uop->immediate & 1] = source[0];
    else
        to.u32[uop->immediate & 3] = (uint32_t)source[0];
    return to.whole;
}

static vector pextrb(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes from = {.whole = source};

    (void)destination;
    return vector_from_u64(from.u8[uop->immediate & 15]);
}

static vector pextrw(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes from = {.whole = source};

    (void)destination;
    return vector_from_u64(from.u16[uop->immediate & 7]);
}

static vector pextrw_mmx(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes from = {.whole = source};

    (void)destination;
    return vector_from_u64(from.u16[uop->immediate & 3]);
}

static vector pextrd(vector destination, vector source, const struct uop *uop)
{
    union vector_lanes from = {.whole = source};

    (void)destination;
    return vector_from_u64(uop->size == 8 ? from.u64[uop->immediate & 1]
                                          : from.u32[uop->immediate & 3]);
}

#define ROW(map, prefix, opcode, name, source, count, attributes, need)                  \
    [IMMEDIATE_##name] = {name, attributes, need},
const struct vector_row vector_immediate_rows[] = {
    VECTOR_CONSTANT(ROW)[IMMEDIATE_PSHUFD] = {pshufd, 0, NEED_SSE2},
    [IMMEDIATE_PSHUFLW] = {pshuflw, 0, NEED_SSE2},
    [IMMEDIATE_PSHUFHW] = {pshufhw, 0, NEED_SSE2},
    [IMMEDIATE_SHUFPS] = {shufps, 0, NEED_SSE2},
    [IMMEDIATE_SHUFPD] = {shufpd, 0, NEED_SSE2},
    [IMMEDIATE_PALIGNR] = {palignr, 0, NEED_SSSE3},
    [IMMEDIATE_PALIGNR_MMX] = {palignr_mmx, 0, NEED_SSSE3},
    [IMMEDIATE_BLENDPS] = {blendps, 0, NEED_SSE41},
    [IMMEDIATE_BLENDPD] = {blendpd, 0, NEED_SSE41},
    [IMMEDIATE_PBLENDW] = {pblendw, 0, NEED_SSE41},
    [IMMEDIATE_INSERTPS] = {insertps, 0, NEED_SSE41},
    [IMMEDIATE_PINSRB] = {pinsrb, 0, NEED_SSE41},
    [IMMEDIATE_PINSRW] = {pinsrw, 0, NEED_SSE2},
    [IMMEDIATE_PINSRW_MMX] = {pinsrw_mmx, 0, NEED_SSE2},
    [IMMEDIATE_PINSRD] = {pinsrd, 0, NEED_SSE41},
    [IMMEDIATE_PEXTRB] = {pextrb, 0, NEED_SSE41},
    [IMMEDIATE_PEXTRW] = {pextrw, 0, NEED_SSE2},
    [IMMEDIATE_PEXTRW_MMX] = {pextrw_mmx, 0, NEED_SSE2},
    [IMMEDIATE_PEXTRD] = {pextrd, 0, NEED_SSE41},
    [IMMEDIATE_PSRLDQ] = {psrldq, 0, NEED_SSE2},
    [IMMEDIATE_PSLLDQ] = {pslldq, 0, NEED_SSE2},
};
