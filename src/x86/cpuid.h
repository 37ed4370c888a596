/* SPDX-License-Identifier: Apache-2.0 */
/* What CPUID tells a guest: the accelerator's offer, cut to husk's machine. */
#ifndef HUSK_X86_CPUID_H
#define HUSK_X86_CPUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpuid_leaf {
    uint32_t function;
    uint32_t index;
    bool has_index; /* the answer depends on ECX */
    uint32_t eax;
    uint32_t ebx;
    uint32_t ecx;
    uint32_t edx;
};

struct cpuid_policy {
    uint32_t cpu_index; /* also its APIC id */
    uint32_t cpu_count;
    bool tsc_deadline;    /* the local APIC has TSC-deadline mode */
    bool hide_cmpxchg16b; /* the back end emulates and lacks it */
};

/* Rows that cpuid_filter may add. */
#define CPUID_FILTER_EXTRA_LEAVES 2

/* Edits the table of `count` leaves in place for one vCPU: APIC ids and topology (leaves
 * 1, 4, 0xb, 0x1f, 0x80000008, 0x8000001d/e; every vCPU is a core of its own in one
 * package), hypervisor and TSC-deadline bits; hides what husk does not give a guest (VMX,
 * SVM, PMU, MONITOR, SGX, tracing, thermal control). The table has room for
 * CPUID_FILTER_EXTRA_LEAVES more. Returns the new count. */
size_t cpuid_filter(struct cpuid_leaf *leaves, size_t count,
                    const struct cpuid_policy *policy);

#endif
