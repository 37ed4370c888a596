/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code under test: an instruction, and what is around it.
 *
 *   instruction                at `start`
 *   [test eax, eax]            if `tail`: the instruction's flags are dead
 *   jmp [exit slot 0]          EXIT_BEHIND
 *   ...
 *   jmp [exit slot 1]          at start + CODE_TARGET: where branches under test go
 */
#ifndef HUSK_ISA_CODE_H
#define HUSK_ISA_CODE_H

#include "accel/soft/instruction_private.h"
#include "random.h"
#include "x86/x86.h"

#define CODE_TARGET 64u
#define CODE_BYTES 70u /* an exit jump has 6 */

enum code_tail { TAIL_NONE, TAIL_FLAGS_DEAD };

/* Code page bytes: fills `code` (CODE_BYTES at the instruction's rip) around it. */
void code_wrap(uint8_t *code, const struct instruction *instruction, const uint8_t *bytes,
               enum code_tail tail);

/* jmp [exit slot]: 6 bytes at linear address `at`. */
#define CODE_EXIT_BYTES 6u
void code_exit(uint8_t *to, uint64_t at, unsigned exit, uint32_t mode);

/* Makes a random instruction of `form` for linear address `start` and mode CODE_MODE or
 * CODE_MODE32: decodes to *instruction; memory operands that are known already lie in the
 * window. False: none was found (the form does not exist in this mode). */
bool code_generate(const struct form *form, uint32_t mode, uint64_t start,
                   struct random *random, uint8_t bytes[INSTRUCTION_LIMIT],
                   struct instruction *instruction);

/* The same for a place among others: a memory operand is around the address in
 * CODE_ANCHOR, or absolute, and no general register that is named is RSP or that one. */
#define CODE_ANCHOR X86_R15
#define CODE_ANCHOR_VALUE (WINDOW_DATA + WINDOW_PAGE)
bool code_generate_anchored(const struct form *form, uint64_t start,
                            struct random *random, uint8_t bytes[INSTRUCTION_LIMIT],
                            struct instruction *instruction);

/* Bytes of the immediates that end an instruction. */
size_t code_immediate_bytes(const struct instruction *instruction);

/* A random operand address in the window, near where something happens. `align` > 1: most
 * are multiples. */
uint64_t code_random_target(struct random *random, unsigned align);

/* The modes instructions are decoded for: 64-bit, and 32-bit compatibility mode. */
#define CODE_MODE (MODE_CODE64 | MODE_LONG | MODE_PROTECTED | MODE_USER)
#define CODE_MODE32 (MODE_CODE32 | MODE_STACK32 | MODE_LONG | MODE_PROTECTED | MODE_USER)

#endif
