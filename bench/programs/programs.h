/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of `husk bench cpu`. All are in one executable, which is also the /init of
 * its guest: what runs natively and what runs in a guest are the same bytes.
 *
 * A program is run in a process of its own. Only run() is timed. What it returns must
 * depend on all that it has computed, and be the same on every machine.
 */
#ifndef BENCH_PROGRAMS_PROGRAMS_H
#define BENCH_PROGRAMS_PROGRAMS_H

#include <stddef.h>
#include <stdint.h>

struct program {
    const char *name;
    const char *set;       /* whose geometric mean it is counted in */
    void (*prepare)(void); /* not timed; NULL: there is nothing to prepare */
    uint64_t (*run)(void); /* its checksum */
};

/* integer: registers, branches and little memory */
uint64_t run_multiply(void);
uint64_t run_digest(void);
void prepare_sort(void);
uint64_t run_sort(void);
void prepare_lookup(void);
uint64_t run_lookup(void);
void prepare_compress(void);
uint64_t run_compress(void);
uint64_t run_calls(void);
uint64_t run_bytecode(void);
void prepare_indirect(void);
uint64_t run_indirect(void);

/* floating point */
void prepare_matrix(void);
uint64_t run_matrix(void);
uint64_t run_bodies(void);

/* strings */
void prepare_strings(void);
uint64_t run_rep_movs(void);
uint64_t run_rep_stos(void);
uint64_t run_memcpy(void);
uint64_t run_strlen(void);

/* memory */
void prepare_chase_4m(void);
uint64_t run_chase_4m(void);
void prepare_chase_32m(void);
uint64_t run_chase_32m(void);
uint64_t run_atomics(void);

/* system: what the kernel does for a program */
uint64_t run_syscall(void);
uint64_t run_fault(void);
uint64_t run_spawn(void);
uint64_t run_switch(void);
void prepare_compile(void);
uint64_t run_compile(void);

/* The process that run_compile starts again and again: compiles `source` to the object
 * file `object`; its exit status. */
int compile_file(const char *source, const char *object);

/* ---- tools ---- */

/* The next of a sequence of numbers without a pattern, the same each time. */
static inline uint64_t random_next(uint64_t *state)
{
    /* Marsaglia, "Xorshift RNGs", 2003: the triple 13, 7, 17. */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#define RANDOM_SEED 0x9e3779b97f4a7c15u

/* FNV-1a, 64 bits, of so many bytes. */
uint64_t checksum(const void *bytes, size_t size_bytes);

/* Ends the process; the host is told what could not be done. */
_Noreturn void give_up(const char *what);

#endif
