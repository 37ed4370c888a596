/* SPDX-License-Identifier: Apache-2.0 */
/* A PCI bus: who is asked for what; see pci.h. */
#include "device/pci.h"

#include "base/bytes.h"
#include "base/check.h"
#include "x86/layout.h"

#define DWORD_BYTES 4

static struct pci_window make_window(const struct pci_bus *bus, uint64_t start,
                                     uint64_t limit)
{
    return (struct pci_window){
        .bus = bus, .start = start, .limit = limit, .next_home = start};
}

void pci_bus_init(struct pci_bus *bus, const struct pci_wires *wires, uint64_t memory_end,
                  bool has_homes)
{
    uint64_t high = LAYOUT_PCI_HIGH_WINDOW_START(memory_end);

    *bus = (struct pci_bus){.wires = *wires, .has_homes = has_homes};
    bus->windows[PCI_WINDOW_LOW] =
        make_window(bus, LAYOUT_PCI_WINDOW_START, LAYOUT_PCI_WINDOW_LIMIT);
    bus->windows[PCI_WINDOW_FIRMWARE] = make_window(bus, LAYOUT_PCI_FIRMWARE_WINDOW_START,
                                                    LAYOUT_PCI_FIRMWARE_WINDOW_LIMIT);
    bus->windows[PCI_WINDOW_HIGH] =
        make_window(bus, high, high + LAYOUT_PCI_HIGH_WINDOW_BYTES);
    CHECK(pthread_mutex_init(&bus->lines_lock, NULL) == 0);
}

void pci_bus_reset(struct pci_bus *bus)
{
    for (size_t i = 0; i < PCI_BUS_FUNCTIONS; i++)
        if (bus->slots[i].ops && bus->slots[i].ops->reset)
            bus->slots[i].ops->reset(bus->slots[i].function);
}

void pci_bus_attach(struct pci_bus *bus, unsigned device, unsigned number,
                    const struct pci_function_ops *ops, void *function)
{
    unsigned slot = device * 8 + number;

    CHECK(number < 8 && slot < PCI_BUS_FUNCTIONS && !bus->slots[slot].ops);
    bus->slots[slot] = (struct pci_slot){.ops = ops, .function = function};
}

static bool pci_access_is_whole(uint32_t offset, unsigned size)
{
    return offset % DWORD_BYTES + size <= DWORD_BYTES && size != 3;
}

uint32_t pci_bus_read(const struct pci_bus *bus, unsigned slot, uint32_t offset,
                      unsigned size)
{
    const struct pci_slot *target = &bus->slots[slot];
    uint32_t value = 0;

    if (!target->ops)
        return UINT32_MAX;
    if (pci_access_is_whole(offset, size))
        return target->ops->config_read(target->function, offset, size);
    for (unsigned i = 0; i < size && offset + i < PCI_CONFIG_BYTES; i++) {
        value |= (target->ops->config_read(target->function, offset + i, 1) & 0xff)
                 << (8 * i);
    }
    return value;
}

void pci_bus_write(const struct pci_bus *bus, unsigned slot, uint32_t offset,
                   unsigned size, uint32_t value)
{
    const struct pci_slot *target = &bus->slots[slot];

    if (!target->ops)
        return;
    if (pci_access_is_whole(offset, size)) {
        target->ops->config_write(target->function, offset, size, value);
        return;
    }
    for (unsigned i = 0; i < size && offset + i < PCI_CONFIG_BYTES; i++) {
        target->ops->config_write(target->function, offset + i, 1,
                                  (value >> (8 * i)) & 0xff);
    }
}

/* Large memory goes up, as firmware does it: a 32-bit kernel needs all else. */
static void give_home(struct pci_bus *bus, struct pci_bar *bar)
{
    bool is_high = bar->kind == PCI_BAR_64_BIT_PREFETCHABLE;
    struct pci_window *window = &bus->windows[is_high ? PCI_WINDOW_HIGH : PCI_WINDOW_LOW];

    bar->home = align_up(window->next_home, bar->size_bytes);
    CHECK(range_within(bar->home, bar->size_bytes, window->limit));
    window->next_home = bar->home + bar->size_bytes;
}

void pci_bus_attach_bar(struct pci_bus *bus, struct pci_bar *bar)
{
    CHECK(bus->bar_count < PCI_BUS_BARS);
    bus->bars[bus->bar_count++] = bar;
    if (bus->has_homes)
        give_home(bus, bar);
}

/* The BAR that holds all of the access, and where in it; or NULL. */
static const struct pci_bar *find_bar(const struct pci_bus *bus, uint64_t address,
                                      unsigned size, uint64_t *offset)
{
    for (size_t i = 0; i < bus->bar_count; i++) {
        const struct pci_bar *bar = bus->bars[i];
        uint64_t start = atomic_load_explicit(&bar->start, memory_order_relaxed);

        if (address >= start && range_within(address - start, size, bar->size_bytes)) {
            *offset = address - start;
            return bar;
        }
    }
    return NULL;
}

bool pci_bus_reaches(const struct pci_bus *bus, const struct pci_bar *bar,
                     uint64_t offset)
{
    uint64_t start = atomic_load_explicit(&bar->start, memory_order_relaxed);
    uint64_t address, found_offset;

    if (__builtin_add_overflow(start, offset, &address))
        return false;
    for (size_t i = 0; i < PCI_WINDOWS; i++)
        if (address >= bus->windows[i].start && address < bus->windows[i].limit)
            return find_bar(bus, address, 1, &found_offset) == bar;
    return false;
}

/* ---- the windows, as devices of the machine's bus ---- */

static uint64_t window_read(void *device, uint64_t offset, unsigned size)
{
    const struct pci_window *window = device;
    uint64_t bar_offset;
    const struct pci_bar *bar =
        find_bar(window->bus, window->start + offset, size, &bar_offset);

    return bar ? bar->ops->read(bar->device, bar_offset, size) : UINT64_MAX;
}

static void window_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    const struct pci_window *window = device;
    uint64_t bar_offset;
    const struct pci_bar *bar =
        find_bar(window->bus, window->start + offset, size, &bar_offset);

    if (bar)
        bar->ops->write(bar->device, bar_offset, size, value);
}

/* A conventional PCI bus is 32 bits wide: wider accesses are split above. */
static const struct bus_ops window_ops = {
    .name = "PCI memory window",
    .width_bytes = DWORD_BYTES,
    .read = window_read,
    .write = window_write,
};

int pci_bus_attach_windows(struct pci_bus *bus, struct bus *mmio, struct error *err)
{
    for (size_t i = 0; i < PCI_WINDOWS; i++) {
        struct pci_window *window = &bus->windows[i];

        if (bus_attach(mmio, window->start, window->limit - window->start, &window_ops,
                       window, err) < 0)
            return err->code;
    }
    return 0;
}

void pci_bus_change_line(struct pci_bus *bus, unsigned slot, unsigned pin, bool level)
{
    uint32_t line = LAYOUT_PCI_GSI(slot / 8, pin);
    uint8_t *raised_by = &bus->raised_by[line % PCI_BUS_LINES];

    pthread_mutex_lock(&bus->lines_lock);
    if (level && (*raised_by)++ == 0)
        bus->wires.set_line(bus->wires.context, line, true);
    if (!level && --*raised_by == 0)
        bus->wires.set_line(bus->wires.context, line, false);
    pthread_mutex_unlock(&bus->lines_lock);
}
