/* SPDX-License-Identifier: Apache-2.0 */
/* A virtio device on a PCI bus, driven as a guest drives it: by reads and writes. */
#ifndef HUSK_TESTS_VIRTIO_PCI_FIXTURE_H
#define HUSK_TESTS_VIRTIO_PCI_FIXTURE_H

#include "driver.h"

#include "virtio/pci.h"

#define PLACE 3
#define LINE 19
#define BAR UINT64_C(0xc0000000)
#define ISR (BAR + 0x1000)
#define CONFIG (BAR + 0x2000)
#define NOTIFY (BAR + 0x3000)
#define MSIX (BAR + 0x4000)

/* Common configuration. */
#define DEVICE_FEATURE_SELECT (BAR + 0x00)
#define DEVICE_FEATURE (BAR + 0x04)
#define DRIVER_FEATURE_SELECT (BAR + 0x08)
#define DRIVER_FEATURE (BAR + 0x0c)
#define CONFIG_VECTOR (BAR + 0x10)
#define QUEUE_COUNT (BAR + 0x12)
#define STATUS (BAR + 0x14)
#define GENERATION (BAR + 0x15)
#define QUEUE_SELECT (BAR + 0x16)
#define QUEUE_SIZE (BAR + 0x18)
#define QUEUE_VECTOR (BAR + 0x1a)
#define QUEUE_ENABLE (BAR + 0x1c)
#define QUEUE_NOTIFY_OFFSET (BAR + 0x1e)
#define QUEUE_DESCRIPTORS (BAR + 0x20)
#define QUEUE_AVAILABLE (BAR + 0x28)
#define QUEUE_USED (BAR + 0x30)
#define QUEUE_RESET (BAR + 0x3a)

struct guest {
    struct memory *memory;
    struct pci_bus bus;
    struct bus mmio;
    struct virtio_pci pci;
    _Atomic bool level; /* a device may interrupt on a thread of its own */
    unsigned messages;
    uint32_t message_data;
};

/* Bus and memory; then the device, which must live as long. */
void guest_init(struct guest *guest);
void guest_attach(struct guest *guest, struct virtio_device *device, uint32_t class_code);
void guest_finish(struct guest *guest);

uint32_t guest_read(struct guest *guest, uint64_t address, unsigned size);
void guest_write(struct guest *guest, uint64_t address, unsigned size, uint32_t value);

/* The device's configuration space. */
uint32_t guest_config_read(struct guest *guest, uint32_t offset, unsigned size);
void guest_config_write(struct guest *guest, uint32_t offset, unsigned size,
                        uint32_t value);

/* From reset to DRIVER_OK with `features`, queue 0 at driver.h's place. */
void guest_start_driver(struct guest *guest, uint64_t features);
void guest_set_features(struct guest *guest, uint64_t features);
void guest_place_queue(struct guest *guest, uint16_t queue);

#endif
