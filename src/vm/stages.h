/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a start reached what: --boot-timer. Times are on CLOCK_MONOTONIC and shown from
 * process start. A stage is noted once; later marks (a rebooted guest) are ignored.
 */
#ifndef HUSK_VM_STAGES_H
#define HUSK_VM_STAGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum stage {
    STAGE_CONFIG,       /* configuration read */
    STAGE_PLAN,         /* files described, plan built */
    STAGE_MEMORY,       /* guest memory mapped and written */
    STAGE_INIT_END,     /* first guest instruction */
    STAGE_START_KERNEL, /* first byte on the console */
    STAGE_START_USER,   /* first user-mode instruction, or the line of --boot-mark */
    STAGE_END,          /* guest off */
    STAGE_COUNT,
};

struct stages {
    _Atomic uint64_t at_ns[STAGE_COUNT]; /* 0: not reached */
};

void stages_mark(struct stages *stages, enum stage stage); /* any thread */

/* Milliseconds since process start, or negative if not reached. */
double stages_ms(const struct stages *stages, enum stage stage);

/* The table, or a JSON object on no line of its own: {"config":0.388, "plan":null, ...}.
 */
void stages_print_table(const struct stages *stages, FILE *stream);
void stages_print_json(const struct stages *stages, FILE *stream);

#endif
