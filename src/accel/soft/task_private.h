/* SPDX-License-Identifier: Apache-2.0 */
/* Task state segments (SDM vol. 3, chapter 7): inner stacks, and hardware task switches.
 */
#ifndef HUSK_SOFT_TASK_PRIVATE_H
#define HUSK_SOFT_TASK_PRIVATE_H

#include "accel/soft/segments_private.h"

/* SS:ESP for a switch to `cpl` outside long mode; #TS if it lies outside the TSS. */
struct task_stack {
    uint64_t pointer;
    uint16_t selector;
};
struct task_stack task_inner_stack(struct soft_cpu *cpu, const struct uop *uop,
                                   unsigned cpl);

/* RSP of long mode: RSP0 to RSP2, or an entry (1 to 7) of the interrupt stack table. */
uint64_t task_long_stack(struct soft_cpu *cpu, const struct uop *uop, unsigned cpl);
uint64_t task_interrupt_stack(struct soft_cpu *cpu, const struct uop *uop,
                              unsigned entry);

/* True if the I/O permission bitmap allows `size` ports from `port` on. */
bool task_allows_port(struct soft_cpu *cpu, const struct uop *uop, uint16_t port,
                      unsigned size);

enum task_switch_kind { TASK_JUMP, TASK_CALL, TASK_RETURN, TASK_EVENT };

/* Switches to the task of the TSS that `selector` names (for TASK_RETURN, of the
 * back-link). `return_rip` is what the task that is left resumes at; `error_code` goes to
 * the new task's stack. On return all state is the new task's, cpu->rip too. */
struct task_switch {
    enum task_switch_kind kind;
    uint16_t selector;
    uint64_t return_rip;
    bool has_error_code;
    uint32_t error_code;
};
void task_switch(struct soft_cpu *cpu, const struct uop *uop,
                 const struct task_switch *to);

/* IRET with NT set: through the back-link. */
void task_return(struct soft_cpu *cpu, const struct uop *uop);

/* The TSS that a task gate names; checks the gate's presence only. */
uint16_t task_gate_target(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector,
                          const struct descriptor *gate);

#endif
