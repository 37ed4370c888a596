/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's x87, MMX and SSE registers in the host's own.
 *
 * While soft_cpu.translated.vectors_resident is set they are there and not in
 * soft_cpu.fx. Only translated code uses them there, while all exceptions are masked; C
 * code that may use vector registers calls vectors_save first. That is all code outside
 * this folder and all of libc's mem functions, so: the run loop, the making of blocks,
 * each link that is set, and each instruction that the interpreter does. TLB misses and
 * lookups of known blocks touch none, which tools/check-vector-registers checks.
 */
#ifndef HUSK_SOFT_VECTORS_PRIVATE_H
#define HUSK_SOFT_VECTORS_PRIVATE_H

#include "accel/soft/cpu_private.h"

void vectors_save_resident(struct soft_cpu *cpu);

static inline void vectors_save(struct soft_cpu *cpu)
{
    if (cpu->translated.vectors_resident)
        vectors_save_resident(cpu);
}

/* What translated code calls for light work that uses no vector registers begins with
 * this: sanitizers make all C code use them. vectors_load brings them back. */
static inline void vectors_enter_c(struct soft_cpu *cpu)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    vectors_save(cpu);
#else
    (void)cpu;
#endif
}

/* False, and nothing is done: an exception is not masked, or pending. */
bool vectors_load(struct soft_cpu *cpu);

/* The host has all instructions that the guest may find here. */
bool vectors_supported(void);

#endif
