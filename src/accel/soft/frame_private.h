/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack frames of far transfers and events: a stack that may not be in force yet, written
 * whole or not at all.
 */
#ifndef HUSK_SOFT_FRAME_PRIVATE_H
#define HUSK_SOFT_FRAME_PRIVATE_H

#include "accel/soft/segments_private.h"

struct frame {
    const struct x86_segment *segment; /* NULL: 64-bit mode, flat */
    uint64_t pointer;
    uint64_t mask;     /* bits of the pointer that count */
    uint16_t selector; /* what #SS names: 0, or that of a stack being switched to */
    uint8_t size;      /* bytes of a slot */
    bool user;         /* with whose rights slots are written */
};

/* The current stack, with slots of `size` bytes. */
struct frame frame_current(const struct soft_cpu *cpu, unsigned size);

/* A stack of CPL `cpl` that is being switched to. `segment` must outlive the frame; it is
 * NULL in long mode. */
struct frame frame_on(const struct x86_segment *segment, uint16_t selector,
                      uint64_t pointer, unsigned size, unsigned cpl);

/* Raises what pushing `slots` slots would raise: after it, frame_push cannot fault. */
void frame_reserve(struct soft_cpu *cpu, const struct uop *uop, const struct frame *frame,
                   unsigned slots);
void frame_push(struct soft_cpu *cpu, const struct uop *uop, struct frame *frame,
                uint64_t value);

/* Reads with the current rights; moves only the frame's own pointer. */
uint64_t frame_pop(struct soft_cpu *cpu, const struct uop *uop, struct frame *frame);
/* The same for a selector in a slot. */
uint16_t frame_pop_selector(struct soft_cpu *cpu, const struct uop *uop,
                            struct frame *frame);

/* Makes the frame's pointer the stack pointer: as many bits of it as the mask says. */
void frame_commit(struct soft_cpu *cpu, const struct frame *frame);

/* RSP, ESP or SP by the mask of a stack. */
void frame_set_pointer(struct soft_cpu *cpu, uint64_t pointer, uint64_t mask);

#endif
