/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side under test: one software processor in 64-bit user mode, in a machine that has
 * nothing but memory, with the window at the same linear addresses.
 */
#ifndef HUSK_ISA_GUEST_H
#define HUSK_ISA_GUEST_H

#include "accel/accel.h"
#include "state.h"

/* How much is decoded at a time. */
enum guest_mode {
    GUEST_BLOCKS,     /* as ever */
    GUEST_SINGLE,     /* blocks of one instruction, as under single step */
    GUEST_TRANSLATED, /* host code, where there is any for this mode */
};

struct guest;

void guest_create(struct guest **guest);
void guest_destroy(struct guest *guest);

/* The guest's copy of a window address. What of WINDOW_CODE is changed through it must be
 * told with guest_code_written. */
uint8_t *guest_bytes(struct guest *guest, uint64_t linear);
void guest_code_written(struct guest *guest, uint64_t linear, unsigned size);

/* Runs from `in` until rip is one of `exits` (EXIT_COUNT of them), or a fault. */
void guest_run(struct guest *guest, const struct isa_state *in, const uint64_t *exits,
               enum guest_mode mode, struct isa_state *out);

#endif
