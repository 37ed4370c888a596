/* SPDX-License-Identifier: Apache-2.0 */
/* A device's way to be called at a time of clock_monotonic_ns: whoever made the device
 * has the timers. Setting it takes no lock, so a device may hold its own. */
#ifndef HUSK_DEVICE_ALARM_H
#define HUSK_DEVICE_ALARM_H

#include <stdint.h>

/* No time at all. */
#define ALARM_OFF UINT64_MAX

struct alarm {
    void (*set)(void *context, uint64_t deadline_ns); /* replaces the earlier one */
    void *context;
};

static inline void alarm_set(const struct alarm *alarm, uint64_t deadline_ns)
{
    alarm->set(alarm->context, deadline_ns);
}

#endif
