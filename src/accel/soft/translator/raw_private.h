/* SPDX-License-Identifier: Apache-2.0 */
/* A guest instruction, taken apart so that it can be written anew with other registers.
 */
#ifndef HUSK_SOFT_RAW_PRIVATE_H
#define HUSK_SOFT_RAW_PRIVATE_H

#include "accel/soft/instruction_private.h"
#include "accel/soft/translator/encode_private.h"

/* Prefixes, opcode, ModRM.reg and immediates of an instruction of 64-bit code without
 * VEX, none of them an address; the caller fills in its operands. */
struct host_instruction raw_parse(const struct instruction *instruction);

#endif
