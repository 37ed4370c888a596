/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PCI host bridge: bus 0 behind configuration mechanism #1 (PCI Local Bus 3.0,
 * section 3.2.2.3.2) and behind ECAM (PCI Express Base 3.0, section 7.2.2). Itself it is
 * function 00:00.0, unless somebody else (i440fx_private.h) shall be.
 *
 * It also holds the reset control register at port 0xcf9 (Intel ICH9 data sheet, section
 * 13.7.5), which lies inside the address register: that one is accessed as a double word
 * only, the other as a byte only, so one device must tell them apart.
 */
#ifndef HUSK_DEVICE_PCI_HOST_PRIVATE_H
#define HUSK_DEVICE_PCI_HOST_PRIVATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "device/bus.h"
#include "device/pci.h"

struct pci_host {
    struct pci_bus bus; /* set before the first vCPU runs */
    struct machine_requests requests;

    /* Each stands alone, so no order between them is needed. A guest that lets two vCPUs
     * race for the address gets either one's data, as on a PC. */
    _Atomic uint32_t address;
    _Atomic uint8_t reset_control;
};

/* From `wires` on: see pci_bus_init. */
void pci_host_init(struct pci_host *host, const struct machine_requests *requests,
                   const struct pci_wires *wires, uint64_t memory_end, bool has_homes);
void pci_host_add_bridge(struct pci_host *host); /* itself, as 00:00.0 */
int pci_host_attach(struct pci_host *host, struct bus *ports, struct bus *mmio,
                    struct error *err) MUST_CHECK;
void pci_host_reset(struct pci_host *host); /* no vCPU runs */

#endif
