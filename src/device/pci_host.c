/* SPDX-License-Identifier: Apache-2.0 */
/* The host bridge: from ports and ECAM to configuration space; see pci_host_private.h. */
#include "device/pci_host_private.h"

#include <string.h>

#include "base/bytes.h"
#include "x86/layout.h"

/* Configuration address register. Reserved bits read 0. */
#define ADDRESS_ENABLE UINT32_C(0x80000000)
#define ADDRESS_BITS UINT32_C(0x80fffffc)
#define ADDRESS_REGISTER UINT32_C(0xfc)
#define ADDRESS_SLOT_SHIFT 8
#define ADDRESS_BUS_SHIFT 16

/* An ECAM address is bus, slot, and 12 bits of register. */
#define ECAM_SLOT_SHIFT 12

#define RESET_CONTROL_OFFSET (LAYOUT_PORT_RESET - LAYOUT_PORT_PCI_ADDRESS)
#define RESET_CONTROL_BITS 0x0e /* full reset, reset processor, system reset */
#define RESET_CONTROL_RESET 0x04

#define DWORD_BYTES 4

/* The bridge itself, a plain header of which nothing can be changed (6.1). The ids are
 * Red Hat's generic PCIe host bridge: no Linux driver and no quirk knows them, while
 * those of a real chipset would call up code that pokes at registers this bridge lacks.
 */
static const uint8_t pci_bridge_header[] = {
    [0x00] = 0x36, [0x01] = 0x1b, /* vendor 0x1b36 */
    [0x02] = 0x08, [0x03] = 0x00, /* device 0x0008 */
    [0x0a] = 0x00, [0x0b] = 0x06, /* class: bridge, host */
};

static uint32_t pci_bridge_read(void *function, uint32_t offset, unsigned size)
{
    uint32_t value = 0;

    (void)function;
    if (offset < sizeof(pci_bridge_header)) /* whole double words, so no access crosses */
        memcpy(&value, &pci_bridge_header[offset], size);
    return value;
}

static void pci_bridge_write(void *function, uint32_t offset, unsigned size,
                             uint32_t value)
{
    (void)function;
    (void)offset;
    (void)size;
    (void)value;
}

static const struct pci_function_ops pci_bridge_ops = {
    .config_read = pci_bridge_read,
    .config_write = pci_bridge_write,
};

static uint64_t pci_host_read_address(void *device, uint64_t offset, unsigned size)
{
    struct pci_host *host = device;

    if (size == DWORD_BYTES)
        return atomic_load(&host->address);
    if (size == 1 && offset == RESET_CONTROL_OFFSET)
        return atomic_load(&host->reset_control);
    return UINT64_MAX; /* not ours: the access goes past the bridge, to nobody */
}

/* The machine resets when the reset bit rises, whichever kind of reset is chosen. */
static void pci_host_write_reset_control(struct pci_host *host, uint8_t value)
{
    uint8_t before = atomic_exchange(&host->reset_control, value & RESET_CONTROL_BITS);

    if ((value & RESET_CONTROL_RESET) && !(before & RESET_CONTROL_RESET))
        host->requests.request(host->requests.context, MACHINE_RESET);
}

static void pci_host_write_address(void *device, uint64_t offset, unsigned size,
                                   uint64_t value)
{
    struct pci_host *host = device;

    if (size == DWORD_BYTES)
        atomic_store(&host->address, (uint32_t)value & ADDRESS_BITS);
    else if (size == 1 && offset == RESET_CONTROL_OFFSET)
        pci_host_write_reset_control(host, (uint8_t)value);
}

/* True if the address register points at bus 0; then where. */
static bool pci_host_target(struct pci_host *host, unsigned *slot, uint32_t *reg)
{
    uint32_t address = atomic_load(&host->address);

    *slot = (address >> ADDRESS_SLOT_SHIFT) & 0xff;
    *reg = address & ADDRESS_REGISTER;
    return (address & ADDRESS_ENABLE) && ((address >> ADDRESS_BUS_SHIFT) & 0xff) == 0;
}

static uint64_t pci_host_read_data(void *device, uint64_t offset, unsigned size)
{
    struct pci_host *host = device;
    unsigned slot;
    uint32_t reg;

    if (!pci_host_target(host, &slot, &reg))
        return UINT64_MAX;
    return pci_bus_read(&host->bus, slot, reg + (uint32_t)offset, size);
}

static void pci_host_write_data(void *device, uint64_t offset, unsigned size,
                                uint64_t value)
{
    struct pci_host *host = device;
    unsigned slot;
    uint32_t reg;

    if (pci_host_target(host, &slot, &reg))
        pci_bus_write(&host->bus, slot, reg + (uint32_t)offset, size, (uint32_t)value);
}

static uint64_t pci_host_read_ecam(void *device, uint64_t offset, unsigned size)
{
    struct pci_host *host = device;

    return pci_bus_read(&host->bus, (unsigned)(offset >> ECAM_SLOT_SHIFT),
                        (uint32_t)(offset % PCI_CONFIG_BYTES), size);
}

static void pci_host_write_ecam(void *device, uint64_t offset, unsigned size,
                                uint64_t value)
{
    struct pci_host *host = device;

    pci_bus_write(&host->bus, (unsigned)(offset >> ECAM_SLOT_SHIFT),
                  (uint32_t)(offset % PCI_CONFIG_BYTES), size, (uint32_t)value);
}

static const struct bus_ops pci_address_ops = {
    .name = "PCI address register",
    .width_bytes = DWORD_BYTES,
    .read = pci_host_read_address,
    .write = pci_host_write_address,
};

static const struct bus_ops pci_data_ops = {
    .name = "PCI data register",
    .width_bytes = DWORD_BYTES,
    .read = pci_host_read_data,
    .write = pci_host_write_data,
};

static const struct bus_ops pci_ecam_ops = {
    .name = "PCI configuration space",
    .width_bytes = DWORD_BYTES,
    .read = pci_host_read_ecam,
    .write = pci_host_write_ecam,
};

void pci_host_init(struct pci_host *host, const struct machine_requests *requests,
                   const struct pci_wires *wires, uint64_t memory_end, bool has_homes)
{
    *host = (struct pci_host){.requests = *requests};
    pci_bus_init(&host->bus, wires, memory_end, has_homes);
}

void pci_host_add_bridge(struct pci_host *host)
{
    pci_bus_attach(&host->bus, 0, 0, &pci_bridge_ops, NULL);
}

int pci_host_attach(struct pci_host *host, struct bus *ports, struct bus *mmio,
                    struct error *err)
{
    int code = bus_attach(ports, LAYOUT_PORT_PCI_ADDRESS, DWORD_BYTES, &pci_address_ops,
                          host, err);

    if (code == 0)
        code = bus_attach(ports, LAYOUT_PORT_PCI_DATA, DWORD_BYTES, &pci_data_ops, host,
                          err);
    if (code == 0)
        code = bus_attach(mmio, LAYOUT_ECAM_START, LAYOUT_ECAM_BYTES, &pci_ecam_ops, host,
                          err);
    if (code == 0)
        code = pci_bus_attach_windows(&host->bus, mmio, err);
    return code;
}

void pci_host_reset(struct pci_host *host)
{
    atomic_store(&host->address, 0);
    atomic_store(&host->reset_control, 0);
    pci_bus_reset(&host->bus);
}
