/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between a processor and its local APIC: what each tells the other. It stands here
 * because the two ends, in accel/ and in device/, know nothing of each other; vm/ joins
 * them.
 */
#ifndef HUSK_X86_IRQ_SOURCE_H
#define HUSK_X86_IRQ_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

/* The local APIC of one vCPU as its processor sees it, for accelerators that have none.
 * All are called on the vCPU's thread. */
struct irq_source {
    void *context;
    /* Takes the highest interrupt above the processor priority into service: its vector,
     * or -1. */
    int (*acknowledge)(void *context);
    /* The MSRs that are the APIC's: IA32_APIC_BASE, x2APIC (0x800 to 0x8ff), TSC
     * deadline. False: not one of them, or refused (#GP). */
    bool (*read_msr)(void *context, uint32_t index, uint64_t *value);
    bool (*write_msr)(void *context, uint32_t index, uint64_t value);
    /* The register page at IA32_APIC_BASE: true if `gpa` lies in it and the APIC has
     * answered. */
    bool (*read)(void *context, uint64_t gpa, unsigned size, uint64_t *value);
    bool (*write)(void *context, uint64_t gpa, unsigned size, uint64_t value);
    /* Sends an interrupt as the low half of the command register (ICR) would; delivery
     * and vector count. True if an APIC with this id has taken it. */
    bool (*send)(void *context, uint32_t apic_id, uint32_t command);
    /* Task priority, bits 7..4 of TPR, as CR8 has it. */
    uint8_t (*get_priority)(void *context);
    void (*set_priority)(void *context, uint8_t priority);
    /* The processor halts, with the host's time: until it wakes up, the APIC's timer is
     * its own affair. When that is due, in clock_monotonic_ns, or IRQ_NOT_DUE. */
    uint64_t (*fall_asleep)(void *context);
    /* It goes on: what is due by now is raised, for the rest the timer comes again. */
    void (*wake_up)(void *context);
};

#define IRQ_NOT_DUE UINT64_MAX

/* What a local APIC tells its processor, on any thread. */
enum irq_event {
    IRQ_EVENT_INTERRUPT, /* acknowledge may have a vector */
    IRQ_EVENT_NMI,
    IRQ_EVENT_INIT,
    IRQ_EVENT_STARTUP, /* with the SIPI vector */
};

#endif
