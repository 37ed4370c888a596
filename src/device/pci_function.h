/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ordinary PCI functions have in common: configuration space with the bits that can
 * be written, memory BARs, capabilities, the interrupt pin, MSI-X. Section numbers are
 * those of PCI Local Bus 3.0.
 *
 * Configuration space has 256 bytes; the rest of an ECAM page reads 0.
 *
 * Threads: set-up (_init, _add_*, _attach) and reset while no vCPU runs, all else on any
 * thread. The function's lock is the innermost but for the wires of its bus.
 */
#ifndef HUSK_DEVICE_PCI_FUNCTION_H
#define HUSK_DEVICE_PCI_FUNCTION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/pci.h"

#define PCI_FUNCTION_BYTES 256
#define PCI_FUNCTION_BARS 6
#define PCI_MSIX_VECTORS 64 /* the most that husk's devices need */
#define PCI_FUNCTION_DOORBELLS 16

struct pci_identity {
    uint16_t vendor;
    uint16_t device;
    uint32_t class_code; /* 24 bits: base class, subclass, interface */
    uint8_t revision;
    uint16_t subsystem_vendor;
    uint16_t subsystem;
};

struct pci_msix_entry { /* 6.8.2.6 to 6.8.2.9 */
    uint32_t address_low;
    uint32_t address_high;
    uint32_t data;
    uint32_t control;
};

struct pci_msix {
    unsigned capability; /* its offset; 0: the function has none */
    unsigned vector_count;
    unsigned first_sender; /* the number of vector 0 on its bus */
    struct pci_msix_entry table[PCI_MSIX_VECTORS];
    uint64_t pending; /* a bit a vector */
};

/* A place in a BAR where writes do nothing but signal an eventfd. */
struct pci_doorbell {
    const struct pci_bar *bar; /* NULL: nothing is attached */
    uint64_t address;          /* where it is attached */
    int fd;
};

struct pci_function {
    struct pci_bus *bus;
    unsigned slot; /* device * 8 + number */
    uint8_t at_reset[PCI_FUNCTION_BYTES];
    uint8_t writable[PCI_FUNCTION_BYTES]; /* bits */
    unsigned capabilities_end;
    unsigned last_link; /* the byte that will point at the next capability */
    struct pci_bar bars[PCI_FUNCTION_BARS];

    pthread_mutex_t lock; /* of all below */
    uint8_t config[PCI_FUNCTION_BYTES];
    bool wants_line; /* the device's wish; the pin follows if nothing forbids it */
    bool pin_is_up;
    struct pci_msix msix;
    struct pci_doorbell doorbells[PCI_FUNCTION_DOORBELLS];
};

/* In this order: init, adds, attach. */
void pci_function_init(struct pci_function *function,
                       const struct pci_identity *identity);
/* One of 64 bits takes register `index` + 1, too. */
void pci_function_add_bar(struct pci_function *function, unsigned index,
                          enum pci_bar_kind kind, uint64_t size_bytes,
                          const struct bus_ops *ops, void *device);
/* `bytes` begins with the capability's id; the link behind it is filled in. Returns the
 * offset. */
unsigned pci_function_add_capability(struct pci_function *function, const void *bytes,
                                     unsigned size);
void pci_function_let_write(struct pci_function *function, unsigned offset,
                            unsigned size);
/* Table and pending bits get BAR `bar` to themselves. */
void pci_function_add_msix(struct pci_function *function, unsigned bar,
                           unsigned vector_count);
/* `ops` are pci_function_ops or the device's own, with `owner` as their function: these
 * call pci_function_read, _write and _reset. */
void pci_function_attach(struct pci_function *function, struct pci_bus *bus,
                         unsigned device, unsigned number,
                         const struct pci_function_ops *ops, void *owner);
void pci_function_finish(struct pci_function *function);

uint32_t pci_function_read(struct pci_function *function, uint32_t offset, unsigned size);
void pci_function_write(struct pci_function *function, uint32_t offset, unsigned size,
                        uint32_t value);
void pci_function_reset(struct pci_function *function);

/* Whether it may access memory (bus master, 6.2.2). */
bool pci_function_is_master(struct pci_function *function);

/* What the device wants of its interrupt pin INTA. It stays low while the command
 * register or MSI-X has it so. */
void pci_function_set_line(struct pci_function *function, bool level);

/* The guest has written to `offset` of BAR `bar`, where a write does nothing but signal
 * eventfd `fd`, which the caller has done: if the machine has a short cut, later writes
 * need not come here. That begins with the first write, so that a doorbell that nobody
 * uses costs nothing, and ends when the BAR moves. `index` numbers the function's
 * doorbells. */
void pci_function_take_short_cut(struct pci_function *function, unsigned index,
                                 unsigned bar, uint64_t offset, int fd);

/* MSI-X. Masked, or while the function may not access memory, a message waits. A vector
 * that is not there, or MSI-X that is off: nothing happens. */
bool pci_function_uses_msix(struct pci_function *function);
void pci_function_send(struct pci_function *function, unsigned vector);

#endif
