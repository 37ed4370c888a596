/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PC around the processors: one struct that creates, attaches and resets all chipset
 * devices (uart, i8042, rtc, ACPI power, PCI host bridge, debug ports, HPET). The
 * interrupt controllers and the 8254 are not among them, nor is port 0x61, whose bits are
 * the 8254's gate and output: an accelerator may have them, else irqchip.h has.
 */
#ifndef HUSK_DEVICE_CHIPSET_H
#define HUSK_DEVICE_CHIPSET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/machine_clock.h"
#include "device/bus.h"
#include "device/pci.h"

struct chipset;

/* Where a guest's characters go. Called on vCPU threads with no lock held; must not
 * block. */
struct byte_sink {
    void (*write)(void *context, const uint8_t *bytes, size_t size);
    void *context;
};

struct chipset_options {
    struct machine_clock *clock; /* borrowed */
    uint64_t memory_bytes;       /* what CMOS reports */
    uint64_t memory_end;         /* above it, addresses are free for PCI */
    bool firmware;               /* PCI has the bridges that PC firmware looks for */
    bool serial;                 /* false: COM1 answers as an idle UART that discards */
    struct byte_sink console;    /* unused without `serial` */
    struct byte_sink debug_console; /* ports 0xe9, 0x402; write NULL: none */
    uint16_t debug_exit_port;       /* first of four ports; 0: none */
    bool test_device;               /* what test suites expect (test_device_private.h) */
    /* A LAYOUT_IRQ_* line. Lock order as struct irq_line says: never calls back. */
    void (*set_irq)(void *context, uint32_t line, bool level);
    bool hpet; /* there is a High Precision Event Timer */
    /* The 8254 drives its line, or the HPET does instead. Same lock order; NULL: the
     * HPET cannot replace it. */
    void (*replace_timer)(void *context, bool replaced);
    /* As struct pci_wires has them. */
    void (*send_message)(void *context, unsigned sender, uint64_t address, uint32_t data);
    bool (*attach_doorbell)(void *context, uint64_t address, int fd);
    void (*detach_doorbell)(void *context, uint64_t address, int fd);
    void *irq_context; /* of these five */
    struct machine_requests requests;
};

/* Creates the devices and attaches them to both buses. After a failure the buses may
 * point at devices that are gone: give them up too. */
int chipset_create(const struct chipset_options *options, struct bus *ports,
                   struct bus *mmio, struct chipset **chipset,
                   struct error *err) MUST_CHECK;
void chipset_destroy(struct chipset *chipset); /* accepts NULL */

/* All devices to their power-on state, but for what a battery keeps: the clock's time and
 * the CMOS bytes. Lines that were up go down. No vCPU runs. */
void chipset_reset(struct chipset *chipset);

/* Console input. Takes as many bytes as the UART has room for, returns that count: 0
 * until the guest listens (it has enabled receive interrupts, or polls for input), so
 * that nothing is lost while it boots. Without `serial` all is taken and dropped. Any
 * thread.
 */
size_t chipset_console_input(struct chipset *chipset, const uint8_t *bytes, size_t size);

/* `drained` is called (on a vCPU thread, with no lock held) when the guest has made room
 * after a short input: once, until the next short input. Set before the first vCPU runs.
 */
void chipset_on_console_room(struct chipset *chipset, void (*drained)(void *context),
                             void *context);

/* A serial break condition, as Ctrl-A b sends it. Any thread. */
void chipset_console_break(struct chipset *chipset);

/* Presses the ACPI power button. Any thread. False if the guest has not enabled it:
 * nobody reacts now (the press stays recorded, as on hardware). */
bool chipset_power_button(struct chipset *chipset);

/* Bus 0, for functions that others bring: attach them before the first vCPU runs. */
struct pci_bus *chipset_pci_bus(struct chipset *chipset);

/* Bytes through COM1, for `stat`. Any thread. */
struct chipset_counters {
    uint64_t console_bytes_out;
    uint64_t console_bytes_in;
};
void chipset_counters(const struct chipset *chipset, struct chipset_counters *counters);

#endif
