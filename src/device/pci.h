/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PCI bus: which functions sit on it, and access to their configuration space. Source:
 * PCI Local Bus 3.0, chapter 6; PCI Express Base 3.0, section 7.2 (4096 bytes each).
 *
 * Threads: functions are attached before the first vCPU runs; configuration accesses come
 * from any vCPU thread, so each function takes its own lock.
 */
#ifndef HUSK_DEVICE_PCI_H
#define HUSK_DEVICE_PCI_H

#include <stdint.h>

#define PCI_CONFIG_BYTES 4096
#define PCI_BUS_FUNCTIONS 256

/* `offset` is below PCI_CONFIG_BYTES, `size` is 1, 2 or 4, and the access lies in one
 * aligned double word. */
struct pci_function_ops {
    uint32_t (*config_read)(void *function, uint32_t offset, unsigned size);
    void (*config_write)(void *function, uint32_t offset, unsigned size, uint32_t value);
};

struct pci_slot {
    const struct pci_function_ops *ops; /* NULL: nobody there */
    void *function;
};

struct pci_bus {
    struct pci_slot slots[PCI_BUS_FUNCTIONS]; /* by device * 8 + function */
};

/* `device` is 0 to 31, `number` 0 to 7, and the place is free. */
void pci_bus_attach(struct pci_bus *bus, unsigned device, unsigned number,
                    const struct pci_function_ops *ops, void *function);

/* `slot` is device * 8 + function. An access that crosses a double word is done byte by
 * byte. Where nobody is, reads give all ones and writes vanish. */
uint32_t pci_bus_read(const struct pci_bus *bus, unsigned slot, uint32_t offset,
                      unsigned size);
void pci_bus_write(const struct pci_bus *bus, unsigned slot, uint32_t offset,
                   unsigned size, uint32_t value);

#endif
