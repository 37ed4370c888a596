/* SPDX-License-Identifier: Apache-2.0 */
/* Address uops: for memory operands whose linear address is more than a sum of registers.
 */
#ifndef HUSK_SOFT_ADDRESS_PRIVATE_H
#define HUSK_SOFT_ADDRESS_PRIVATE_H

#include "accel/soft/instruction_private.h"

/* The address uop's handler for an instruction with a memory operand, or NULL: none is
 * needed (64-bit code, 64-bit addressing, flat segment). */
soft_handler *address_select(const struct instruction *instruction);

/* Sets what that handler needs beyond what every uop has. */
void address_fill(struct uop *uop, const struct instruction *instruction);

/* Checks [offset, offset + size) against a segment of legacy or compatibility mode and
 * returns its linear address; raises #GP or #SS. For string and stack instructions too.
 * In 64-bit code: adds the base of FS and GS, and checks nothing (a non-canonical address
 * raises at the access). */
uint64_t address_linear(struct soft_cpu *cpu, const struct uop *uop, unsigned segment,
                        uint64_t offset, unsigned size, bool write);

#endif
