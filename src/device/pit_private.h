/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 8254: three counters at 1.193182 MHz. Counter 0 is interrupt line 0, counter 2 is
 * gated by and read through port 0x61, counter 1 (the memory refresh of old) only counts.
 * Sources: Intel 8254 data sheet (231164); IBM PS/2 Hardware Interface Technical
 * Reference (1988), "System Control Port B".
 *
 * Counts and outputs are computed from the time that has passed when somebody looks. A
 * new count takes effect at once, also where the chip would end a period first.
 *
 * Line 0 is the output of counter 0 in mode 0; in the others each interrupt is a short
 * low pulse. If the host wakes late, the periods that have passed meanwhile are one
 * interrupt, and the phase is kept.
 */
#ifndef HUSK_DEVICE_PIT_PRIVATE_H
#define HUSK_DEVICE_PIT_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/machine_clock.h"
#include "device/bus.h"

#define PIT_COUNTERS 3

struct pit_counter {
    uint8_t mode;   /* 0 to 5 */
    uint8_t access; /* 1: low byte, 2: high byte, 3: both, low first */
    bool decimal;
    bool gate;
    bool null_count; /* programmed, but no count since */
    uint32_t count;  /* 1 to 65536 (decimal: 10000) */
    bool running;    /* since start_ns; else it stands at `stood_at` */
    uint64_t start_ns;
    uint64_t stood_at; /* ticks behind the start */

    bool low_is_written; /* access 3: the high byte is next */
    uint8_t low_written;
    bool low_is_read;
    uint8_t latched_bytes; /* 0 to 2 still to be read */
    uint16_t latched;
    bool status_is_latched;
    uint8_t status;
};

struct pit {
    struct irq_line line; /* set before the first vCPU runs, as the next two */
    struct machine_clock *clock;
    struct machine_timer timer; /* of counter 0 */

    pthread_mutex_t lock; /* guards what follows */
    struct pit_counter counters[PIT_COUNTERS];
    uint64_t deadline_ns; /* of counter 0's next interrupt; MACHINE_TIMER_OFF: none */
    bool speaker;         /* port 0x61, bit 1 */
};

int pit_init(struct pit *pit, struct irq_line line, struct machine_clock *clock,
             struct error *err) MUST_CHECK;
void pit_finish(struct pit *pit); /* accepts an all-zero struct */
int pit_attach(struct pit *pit, struct bus *ports, struct error *err) MUST_CHECK;
void pit_reset(struct pit *pit); /* no vCPU runs */
void pit_expired(void *pit);     /* what the timer calls */

#endif
