/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration space of an ordinary PCI function; see pci_function.h. */
#include "device/pci_function.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "device/pci_function_private.h"
#include "device/pci_registers_private.h"

#define BAR_KIND_BITS UINT64_C(0xf)
#define SMALLEST_BAR_BYTES 16
#define CAPABILITY_ALIGNMENT 4

/* ---- set-up ---- */

void pci_function_init(struct pci_function *function, const struct pci_identity *identity)
{
    uint8_t *config = function->at_reset;

    *function = (struct pci_function){.capabilities_end = PCI_HEADER_END,
                                      .last_link = PCI_CAPABILITIES};
    CHECK(pthread_mutex_init(&function->lock, NULL) == 0);
    store_le16(config + PCI_VENDOR, identity->vendor);
    store_le16(config + PCI_DEVICE, identity->device);
    store_le32(config + PCI_REVISION, identity->class_code << 8 | identity->revision);
    store_le16(config + PCI_SUBSYSTEM_VENDOR, identity->subsystem_vendor);
    store_le16(config + PCI_SUBSYSTEM, identity->subsystem);
    config[PCI_INTERRUPT_LINE] = PCI_INTERRUPT_LINE_NONE;
    config[PCI_INTERRUPT_PIN] = PCI_INTERRUPT_PIN_A;
    store_le16(function->writable + PCI_COMMAND,
               PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_NO_LINE);
    pci_function_let_write(function, PCI_INTERRUPT_LINE, 1);
}

void pci_function_add_bar(struct pci_function *function, unsigned index,
                          enum pci_bar_kind kind, uint64_t size_bytes,
                          const struct bus_ops *ops, void *device)
{
    uint64_t address_bits = ~(size_bytes - 1);

    CHECK(index < PCI_FUNCTION_BARS && function->bars[index].ops == NULL);
    CHECK(index == 0 || function->bars[index - 1].kind == PCI_BAR_32_BIT);
    CHECK(size_bytes >= SMALLEST_BAR_BYTES && (size_bytes & (size_bytes - 1)) == 0);
    function->bars[index] = (struct pci_bar){.ops = ops,
                                             .device = device,
                                             .kind = kind,
                                             .size_bytes = size_bytes,
                                             .start = PCI_BAR_OFF};
    store_le32(function->at_reset + PCI_BAR(index), kind);
    store_le32(function->writable + PCI_BAR(index), (uint32_t)address_bits);
    if (kind == PCI_BAR_32_BIT) {
        CHECK(size_bytes <= UINT32_MAX);
        return;
    }
    CHECK(index + 1 < PCI_FUNCTION_BARS && function->bars[index + 1].ops == NULL);
    store_le32(function->writable + PCI_BAR(index + 1), (uint32_t)(address_bits >> 32));
}

unsigned pci_function_add_capability(struct pci_function *function, const void *bytes,
                                     unsigned size)
{
    unsigned at = function->capabilities_end;

    CHECK(range_within(at, size, PCI_FUNCTION_BYTES));
    memcpy(function->at_reset + at, bytes, size);
    function->at_reset[function->last_link] = (uint8_t)at;
    function->at_reset[PCI_STATUS] |= PCI_STATUS_CAPABILITIES;
    function->last_link = at + 1;
    function->capabilities_end = (unsigned)align_up(at + size, CAPABILITY_ALIGNMENT);
    return at;
}

void pci_function_let_write(struct pci_function *function, unsigned offset, unsigned size)
{
    memset(function->writable + offset, UINT8_MAX, size);
}

void pci_function_attach(struct pci_function *function, struct pci_bus *bus,
                         unsigned device, unsigned number,
                         const struct pci_function_ops *ops, void *owner)
{
    function->bus = bus;
    function->slot = device * 8 + number;
    function->msix.first_sender = bus->next_sender;
    bus->next_sender += function->msix.vector_count;
    pci_bus_attach(bus, device, number, ops, owner);
    for (unsigned i = 0; i < PCI_FUNCTION_BARS; i++)
        if (function->bars[i].ops != NULL)
            pci_bus_attach_bar(bus, &function->bars[i]);
    pci_function_reset(function);
}

void pci_function_finish(struct pci_function *function)
{
    CHECK(pthread_mutex_destroy(&function->lock) == 0);
}

/* ---- what follows from the registers; with the lock held ---- */

static uint16_t command(const struct pci_function *function)
{
    return load_le16(function->config + PCI_COMMAND);
}

bool pci_function_may_access(const struct pci_function *function)
{
    return (command(function) & PCI_COMMAND_MASTER) != 0;
}

/* The bits of a register, of 64 bits with the one behind it. */
static uint64_t bar_register(const struct pci_function *function, unsigned index)
{
    uint64_t low = load_le32(function->config + PCI_BAR(index));

    if (function->bars[index].kind == PCI_BAR_32_BIT)
        return low;
    return (uint64_t)load_le32(function->config + PCI_BAR(index + 1)) << 32 | low;
}

static void detach_doorbells(struct pci_function *function, const struct pci_bar *bar)
{
    const struct pci_wires *wires = &function->bus->wires;

    for (unsigned i = 0; i < PCI_FUNCTION_DOORBELLS; i++) {
        struct pci_doorbell *doorbell = &function->doorbells[i];

        if (doorbell->bar != bar)
            continue;
        wires->detach_doorbell(wires->context, doorbell->address, doorbell->fd);
        doorbell->bar = NULL;
    }
}

static void place_bar(struct pci_function *function, struct pci_bar *bar, uint64_t start)
{
    if (start == atomic_load_explicit(&bar->start, memory_order_relaxed))
        return;
    /* The order does not matter: what is written while a BAR moves may get lost. */
    detach_doorbells(function, bar);
    atomic_store_explicit(&bar->start, start, memory_order_relaxed);
}

static void place_bars(struct pci_function *function)
{
    bool decodes = (command(function) & PCI_COMMAND_MEMORY) != 0;

    for (unsigned i = 0; i < PCI_FUNCTION_BARS; i++) {
        struct pci_bar *bar = &function->bars[i];

        if (bar->ops != NULL)
            place_bar(function, bar,
                      decodes ? bar_register(function, i) & ~BAR_KIND_BITS : PCI_BAR_OFF);
    }
}

static void drive_pin(struct pci_function *function)
{
    uint8_t *status = &function->config[PCI_STATUS];
    bool up = function->wants_line && !(command(function) & PCI_COMMAND_NO_LINE) &&
              !pci_msix_is_enabled(function);

    *status = (uint8_t)(*status & ~PCI_STATUS_LINE);
    if (function->wants_line)
        *status |= PCI_STATUS_LINE;
    if (up != function->pin_is_up)
        pci_bus_change_line(function->bus, function->slot, 0, up);
    function->pin_is_up = up;
}

static void follow_registers(struct pci_function *function)
{
    place_bars(function);
    drive_pin(function);
    pci_msix_send_pending(function);
}

/* ---- accesses ---- */

uint32_t pci_function_read(struct pci_function *function, uint32_t offset, unsigned size)
{
    uint8_t bytes[sizeof(uint32_t)] = {0};

    if (!range_within(offset, size, PCI_FUNCTION_BYTES))
        return 0;
    pthread_mutex_lock(&function->lock);
    memcpy(bytes, &function->config[offset], size);
    pthread_mutex_unlock(&function->lock);
    return load_le32(bytes);
}

void pci_function_write(struct pci_function *function, uint32_t offset, unsigned size,
                        uint32_t value)
{
    if (!range_within(offset, size, PCI_FUNCTION_BYTES))
        return;
    pthread_mutex_lock(&function->lock);
    for (unsigned i = 0; i < size; i++, value >>= 8) {
        uint8_t *at = &function->config[offset + i];
        uint8_t writable = function->writable[offset + i];

        *at = (uint8_t)((*at & ~writable) | (value & writable));
    }
    follow_registers(function);
    pthread_mutex_unlock(&function->lock);
}

/* All BARs where they are without firmware, or nowhere. */
static void send_bars_home(struct pci_function *function)
{
    for (unsigned i = 0; i < PCI_FUNCTION_BARS; i++) {
        const struct pci_bar *bar = &function->bars[i];
        uint8_t *at = function->config + PCI_BAR(i);

        if (bar->ops == NULL)
            continue;
        store_le32(at, (uint32_t)bar->home | bar->kind);
        if (bar->kind != PCI_BAR_32_BIT)
            store_le32(at + sizeof(uint32_t), (uint32_t)(bar->home >> 32));
    }
    store_le16(function->config + PCI_COMMAND,
               function->bus->has_homes ? PCI_COMMAND_MEMORY : 0);
}

void pci_function_reset(struct pci_function *function)
{
    pthread_mutex_lock(&function->lock);
    /* Whoever attached doorbells may be made anew, even if the BARs stay. */
    for (unsigned i = 0; i < PCI_FUNCTION_BARS; i++)
        detach_doorbells(function, &function->bars[i]);
    memcpy(function->config, function->at_reset, sizeof(function->config));
    send_bars_home(function);
    function->wants_line = false;
    pci_msix_reset(function);
    follow_registers(function);
    pthread_mutex_unlock(&function->lock);
}

bool pci_function_is_master(struct pci_function *function)
{
    bool is_master;

    pthread_mutex_lock(&function->lock);
    is_master = pci_function_may_access(function);
    pthread_mutex_unlock(&function->lock);
    return is_master;
}

void pci_function_set_line(struct pci_function *function, bool level)
{
    pthread_mutex_lock(&function->lock);
    function->wants_line = level;
    drive_pin(function);
    pthread_mutex_unlock(&function->lock);
}

void pci_function_take_short_cut(struct pci_function *function, unsigned index,
                                 unsigned bar, uint64_t offset, int fd)
{
    const struct pci_wires *wires = &function->bus->wires;
    struct pci_doorbell wanted = {.fd = fd};

    CHECK(index < PCI_FUNCTION_DOORBELLS && bar < PCI_FUNCTION_BARS);
    if (wires->attach_doorbell == NULL)
        return;
    wanted.bar = &function->bars[bar];
    pthread_mutex_lock(&function->lock);
    if (function->doorbells[index].bar == NULL &&
        pci_bus_reaches(function->bus, wanted.bar, offset)) {
        wanted.address =
            atomic_load_explicit(&wanted.bar->start, memory_order_relaxed) + offset;
        if (wires->attach_doorbell(wires->context, wanted.address, fd))
            function->doorbells[index] = wanted;
    }
    pthread_mutex_unlock(&function->lock);
}
