/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that programs have: one of each kind, from random states. */
#ifndef HUSK_ISA_CORPUS_H
#define HUSK_ISA_CORPUS_H

#include "bench.h"

/* Runs every distinct instruction form in the text of the ELF file `path`; `form`: only
 * of that mnemonic, or NULL. A file that cannot be read is reported and passed over. */
void corpus_run(struct bench *bench, const char *path, unsigned states, const char *form);

/* The same for the kernels in the folder that HUSK_KERNELS names (tools/get-kernel). */
void corpus_run_kernels(struct bench *bench, unsigned states, const char *form);

#endif
