/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a few instructions on the software CPU: 64-bit code with two mapped ranges, or 16-
 * and 32-bit code with flat segments and no paging. */
#ifndef HUSK_TESTS_SOFT_INTEGER_GUEST_H
#define HUSK_TESTS_SOFT_INTEGER_GUEST_H

#include "fixture.h"

/* Code, and two pages of data which lie at the same linear address in this process. */
#define GUEST_CODE UINT64_C(0x100000)
#define GUEST_DATA UINT64_C(0x10000000)
#define GUEST_DATA_GPA UINT64_C(0x800000)
#define GUEST_DATA_BYTES 8192

void guest_enter_code64(struct soft_fixture *fixture);
void guest_enter_code32(struct soft_fixture *fixture);
void guest_enter_code16(struct soft_fixture *fixture); /* protected mode, 64 KiB */

/* Puts `size` bytes of code and a UD2 at GUEST_CODE (16-bit code: at 0x1000), and runs
 * from there until something is raised; returns the vector. X86_VECTOR_UD with rip behind
 * the code: all of it was done. */
unsigned guest_run(struct soft_fixture *fixture, const uint8_t *code, size_t size);

/* The same without new code: from cpu->rip. */
unsigned guest_continue(struct soft_fixture *fixture);

#define GUEST_RUN(fixture, ...)                                                          \
    guest_run(fixture, (const uint8_t[]){__VA_ARGS__},                                   \
              sizeof((const uint8_t[]){__VA_ARGS__}))

#endif
