/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lockstep checker: before a translated block runs, the interpreter does the same
 * instructions on a shadow processor, whose stores go to copies of pages; afterwards
 * registers, flags and stored bytes must agree. If they do not, the VM fails with a
 * message that names the block and the difference.
 *
 * While it is on each block returns to the run loop, keeps all flags that it writes, and
 * ends before what only the interpreter does. A block that accesses a device, or that is
 * left in the middle, is not compared. There is one vCPU.
 */
#ifndef HUSK_SOFT_CHECK_PRIVATE_H
#define HUSK_SOFT_CHECK_PRIVATE_H

#include "accel/soft/access_private.h"
#include "base/error.h"

struct block;
struct draft;
struct lockstep;

/* Checks every `every`th block, which is not 0. */
int lockstep_create(struct soft_cpu *cpu, uint32_t every, struct lockstep **lockstep,
                    struct error *err) MUST_CHECK;
void lockstep_destroy(struct lockstep *lockstep); /* accepts NULL */

/* `block` has been translated from `draft`: keeps what the interpreter needs to do the
 * same. Without memory for that the block is not checked. */
void lockstep_prepare(struct soft_cpu *cpu, struct block *block,
                      const struct draft *draft);

/* `block` is to run next: its instructions are done on the shadow. */
void lockstep_before(struct soft_cpu *cpu, const struct block *block);

/* The block is done, or left by cpu->fault. */
void lockstep_after(struct soft_cpu *cpu, bool faulted);

/* The block in progress was left where its instructions do not say: there is nothing to
 * compare. */
void lockstep_abandon(struct soft_cpu *cpu);

/* The indirect branch at the end of the block in progress has not come to where the
 * shadow did. */
void lockstep_missed(struct soft_cpu *cpu);

/* Where the shadow's instructions have ended. */
uint64_t lockstep_target(const struct lockstep *lockstep);

/* A block has differed: *failure is the message. */
bool lockstep_failed(const struct lockstep *lockstep, struct error *failure);

/* ---- for the MMU, on behalf of a shadow ---- */

/* The host address for one access, in a copy if it writes. May raise. */
uint8_t *lockstep_access(struct soft_cpu *shadow, const struct uop *uop, uint64_t linear,
                         enum soft_access access, enum tlb_kind kind);

/* `at`, in guest RAM, as the shadow sees it: in the page's copy, if there is one; one is
 * made if it `writes`. */
void *lockstep_view(struct soft_cpu *shadow, void *at, bool writes);

#endif
