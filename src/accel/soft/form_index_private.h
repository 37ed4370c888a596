/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way from opcode bytes to the forms they may be: for each opcode, and for each
 * ModRM.reg and mod where forms depend on them, a short list of candidates in table
 * order.
 */
#ifndef HUSK_SOFT_FORM_INDEX_PRIVATE_H
#define HUSK_SOFT_FORM_INDEX_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "accel/soft/instruction_private.h"

#define OPCODE_MAP_COUNT 4

/* What the code around an instruction is, as far as forms care. */
enum code_class {
    CLASS_64,
    CLASS_PROTECTED, /* protected and compatibility mode */
    CLASS_REAL,      /* real and virtual-8086 mode */
    CLASS_COUNT,
};

/* Mandatory prefixes as VEX.pp counts them (SDM vol. 2, table 2-12). */
enum mandatory_prefix {
    MANDATORY_NONE,
    MANDATORY_66,
    MANDATORY_F3,
    MANDATORY_F2,
    MANDATORY_COUNT
};

/* One combination of class, encoding and mandatory prefix, as a bit: a form says with a
 * mask which of them it exists in. */
static inline uint32_t form_situation(enum code_class class, bool vex, unsigned mandatory)
{
    return UINT32_C(1) << (((unsigned)class * 2 + vex) * MANDATORY_COUNT + mandatory);
}

/* A form, and what can be told from its row once and for all. */
struct form_entry {
    const struct form *form;
    uint32_t situations; /* form_situation bits */
    int8_t rm;           /* as form.rm */
    uint8_t size;        /* enum form_size */
    uint8_t immediate; /* enum operand: immediates in the instruction, or OPERAND_NONE */
    uint8_t immediate2;
    uint8_t constant;    /* immediate of a form that has none in its bytes: OPERAND_ONE */
    uint8_t memory_size; /* bytes; 0: the operand size */
    bool mandatory_66;   /* 66h is part of the opcode, so no operand size prefix */
    bool ignores_mod;    /* the operand is a register whatever mod says */
    bool opcode_register;  /* the opcode's low bits name a register */
    bool segment_register; /* ModRM.reg is one */
    bool narrow_reg; /* there are eight of what ModRM.reg names: REX.R counts for nothing
                      */
    bool narrow_rm;  /* the same of ModRM.rm and REX.B */
    bool lock;       /* LOCK is legal with a memory operand */
    bool moffs;      /* an absolute address follows the opcode */
    bool repeats;    /* F2h and F3h repeat */
};

/* Candidates of one opcode. */
struct form_opcode {
    uint32_t slot; /* the first of one or of FORM_SLOTS_BY_MODRM slots */
    bool known;    /* there is any form */
    bool has_modrm;
    bool by_modrm;
};
#define FORM_SLOTS_BY_MODRM 16 /* ModRM.reg, and 8 more where mod is 3 */

struct form_slot {
    uint16_t first; /* in form_index.candidates */
    uint16_t count;
};

struct form_index {
    struct form_opcode opcodes[OPCODE_MAP_COUNT][256];
    struct form_slot *slots;
    uint16_t *candidates; /* in `entries` */
    struct form_entry *entries;
    size_t entry_count;
};

/* Rows of one file. */
struct form_table {
    const struct form *forms;
    size_t count;
};

/* Builds an index over tables, which stay borrowed. A table that contradicts itself is a
 * bug (CHECK). */
void form_index_init(struct form_index *index, const struct form_table *tables,
                     size_t table_count);
void form_index_finish(struct form_index *index);

/* The candidates for a ModRM byte (any value, if the opcode has none). */
static inline const struct form_slot *form_index_slot(const struct form_index *index,
                                                      const struct form_opcode *opcode,
                                                      uint8_t modrm)
{
    unsigned place = opcode->slot;

    if (opcode->by_modrm)
        place += ((modrm >> 3) & 7u) + (modrm >= 0xc0 ? 8u : 0u);
    return &index->slots[place];
}

#endif
