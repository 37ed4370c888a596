/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PCI bus: which functions sit on it, access to their configuration space and to their
 * memory, and the wires of their interrupts. Source: PCI Local Bus 3.0, chapter 6; PCI
 * Express Base 3.0, section 7.2 (4096 bytes each).
 *
 * Memory lies in windows: two below 4 GiB, of which one is there for firmware, and one
 * above RAM, which 64-bit registers alone can name.
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
    /* `sender` numbers the vectors of all functions from 0 on: who keeps something for
     * each can. */
    void (*send_message)(void *context, unsigned sender, uint64_t address, uint32_t data);
    /* A short cut, both NULL where there is none: from now on, until it is detached, what
     * the guest writes to `address` may signal eventfd `fd` without coming to the bus.
     * False: it comes as before. `fd` is borrowed. */
    bool (*attach_doorbell)(void *context, uint64_t address, int fd);
    void (*detach_doorbell)(void *context, uint64_t address, int fd);
    void *context;
};

/* What a base address register says of its memory, in its own bits (6.2.5.1). What can be
 * prefetched is large memory without registers. */
enum pci_bar_kind {
    PCI_BAR_32_BIT = 0x0,
    PCI_BAR_64_BIT = 0x4,
    PCI_BAR_64_BIT_PREFETCHABLE = 0xc,
};

/* Memory of a function behind a base address register. The guest moves it at any time,
 * on another vCPU than the one that accesses it; an access goes where it was found. */
struct pci_bar {
    const struct bus_ops
        *ops; /* NULL: this register is not there, or a 64-bit one's upper */
    void *device;
    enum pci_bar_kind kind;
    uint64_t size_bytes; /* a power of two, at least 16 */
    uint64_t home;       /* where it is after a reset; 0: nowhere, firmware places it */
    _Atomic uint64_t start; /* PCI_BAR_OFF: nowhere */
};
#define PCI_BAR_OFF UINT64_MAX

#define PCI_BUS_BARS 64
#define PCI_BUS_LINES 8 /* as LAYOUT_PCI_GSI has them */

/* Addresses that belong to the bus: an access goes to the BAR that holds all of it.
 * Overlapping BARs are the guest's mistake: one of them answers. */
struct pci_window {
    const struct pci_bus *bus;
    uint64_t start;
    uint64_t limit;
    uint64_t next_home; /* above this, the window is free */
};
enum pci_window_number {
    PCI_WINDOW_LOW,
    PCI_WINDOW_FIRMWARE,
    PCI_WINDOW_HIGH,
    PCI_WINDOWS,
};

struct pci_bus {
    struct pci_slot slots[PCI_BUS_FUNCTIONS]; /* by device * 8 + function */
    struct pci_wires wires;
    struct pci_bar *bars[PCI_BUS_BARS];
    size_t bar_count;
    struct pci_window windows[PCI_WINDOWS];
    bool has_homes; /* nobody will place BARs, so they have a place from the start */
    unsigned next_sender; /* vectors that are attached, and the number of the next */

    pthread_mutex_t lines_lock;
    uint8_t raised_by[PCI_BUS_LINES]; /* functions that hold the line up */
};

/* The upper window lies above `memory_end`, where the guest's memory ends. `has_homes`:
 * BARs are placed at each reset, as firmware would do. */
void pci_bus_init(struct pci_bus *bus, const struct pci_wires *wires, uint64_t memory_end,
                  bool has_homes);
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

/* All windows. */
int pci_bus_attach_windows(struct pci_bus *bus, struct bus *mmio,
                           struct error *err) MUST_CHECK;

/* `bar` answers in the bus's windows from now on, wherever its start says. */
void pci_bus_attach_bar(struct pci_bus *bus, struct pci_bar *bar);
/* Whether an access to `offset` of `bar` would come to it, and not to another, or to
 * nobody. */
bool pci_bus_reaches(const struct pci_bus *bus, const struct pci_bar *bar,
                     uint64_t offset);

/* One function more, or one less, holds up a line that several share. `pin` is 0 to 3. */
void pci_bus_change_line(struct pci_bus *bus, unsigned slot, unsigned pin, bool level);

#endif
