/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PCI bus: which functions sit on it, access to their configuration space and to their
 * memory, and the wires of their interrupts. Source: PCI Local Bus 3.0, chapter 6; PCI
 * Express Base 3.0, section 7.2 (4096 bytes each).
 *
 * Threads: functions are attached before the first vCPU runs; accesses come from any vCPU
 * thread, so each function takes its own lock.
 */
#ifndef HUSK_DEVICE_PCI_H
#define HUSK_DEVICE_PCI_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/bus.h"

#define PCI_CONFIG_BYTES 4096
#define PCI_BUS_FUNCTIONS 256

/* `offset` is below PCI_CONFIG_BYTES, `size` is 1, 2 or 4, and the access lies in one
 * aligned double word. */
struct pci_function_ops {
    uint32_t (*config_read)(void *function, uint32_t offset, unsigned size);
    void (*config_write)(void *function, uint32_t offset, unsigned size, uint32_t value);
    void (*reset)(void *function); /* no vCPU runs; NULL: somebody else does that */
};

struct pci_slot {
    const struct pci_function_ops *ops; /* NULL: nobody there */
    void *function;
};

/* Where the interrupts of all functions go. Lock order as struct irq_line says: called
 * with a function's lock held, never calls back. */
struct pci_wires {
    void (*set_line)(void *context, uint32_t line, bool level);
    void (*send_message)(void *context, uint64_t address, uint32_t data);
    void *context;
};

/* Memory of a function behind a base address register. The guest moves it at any time,
 * on another vCPU than the one that accesses it; an access goes where it was found. */
struct pci_bar {
    const struct bus_ops *ops; /* NULL: this register is not there */
    void *device;
    uint32_t size_bytes; /* a power of two, at least 16 */
    uint64_t home;       /* where it is after a reset; 0: nowhere, firmware places it */
    _Atomic uint64_t start; /* PCI_BAR_OFF: nowhere */
};
#define PCI_BAR_OFF UINT64_MAX

#define PCI_BUS_BARS 64
#define PCI_BUS_LINES 8 /* as LAYOUT_PCI_GSI has them */

struct pci_bus {
    struct pci_slot slots[PCI_BUS_FUNCTIONS]; /* by device * 8 + function */
    struct pci_wires wires;
    struct pci_bar *bars[PCI_BUS_BARS];
    size_t bar_count;
    bool has_homes;     /* nobody will place BARs, so they have a place from the start */
    uint64_t next_home; /* above this, the window is free */

    pthread_mutex_t lines_lock;
    uint8_t raised_by[PCI_BUS_LINES]; /* functions that hold the line up */
};

/* `has_homes`: BARs are placed at each reset, as firmware would do. */
void pci_bus_init(struct pci_bus *bus, const struct pci_wires *wires, bool has_homes);
void pci_bus_reset(struct pci_bus *bus); /* no vCPU runs */

/* `device` is 0 to 31, `number` 0 to 7, and the place is free. */
void pci_bus_attach(struct pci_bus *bus, unsigned device, unsigned number,
                    const struct pci_function_ops *ops, void *function);

/* `slot` is device * 8 + function. An access that crosses a double word is done byte by
 * byte. Where nobody is, reads give all ones and writes vanish. */
uint32_t pci_bus_read(const struct pci_bus *bus, unsigned slot, uint32_t offset,
                      unsigned size);
void pci_bus_write(const struct pci_bus *bus, unsigned slot, uint32_t offset,
                   unsigned size, uint32_t value);

/* `bar` answers in the bus's 32-bit window from now on, wherever its start says. */
void pci_bus_attach_bar(struct pci_bus *bus, struct pci_bar *bar);

/* The window's own device: an access goes to the BAR that holds all of it. Overlapping
 * BARs are the guest's mistake: one of them answers. */
extern const struct bus_ops pci_window_ops; /* device: struct pci_bus */

/* One function more, or one less, holds up a line that several share. `pin` is 0 to 3. */
void pci_bus_change_line(struct pci_bus *bus, unsigned slot, unsigned pin, bool level);

#endif
