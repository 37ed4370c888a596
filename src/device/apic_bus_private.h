/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wires between local APICs, IOAPIC, 8259 and processors: messages find their
 * destinations here (SDM 10.6.2), and the end of a level-triggered interrupt its IOAPIC.
 *
 * Everything here and in lapic, ioapic and pic is under one lock, since a message may
 * touch them all: a local APIC's command goes to other local APICs, an end of interrupt
 * to the IOAPIC and from there to any local APIC. Functions that say nothing else expect
 * it held; those that guests reach (irq_source, bus) take it.
 */
#ifndef HUSK_DEVICE_APIC_BUS_PRIVATE_H
#define HUSK_DEVICE_APIC_BUS_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/irqchip.h"

struct ioapic;
struct lapic;
struct pic;

/* SDM 10.6.1, the delivery mode field of commands, redirection entries and messages. */
enum apic_delivery {
    APIC_FIXED = 0,
    APIC_LOWEST_PRIORITY = 1,
    APIC_SMI = 2,
    APIC_NMI = 4,
    APIC_INIT = 5,
    APIC_STARTUP = 6,
    APIC_EXTERNAL = 7,
};

/* An interrupt on its way. */
struct apic_message {
    uint32_t destination; /* APIC id, or logical destination */
    bool broadcast;       /* the sender's "all", which depends on its width */
    bool logical;
    enum apic_delivery delivery;
    bool level; /* trigger mode */
    uint8_t vector;
    const struct lapic *except; /* "all but self": its sender; NULL */
};

struct apic_bus {
    pthread_mutex_t lock;
    uint32_t count;
    struct lapic *lapics; /* by vCPU */
    struct ioapic *ioapic;
    struct pic *pic;
    struct irqchip_processors processors; /* `event` NULL: not connected */
    uint32_t last_receiver;               /* of a lowest-priority message */
};

/* Gives the message to all it means. Returns how many have taken it. */
unsigned apic_bus_send(struct apic_bus *bus, const struct apic_message *message);

/* The interrupt output of the 8259 pair, which is every local APIC's LINT0. */
void apic_bus_external(void *bus, uint32_t line, bool level);

/* Tells a processor, if it is connected. */
void apic_bus_event(const struct apic_bus *bus, uint32_t cpu_index, enum irq_event event,
                    uint8_t vector);

#endif
