/* SPDX-License-Identifier: Apache-2.0 */
/* What the two sides made of the same start, compared and shown. */
#ifndef HUSK_ISA_COMPARE_H
#define HUSK_ISA_COMPARE_H

#include "accel/soft/instruction_private.h"
#include "state.h"

/* One test: the start and both ends, with memory. */
struct comparison {
    const uint8_t *code;
    size_t code_bytes;
    const struct instruction *instruction; /* NULL: a block */
    uint64_t undefined_flags;
    const uint8_t *data; /* at the start; WINDOW_DATA_BYTES */
    const uint8_t *native_data;
    const uint8_t *guest_data;
    const struct isa_state *in;
    struct isa_state *native;
    struct isa_state *guest;
};

enum comparison_result {
    COMPARISON_EQUAL,
    COMPARISON_TOLERATED, /* a rule of tolerance.c lets it pass */
    COMPARISON_UNDEFINED, /* only flags differ that the manual leaves undefined */
    COMPARISON_DIFFERENT,
};

/* May change *native and *guest: makes equal in them what processors do as they like
 * (tolerance.c). */
enum comparison_result compare(const struct comparison *comparison);

/* Prints what differs, in lines that begin with the code's bytes. */
void compare_show(const struct comparison *comparison);

/* "mov r10, [rax+rbx*4+0x10]" or so, for reports only. */
void compare_disassemble(const struct instruction *instruction, char *text, size_t size);

#endif
