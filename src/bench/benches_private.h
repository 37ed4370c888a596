/* SPDX-License-Identifier: Apache-2.0 */
/* The functions behind the table of benches, a file each. */
#ifndef HUSK_BENCH_BENCHES_PRIVATE_H
#define HUSK_BENCH_BENCHES_PRIVATE_H

#include "bench/bench.h"

bench_function bench_multiboot, bench_boot, bench_cpu, bench_disk, bench_memory;

/* All measures as lines, all programs as columns; then how those of husk's compare. */
void bench_print_disk_table(const struct bench_report *report, FILE *stream);

#endif
