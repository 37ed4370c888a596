/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoded blocks: what the interpreter runs.
 *
 * An instruction becomes one uop, or two: where its address is not simply base + (index
 * << scale) + displacement in a flat segment, an address uop before it computes the
 * linear address into the register slot SOFT_ADDRESS. Each uop has a handler, specialised
 * by operand size, form and whether anybody will look at the flags; a handler ends by
 * calling the next one in tail position (NEXT), so that a block runs as a chain of jumps.
 */
#ifndef HUSK_SOFT_UOP_PRIVATE_H
#define HUSK_SOFT_UOP_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block;
struct form;
struct instruction;
struct soft_cpu;
struct uop;

typedef void soft_handler(struct soft_cpu *cpu, const struct uop *uop);

/* Picks the handler for a decoded instruction. `flags_dead`: no flag it writes is ever
 * read. */
typedef soft_handler *handler_select(const struct instruction *instruction,
                                     bool flags_dead);

struct uop {
    soft_handler *run;
    uint64_t immediate; /* or the branch target (rip) */
    uint64_t rip;       /* of the instruction's first byte */
    union {
        struct block
            *chain; /* direct branches: the target's block, once known (see FLOW) */
        const struct form *form; /* everything else */
    };
    int32_t displacement;
    uint8_t length;
    uint8_t ordinal; /* of the instruction in its block, from 0 */
    uint8_t reg;  /* ModRM.reg (or opcode register): byte offset into cpu->r for general
                   * registers      of the operand's size (AH is 1), number for all other
                   * kinds */
    uint8_t rm;   /* ModRM.rm as register: the same */
    uint8_t base; /* memory operand: register numbers, SOFT_ZERO or SOFT_ADDRESS */
    uint8_t index;
    uint8_t scale;        /* shift */
    uint8_t size;         /* operand size in bytes */
    uint8_t segment;      /* of the memory operand (enum x86_segment_register) */
    uint8_t address_size; /* bytes */
    uint16_t
        extra; /* far pointers, ENTER: immediate2; VEX: vvvv; else the repeat prefix */
};
_Static_assert(sizeof(struct uop) == 48,
               "uops stay small: a boot makes a third of a million");

/* A handler's last statement: on to the next uop of the block. */
#define NEXT(cpu, uop) return (uop)[1].run((cpu), (uop) + 1)

static inline uint64_t uop_next_rip(const struct uop *uop)
{
    return uop->rip + uop->length;
}

#endif
