/* SPDX-License-Identifier: Apache-2.0 */
/* The functions behind the table of benches, a file each. */
#ifndef HUSK_BENCH_BENCHES_PRIVATE_H
#define HUSK_BENCH_BENCHES_PRIVATE_H

#include "bench/bench.h"

bench_function bench_multiboot;

#endif
