/* SPDX-License-Identifier: Apache-2.0 */
/* Address uops: for memory operands whose linear address is more than a sum of registers.
 */
#ifndef HUSK_SOFT_ADDRESS_PRIVATE_H
#define HUSK_SOFT_ADDRESS_PRIVATE_H

#include "accel/soft/instruction_private.h"

/* The address uop's handler for an instruction with a memory operand, or NULL: none is
 * needed (64-bit code, 64-bit addressing, flat segment; 32-bit code and FORM_FLAT). */
soft_handler *address_select(const struct instruction *instruction);

/* 32-bit addressing in a flat segment (MODE_FLAT): the linear address is the sum, cut to
 * 32 bits, and allowed unless the operand reaches beyond 4 GiB, which crosses pages. */
bool address_is_flat(const struct instruction *instruction);

/* Sets what that handler needs beyond what every uop has. */
void address_fill(struct uop *uop, const struct instruction *instruction);

/* Checks [offset, offset + size) against a segment of legacy or compatibility mode and
 * returns its linear address; raises #GP or #SS. For string and stack instructions too.
 * In 64-bit code: adds the base of FS and GS, and checks nothing (a non-canonical address
 * raises at the access). */
uint64_t address_linear(struct soft_cpu *cpu, const struct uop *uop, unsigned segment,
                        uint64_t offset, unsigned size, bool write);

/* How many bytes from `offset` on address_linear would allow, whose addresses follow each
 * other up to the end of the page that *linear is in; or fewer, down to 0: ask it. */
uint64_t address_room(const struct soft_cpu *cpu, const struct uop *uop, unsigned segment,
                      uint64_t offset, bool write, uint64_t *linear);

#endif
