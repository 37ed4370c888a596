/* SPDX-License-Identifier: Apache-2.0 */
/* Control registers and EFER: what may be written, and what a write entails. */
#ifndef HUSK_SOFT_CONTROL_PRIVATE_H
#define HUSK_SOFT_CONTROL_PRIVATE_H

#include "accel/soft/cpu_private.h"

/* Each raises #GP(0) for a value that the processor does not take. The instruction must
 * be the last of its block. */
void control_write_cr0(struct soft_cpu *cpu, const struct uop *uop, uint64_t value);
void control_write_cr3(struct soft_cpu *cpu, const struct uop *uop, uint64_t value);
void control_write_cr4(struct soft_cpu *cpu, const struct uop *uop, uint64_t value);
void control_write_efer(struct soft_cpu *cpu, const struct uop *uop, uint64_t value);

#endif
