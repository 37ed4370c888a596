/* SPDX-License-Identifier: Apache-2.0 */
/* How a block ends: on to the next block in tail position, or back to the run loop. */
#ifndef HUSK_SOFT_FLOW_PRIVATE_H
#define HUSK_SOFT_FLOW_PRIVATE_H

#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"

/* Blocks that may follow each other without a look at the run loop. With sanitizers
 * compilers make no tail calls, so each block returns. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                     \
    !defined(__OPTIMIZE__)
#define FLOW_BUDGET 1
#else
#define FLOW_BUDGET 4096
#endif

/* The instruction `uop` is the block's last and done: its block has retired. */
static inline void flow_retire(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->retired += uop->ordinal + 1u;
}

/* Goes on with `next` (or the run loop, if NULL) at cpu->rip. A macro so that it is a
 * tail call. */
#define FLOW_ENTER(cpu, next)                                                            \
    do {                                                                                 \
        struct block *flow_next = (next);                                                \
                                                                                         \
        if (!LIKELY(flow_next != NULL) || --(cpu)->budget == 0 ||                        \
            atomic_load_explicit(&(cpu)->attention, memory_order_relaxed) != 0)          \
            return;                                                                      \
        return flow_next->uops[0].run((cpu), flow_next->uops);                           \
    } while (0)

/* A direct branch to `target`: through the uop's chain pointer when it stays in the page
 * (the only case in which the mapping that the target was found by is sure to be the one
 * in force). */
struct block *flow_chain(struct soft_cpu *cpu, const struct uop *uop, uint64_t target);

/* The branch `uop` has retired, and cpu->rip is its target: goes there by flow_chain. */
void flow_follow(struct soft_cpu *cpu, const struct uop *uop);

#endif
