/* SPDX-License-Identifier: Apache-2.0 */
/* The temporary directory of a bench. */
#ifndef HUSK_BENCH_DIRECTORY_PRIVATE_H
#define HUSK_BENCH_DIRECTORY_PRIVATE_H

#include "base/error.h"

/* Makes a new one below $TMPDIR or /tmp; its path is owned by the caller, who removes it
 * and what is in it. NULL, with *err set: it cannot be made. */
char *bench_directory_make(struct error *err) MUST_CHECK;

/* Removes it with everything in it, as far as it can be, and frees the path. Accepts
 * NULL. */
void bench_directory_remove(char *path);

#endif
