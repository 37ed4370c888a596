/* SPDX-License-Identifier: Apache-2.0 */
/* A guest that drives a virtio device; see pci_fixture.h. */
#include "pci_fixture.h"

#include "base/check.h"

static void note_line(void *context, uint32_t line, bool level)
{
    struct guest *guest = context;

    assert_int_equal(line, LINE);
    guest->level = level;
}

static void note_message(void *context, unsigned sender, uint64_t address, uint32_t data)
{
    struct guest *guest = context;

    (void)sender;
    assert_int_equal(address, 0xfee00000);
    guest->messages++;
    guest->message_data = data;
}

void guest_init(struct guest *guest)
{
    const struct pci_wires wires = {
        .set_line = note_line, .send_message = note_message, .context = guest};
    struct error err = ERROR_NONE;

    *guest = (struct guest){.memory = driver_memory()};
    pci_bus_init(&guest->bus, &wires, 2 * MIB, true);
    bus_init(&guest->mmio, "MMIO");
    CHECK(pci_bus_attach_windows(&guest->bus, &guest->mmio, &err) == 0);
}

void guest_attach(struct guest *guest, struct virtio_device *device, uint32_t class_code)
{
    virtio_pci_attach(&guest->pci, device, class_code, &guest->bus, PLACE);
    guest_config_write(guest, 0x04, 2, 0x0006); /* memory, bus master */
}

void guest_finish(struct guest *guest)
{
    virtio_pci_finish(&guest->pci);
    memory_destroy(guest->memory);
}

uint32_t guest_read(struct guest *guest, uint64_t address, unsigned size)
{
    return (uint32_t)bus_read(&guest->mmio, address, size);
}

void guest_write(struct guest *guest, uint64_t address, unsigned size, uint32_t value)
{
    bus_write(&guest->mmio, address, size, value);
}

uint32_t guest_config_read(struct guest *guest, uint32_t offset, unsigned size)
{
    return pci_bus_read(&guest->bus, PLACE * 8, offset, size);
}

void guest_config_write(struct guest *guest, uint32_t offset, unsigned size,
                        uint32_t value)
{
    pci_bus_write(&guest->bus, PLACE * 8, offset, size, value);
}

void guest_set_features(struct guest *guest, uint64_t features)
{
    guest_write(guest, STATUS, 1, 0);
    guest_write(guest, STATUS, 1, VIRTIO_STATUS_ACKNOWLEDGE);
    guest_write(guest, STATUS, 1, VIRTIO_STATUS_ACKNOWLEDGE | VIRTIO_STATUS_DRIVER);
    for (uint32_t half = 0; half < 2; half++) {
        guest_write(guest, DRIVER_FEATURE_SELECT, 4, half);
        guest_write(guest, DRIVER_FEATURE, 4, (uint32_t)(features >> (32 * half)));
    }
    guest_write(guest, STATUS, 1, 0x0b);
}

void guest_place_queue(struct guest *guest, uint16_t queue)
{
    guest_write(guest, QUEUE_SELECT, 2, queue);
    guest_write(guest, QUEUE_SIZE, 2, RING_SIZE);
    guest_write(guest, QUEUE_DESCRIPTORS, 4, RING_DESCRIPTORS);
    guest_write(guest, QUEUE_DESCRIPTORS + 4, 4, 0);
    guest_write(guest, QUEUE_AVAILABLE, 4, RING_AVAILABLE);
    guest_write(guest, QUEUE_AVAILABLE + 4, 4, 0);
    guest_write(guest, QUEUE_USED, 4, RING_USED);
    guest_write(guest, QUEUE_USED + 4, 4, 0);
    guest_write(guest, QUEUE_ENABLE, 2, 1);
}

void guest_start_driver(struct guest *guest, uint64_t features)
{
    guest_set_features(guest, features);
    assert_int_equal(guest_read(guest, STATUS, 1), 0x0b);
    guest_place_queue(guest, 0);
    guest_write(guest, STATUS, 1, 0x0f);
}
