/* SPDX-License-Identifier: Apache-2.0 */
/* Drives virtio-blk; see block.h. Section numbers are those of virtio 1.2. */
#include "block.h"

#include <stddef.h>

#include "ports.h"

/* PCI configuration space (PCI 3.0, 3.2.2.3.2 and chapter 6). */
#define PCI_ADDRESS_PORT 0xcf8
#define PCI_DATA_PORT 0xcfc
#define PCI_ENABLE 0x80000000u
#define PCI_DEVICES 32
#define PCI_COMMAND 0x04
#define PCI_COMMAND_MEMORY_AND_MASTER 0x6u
#define PCI_BAR_0 0x10
#define PCI_BAR_ADDRESS_MASK ~0xfu
#define PCI_CAPABILITIES 0x34
#define PCI_CAPABILITY_VENDOR 0x09

/* Vendor and device id of virtio-blk: modern, and as some offer it to old drivers, too
 * (4.1.2). */
#define VIRTIO_BLK_MODERN 0x10421af4u
#define VIRTIO_BLK_TRANSITIONAL 0x10011af4u

/* Capabilities (4.1.4). */
#define CAPABILITY_COMMON 1
#define CAPABILITY_NOTIFY 2
#define CAPABILITY_DEVICE 4

/* Device status (2.1). */
#define STATUS_DRIVER 0x3
#define STATUS_FEATURES_OK 0x8
#define STATUS_DRIVER_OK 0x4

#define FEATURE_FLUSH (1u << 9)     /* 5.2.3 */
#define FEATURE_VERSION_1 (1u << 0) /* of the upper half (6) */
#define DESCRIPTOR_NEXT 1           /* 2.7.5 */
#define DESCRIPTOR_WRITABLE 2       /* 2.7.5 */
#define AVAILABLE_NO_INTERRUPT 1    /* 2.7.6 */
#define SECTORS_A_BLOCK (BLOCK_BYTES / 512)
#define DESCRIPTORS_A_SLOT 3
#define RING_SIZE 32

/* long_mode.inc maps the fourth GiB of physical addresses where 64-bit code reaches it:
 * at the top. */
#define TOP_OF_32_BIT UINT64_C(0x100000000)

/* 4.1.4.3 */
struct common_configuration {
    uint32_t device_feature_select;
    uint32_t device_feature;
    uint32_t driver_feature_select;
    uint32_t driver_feature;
    uint16_t config_vector;
    uint16_t queue_count;
    uint8_t device_status;
    uint8_t config_generation;
    uint16_t queue_select;
    uint16_t queue_size;
    uint16_t queue_vector;
    uint16_t queue_enable;
    uint16_t queue_notify_offset;
    uint32_t queue_descriptors[2];
    uint32_t queue_available[2];
    uint32_t queue_used[2];
};

struct descriptor {
    uint64_t address;
    uint32_t size_bytes;
    uint16_t flags;
    uint16_t next;
};

/* 5.2.6, before the data. */
struct request_header {
    uint32_t type;
    uint32_t reserved;
    uint64_t sector;
};

uint64_t block_buffers[BLOCK_SLOTS][BLOCK_BYTES / sizeof(uint64_t)];

static _Alignas(16) struct descriptor descriptors[RING_SIZE];
static struct {
    uint16_t flags;
    volatile uint16_t index;
    uint16_t ring[RING_SIZE];
} available;
static struct {
    uint16_t flags;
    volatile uint16_t index;
    struct {
        uint32_t descriptor;
        uint32_t written_bytes;
    } ring[RING_SIZE];
} used __attribute__((aligned(4)));
static struct request_header headers[BLOCK_SLOTS];
static volatile uint8_t results[BLOCK_SLOTS];

static volatile struct common_configuration *common;
static volatile const uint64_t *capacity_sectors;
static volatile uint16_t *notify;

/* ---- the PCI function ---- */

static uint32_t pci_read(unsigned device, unsigned offset)
{
    port_write_32(PCI_ADDRESS_PORT, PCI_ENABLE | device << 11 | (offset & 0xfcu));
    return port_read_32(PCI_DATA_PORT);
}

static void pci_write(unsigned device, unsigned offset, uint32_t value)
{
    port_write_32(PCI_ADDRESS_PORT, PCI_ENABLE | device << 11 | (offset & 0xfcu));
    port_write_32(PCI_DATA_PORT, value);
}

/* Capabilities are 4-aligned, so is what is read of them here. */
static uint8_t *capability_target(unsigned device, unsigned at)
{
    unsigned bar = pci_read(device, at + 4) & 0xff;
    uint64_t address = pci_read(device, PCI_BAR_0 + 4 * bar) & PCI_BAR_ADDRESS_MASK;

    return (uint8_t *)(address + pci_read(device, at + 8) - TOP_OF_32_BIT);
}

static void use_capabilities(unsigned device)
{
    unsigned at = pci_read(device, PCI_CAPABILITIES) & 0xff;

    while (at != 0) {
        uint32_t head = pci_read(device, at);
        unsigned kind = head >> 24;

        if ((head & 0xff) == PCI_CAPABILITY_VENDOR && kind == CAPABILITY_COMMON)
            common = (volatile void *)capability_target(device, at);
        if ((head & 0xff) == PCI_CAPABILITY_VENDOR && kind == CAPABILITY_DEVICE)
            capacity_sectors = (volatile void *)capability_target(device, at);
        if ((head & 0xff) == PCI_CAPABILITY_VENDOR && kind == CAPABILITY_NOTIFY)
            /* Queue 0 has the first place, whatever the distance between them. */
            notify = (volatile void *)capability_target(device, at);
        at = head >> 8 & 0xff;
    }
}

static bool find_device(void)
{
    for (unsigned device = 0; device < PCI_DEVICES; device++) {
        uint32_t id = pci_read(device, 0);

        if (id == VIRTIO_BLK_MODERN || id == VIRTIO_BLK_TRANSITIONAL) {
            pci_write(device, PCI_COMMAND, PCI_COMMAND_MEMORY_AND_MASTER);
            use_capabilities(device);
            return common != NULL && capacity_sectors != NULL && notify != NULL;
        }
    }
    return false;
}

/* ---- the virtio device (3.1.1) ---- */

static void set_address(volatile uint32_t *halves, const volatile void *address)
{
    halves[0] = (uint32_t)(uintptr_t)address;
    halves[1] = 0;
}

static void make_queue(void)
{
    for (unsigned slot = 0; slot < BLOCK_SLOTS; slot++) {
        unsigned first = slot * DESCRIPTORS_A_SLOT;

        descriptors[first] = (struct descriptor){
            (uintptr_t)&headers[slot], sizeof(headers[slot]), DESCRIPTOR_NEXT, 0};
        descriptors[first + 1] =
            (struct descriptor){(uintptr_t)block_buffers[slot], BLOCK_BYTES,
                                DESCRIPTOR_NEXT, (uint16_t)(first + 2)};
        descriptors[first + 2] =
            (struct descriptor){(uintptr_t)&results[slot], 1, DESCRIPTOR_WRITABLE, 0};
        results[slot] = 0;
    }
    available.flags = AVAILABLE_NO_INTERRUPT;
    available.index = 0;
    used.index = 0;
    common->queue_select = 0;
    common->queue_size = RING_SIZE;
    set_address(common->queue_descriptors, descriptors);
    set_address(common->queue_available, &available);
    set_address(common->queue_used, &used);
    common->queue_enable = 1;
}

void block_begin_reset(void)
{
    common->device_status = 0;
}

bool block_is_reset(void)
{
    return common->device_status == 0;
}

bool block_open(void)
{
    if (!find_device())
        return false;
    block_begin_reset();
    while (!block_is_reset())
        __builtin_ia32_pause();
    common->device_status = STATUS_DRIVER;
    common->driver_feature_select = 0;
    common->driver_feature = FEATURE_FLUSH;
    common->driver_feature_select = 1;
    common->driver_feature = FEATURE_VERSION_1;
    common->device_status = STATUS_DRIVER | STATUS_FEATURES_OK;
    if ((common->device_status & STATUS_FEATURES_OK) == 0)
        return false;
    make_queue();
    common->device_status = STATUS_DRIVER | STATUS_FEATURES_OK | STATUS_DRIVER_OK;
    return true;
}

uint64_t block_count(void)
{
    return *capacity_sectors / SECTORS_A_BLOCK;
}

/* ---- requests ---- */

/* x86 stores are seen in their order; the compiler must keep it, too. */
static void keep_order(void)
{
    __asm__ volatile("" : : : "memory");
}

void block_begin(unsigned slot, uint32_t type, uint64_t number)
{
    unsigned first = slot * DESCRIPTORS_A_SLOT;

    headers[slot].type = type;
    headers[slot].sector = type == BLOCK_FLUSH ? 0 : number * SECTORS_A_BLOCK;
    descriptors[first].next = (uint16_t)(type == BLOCK_FLUSH ? first + 2 : first + 1);
    results[slot] = UINT8_MAX;
    available.ring[available.index % RING_SIZE] = (uint16_t)first;
    keep_order();
    available.index++;
    keep_order();
    *notify = 0;
}

bool block_wait(void)
{
    bool good = true;

    while (used.index != available.index)
        __builtin_ia32_pause();
    keep_order();
    for (unsigned slot = 0; slot < BLOCK_SLOTS; slot++)
        good = good && results[slot] == 0;
    return good;
}
