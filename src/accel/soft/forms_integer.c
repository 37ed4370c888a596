/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms of general instructions: everything but system, port and vector instructions.
 * SDM vol. 2, appendix A, and each instruction's own page for flags.
 */
#include "accel/soft/handlers_private.h"
#include "base/bytes.h"
#include "x86/x86.h"

/* Names that keep a row on a line. */
#define A OPERAND_A
#define CL OPERAND_CL
#define E OPERAND_E
#define E8 OPERAND_E8
#define E16 OPERAND_E16
#define E32 OPERAND_E32
#define G OPERAND_G
#define G8 OPERAND_G8
#define G32 OPERAND_G32
#define I8 OPERAND_I8
#define I16 OPERAND_I16
#define IS8 OPERAND_IS8
#define IV OPERAND_IV
#define IZ OPERAND_IZ
#define J8 OPERAND_J8
#define JZ OPERAND_JZ
#define M OPERAND_M
#define NO OPERAND_NONE
#define O OPERAND_O
#define OFFSET OPERAND_OFFSET
#define STRING_SOURCE OPERAND_STRING_SOURCE
#define STRING_TARGET OPERAND_STRING_TARGET
#define AF FLAG_AF
#define CF FLAG_CF
#define DF ((uint16_t)X86_FLAGS_DF)
#define OF FLAG_OF
#define ZF FLAG_ZF
#define ALL FLAGS_ARITHMETIC
#define AFTER_POP FORM_AFTER_POP
#define CONDITIONAL FORM_CONDITIONAL
#define COUNT FORM_COUNT
#define ENDS FORM_ENDS
#define FLAT FORM_FLAT
#define LOCK FORM_LOCK
#define NOT_64 FORM_NOT_64
#define OFFSET_ONLY FORM_OFFSET_ONLY
#define ONLY_64 FORM_ONLY_64
#define PURE FORM_PURE
#define READS FORM_READS

/* clang-format off */

/* The nine encodings of an ALU operation: from `base`, and group 1 (80 to 83). `memory` is
 * what it does with memory as its first operand: LOCK or READS. */
#define ALU_ROW(opcode, modrm, extension, name, operands, size, read, undefined, attributes, variant) \
    {MAP_ONE, opcode, 1, PREFIX_ANY, modrm, extension, -1, name, operands, size, \
     {read, ALL, undefined}, attributes, select_alu, variant},
#define PAIR(first, second) {first, second}
#define ALU_ROWS(base, extension, name, read, undefined, memory, variant) \
    ALU_ROW((base) + 0, MODRM_ANY,    -1,        name, PAIR(E8, G8),  SIZE_8, read, undefined, PURE | (memory),          variant) \
    ALU_ROW((base) + 1, MODRM_ANY,    -1,        name, PAIR(E, G),    SIZE_V, read, undefined, PURE | (memory),          variant) \
    ALU_ROW((base) + 2, MODRM_ANY,    -1,        name, PAIR(G8, E8),  SIZE_8, read, undefined, PURE,                     variant) \
    ALU_ROW((base) + 3, MODRM_ANY,    -1,        name, PAIR(G, E),    SIZE_V, read, undefined, PURE,                     variant) \
    ALU_ROW((base) + 4, MODRM_ABSENT, -1,        name, PAIR(A, I8),   SIZE_8, read, undefined, PURE,                     variant) \
    ALU_ROW((base) + 5, MODRM_ABSENT, -1,        name, PAIR(A, IZ),   SIZE_V, read, undefined, PURE,                     variant) \
    ALU_ROW(0x80,       MODRM_ANY,    extension, name, PAIR(E8, I8),  SIZE_8, read, undefined, PURE | (memory),          variant) \
    ALU_ROW(0x81,       MODRM_ANY,    extension, name, PAIR(E, IZ),   SIZE_V, read, undefined, PURE | (memory),          variant) \
    ALU_ROW(0x82,       MODRM_ANY,    extension, name, PAIR(E8, I8),  SIZE_8, read, undefined, PURE | (memory) | NOT_64, variant) \
    ALU_ROW(0x83,       MODRM_ANY,    extension, name, PAIR(E, IS8),  SIZE_V, read, undefined, PURE | (memory),          variant)

/* The six encodings of a shift. By more than one OF is undefined; by CL, which may be 0,
 * all flags may stay. */
#define SHIFT_ROW(opcode, extension, name, operands, size, read, written, undefined, attributes, variant) \
    {MAP_ONE, opcode, 1, PREFIX_ANY, MODRM_ANY, extension, -1, name, operands, size, \
     {read, written, undefined}, attributes, select_shift, variant},
#define SHIFT_ROWS(extension, name, read, written, undefined, variant) \
    SHIFT_ROW(0xc0, extension, name, PAIR(E8, I8),          SIZE_8, read, written, (undefined) | OF, PURE | COUNT, variant) \
    SHIFT_ROW(0xc1, extension, name, PAIR(E, I8),           SIZE_V, read, written, (undefined) | OF, PURE | COUNT, variant) \
    SHIFT_ROW(0xd0, extension, name, PAIR(E8, OPERAND_ONE), SIZE_8, read, written, undefined,        PURE,         variant) \
    SHIFT_ROW(0xd1, extension, name, PAIR(E, OPERAND_ONE),  SIZE_V, read, written, undefined,        PURE,         variant) \
    SHIFT_ROW(0xd2, extension, name, PAIR(E8, CL),          SIZE_8, ALL,  written, (undefined) | OF, PURE,         variant) \
    SHIFT_ROW(0xd3, extension, name, PAIR(E, CL),           SIZE_V, ALL,  written, (undefined) | OF, PURE,         variant)

const struct form soft_integer_forms[] = {
    /* two operands */
    ALU_ROWS(0x00, 0, "add", 0, 0, LOCK, ALU_ADD)
    ALU_ROWS(0x08, 1, "or", 0, AF, LOCK, ALU_OR)
    ALU_ROWS(0x10, 2, "adc", CF, 0, LOCK, ALU_ADC)
    ALU_ROWS(0x18, 3, "sbb", CF, 0, LOCK, ALU_SBB)
    ALU_ROWS(0x20, 4, "and", 0, AF, LOCK, ALU_AND)
    ALU_ROWS(0x28, 5, "sub", 0, 0, LOCK, ALU_SUB)
    ALU_ROWS(0x30, 6, "xor", 0, AF, LOCK, ALU_XOR)
    ALU_ROWS(0x38, 7, "cmp", 0, 0, READS, ALU_CMP)
    {MAP_ONE,  0x84,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "test",      {E8, G8},                       SIZE_8,      {0, ALL, AF},                     PURE | READS,               select_alu,                  ALU_TEST},
    {MAP_ONE,  0x85,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "test",      {E, G},                         SIZE_V,      {0, ALL, AF},                     PURE | READS,               select_alu,                  ALU_TEST},
    {MAP_ONE,  0xa8,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "test",      {A, I8},                        SIZE_8,      {0, ALL, AF},                     PURE | READS,               select_alu,                  ALU_TEST},
    {MAP_ONE,  0xa9,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "test",      {A, IZ},                        SIZE_V,      {0, ALL, AF},                     PURE | READS,               select_alu,                  ALU_TEST},
    {MAP_ONE,  0xf6,  1, PREFIX_ANY,  MODRM_ANY,       0, -1, "test",      {E8, I8},                       SIZE_8,      {0, ALL, AF},                     PURE | READS,               select_alu,                  ALU_TEST},
    {MAP_ONE,  0xf6,  1, PREFIX_ANY,  MODRM_ANY,       1, -1, "test",      {E8, I8},                       SIZE_8,      {0, ALL, AF},                     PURE | READS,               select_alu,                  ALU_TEST},
    {MAP_ONE,  0xf7,  1, PREFIX_ANY,  MODRM_ANY,       0, -1, "test",      {E, IZ},                        SIZE_V,      {0, ALL, AF},                     PURE | READS,               select_alu,                  ALU_TEST},
    {MAP_ONE,  0xf7,  1, PREFIX_ANY,  MODRM_ANY,       1, -1, "test",      {E, IZ},                        SIZE_V,      {0, ALL, AF},                     PURE | READS,               select_alu,                  ALU_TEST},

    /* one operand */
    {MAP_ONE,  0xfe,  1, PREFIX_ANY,  MODRM_ANY,       0, -1, "inc",       {E8},                           SIZE_8,      {0, ALL & ~CF, 0},                PURE | LOCK,                select_alu_unary,            ALU_INC},
    {MAP_ONE,  0xff,  1, PREFIX_ANY,  MODRM_ANY,       0, -1, "inc",       {E},                            SIZE_V,      {0, ALL & ~CF, 0},                PURE | LOCK,                select_alu_unary,            ALU_INC},
    {MAP_ONE,  0x40,  8, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "inc",       {O},                            SIZE_V,      {0, ALL & ~CF, 0},                PURE | NOT_64,              select_alu_short,            ALU_INC},
    {MAP_ONE,  0xfe,  1, PREFIX_ANY,  MODRM_ANY,       1, -1, "dec",       {E8},                           SIZE_8,      {0, ALL & ~CF, 0},                PURE | LOCK,                select_alu_unary,            ALU_DEC},
    {MAP_ONE,  0xff,  1, PREFIX_ANY,  MODRM_ANY,       1, -1, "dec",       {E},                            SIZE_V,      {0, ALL & ~CF, 0},                PURE | LOCK,                select_alu_unary,            ALU_DEC},
    {MAP_ONE,  0x48,  8, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "dec",       {O},                            SIZE_V,      {0, ALL & ~CF, 0},                PURE | NOT_64,              select_alu_short,            ALU_DEC},
    {MAP_ONE,  0xf6,  1, PREFIX_ANY,  MODRM_ANY,       2, -1, "not",       {E8},                           SIZE_8,      {0, 0, 0},                        PURE | LOCK,                select_alu_unary,            ALU_NOT},
    {MAP_ONE,  0xf7,  1, PREFIX_ANY,  MODRM_ANY,       2, -1, "not",       {E},                            SIZE_V,      {0, 0, 0},                        PURE | LOCK,                select_alu_unary,            ALU_NOT},
    {MAP_ONE,  0xf6,  1, PREFIX_ANY,  MODRM_ANY,       3, -1, "neg",       {E8},                           SIZE_8,      {0, ALL, 0},                      PURE | LOCK,                select_alu_unary,            ALU_NEG},
    {MAP_ONE,  0xf7,  1, PREFIX_ANY,  MODRM_ANY,       3, -1, "neg",       {E},                            SIZE_V,      {0, ALL, 0},                      PURE | LOCK,                select_alu_unary,            ALU_NEG},

    /* shifts and rotates */
    SHIFT_ROWS(0, "rol", 0, CF | OF, 0, SHIFT_ROL)
    SHIFT_ROWS(1, "ror", 0, CF | OF, 0, SHIFT_ROR)
    SHIFT_ROWS(2, "rcl", CF, CF | OF, 0, SHIFT_RCL)
    SHIFT_ROWS(3, "rcr", CF, CF | OF, 0, SHIFT_RCR)
    SHIFT_ROWS(4, "shl", 0, ALL, AF, SHIFT_SHL)
    SHIFT_ROWS(5, "shr", 0, ALL, AF, SHIFT_SHR)
    SHIFT_ROWS(6, "sal", 0, ALL, AF, SHIFT_SAL)
    SHIFT_ROWS(7, "sar", 0, ALL, AF, SHIFT_SAR)
    {MAP_0F,   0xa4,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "shld",      {E, G, I8},                     SIZE_V,      {0, ALL, AF | OF},                PURE | COUNT,               select_shift_double,         SHIFT_SHLD},
    {MAP_0F,   0xa5,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "shld",      {E, G, CL},                     SIZE_V,      {ALL, ALL, AF | OF},              PURE,                       select_shift_double,         SHIFT_SHLD},
    {MAP_0F,   0xac,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "shrd",      {E, G, I8},                     SIZE_V,      {0, ALL, AF | OF},                PURE | COUNT,               select_shift_double,         SHIFT_SHRD},
    {MAP_0F,   0xad,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "shrd",      {E, G, CL},                     SIZE_V,      {ALL, ALL, AF | OF},              PURE,                       select_shift_double,         SHIFT_SHRD},

    /* multiplication and division */
    {MAP_ONE,  0xf6,  1, PREFIX_ANY,  MODRM_ANY,       4, -1, "mul",       {E8},                           SIZE_8,      {0, ALL, ALL & ~(CF | OF)},       PURE | READS,               select_multiply_wide,        MULTIPLY_MUL},
    {MAP_ONE,  0xf7,  1, PREFIX_ANY,  MODRM_ANY,       4, -1, "mul",       {E},                            SIZE_V,      {0, ALL, ALL & ~(CF | OF)},       PURE | READS,               select_multiply_wide,        MULTIPLY_MUL},
    {MAP_ONE,  0xf6,  1, PREFIX_ANY,  MODRM_ANY,       5, -1, "imul",      {E8},                           SIZE_8,      {0, ALL, ALL & ~(CF | OF)},       PURE | READS,               select_multiply_wide,        MULTIPLY_IMUL},
    {MAP_ONE,  0xf7,  1, PREFIX_ANY,  MODRM_ANY,       5, -1, "imul",      {E},                            SIZE_V,      {0, ALL, ALL & ~(CF | OF)},       PURE | READS,               select_multiply_wide,        MULTIPLY_IMUL},
    {MAP_ONE,  0xf6,  1, PREFIX_ANY,  MODRM_ANY,       6, -1, "div",       {E8},                           SIZE_8,      {0, ALL, ALL},                    READS,                      select_multiply_wide,        MULTIPLY_DIV},
    {MAP_ONE,  0xf7,  1, PREFIX_ANY,  MODRM_ANY,       6, -1, "div",       {E},                            SIZE_V,      {0, ALL, ALL},                    READS,                      select_multiply_wide,        MULTIPLY_DIV},
    {MAP_ONE,  0xf6,  1, PREFIX_ANY,  MODRM_ANY,       7, -1, "idiv",      {E8},                           SIZE_8,      {0, ALL, ALL},                    READS,                      select_multiply_wide,        MULTIPLY_IDIV},
    {MAP_ONE,  0xf7,  1, PREFIX_ANY,  MODRM_ANY,       7, -1, "idiv",      {E},                            SIZE_V,      {0, ALL, ALL},                    READS,                      select_multiply_wide,        MULTIPLY_IDIV},
    {MAP_0F,   0xaf,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "imul",      {G, E},                         SIZE_V,      {0, ALL, ALL & ~(CF | OF)},       PURE,                       select_imul,                 0},
    {MAP_ONE,  0x69,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "imul",      {G, E, IZ},                     SIZE_V,      {0, ALL, ALL & ~(CF | OF)},       PURE,                       select_imul,                 0},
    {MAP_ONE,  0x6b,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "imul",      {G, E, IS8},                    SIZE_V,      {0, ALL, ALL & ~(CF | OF)},       PURE,                       select_imul,                 0},

    /* bits; a bit offset in a register reaches beyond the memory operand */
    {MAP_0F,   0xa3,  1, PREFIX_ANY,  MODRM_REGISTER, -1, -1, "bt",        {E, G},                         SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, PURE,                       select_bit_test,             BITS_BT},
    {MAP_0F,   0xa3,  1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "bt",        {E, G},                         SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, READS | OFFSET_ONLY,        select_bit_test,             BITS_BT},
    {MAP_0F,   0xba,  1, PREFIX_ANY,  MODRM_ANY,       4, -1, "bt",        {E, I8},                        SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, PURE | READS,               select_bit_test,             BITS_BT},
    {MAP_0F,   0xab,  1, PREFIX_ANY,  MODRM_REGISTER, -1, -1, "bts",       {E, G},                         SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, PURE,                       select_bit_test,             BITS_BTS},
    {MAP_0F,   0xab,  1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "bts",       {E, G},                         SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, LOCK | OFFSET_ONLY,         select_bit_test,             BITS_BTS},
    {MAP_0F,   0xba,  1, PREFIX_ANY,  MODRM_ANY,       5, -1, "bts",       {E, I8},                        SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, PURE | LOCK,                select_bit_test,             BITS_BTS},
    {MAP_0F,   0xb3,  1, PREFIX_ANY,  MODRM_REGISTER, -1, -1, "btr",       {E, G},                         SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, PURE,                       select_bit_test,             BITS_BTR},
    {MAP_0F,   0xb3,  1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "btr",       {E, G},                         SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, LOCK | OFFSET_ONLY,         select_bit_test,             BITS_BTR},
    {MAP_0F,   0xba,  1, PREFIX_ANY,  MODRM_ANY,       6, -1, "btr",       {E, I8},                        SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, PURE | LOCK,                select_bit_test,             BITS_BTR},
    {MAP_0F,   0xbb,  1, PREFIX_ANY,  MODRM_REGISTER, -1, -1, "btc",       {E, G},                         SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, PURE,                       select_bit_test,             BITS_BTC},
    {MAP_0F,   0xbb,  1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "btc",       {E, G},                         SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, LOCK | OFFSET_ONLY,         select_bit_test,             BITS_BTC},
    {MAP_0F,   0xba,  1, PREFIX_ANY,  MODRM_ANY,       7, -1, "btc",       {E, I8},                        SIZE_V,      {0, ALL & ~ZF, ALL & ~(CF | ZF)}, PURE | LOCK,                select_bit_test,             BITS_BTC},
    {MAP_0F,   0xbc,  1, PREFIX_F3,   MODRM_ANY,      -1, -1, "tzcnt",     {G, E},                         SIZE_V,      {0, ALL, ALL & ~(CF | ZF)},       PURE,                       select_bit_scan,             BITS_TZCNT},
    {MAP_0F,   0xbd,  1, PREFIX_F3,   MODRM_ANY,      -1, -1, "lzcnt",     {G, E},                         SIZE_V,      {0, ALL, ALL & ~(CF | ZF)},       PURE,                       select_bit_scan,             BITS_LZCNT},
    {MAP_0F,   0xb8,  1, PREFIX_F3,   MODRM_ANY,      -1, -1, "popcnt",    {G, E},                         SIZE_V,      {0, ALL, 0},                      PURE,                       select_bit_scan,             BITS_POPCNT},
    {MAP_0F,   0xbc,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "bsf",       {G, E},                         SIZE_V,      {0, ALL, ALL & ~ZF},              PURE,                       select_bit_scan,             BITS_BSF},
    {MAP_0F,   0xbd,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "bsr",       {G, E},                         SIZE_V,      {0, ALL, ALL & ~ZF},              PURE,                       select_bit_scan,             BITS_BSR},
    {MAP_0F38, 0xf0,  1, PREFIX_F2,   MODRM_ANY,      -1, -1, "crc32",     {G32, E8},                      SIZE_8,      {0, 0, 0},                        PURE,                       select_crc32,                0},
    {MAP_0F38, 0xf1,  1, PREFIX_F2,   MODRM_ANY,      -1, -1, "crc32",     {G32, E},                       SIZE_V,      {0, 0, 0},                        PURE,                       select_crc32,                0},
    {MAP_0F38, 0xf0,  1, PREFIX_NFX,  MODRM_MEMORY,   -1, -1, "movbe",     {G, E},                         SIZE_V,      {0, 0, 0},                        0,                          select_movbe,                0},
    {MAP_0F38, 0xf1,  1, PREFIX_NFX,  MODRM_MEMORY,   -1, -1, "movbe",     {E, G},                         SIZE_V,      {0, 0, 0},                        0,                          select_movbe,                0},
    {MAP_0F,   0xc8,  8, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "bswap",     {O},                            SIZE_V,      {0, 0, 0},                        PURE,                       select_bswap,                0},

    /* moves */
    {MAP_ONE,  0x88,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "mov",       {E8, G8},                       SIZE_8,      {0, 0, 0},                        PURE | FLAT,                select_move,                 0},
    {MAP_ONE,  0x89,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "mov",       {E, G},                         SIZE_V,      {0, 0, 0},                        PURE | FLAT,                select_move,                 0},
    {MAP_ONE,  0x8a,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "mov",       {G8, E8},                       SIZE_8,      {0, 0, 0},                        PURE | FLAT,                select_move,                 0},
    {MAP_ONE,  0x8b,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "mov",       {G, E},                         SIZE_V,      {0, 0, 0},                        PURE | FLAT,                select_move,                 0},
    {MAP_ONE,  0xc6,  1, PREFIX_ANY,  MODRM_ANY,       0, -1, "mov",       {E8, I8},                       SIZE_8,      {0, 0, 0},                        PURE | FLAT,                select_move,                 0},
    {MAP_ONE,  0xc7,  1, PREFIX_ANY,  MODRM_ANY,       0, -1, "mov",       {E, IZ},                        SIZE_V,      {0, 0, 0},                        PURE | FLAT,                select_move,                 0},
    {MAP_ONE,  0xb0,  8, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "mov",       {O, I8},                        SIZE_8,      {0, 0, 0},                        PURE,                       select_move,                 0},
    {MAP_ONE,  0xb8,  8, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "mov",       {O, IV},                        SIZE_V,      {0, 0, 0},                        PURE,                       select_move,                 0},
    {MAP_ONE,  0xa0,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "mov",       {A, OFFSET},                    SIZE_8,      {0, 0, 0},                        0,                          select_move_offset,          MOVE_FROM_OFFSET},
    {MAP_ONE,  0xa1,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "mov",       {A, OFFSET},                    SIZE_V,      {0, 0, 0},                        0,                          select_move_offset,          MOVE_FROM_OFFSET},
    {MAP_ONE,  0xa2,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "mov",       {OFFSET, A},                    SIZE_8,      {0, 0, 0},                        0,                          select_move_offset,          MOVE_TO_OFFSET},
    {MAP_ONE,  0xa3,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "mov",       {OFFSET, A},                    SIZE_V,      {0, 0, 0},                        0,                          select_move_offset,          MOVE_TO_OFFSET},
    {MAP_0F,   0xc3,  1, PREFIX_NONE, MODRM_MEMORY,   -1, -1, "movnti",    {E, G},                         SIZE_Y,      {0, 0, 0},                        0,                          select_move,                 0},
    {MAP_0F,   0xb6,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "movzx",     {G, E8},                        SIZE_V,      {0, 0, 0},                        PURE,                       select_move_extend,          MOVE_ZERO_EXTEND},
    {MAP_0F,   0xb7,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "movzx",     {G, E16},                       SIZE_V,      {0, 0, 0},                        PURE,                       select_move_extend,          MOVE_ZERO_EXTEND},
    {MAP_0F,   0xbe,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "movsx",     {G, E8},                        SIZE_V,      {0, 0, 0},                        PURE,                       select_move_extend,          MOVE_SIGN_EXTEND},
    {MAP_0F,   0xbf,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "movsx",     {G, E16},                       SIZE_V,      {0, 0, 0},                        PURE,                       select_move_extend,          MOVE_SIGN_EXTEND},
    {MAP_ONE,  0x63,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "movsxd",    {G, E32},                       SIZE_V,      {0, 0, 0},                        PURE | ONLY_64,             select_move_extend,          MOVE_SIGN_EXTEND},
    {MAP_ONE,  0x98,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "cbw",       {A},                            SIZE_V,      {0, 0, 0},                        PURE,                       select_move_accumulator,     MOVE_WIDEN_ACCUMULATOR},
    {MAP_ONE,  0x99,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "cwd",       {A},                            SIZE_V,      {0, 0, 0},                        PURE,                       select_move_accumulator,     MOVE_SIGN_ACCUMULATOR},
    {MAP_ONE,  0x8d,  1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "lea",       {G, M},                         SIZE_V,      {0, 0, 0},                        PURE | OFFSET_ONLY,         select_lea,                  0},
    {MAP_0F,   0x40, 16, PREFIX_ANY,  MODRM_ANY,      -1, -1, "cmovcc",    {G, E},                         SIZE_V,      {ALL, 0, 0},                      PURE,                       select_move_condition,       0},
    {MAP_0F,   0x90, 16, PREFIX_ANY,  MODRM_ANY,      -1, -1, "setcc",     {E8},                           SIZE_8,      {ALL, 0, 0},                      PURE,                       select_set_condition,        0},

    /* exchanges */
    {MAP_ONE,  0x86,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "xchg",      {E8, G8},                       SIZE_8,      {0, 0, 0},                        PURE | LOCK,                select_exchange,             0},
    {MAP_ONE,  0x87,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "xchg",      {E, G},                         SIZE_V,      {0, 0, 0},                        PURE | LOCK,                select_exchange,             0},
    {MAP_ONE,  0x90,  1, PREFIX_F3,   MODRM_ABSENT,   -1, -1, "pause",     {NO}  ,                         SIZE_NONE,   {0, 0, 0},                        PURE,                       select_misc,                 MISC_PAUSE},
    {MAP_ONE,  0x90,  8, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "xchg",      {O, A},                         SIZE_V,      {0, 0, 0},                        PURE,                       select_exchange_accumulator, 0},
    {MAP_0F,   0xb0,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "cmpxchg",   {E8, G8},                       SIZE_8,      {0, ALL, 0},                      PURE | LOCK,                select_exchange_operate,     EXCHANGE_CMPXCHG},
    {MAP_0F,   0xb1,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "cmpxchg",   {E, G},                         SIZE_V,      {0, ALL, 0},                      PURE | LOCK,                select_exchange_operate,     EXCHANGE_CMPXCHG},
    {MAP_0F,   0xc0,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "xadd",      {E8, G8},                       SIZE_8,      {0, ALL, 0},                      PURE | LOCK,                select_exchange_operate,     EXCHANGE_XADD},
    {MAP_0F,   0xc1,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "xadd",      {E, G},                         SIZE_V,      {0, ALL, 0},                      PURE | LOCK,                select_exchange_operate,     EXCHANGE_XADD},
    {MAP_0F,   0xc7,  1, PREFIX_ANY,  MODRM_MEMORY,    1, -1, "cmpxchg8b", {M},                            SIZE_NONE,   {0, ZF, 0},                       LOCK,                       select_exchange_double,      0},

    /* stack */
    {MAP_ONE,  0x50,  8, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "push",      {O},                            SIZE_STACK,  {0, 0, 0},                        0,                          select_stack,                STACK_PUSH_REGISTER},
    {MAP_ONE,  0x58,  8, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "pop",       {O},                            SIZE_STACK,  {0, 0, 0},                        0,                          select_stack,                STACK_POP_REGISTER},
    {MAP_ONE,  0x68,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "push",      {IZ},                           SIZE_STACK,  {0, 0, 0},                        0,                          select_stack,                STACK_PUSH_IMMEDIATE},
    {MAP_ONE,  0x6a,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "push",      {IS8},                          SIZE_STACK,  {0, 0, 0},                        0,                          select_stack,                STACK_PUSH_IMMEDIATE},
    {MAP_ONE,  0xff,  1, PREFIX_ANY,  MODRM_ANY,       6, -1, "push",      {E},                            SIZE_STACK,  {0, 0, 0},                        READS,                      select_stack,                STACK_PUSH_RM},
    {MAP_ONE,  0x8f,  1, PREFIX_ANY,  MODRM_ANY,       0, -1, "pop",       {E},                            SIZE_STACK,  {0, 0, 0},                        AFTER_POP,                  select_stack,                STACK_POP_RM},
    {MAP_ONE,  0x60,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "pusha",     {NO}  ,                         SIZE_V,      {0, 0, 0},                        NOT_64,                     select_stack,                STACK_PUSHA},
    {MAP_ONE,  0x61,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "popa",      {NO}  ,                         SIZE_V,      {0, 0, 0},                        NOT_64,                     select_stack,                STACK_POPA},
    {MAP_ONE,  0x9c,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "pushf",     {NO}  ,                         SIZE_STACK,  {ALL, 0, 0},                      0,                          select_stack,                STACK_PUSHF},
    {MAP_ONE,  0x9d,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "popf",      {NO}  ,                         SIZE_STACK,  {0, ALL, 0},                      ENDS,                       select_stack,                STACK_POPF},
    {MAP_ONE,  0xc8,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "enter",     {I16, I8},                      SIZE_STACK,  {0, 0, 0},                        0,                          select_stack,                STACK_ENTER},
    {MAP_ONE,  0xc9,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "leave",     {NO}  ,                         SIZE_STACK,  {0, 0, 0},                        0,                          select_stack,                STACK_LEAVE},

    /* strings */
    {MAP_ONE,  0xa4,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "movs",      {STRING_TARGET, STRING_SOURCE}, SIZE_8,      {0, 0, 0},                        FORM_REP,                   select_string,               STRING_MOVS},
    {MAP_ONE,  0xa5,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "movs",      {STRING_TARGET, STRING_SOURCE}, SIZE_V,      {0, 0, 0},                        FORM_REP,                   select_string,               STRING_MOVS},
    {MAP_ONE,  0xa6,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "cmps",      {STRING_SOURCE, STRING_TARGET}, SIZE_8,      {ALL, ALL, 0},                    FORM_REPZ,                  select_string,               STRING_CMPS},
    {MAP_ONE,  0xa7,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "cmps",      {STRING_SOURCE, STRING_TARGET}, SIZE_V,      {ALL, ALL, 0},                    FORM_REPZ,                  select_string,               STRING_CMPS},
    {MAP_ONE,  0xaa,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "stos",      {STRING_TARGET, A},             SIZE_8,      {0, 0, 0},                        FORM_REP,                   select_string,               STRING_STOS},
    {MAP_ONE,  0xab,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "stos",      {STRING_TARGET, A},             SIZE_V,      {0, 0, 0},                        FORM_REP,                   select_string,               STRING_STOS},
    {MAP_ONE,  0xac,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "lods",      {A, STRING_SOURCE},             SIZE_8,      {0, 0, 0},                        FORM_REP,                   select_string,               STRING_LODS},
    {MAP_ONE,  0xad,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "lods",      {A, STRING_SOURCE},             SIZE_V,      {0, 0, 0},                        FORM_REP,                   select_string,               STRING_LODS},
    {MAP_ONE,  0xae,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "scas",      {A, STRING_TARGET},             SIZE_8,      {ALL, ALL, 0},                    FORM_REPZ,                  select_string,               STRING_SCAS},
    {MAP_ONE,  0xaf,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "scas",      {A, STRING_TARGET},             SIZE_V,      {ALL, ALL, 0},                    FORM_REPZ,                  select_string,               STRING_SCAS},

    /* branches */
    {MAP_ONE,  0x70, 16, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "jcc",       {J8},                           SIZE_BRANCH, {ALL, 0, 0},                      ENDS | CONDITIONAL,         select_jump_condition,       0},
    {MAP_0F,   0x80, 16, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "jcc",       {JZ},                           SIZE_BRANCH, {ALL, 0, 0},                      ENDS | CONDITIONAL,         select_jump_condition,       0},
    {MAP_ONE,  0xe0,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "loopne",    {J8},                           SIZE_BRANCH, {ZF, 0, 0},                       ENDS | CONDITIONAL,         select_flow,                 FLOW_LOOPNE},
    {MAP_ONE,  0xe1,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "loope",     {J8},                           SIZE_BRANCH, {ZF, 0, 0},                       ENDS | CONDITIONAL,         select_flow,                 FLOW_LOOPE},
    {MAP_ONE,  0xe2,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "loop",      {J8},                           SIZE_BRANCH, {0, 0, 0},                        ENDS | CONDITIONAL,         select_flow,                 FLOW_LOOP},
    {MAP_ONE,  0xe3,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "jcxz",      {J8},                           SIZE_BRANCH, {0, 0, 0},                        ENDS | CONDITIONAL,         select_flow,                 FLOW_JCXZ},
    {MAP_ONE,  0xeb,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "jmp",       {J8},                           SIZE_BRANCH, {0, 0, 0},                        ENDS,                       select_flow,                 FLOW_JUMP},
    {MAP_ONE,  0xe9,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "jmp",       {JZ},                           SIZE_BRANCH, {0, 0, 0},                        ENDS,                       select_flow,                 FLOW_JUMP},
    {MAP_ONE,  0xe8,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "call",      {JZ},                           SIZE_BRANCH, {0, 0, 0},                        ENDS,                       select_flow,                 FLOW_CALL},
    {MAP_ONE,  0xff,  1, PREFIX_ANY,  MODRM_ANY,       4, -1, "jmp",       {E},                            SIZE_BRANCH, {0, 0, 0},                        ENDS | READS,               select_flow_indirect,        FLOW_JUMP},
    {MAP_ONE,  0xff,  1, PREFIX_ANY,  MODRM_ANY,       2, -1, "call",      {E},                            SIZE_BRANCH, {0, 0, 0},                        ENDS | READS,               select_flow_indirect,        FLOW_CALL},
    {MAP_ONE,  0xc2,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "ret",       {I16},                          SIZE_BRANCH, {0, 0, 0},                        ENDS,                       select_flow_indirect,        FLOW_RETURN},
    {MAP_ONE,  0xc3,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "ret",       {NO}  ,                         SIZE_BRANCH, {0, 0, 0},                        ENDS,                       select_flow_indirect,        FLOW_RETURN},

    /* flags */
    {MAP_ONE,  0xf8,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "clc",       {NO}  ,                         SIZE_NONE,   {0, CF, 0},                       PURE,                       select_misc,                 MISC_CLC},
    {MAP_ONE,  0xf9,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "stc",       {NO}  ,                         SIZE_NONE,   {0, CF, 0},                       PURE,                       select_misc,                 MISC_STC},
    {MAP_ONE,  0xf5,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "cmc",       {NO}  ,                         SIZE_NONE,   {CF, CF, 0},                      PURE,                       select_misc,                 MISC_CMC},
    {MAP_ONE,  0xfc,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "cld",       {NO}  ,                         SIZE_NONE,   {0, DF, 0},                       PURE,                       select_misc,                 MISC_CLD},
    {MAP_ONE,  0xfd,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "std",       {NO}  ,                         SIZE_NONE,   {0, DF, 0},                       PURE,                       select_misc,                 MISC_STD},
    {MAP_ONE,  0x9f,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "lahf",      {NO}  ,                         SIZE_NONE,   {ALL & ~OF, 0, 0},                PURE,                       select_misc,                 MISC_LAHF},
    {MAP_ONE,  0x9e,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "sahf",      {NO}  ,                         SIZE_NONE,   {0, ALL & ~OF, 0},                PURE,                       select_misc,                 MISC_SAHF},
    {MAP_ONE,  0xd6,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "salc",      {NO}  ,                         SIZE_NONE,   {CF, 0, 0},                       PURE | NOT_64,              select_misc,                 MISC_SALC},

    /* nothing, fences, hints; 0F 18 to 0F 1F are NOP where they have no other meaning yet */
    {MAP_0F,   0x18,  8, PREFIX_ANY,  MODRM_ANY,      -1, -1, "nop",       {E},                            SIZE_V,      {0, 0, 0},                        PURE | READS | OFFSET_ONLY, select_misc,                 MISC_NOP},
    {MAP_0F,   0x0d,  1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "prefetch",  {E},                            SIZE_V,      {0, 0, 0},                        PURE | READS | OFFSET_ONLY, select_misc,                 MISC_NOP},
    {MAP_0F,   0xae,  1, PREFIX_NONE, MODRM_REGISTER,  5, -1, "lfence",    {NO}  ,                         SIZE_NONE,   {0, 0, 0},                        PURE,                       select_misc,                 MISC_LFENCE},
    {MAP_0F,   0xae,  1, PREFIX_NONE, MODRM_REGISTER,  6, -1, "mfence",    {NO}  ,                         SIZE_NONE,   {0, 0, 0},                        PURE,                       select_misc,                 MISC_MFENCE},
    {MAP_0F,   0xae,  1, PREFIX_NONE, MODRM_REGISTER,  7, -1, "sfence",    {NO}  ,                         SIZE_NONE,   {0, 0, 0},                        PURE,                       select_misc,                 MISC_SFENCE},
    {MAP_0F,   0x0b,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "ud2",       {NO}  ,                         SIZE_NONE,   {0, 0, 0},                        ENDS,                       select_misc,                 MISC_UNDEFINED},
    {MAP_0F,   0xb9,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "ud1",       {G, E},                         SIZE_V,      {0, 0, 0},                        ENDS | OFFSET_ONLY,         select_misc,                 MISC_UNDEFINED},
    {MAP_0F,   0xff,  1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "ud0",       {G, E},                         SIZE_V,      {0, 0, 0},                        ENDS | OFFSET_ONLY,         select_misc,                 MISC_UNDEFINED},

    /* tables, bounds, decimal */
    {MAP_ONE,  0xd7,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "xlat",      {NO}  ,                         SIZE_NONE,   {0, 0, 0},                        0,                          select_misc,                 MISC_XLAT},
    {MAP_ONE,  0x62,  1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "bound",     {G, M},                         SIZE_V,      {0, 0, 0},                        NOT_64 | READS,             select_misc,                 MISC_BOUND},
    {MAP_ONE,  0x37,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "aaa",       {NO}  ,                         SIZE_NONE,   {AF, ALL, ALL & ~(AF | CF)},      PURE | NOT_64,              select_misc,                 MISC_AAA},
    {MAP_ONE,  0x3f,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "aas",       {NO}  ,                         SIZE_NONE,   {AF, ALL, ALL & ~(AF | CF)},      PURE | NOT_64,              select_misc,                 MISC_AAS},
    {MAP_ONE,  0xd4,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "aam",       {I8},                           SIZE_NONE,   {0, ALL, OF | AF | CF},           NOT_64,                     select_misc,                 MISC_AAM},
    {MAP_ONE,  0xd5,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "aad",       {I8},                           SIZE_NONE,   {0, ALL, OF | AF | CF},           PURE | NOT_64,              select_misc,                 MISC_AAD},
    {MAP_ONE,  0x27,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "daa",       {NO}  ,                         SIZE_NONE,   {AF | CF, ALL, OF},               PURE | NOT_64,              select_misc,                 MISC_DAA},
    {MAP_ONE,  0x2f,  1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "das",       {NO}  ,                         SIZE_NONE,   {AF | CF, ALL, OF},               PURE | NOT_64,              select_misc,                 MISC_DAS},
};
/* clang-format on */

const size_t soft_integer_form_count = ARRAY_SIZE(soft_integer_forms);
