/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixed hardware of ACPI that switches a machine off: PM1a event and control blocks,
 * the power button, and the PM timer. Source: ACPI 6.4, sections 4.8.3.1 to 4.8.3.3.
 *
 * There is no legacy mode: SCI_EN always reads 1. Sleep states other than S5 do nothing.
 * The timer's overflow status (TMR_STS) is never set; kernels that read the timer as a
 * clock do not need it.
 */
#ifndef HUSK_DEVICE_ACPI_POWER_PRIVATE_H
#define HUSK_DEVICE_ACPI_POWER_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/machine_clock.h"
#include "device/bus.h"

struct acpi_power {
    struct irq_line sci; /* set before the first vCPU runs, as the next two */
    struct machine_requests requests;
    const struct machine_clock *clock;

    pthread_mutex_t lock; /* guards what follows */
    uint16_t status;
    uint16_t enable;
    uint16_t control;
    bool sci_level;
};

void acpi_power_init(struct acpi_power *power, struct irq_line sci,
                     const struct machine_requests *requests,
                     const struct machine_clock *clock);
int acpi_power_attach(struct acpi_power *power, struct bus *ports,
                      struct error *err) MUST_CHECK;
void acpi_power_reset(struct acpi_power *power); /* no vCPU runs */

/* Any thread. False if the guest has not enabled the button's event. */
bool acpi_power_press_button(struct acpi_power *power);

#endif
