/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtio transport over PCI (virtio 1.2, section 4.1), modern only: a PCI function
 * whose BAR 0 has common configuration, ISR, device configuration and notifications, a
 * page each, and whose BAR 1 has the MSI-X table.
 */
#ifndef HUSK_VIRTIO_PCI_H
#define HUSK_VIRTIO_PCI_H

#include "device/pci_function.h"
#include "virtio/device.h"

#define VIRTIO_NO_VECTOR 0xffff /* 4.1.5.1.2 */

struct virtio_pci {
    struct pci_function function;
    struct virtio_device *device; /* borrowed */
    unsigned window;              /* offset of the PCI configuration access capability */

    /* Written under the device's lock, read on any thread. */
    _Atomic uint16_t config_vector;
    _Atomic uint16_t queue_vectors[VIRTIO_MAX_QUEUES];

    pthread_mutex_t isr_lock; /* of `isr` and the line that shows it */
    uint8_t isr;

    /* What the driver has selected; under the device's lock. */
    uint32_t device_feature_half;
    uint32_t driver_feature_half;
    uint16_t queue_select;
};

/* `class_code`: what kind of device PCI takes it for. `place` is the device number on the
 * bus. Resets are the bus's. */
void virtio_pci_attach(struct virtio_pci *pci, struct virtio_device *device,
                       uint32_t class_code, struct pci_bus *bus, unsigned place);
void virtio_pci_finish(struct virtio_pci *pci);

#endif
