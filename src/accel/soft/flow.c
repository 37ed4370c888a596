/* SPDX-License-Identifier: Apache-2.0 */
/* Chaining of blocks; see flow_private.h. */
#include "accel/soft/flow_private.h"

struct block *flow_chain(struct soft_cpu *cpu, const struct uop *uop, uint64_t target)
{
    struct block *block = uop->chain;

    if (LIKELY(block != NULL))
        return block;
    block = block_lookup(cpu, target);
    if (block != NULL && block->next_gpa == BLOCK_ONE_PAGE &&
        soft_code_linear(cpu, uop->rip) >> 12 == soft_code_linear(cpu, target) >> 12)
        ((struct uop *)(uintptr_t)uop)->chain = block;
    return block;
}

void flow_follow(struct soft_cpu *cpu, const struct uop *uop)
{
    FLOW_ENTER(cpu, flow_chain(cpu, uop, cpu->rip));
}
