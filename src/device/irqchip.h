/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PC's interrupt controllers and interval timer, for accelerators that have none: a
 * local APIC for each vCPU, an IOAPIC, two 8259 and the 8254 with port 0x61.
 *
 * Interrupt lines are numbered as the MADT says (LAYOUT_IRQ_*): lines 0 to 15 reach the
 * 8259 of the same number and, but for the timer (pin 2) and the cascade (none), the
 * IOAPIC pin of the same number; 16 to 23 the IOAPIC only. The 8259's output is LINT0 of
 * every local APIC.
 *
 * Nothing runs while no timer is set: time is computed when somebody looks.
 */
#ifndef HUSK_DEVICE_IRQCHIP_H
#define HUSK_DEVICE_IRQCHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/machine_clock.h"
#include "device/bus.h"
#include "x86/irq_source.h"

struct irqchip;

/* What the processors offer. Called on any thread with the controllers' lock held: these
 * must not call back. */
struct irqchip_processors {
    void (*event)(void *context, uint32_t cpu_index, enum irq_event event,
                  uint8_t vector);
    /* Until the vCPU's time-stamp counter has reached `tsc`; 0: it has. */
    uint64_t (*ns_until_tsc)(void *context, uint32_t cpu_index, uint64_t tsc);
    void *context;
};

struct irqchip_options {
    uint32_t cpu_count;
    struct machine_clock *clock; /* borrowed */
};

/* Creates the devices and attaches them to both buses, with no processors connected.
 * After a failure the buses may point at devices that are gone: give them up too. */
int irqchip_create(const struct irqchip_options *options, struct bus *ports,
                   struct bus *mmio, struct irqchip **irqchip,
                   struct error *err) MUST_CHECK;
void irqchip_destroy(struct irqchip *irqchip); /* the loop's thread; accepts NULL */

/* From now on `processors` are told of interrupts; NULL: none, and when this returns no
 * call into the earlier ones goes on. */
void irqchip_connect(struct irqchip *irqchip,
                     const struct irqchip_processors *processors);

/* Power-on state, all lines down. No vCPU runs and no processors are connected. */
void irqchip_reset(struct irqchip *irqchip);

/* The local APIC of a vCPU, valid as long as the irqchip. */
const struct irq_source *irqchip_source(struct irqchip *irqchip, uint32_t cpu_index);

/* As struct irq_line and chipset_options call it: line `gsi` to `level`. A line that does
 * not exist is ignored. Any thread. */
void irqchip_set_line(void *irqchip, uint32_t gsi, bool level);

/* From now on the 8254's output reaches its line, or not: something else has that line.
 * Any thread. */
void irqchip_replace_timer(struct irqchip *irqchip, bool replaced);

/* A message-signalled interrupt, as a device writes it to memory (SDM 10.11). Any thread.
 */
void irqchip_signal_msi(struct irqchip *irqchip, uint64_t address, uint32_t data);

#endif
