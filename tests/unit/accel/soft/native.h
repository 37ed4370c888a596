/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one instruction on the host's processor, for tests that compare ours with it. */
#ifndef HUSK_TESTS_SOFT_NATIVE_H
#define HUSK_TESTS_SOFT_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#include "accel/soft/cpu_private.h"

struct native_state {
    struct fx_state fx;
    uint64_t r[X86_REGISTER_COUNT]; /* RSP is the host's */
    uint64_t flags;                 /* arithmetic ones */
};

/* Takes over the signals that exceptions become. The test framework has them back when
 * the test ends. */
void native_start(void);

/* Executes the instruction, which must neither branch nor use RSP, on *state. Returns the
 * vector of the exception it raised, or -1. One thread at a time. */
int native_run(struct native_state *state, const uint8_t *bytes, size_t size);

#endif
