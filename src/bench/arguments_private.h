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

/* A virtual machine that a child is to be: husk's, or its peer's. */
struct bench_machine {
    const char *program;
    const char *type;  /* the peer's -M; NULL: the program is husk */
    const char *accel; /* in the program's words */
    const char *memory_mib;
    const char *processors; /* their number; NULL: one */
    const char *kernel;
    const char *initramfs;      /* NULL: none */
    const char *cmdline;        /* NULL: none */
    const char *const *options; /* more of the program's, NULL-terminated; NULL: none */
};

/* What starts it, with its serial port on standard input and output, and no device that
 * is not asked for. It ends when its guest resets it. */
void bench_arguments_append_machine(struct bench_arguments *arguments,
                                    const struct bench_machine *machine);

/* What a peer calls the accelerator that is most like this one of husk's. */
const char *bench_peer_accel(const char *husk_accel);

/* Behind the last slash. */
const char *bench_file_name(const char *path);

#endif
