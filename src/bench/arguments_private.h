/* SPDX-License-Identifier: Apache-2.0 */
/* Putting together what a child is started with. */
#ifndef HUSK_BENCH_ARGUMENTS_PRIVATE_H
#define HUSK_BENCH_ARGUMENTS_PRIVATE_H

#include <stddef.h>

#define BENCH_MAX_ARGUMENTS 64

struct bench_arguments {
    const char *words[BENCH_MAX_ARGUMENTS]; /* borrowed; NULL-terminated */
    size_t count;
};

/* `words` end with NULL. */
void bench_arguments_append(struct bench_arguments *arguments, const char *const *words);

/* What a peer calls the accelerator that is most like this one of husk's. */
const char *bench_peer_accel(const char *husk_accel);

/* Behind the last slash. */
const char *bench_file_name(const char *path);

#endif
