/* SPDX-License-Identifier: Apache-2.0 */
/* Random states that make an instruction's operands lie in the window and matter. */
#ifndef HUSK_ISA_SHAPE_H
#define HUSK_ISA_SHAPE_H

#include "accel/soft/instruction_private.h"
#include "random.h"
#include "state.h"

/* Why a form is not compared in a mode, or NULL. */
const char *shape_skip_reason(const struct form *form, uint32_t mode);

/* A random state for `instruction` at in->rip = its rip; `data` (WINDOW_DATA_BYTES) gets
 * operands. */
void shape_state(const struct instruction *instruction, struct random *random,
                 struct isa_state *in, uint8_t *data);

/* Random registers, flags and floating-point state, for any code. */
void shape_registers(struct random *random, struct isa_state *in);

/* The linear address of the memory operand in that state. */
uint64_t shape_address(const struct instruction *instruction, const struct isa_state *in);

#endif
