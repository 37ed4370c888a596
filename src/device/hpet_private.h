/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The High Precision Event Timer: a 64-bit counter at 100 MHz and three comparators, each
 * one-shot or periodic. Source: IA-PC HPET Specification, revision 1.0a; section numbers
 * are those of it.
 *
 * The counter is computed from the time when somebody looks; one timer runs towards the
 * earliest comparator that may interrupt. If the host wakes late, the periods that have
 * passed meanwhile are one interrupt, and the phase is kept.
 *
 * While the guest asks for legacy replacement, comparator 0 has the interrupt line of the
 * 8254 and comparator 1 that of the RTC, and those chips have none. The RTC's line goes
 * through here for that; the 8254 is elsewhere, and its owner is told. An accelerator
 * that has an 8254 of its own cannot take it off its line: then the capability is
 * missing.
 */
#ifndef HUSK_DEVICE_HPET_PRIVATE_H
#define HUSK_DEVICE_HPET_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/machine_clock.h"
#include "device/bus.h"

#define HPET_TIMERS 3

struct hpet_options {
    struct machine_clock *clock; /* borrowed */
    /* A LAYOUT_IRQ_* line. Lock order as struct irq_line says. */
    void (*set_irq)(void *context, uint32_t line, bool level);
    /* From now on the 8254 drives its line, or not. The same lock order; NULL: it always
     * does, so there is no legacy replacement. */
    void (*replace_timer)(void *context, bool replaced);
    void *irq_context; /* of both */
};

struct hpet_timer {
    uint64_t config;     /* the bits that the guest can set */
    uint64_t comparator; /* the accumulator of 2.3.9.2.2 */
    uint64_t period;     /* 0: none as yet */
};

struct hpet {
    struct hpet_options options; /* set before the first vCPU runs, as the timer */
    struct machine_timer timer;

    pthread_mutex_t lock; /* guards what follows */
    uint64_t config;
    uint64_t status;     /* of level-triggered comparators, a bit each */
    uint64_t base;       /* the counter at start_ns, or where it stands */
    uint64_t start_ns;   /* while it runs */
    uint64_t checked;    /* the counter up to which matches have been dealt with */
    uint32_t levels;     /* lines that are up because of us */
    bool is_replacement; /* comparators 0 and 1 have the lines of 8254 and RTC */
    bool rtc_level;      /* what the RTC drives */
    struct hpet_timer timers[HPET_TIMERS];
};

int hpet_init(struct hpet *hpet, const struct hpet_options *options,
              struct error *err) MUST_CHECK;
void hpet_finish(struct hpet *hpet); /* accepts an all-zero struct */
int hpet_attach(struct hpet *hpet, struct bus *mmio, struct error *err) MUST_CHECK;
void hpet_reset(struct hpet *hpet); /* no vCPU runs */
void hpet_expired(void *hpet);      /* what the timer calls */

/* As struct irq_line calls it: what the RTC drives. */
void hpet_set_rtc_line(void *hpet, uint32_t line, bool level);

#endif
