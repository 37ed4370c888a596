/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local APIC, in xAPIC and x2APIC mode. Source: Intel SDM vol. 3, chapter 10 (section
 * numbers in the code are that chapter's).
 *
 * lapic.c has the priorities and what arrives; lapic_registers.c what the guest reads and
 * writes; lapic_timer.c the timer. Lock: apic_bus_private.h.
 *
 * Left out: LVT CMCI, suppression of EOI broadcasts, remote reads, focus checking. SMIs
 * are dropped, as there is no SMM. The APIC id cannot be changed.
 */
#ifndef HUSK_DEVICE_LAPIC_PRIVATE_H
#define HUSK_DEVICE_LAPIC_PRIVATE_H

#include "base/machine_clock.h"
#include "device/apic_bus_private.h"

/* Local vector table, in the order of the registers from 0x320 on (10.5.1). */
enum lapic_lvt {
    LVT_TIMER,
    LVT_THERMAL,
    LVT_PERFORMANCE,
    LVT_LINT0,
    LVT_LINT1,
    LVT_ERROR,
    LVT_COUNT,
};

/* LVT fields (figure 10-8). */
#define LVT_VECTOR 0xffu
#define LVT_DELIVERY_SHIFT 8
#define LVT_DELIVERY 0x700u
#define LVT_STATUS 0x1000u /* always idle */
#define LVT_POLARITY 0x2000u
#define LVT_REMOTE_IRR 0x4000u
#define LVT_LEVEL 0x8000u
#define LVT_MASKED 0x10000u
#define LVT_TIMER_MODE 0x60000u
#define LVT_TIMER_ONE_SHOT 0x00000u
#define LVT_TIMER_PERIODIC 0x20000u
#define LVT_TIMER_DEADLINE 0x40000u

/* IA32_APIC_BASE (figure 10-26). */
#define APIC_BASE_BOOTSTRAP 0x100u
#define APIC_BASE_X2APIC 0x400u
#define APIC_BASE_ENABLED 0x800u

/* Spurious-interrupt vector register (figure 10-23). */
#define SPURIOUS_ENABLED 0x100u

/* Error status register (figure 10-9). */
#define ERROR_SEND_ILLEGAL_VECTOR 0x20u
#define ERROR_RECEIVED_ILLEGAL_VECTOR 0x40u
#define ERROR_ILLEGAL_REGISTER 0x80u

#define LAPIC_LINTS 2

/* 256 bits, one a vector, as ISR, IRR and TMR are read. */
struct lapic_vectors {
    uint32_t words[8];
};

struct lapic {
    /* Fixed after lapic_init. */
    struct apic_bus *bus;
    uint32_t index; /* of its vCPU; also its APIC id */
    struct machine_clock *clock;
    struct machine_timer timer;
    struct irq_source source;

    uint64_t base; /* IA32_APIC_BASE */
    uint32_t task_priority;
    uint32_t logical_destination;
    uint32_t destination_format;
    uint32_t spurious;
    uint32_t errors;     /* as last latched by a write */
    uint32_t new_errors; /* since then */
    uint64_t command;    /* ICR; in xAPIC mode two registers */
    uint32_t lvt[LVT_COUNT];
    struct lapic_vectors in_service;
    struct lapic_vectors requested;
    struct lapic_vectors level_triggered; /* TMR */
    bool pins[LAPIC_LINTS];

    /* The timer. */
    uint32_t initial_count;
    uint32_t divide;
    uint64_t deadline_ns;  /* when the count is 0 next; MACHINE_TIMER_OFF: stopped */
    uint64_t timer_ns;     /* what `timer` is set to */
    uint64_t tsc_deadline; /* IA32_TSC_DEADLINE; 0: not armed */
};

int lapic_init(struct lapic *lapic, struct apic_bus *bus, uint32_t index,
               struct machine_clock *clock, struct error *err) MUST_CHECK;
void lapic_finish(struct lapic *lapic); /* accepts an all-zero struct */
/* As firmware leaves it: virtual wire mode, LINT0 of vCPU 0 passes the 8259 on. */
void lapic_power_on(struct lapic *lapic);
/* All registers to their values after INIT or when it is switched off (10.4.7.1). */
void lapic_clear(struct lapic *lapic);

static inline bool lapic_is_on(const struct lapic *lapic)
{
    return (lapic->base & APIC_BASE_ENABLED) != 0;
}
static inline bool lapic_is_x2apic(const struct lapic *lapic)
{
    return (lapic->base & APIC_BASE_X2APIC) != 0;
}
/* On, and enabled by software: takes fixed interrupts. */
static inline bool lapic_is_enabled(const struct lapic *lapic)
{
    return lapic_is_on(lapic) && (lapic->spurious & SPURIOUS_ENABLED) != 0;
}

/* ---- lapic.c ---- */

/* Takes a message; false if it vanishes. */
bool lapic_deliver(struct lapic *lapic, const struct apic_message *message);
bool lapic_has_logical_id(const struct lapic *lapic, uint32_t destination);
/* LDR as it is read: the guest's own, or in x2APIC mode made from the id. */
uint32_t lapic_logical_destination(const struct lapic *lapic);
uint32_t lapic_processor_priority(const struct lapic *lapic); /* PPR */
/* An event of the local vector table, in the way the entry says. */
void lapic_raise_local(struct lapic *lapic, enum lapic_lvt entry);
void lapic_set_pin(struct lapic *lapic, unsigned pin, bool level); /* LINT0, LINT1 */
/* A LINT entry has changed: looks at the pin again. */
void lapic_update_pin(struct lapic *lapic, unsigned pin);
void lapic_report_error(struct lapic *lapic, uint32_t error);
void lapic_end_of_interrupt(struct lapic *lapic);
/* Tells the processor if there is something to acknowledge. */
void lapic_update(struct lapic *lapic);

/* ---- lapic_registers.c ---- */

extern const struct irq_source lapic_source; /* without its context */
/* Takes the next interrupt into service; -1: none. */
int lapic_take(struct lapic *lapic);

/* ---- lapic_timer.c ---- */

void lapic_timer_expired(void *lapic); /* what the timer calls; takes the lock */
void lapic_timer_set_initial(struct lapic *lapic, uint32_t count);
void lapic_timer_set_divide(struct lapic *lapic, uint32_t divide);
/* Raises what is due: the timer may come a little later than the guest, who must find the
 * timer as it is now before it changes it. */
void lapic_timer_settle(struct lapic *lapic);
/* The LVT entry had the mode bits `before`. */
void lapic_timer_mode_changed(struct lapic *lapic, uint32_t before);
void lapic_timer_stop(struct lapic *lapic);
/* A processor that halts waits by itself (struct irq_source). */
uint64_t lapic_timer_suspend(struct lapic *lapic);
void lapic_timer_resume(struct lapic *lapic);
uint32_t lapic_timer_current(const struct lapic *lapic);
void lapic_timer_set_deadline(struct lapic *lapic, uint64_t tsc);

#endif
