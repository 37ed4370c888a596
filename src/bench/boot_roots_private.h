/* SPDX-License-Identifier: Apache-2.0 */
/* The root file system that tools/make-boot-bench-guest has made in two forms: all of it
 * an initramfs, or an image for persistent memory with a small initramfs in front. */
#ifndef HUSK_BENCH_BOOT_ROOTS_PRIVATE_H
#define HUSK_BENCH_BOOT_ROOTS_PRIVATE_H

#include "bench/grid_private.h"

/* Texts are owned. */
struct boot_roots {
    char *kernel;
    char *initramfs;
    char *small_initramfs;
    char *husk_pmem;   /* the value of --pmem */
    char *peer_object; /* of -object */
};

/* boot_roots_free is due also after a failure. */
int boot_roots_find(struct boot_roots *roots, struct error *err) MUST_CHECK;
void boot_roots_free(struct boot_roots *roots); /* accepts an all-zero struct */

/* Gives the machine the kernel and the root, on persistent memory or not; `options` get
 * what they need and those that the machine has. Fails if the machine has no such memory.
 */
int boot_roots_choose(const struct boot_roots *roots, bool on_pmem,
                      struct bench_machine *machine, struct bench_arguments *options,
                      struct error *err) MUST_CHECK;

#endif
