/* SPDX-License-Identifier: Apache-2.0 */
/* One software processor, with its translator, in a machine that has nothing but memory:
 * ports and addresses without it read as ones, and nothing interrupts. */
#ifndef HUSK_ISA_BARE_H
#define HUSK_ISA_BARE_H

#include "accel/accel.h"
#include "accel/soft/soft_private.h"
#include "memory/memory.h"

struct bare {
    struct memory *memory; /* from address 0 on */
    struct accel_vm *vm;
    struct accel_vcpu *vcpu;
    struct soft_cpu *cpu; /* the same */
    struct irq_source irq;
    struct accel_machine machine;
};

extern const struct accel_ops accel_soft; /* soft.c */

/* Where the struct is it must stay. */
void bare_create(struct bare *bare, uint64_t memory_bytes);
void bare_destroy(struct bare *bare);

void bare_write64(struct bare *bare, uint64_t gpa, uint64_t value);

#endif
