/* SPDX-License-Identifier: Apache-2.0 */
/* Model-specific registers of one vCPU, and its clocks. */
#ifndef HUSK_SOFT_MSR_PRIVATE_H
#define HUSK_SOFT_MSR_PRIVATE_H

#include "accel/soft/cpu_private.h"
#include "x86/cpuid.h"

#define MTRR_VARIABLE_COUNT 8
#define MTRR_FIXED_COUNT 11

/* Most leaves that cpu_model.c makes, with those that cpuid_filter adds. */
#define CPU_MODEL_LEAVES 40

struct soft_msrs {
    /* SYSCALL and SYSENTER */
    uint64_t star;
    uint64_t lstar;
    uint64_t cstar;
    uint64_t fmask;
    uint64_t sysenter_cs;
    uint64_t sysenter_esp;
    uint64_t sysenter_eip;

    /* time: clock.c */
    uint64_t tsc_start; /* time-stamp counter when the VM was made: the guest's 0 */
    _Atomic uint64_t tsc_adjust; /* added since, by writes of TSC and TSC_ADJUST */
    _Atomic uint64_t tsc_last;   /* highest value given out: it never runs backwards */
    uint64_t tsc_aux;
    uint64_t system_time; /* KVM's: guest address of the page, and bit 0: on */
    uint64_t wall_clock;

    /* memory types: kept, without effect */
    uint64_t pat;
    uint64_t mtrr_default;
    uint64_t mtrr_fixed[MTRR_FIXED_COUNT];
    uint64_t mtrr_variable[2 * MTRR_VARIABLE_COUNT]; /* base, mask, base... */

    /* kept for those who wrote them */
    uint64_t misc_enable;
    uint64_t mcg_status;
    uint64_t spec_control;
    uint64_t debug_control;
    uint64_t system_config;   /* AMD's SYSCFG */
    uint64_t hardware_config; /* AMD's HWCR */
    uint64_t bridge_config;   /* AMD's NB_CFG */
    uint64_t decode_config;   /* AMD's DE_CFG */

    struct cpuid_leaf leaves[CPU_MODEL_LEAVES]; /* cpu_model.c */
    size_t leaf_count;
};

/* ---- clock.c ---- */

/* Starts measuring, and the guest's time: at the making of a vCPU. */
void clock_start(struct soft_cpu *cpu);

/* The host's time-stamp counter's frequency. The first call may take 2 ms. */
uint32_t clock_tsc_khz(void);
/* The guest's. */
uint32_t clock_guest_khz(const struct soft_cpu *cpu);

/* WRMSR to TSC and to TSC_ADJUST. */
void clock_write_tsc(struct soft_cpu *cpu, uint64_t value);
void clock_write_adjust(struct soft_cpu *cpu, uint64_t value);

/* WRMSR to KVM's clocks: fills in the guest's page. */
void clock_write_system_time(struct soft_cpu *cpu, uint64_t value);
void clock_write_wall_clock(struct soft_cpu *cpu, uint64_t value);

/* Ratio and shift that turn ticks into nanoseconds: (ticks << shift) * multiplier >> 32,
 * with right shifts for negative ones. */
struct clock_scale {
    uint32_t multiplier;
    int8_t shift;
};
struct clock_scale clock_scale_of(uint64_t ticks_per_second);

/* ---- cpu_model.c ---- */

/* The model's leaves for one vCPU; returns how many. */
size_t cpu_model_build(struct cpuid_leaf leaves[CPU_MODEL_LEAVES], bool amd,
                       uint32_t cpu_index, uint32_t cpu_count);

#endif
