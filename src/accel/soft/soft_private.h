/* SPDX-License-Identifier: Apache-2.0 */
/* The software accelerator's VM, and what its files offer each other. */
#ifndef HUSK_SOFT_SOFT_PRIVATE_H
#define HUSK_SOFT_SOFT_PRIVATE_H

#include "accel/accel.h"
#include "accel/soft/code_pages_private.h"
#include "accel/soft/cpu_private.h"
#include "x86/cpuid.h"

struct soft_vm {
    struct memory *memory;               /* borrowed */
    const struct accel_machine *machine; /* borrowed: buses, local APICs */
    uint32_t cpu_count;
    enum accel_tier tier;
    uint32_t check_every; /* translated blocks: compared with the interpreter; 0: none */
    _Atomic uint64_t device_writes; /* to guest memory, announced */
    struct soft_cpu **cpus;         /* by index; NULL until created */
    uint8_t
        *memory_base; /* host address of guest-physical 0 (memory.h: hva = base + gpa) */
    size_t region_count;
    const struct memory_region *regions; /* the memory's */
    struct code_pages code_pages;
    struct translator *translator; /* of all vCPUs; NULL: all code is interpreted */
};

/* The host address of the page that holds `gpa`, or NULL outside RAM. */
uint8_t *soft_vm_page(const struct soft_vm *vm, uint64_t gpa);

/* ---- run.c ---- */
void soft_cpu_run(struct soft_cpu *cpu, struct vcpu_exit *exit);

/* ---- cpu.c: power-on state; INIT (SDM table 9-1), which keeps FPU, MSRs and the TSC
 * ---- */
void soft_cpu_power_on(struct soft_cpu *cpu);
void soft_cpu_init_signal(struct soft_cpu *cpu);

/* ---- interrupts.c: through the IDT. These may raise again, which lands in the run loop
 * like any fault and makes a double fault there; a triple fault sets ACTIVITY_SHUTDOWN
 * ---- */
void soft_deliver_fault(struct soft_cpu *cpu); /* cpu->fault */
void soft_deliver_interrupt(struct soft_cpu *cpu, uint8_t vector);
void soft_deliver_nmi(struct soft_cpu *cpu);

/* ---- debug.c: raises #DB if an instruction breakpoint is at cpu->rip ---- */
void soft_debug_check_execute(struct soft_cpu *cpu);

/* ---- msr.c ---- */
int soft_msrs_create(struct soft_cpu *cpu, struct error *err) MUST_CHECK;
void soft_msrs_destroy(struct soft_cpu *cpu);
uint64_t soft_msr_read(struct soft_cpu *cpu, const struct uop *uop, uint32_t index);
void soft_msr_write(struct soft_cpu *cpu, const struct uop *uop, uint32_t index,
                    uint64_t value);

/* ---- clock.c ---- */
uint64_t soft_tsc(const struct soft_cpu *cpu);
uint64_t soft_ns_until_tsc(const struct soft_cpu *cpu, uint64_t tsc); /* any thread */

/* Deterministic VMs. The virtual clock is set to the instruction in progress: before
 * somebody reads it. */
static inline void soft_clock_set(struct soft_cpu *cpu, const struct uop *uop)
{
    if (cpu->clock != NULL)
        virtual_clock_set(cpu->clock,
                          cpu->clock_ahead_ns + cpu->retired + (uop ? uop->ordinal : 0u));
}
/* ... and the run loop looks for new deadlines when the block ends: before an access to a
 * device. */
static inline void soft_clock_device(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_clock_set(cpu, uop);
    if (cpu->clock != NULL)
        cpu->budget = 1;
}
void soft_clock_start(struct soft_cpu *cpu);
void soft_clock_advance(struct soft_cpu *cpu); /* calls the timers that are due */
/* Instructions until the next deadline, or UINT64_MAX. */
uint64_t soft_clock_left(const struct soft_cpu *cpu);
/* Nothing is to do before the next deadline: it is now. False: there is none. */
bool soft_clock_skip(struct soft_cpu *cpu);
uint64_t soft_clock_random(struct soft_cpu *cpu);

/* ---- hypercall.c: VMCALL and VMMCALL ---- */
void soft_hypercall(struct soft_cpu *cpu);

/* ---- mmu.c ---- */
void soft_mmu_init(struct soft_cpu *cpu);             /* whose TLBs are zero */
struct tlb_entry *soft_mmu_tlb(struct soft_cpu *cpu); /* the one in force */

/* ---- cpu_model.c: CPUID ---- */
struct cpuid_leaf soft_cpuid(const struct soft_cpu *cpu, uint32_t function,
                             uint32_t index);

#endif
