/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an instruction is: the table of forms, and the decoder that finds a form for
 * bytes.
 *
 * forms*.c hold one row an instruction form; the same row tells the decoder what follows
 * the opcode, the interpreter which handler runs it, and the translator (later) what it
 * may copy. Nothing else knows opcodes.
 */
#ifndef HUSK_SOFT_INSTRUCTION_PRIVATE_H
#define HUSK_SOFT_INSTRUCTION_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "accel/soft/uop_private.h"
#include "x86/x86.h"

/* Longest instruction (SDM vol. 2, 2.3.11). */
#define INSTRUCTION_LIMIT 15

/* What code means depends on these; blocks are keyed by them (soft_cpu.mode). */
enum soft_mode {
    MODE_CODE64 = 0x1,  /* 64-bit mode: EFER.LMA and CS.L */
    MODE_CODE32 = 0x2,  /* CS.D: default operand and address size 32; neither bit: 16 */
    MODE_STACK32 = 0x4, /* SS.B (not in 64-bit mode) */
    MODE_LONG = 0x8,    /* EFER.LMA: 64-bit or compatibility mode */
    MODE_PROTECTED = 0x10, /* CR0.PE */
    MODE_VIRTUAL86 = 0x20, /* RFLAGS.VM */
    MODE_USER = 0x40,      /* CPL 3 */
    MODE_NO_FPU =
        0x80, /* CR0.EM or CR0.TS: x87, MMX and SSE go the slow way, which raises */
    MODE_NO_SSE = 0x100, /* CR0.EM, or no CR4.OSFXSR */
    MODE_SINGLE = 0x200, /* blocks of one instruction: shadows, TF, debug registers */
    MODE_USER_DATA =
        0x800, /* CPL 0 to 2 under SMAP, with RFLAGS.AC: may use user pages */
    MODE_TRANSLATED = 0x1000, /* never in soft_cpu.mode: blocks of the translator */
    MODE_CAREFUL = 0x2000,    /* ... of which each access has a check of its own */
    MODE_FLAT = 0x400, /* not in 64-bit mode: offsets in CS, SS, DS and ES are linear
                        * addresses, all of them allowed, and the stack is of 32 bits */
};

/* Whether MODE_FLAT speaks for data in a segment. CS is not written to; FS and GS have
 * bases. */
static inline bool mode_is_flat(uint32_t mode, unsigned segment)
{
    const unsigned covered = 1u << X86_ES | 1u << X86_SS | 1u << X86_DS;

    return (mode & MODE_FLAT) != 0 && (covered >> segment & 1) != 0;
}

/* Where an opcode lives (SDM vol. 2, 2.1.2 and 2.3.5). */
enum opcode_map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A };

/* The mandatory prefix of a form. Without PREFIX_ANY, 66/F3/F2 are part of the opcode.
 * PREFIX_NFX is the SDM's word for: none or 66, which is the operand size. */
enum form_prefix { PREFIX_ANY, PREFIX_NONE, PREFIX_66, PREFIX_F3, PREFIX_F2, PREFIX_NFX };

/* What ModRM must be for a form. */
enum form_modrm {
    MODRM_ABSENT,   /* no ModRM byte */
    MODRM_ANY,      /* register or memory */
    MODRM_MEMORY,   /* mod != 3 */
    MODRM_REGISTER, /* mod == 3 */
};

/* Operands, after the SDM's appendix A.2. */
enum operand {
    OPERAND_NONE,
    OPERAND_E,  /* ModRM.rm: general register or memory, of the operand size */
    OPERAND_E8, /* ... of 8, 16, 32, 64 bits whatever the operand size */
    OPERAND_E16,
    OPERAND_E32,
    OPERAND_E64,
    OPERAND_G, /* ModRM.reg: general register, of the operand size */
    OPERAND_G8,
    OPERAND_G16,
    OPERAND_G32,
    OPERAND_G64,
    OPERAND_O,   /* low three opcode bits: general register */
    OPERAND_A,   /* the accumulator: AL, AX, EAX, RAX */
    OPERAND_CL,  /* count in CL */
    OPERAND_ONE, /* count 1; also in `immediate` */
    OPERAND_I8,  /* immediate of 8 bits, zero-extended */
    OPERAND_IS8, /* ... sign-extended to the operand size */
    OPERAND_I16, /* 16 bits */
    OPERAND_IZ,  /* 16 or 32 bits, sign-extended to 64 */
    OPERAND_IV,  /* 16, 32 or 64 bits (MOV only) */
    OPERAND_J8,  /* branch displacement; the immediate becomes the target */
    OPERAND_JZ,
    OPERAND_FAR, /* pointer 16:16 or 16:32 in the instruction; immediate and immediate2 */
    OPERAND_M,   /* memory only, of a size the handler knows */
    OPERAND_OFFSET, /* MOV's absolute address (moffs) */
    OPERAND_S,      /* ModRM.reg: segment register */
    OPERAND_C,      /* ModRM.reg: control register */
    OPERAND_D,      /* ModRM.reg: debug register */
    OPERAND_V,      /* ModRM.reg: XMM (YMM) register */
    OPERAND_W,      /* ModRM.rm: XMM register or memory of 128 bits */
    OPERAND_W16,    /* ... memory of 16, 32, 64 bits */
    OPERAND_W32,
    OPERAND_W64,
    OPERAND_H,             /* VEX.vvvv: XMM register */
    OPERAND_P,             /* ModRM.reg: MMX register */
    OPERAND_Q,             /* ModRM.rm: MMX register or memory of 64 bits */
    OPERAND_Q32,           /* ... memory of 32 bits */
    OPERAND_STRING_SOURCE, /* seg:[rSI] */
    OPERAND_STRING_TARGET, /* ES:[rDI] */
};

/* How the operand size is found. */
enum form_size {
    SIZE_NONE, /* no general operand; 0 */
    SIZE_8,
    SIZE_16,
    SIZE_32,
    SIZE_64,
    SIZE_V,      /* 16, 32, 64 by 66h and REX.W */
    SIZE_Y,      /* 32, or 64 with REX.W (66h without effect) */
    SIZE_STACK,  /* 64-bit mode: 64, or 16 with 66h; elsewhere as V (push, pop, near ret)
                  */
    SIZE_BRANCH, /* 64-bit mode: always 64; elsewhere as V (near jump and call) */
    SIZE_NATIVE, /* 64 in 64-bit mode, else 32 (MOV to CR and DR, INVEPT...) */
};

/* Arithmetic flags a form reads and writes; RFLAGS places, so DF and the system flags can
 * be named too. */
#define FLAG_CF 0x1u
#define FLAG_PF 0x4u
#define FLAG_AF 0x10u
#define FLAG_ZF 0x40u
#define FLAG_SF 0x80u
#define FLAG_OF 0x800u
#define FLAGS_ARITHMETIC (FLAG_CF | FLAG_PF | FLAG_AF | FLAG_ZF | FLAG_SF | FLAG_OF)

/* Attributes of forms. */
#define FORM_LOCK 0x1u    /* LOCK is legal when the first operand is memory */
#define FORM_NOT_64 0x2u  /* #UD in 64-bit mode */
#define FORM_ONLY_64 0x4u /* #UD elsewhere */
#define FORM_ENDS                                                                        \
    0x8u /* nothing follows in its block: branches, mode and mapping changes */
#define FORM_PURE 0x10u /* cannot fault when its operands are registers */
#define FORM_X87 0x20u  /* raises #NM when the unit is switched off (MODE_NO_FPU) */
#define FORM_SSE 0x40u  /* raises #UD or #NM by MODE_NO_SSE and MODE_NO_FPU */
#define FORM_MMX 0x80u
#define FORM_REP 0x100u        /* F3 repeats (string instructions without compare) */
#define FORM_REPZ 0x200u       /* F3 repeats while equal, F2 while not */
#define FORM_VEX 0x400u        /* only with VEX prefix */
#define FORM_PROTECTED 0x800u  /* #UD in real and virtual-8086 mode */
#define FORM_UNALIGNED 0x1000u /* its 16-byte memory operand need not be aligned */
#define FORM_READS                                                                       \
    0x2000u /* a memory operand is only read, though it may be the first                 \
             */
#define FORM_OFFSET_ONLY                                                                 \
    0x4000u /* the memory operand is not accessed: LEA, multi-byte NOP */
#define FORM_CONDITIONAL 0x8000u /* FORM_ENDS, but may also go on behind it */
#define FORM_COUNT 0x10000u      /* changes no flags when the immediate count is 0 */
#define FORM_AFTER_POP 0x20000u  /* an address through RSP counts from behind the pop */
#define FORM_FLAT 0x40000u       /* has handlers for flat 32-bit addressing */

struct form_flags {
    uint16_t
        read; /* conditional writers (shifts by CL, REP) read all they may leave as is */
    uint16_t written; /* also those left undefined: the host's values stand for them */
    uint16_t
        undefined; /* of the written ones: for oracles that compare with other hardware */
};

/* One row. Where several rows fit the bytes, the more specific one (extension, rm,
 * prefix, mod) comes first in the table. */
struct form {
    uint8_t map;          /* enum opcode_map */
    uint8_t opcode;       /* the first */
    uint8_t opcode_count; /* 1; 8 where the low three bits name a register; 16 for
                             conditions */
    uint8_t prefix;       /* enum form_prefix */
    uint8_t modrm;        /* enum form_modrm */
    int8_t extension;     /* ModRM.reg that is part of the opcode, or -1 */
    int8_t rm;            /* ModRM.rm that is part of the opcode (then mod is 3), or -1 */
    const char *mnemonic; /* lower case, as the SDM heads it */
    uint8_t operands[4];  /* enum operand */
    uint8_t size;         /* enum form_size */
    struct form_flags flags;
    uint32_t attributes;
    handler_select *select;
    uint16_t variant; /* which of what `select` offers */
};

/* Whether a memory operand may be written: it comes first then. */
static inline bool form_writes_memory(const struct form *form)
{
    uint8_t first = form->operands[0];
    bool memory = (first >= OPERAND_E && first <= OPERAND_E64) || first == OPERAND_M ||
                  first == OPERAND_OFFSET ||
                  (first >= OPERAND_W && first <= OPERAND_W64) || first == OPERAND_Q ||
                  first == OPERAND_Q32;

    return memory && (form->attributes & FORM_READS) == 0;
}

/* A decoded instruction. */
struct instruction {
    const struct form *form;
    uint64_t rip;
    uint64_t
        immediate; /* extended as the operand says; branches: the target's offset (rip) */
    uint16_t immediate2;     /* far pointers: selector; ENTER: second operand */
    uint16_t form_number;    /* of the form, as soft_form counts */
    uint8_t immediate_bytes; /* of its bytes, the last ones */
    bool operand_prefix;     /* 66h, also where that is part of the opcode */
    int64_t displacement;
    uint32_t mode; /* enum soft_mode bits it was decoded under */
    uint8_t length;
    uint8_t opcode;       /* last opcode byte */
    uint8_t operand_size; /* bytes: 0, 1, 2, 4, 8 */
    uint8_t address_size; /* 2, 4, 8 */
    uint8_t segment;      /* of the memory operand: override or default */
    bool has_rex;
    bool rex_w;
    bool lock;
    uint8_t repeat; /* 0, 0xf3, 0xf2: the last one, if the form repeats (FORM_REP,
                       FORM_REPZ) */
    bool has_modrm;
    uint8_t mod;
    uint8_t reg; /* ModRM.reg with REX.R (VEX.R), or the opcode's register with REX.B */
    uint8_t rm;  /* ModRM.rm with REX.B; register forms */
    bool memory; /* r/m (or moffs) is memory: the six below */
    uint8_t memory_size; /* bytes accessed, as far as the form tells (segment limits) */
    bool rip_relative;   /* displacement already includes the address of the next
                            instruction */
    uint8_t base;        /* register number or SOFT_ZERO */
    uint8_t index;
    uint8_t scale; /* shift 0 to 3 */
    bool vex;
    uint8_t vex_register; /* VEX.vvvv */
    bool vex_256;
};

enum decode_result {
    DECODE_OK,
    DECODE_MORE,      /* needs bytes beyond `available` */
    DECODE_UNDEFINED, /* #UD; `length` bytes were looked at */
    DECODE_TOO_LONG,  /* over 15 bytes: #GP(0) */
};

/* Decodes the instruction at `bytes`. Pure and thread-safe; the form index is built once,
 * at the first call. */
enum decode_result soft_decode(const uint8_t *bytes, size_t available, uint64_t rip,
                               uint32_t mode, struct instruction *instruction);

/* All rows, for tests: every form can be enumerated. */
size_t soft_form_count(void);
const struct form *soft_form(size_t index);

#endif
