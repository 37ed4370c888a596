/* SPDX-License-Identifier: Apache-2.0 */
/* Finding what a bench needs and husk does not carry within it. */
#ifndef HUSK_BENCH_FILES_PRIVATE_H
#define HUSK_BENCH_FILES_PRIVATE_H

#include "bench/bench.h"

/* A path, owned by the caller; NULL, with *err set, if there is no such file. */

/* A stock kernel: the `asked` one (--kernel), the one that tools/get-kernel has fetched
 * as `flavour` ("cloud-amd64"), or the host's own. */
char *bench_find_kernel(const char *asked, const char *flavour,
                        struct error *err) MUST_CHECK;

/* The ELF file that husk unpacks `kernel` to, in an empty cache: `cache` is its word of
 * the environment, "HUSK_CACHE_DIR=...". */
char *bench_unpack_kernel(const struct bench_options *options, const char *cache,
                          const char *kernel, struct error *err) MUST_CHECK;

/* What tools/make-disk-bench-guest has made: the `asked` directory (--guest), or that in
 * the build's. */
char *bench_find_disk_guest(const char *asked, struct error *err) MUST_CHECK;

/* What tools/make-boot-bench-guest has made in the build's directory. */
char *bench_find_boot_guest(struct error *err) MUST_CHECK;

/* What the build has made in bench/, by its name. */
char *bench_find_guest(const char *name, struct error *err) MUST_CHECK;

#endif
