/* SPDX-License-Identifier: Apache-2.0 */
/* Benches that start guests in several ways: each way, of husk's and of its peer's, with
 * each of several sets and accelerators is a subject (subjects_private.h), which has a
 * row for each measure. */
#ifndef HUSK_BENCH_GRID_PRIVATE_H
#define HUSK_BENCH_GRID_PRIVATE_H

#include "bench/arguments_private.h"
#include "bench/subjects_private.h"

struct bench_way {
    const char *name;
    const char *type;           /* of the peer's machine; NULL: the way is husk's */
    const char *const *options; /* more of the program's, NULL-terminated; NULL: none */
};

struct bench_measure {
    const char *name;
    const char *unit;
};

struct bench_grid {
    const char *const *sets;
    size_t set_count;
    const struct bench_way *ways; /* husk's first */
    size_t way_count;
    const struct bench_measure *measures;
    size_t measure_count;
};

/* One subject. */
struct bench_cell {
    size_t set;
    const struct bench_way *way;
    const char *accel; /* husk's */
};

/* Gives the report the rows of all subjects: those of one measure of one set come
 * together. Without a peer there are none of its ways. */
int bench_grid_init(const struct bench_grid *grid, const struct bench_options *options,
                    struct bench_report *report, struct bench_subjects *subjects,
                    struct error *err) MUST_CHECK;

/* What the subject with this index is. */
struct bench_cell bench_grid_cell(const struct bench_grid *grid,
                                  const struct bench_options *options, size_t subject);

/* Sets `program`, `type`, `accel` and `options` as the way has them. */
void bench_grid_choose(const struct bench_cell *cell, const struct bench_options *options,
                       struct bench_machine *machine);

#endif
