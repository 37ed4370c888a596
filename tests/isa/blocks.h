/* SPDX-License-Identifier: Apache-2.0 */
/* Random blocks of instructions, jumps included, on both sides. */
#ifndef HUSK_ISA_BLOCKS_H
#define HUSK_ISA_BLOCKS_H

#include "bench.h"

void blocks_run(struct bench *bench, uint64_t seed, unsigned count);

#endif
