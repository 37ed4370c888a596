/* SPDX-License-Identifier: Apache-2.0 */
/* What rules of different families share. */
#ifndef HUSK_SOFT_RULES_PRIVATE_H
#define HUSK_SOFT_RULES_PRIVATE_H

#include "accel/soft/translator/emit_private.h"

/* rules_system.c: PUSHF of 64 bits. */
void push_flags(struct emitter *e);

/* rules_stack.c. Checks the place of a push (of what lies on top, for a pop), which
 * emit_checked(e) names then. */
void stack_check_push(struct emitter *e);
void stack_check_pop(struct emitter *e);
/* A check before has done it. */
bool stack_push_is_done(const struct emitter *e);
/* The whole push of what is in SCRATCH, which comes through the check. */
void stack_push_scratch(struct emitter *e);
/* Writes a constant there. */
void stack_put_constant(struct emitter *e, uint64_t value);
/* Moves the stack pointer, perhaps later. */
void stack_move(struct emitter *e, int32_t bytes);
/* The instruction in progress does not need the stack pointer. */
bool stack_may_be_behind(const struct emitter *e);

#endif
