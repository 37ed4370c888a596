/* SPDX-License-Identifier: Apache-2.0 */
/* The bench both sides stand on: puts the same code and data before them and compares. */
#ifndef HUSK_ISA_BENCH_H
#define HUSK_ISA_BENCH_H

#include "code.h"
#include "compare.h"
#include "guest.h"

/* How many differences of one form are shown in full. */
#define BENCH_SHOWN 2

struct bench {
    struct guest *guest;
    struct random random;
    uint64_t exits[2][EXIT_COUNT]; /* of 64-bit and of 32-bit code */
    bool show_undefined; /* count flags that are undefined as differences, too */
    bool *unlike;        /* by form: flags that are undefined have differed */

    /* What is at work. */
    uint8_t code[CODE_BYTES];
    struct isa_state in;
    struct isa_state native;
    struct isa_state result;
    uint64_t flags_changed; /* by the host, since the form began */
    uint8_t *data;          /* WINDOW_DATA_BYTES both sides start with */

    /* Counts. */
    unsigned long forms;
    unsigned long skipped;
    unsigned long states;
    unsigned long faults;
    unsigned long undefined;
    unsigned long tolerated;
    unsigned long mismatches;
    unsigned long failed_forms;
    unsigned long blocks;
    unsigned long block_mismatches;
};

void bench_create(struct bench *bench, uint64_t seed);
void bench_destroy(struct bench *bench);

/* `size` bytes of code at `linear`, for both sides. */
void bench_write_code(struct bench *bench, uint64_t linear, const uint8_t *code,
                      size_t size);
/* Zeros, but for the exits: what code that has run left there is the same on both. */
void bench_clear_code(struct bench *bench);

/* `count` random states for an instruction (its bytes at `bytes`); shows the first
 * mismatches unless `shown` of them were before. Returns the number of mismatches. */
unsigned bench_states(struct bench *bench, const uint8_t *bytes,
                      const struct instruction *instruction, unsigned count,
                      unsigned *shown);

/* The current test, for a report from a crash. */
void bench_show_crash(void);

#endif
