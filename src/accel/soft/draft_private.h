/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block before it is made: decoded instructions that follow each other in one page, and
 * which of their flags anybody will read. Blocks of the interpreter (build.c) and
 * translations are made from it.
 */
#ifndef HUSK_SOFT_DRAFT_PRIVATE_H
#define HUSK_SOFT_DRAFT_PRIVATE_H

#include "accel/soft/blocks_private.h"
#include "accel/soft/instruction_private.h"

/* What ends a block beside a branch: the next instruction is elsewhere. */
enum block_end {
    END_BRANCH,
    END_FALLTHROUGH,
    END_FALLTHROUGH_SEARCHED, /* in the next page, perhaps */
    END_UNDEFINED,
    END_TOO_LONG
};

struct draft {
    struct soft_cpu *cpu;
    uint32_t mode;
    uint64_t gpa;              /* of the first byte */
    uint64_t next_gpa;         /* as in struct block */
    const uint8_t *page_bytes; /* from the first byte on; NULL: no RAM is there */
    size_t page_left;          /* up to the page's end */
    /* A copy of what is decoded: others may write to the page meanwhile, and what has
     * been judged must be what is used. */
    uint8_t bytes[BLOCK_LIMIT * INSTRUCTION_LIMIT];
    size_t byte_count; /* copied so far, as they are needed */
    size_t byte_limit;
    bool placed;    /* next_gpa was known before: nothing raises */
    bool has_moved; /* ... and it is wanted nevertheless: the bytes have changed since */
    size_t used;    /* bytes decoded */
    size_t looked_at; /* bytes that make the first instruction an undefined one */
    enum block_end end;
    size_t count;
    struct instruction instructions[BLOCK_LIMIT];
    bool flags_dead[BLOCK_LIMIT];
};

/* Starts an empty draft at cpu->rip, whose first byte is at `gpa`. Reads the guest's code
 * once. */
void draft_open(struct draft *draft, struct soft_cpu *cpu, uint64_t gpa, uint32_t mode);

/* Decodes the next instruction into the draft. False: the block ends before it. May raise
 * (a fetch from the next page, for the first instruction only). */
bool draft_add(struct draft *draft);

/* Decodes up to the block's end. May raise. */
void draft_decode(struct draft *draft);

/* Cuts it to `count` instructions. */
void draft_shorten(struct draft *draft, size_t count);

/* Fills flags_dead. */
void draft_find_dead_flags(struct draft *draft);

/* The flags an instruction writes, leaving none as they were. Shifts by 0, after the
 * count is masked, leave all alone (SDM vol. 2, SAL). */
static inline unsigned draft_written_flags(const struct instruction *instruction)
{
    const struct form *form = instruction->form;
    const unsigned mask = instruction->operand_size == 8 ? 63 : 31;

    if ((form->attributes & FORM_COUNT) != 0 && (instruction->immediate & mask) == 0)
        return 0;
    return form->flags.written;
}

/* The address behind what has been decoded. */
static inline uint64_t draft_rip(const struct draft *draft)
{
    return draft->cpu->rip + draft->used;
}

/* Bytes that make the block what it is; at least one. */
uint16_t draft_bytes(const struct draft *draft);

#endif
