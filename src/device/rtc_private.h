/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PC's clock and CMOS memory: a MC146818 (ports 0x70 index, 0x71 data) with 128
 * bytes. Source: Motorola MC146818 data sheet (1984); the CMOS bytes beyond the chip's
 * own registers follow the IBM PC AT and its clones.
 *
 * The time is the host's UTC plus what the guest has set. No thread and no timer stand
 * behind it: the time registers, the update-in-progress bit and the flags of register C
 * (periodic, alarm, update) are computed when the guest looks. So the chip is complete
 * for polling; it raises no interrupt, and IRQ 8 stays quiet.
 *
 * The chip has a battery: time and bytes survive a machine reset.
 */
#ifndef HUSK_DEVICE_RTC_PRIVATE_H
#define HUSK_DEVICE_RTC_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "device/bus.h"

#define RTC_BYTES 128

struct rtc {
    struct timespec (*host_time)(void); /* UTC, since 1970; any thread */

    pthread_mutex_t lock; /* guards what follows */
    uint8_t index;
    uint8_t bytes[RTC_BYTES]; /* as the guest sees them; the time as of the last look */
    int64_t offset_seconds;   /* guest time minus host time */
    struct timespec checked;  /* guest time up to which `flags` is complete */
    uint8_t flags;            /* register C without its summary bit */
};

/* `memory_bytes` is what the CMOS bytes say about RAM. */
void rtc_init(struct rtc *rtc, uint64_t memory_bytes, struct timespec (*host_time)(void));
int rtc_attach(struct rtc *rtc, struct bus *ports, struct error *err) MUST_CHECK;
void rtc_reset(struct rtc *rtc); /* the chip's RESET pin; no vCPU runs */

#endif
