/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IOAPIC: 24 pins, each with an entry that says where its interrupt goes. Source:
 * Intel 82093AA data sheet (290566), section 3.
 *
 * A pin is up when its device asks, whatever the polarity bit says (it is kept for the
 * guest to read): devices know no voltages. Entries for SMI and ExtINT are dead, as there
 * is no SMM and the 8259 is at LINT0.
 */
#ifndef HUSK_DEVICE_IOAPIC_PRIVATE_H
#define HUSK_DEVICE_IOAPIC_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/apic_bus_private.h"
#include "device/bus.h"
#include "x86/layout.h"

struct ioapic {
    struct apic_bus *bus; /* its lock guards what follows */
    uint32_t id;          /* register 0 */
    uint8_t selected;
    uint32_t levels; /* bit n: pin n is up */
    uint64_t entries[LAYOUT_IOAPIC_PINS];
};

void ioapic_init(struct ioapic *ioapic, struct apic_bus *apic_bus);
int ioapic_attach(struct ioapic *ioapic, struct bus *mmio, struct error *err) MUST_CHECK;

/* With the lock held. */
void ioapic_reset(struct ioapic *ioapic);
void ioapic_set_pin(struct ioapic *ioapic, unsigned pin, bool level);
/* A local APIC says that a level-triggered vector has ended. */
void ioapic_end_of_interrupt(struct ioapic *ioapic, uint8_t vector);

#endif
