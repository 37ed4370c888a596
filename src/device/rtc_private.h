/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PC's clock and CMOS memory: a MC146818 (ports 0x70 index, 0x71 data) with 128
 * bytes. Source: Motorola MC146818 data sheet (1984); the CMOS bytes beyond the chip's
 * own registers follow the IBM PC AT and its clones.
 *
 * The time is the machine clock's UTC plus what the guest has set. The time registers,
 * the update-in-progress bit and the flags of register C (periodic, alarm, update) are
 * computed when the guest looks. A timer runs only while an interrupt is enabled and has
 * not come yet: IRQ 8 then stays up until register C is read.
 *
 * The chip has a battery: time and bytes survive a machine reset.
 */
#ifndef HUSK_DEVICE_RTC_PRIVATE_H
#define HUSK_DEVICE_RTC_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/machine_clock.h"
#include "device/bus.h"

#define RTC_BYTES 128

struct rtc {
    struct machine_clock *clock; /* set before the first vCPU runs, as the next two */
    struct machine_timer timer;
    struct irq_line line;

    pthread_mutex_t lock; /* guards what follows */
    uint8_t index;
    uint8_t bytes[RTC_BYTES]; /* as the guest sees them; the time as of the last look */
    int64_t offset_seconds;   /* guest time minus the clock's */
    struct timespec checked;  /* guest time up to which `flags` is complete */
    uint8_t flags;            /* register C without its summary bit */
    bool level;               /* of the line */
};

/* `memory_bytes` is what the CMOS bytes say about RAM. */
int rtc_init(struct rtc *rtc, uint64_t memory_bytes, struct machine_clock *clock,
             struct irq_line line, struct error *err) MUST_CHECK;
void rtc_finish(struct rtc *rtc); /* accepts an all-zero struct */
int rtc_attach(struct rtc *rtc, struct bus *ports, struct error *err) MUST_CHECK;
void rtc_reset(struct rtc *rtc); /* the chip's RESET pin; no vCPU runs */
void rtc_expired(void *rtc);     /* what the timer calls */

#endif
