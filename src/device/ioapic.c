/* SPDX-License-Identifier: Apache-2.0 */
/* The IOAPIC; see ioapic_private.h. */
#include "device/ioapic_private.h"

/* Memory registers (3.1). */
#define WINDOW_BYTES 0x20
#define OFFSET_SELECT 0x00
#define OFFSET_DATA 0x10

/* Registers behind them (3.2). */
#define REGISTER_ID 0x00
#define REGISTER_VERSION 0x01
#define REGISTER_ARBITRATION 0x02
#define REGISTER_ENTRIES 0x10 /* two each */

#define ID_WRITABLE 0x0f000000u
#define VERSION (0x11u | (LAYOUT_IOAPIC_PINS - 1) << 16)

/* Redirection entries (3.2.4). */
#define ENTRY_DELIVERY_SHIFT 8
#define ENTRY_LOGICAL UINT64_C(0x800)
#define ENTRY_STATUS UINT64_C(0x1000) /* always idle */
#define ENTRY_REMOTE_IRR UINT64_C(0x4000)
#define ENTRY_LEVEL UINT64_C(0x8000)
#define ENTRY_MASKED UINT64_C(0x10000)
#define ENTRY_WRITABLE UINT64_C(0xff0000000001afff)
#define ENTRY_DESTINATION_SHIFT 56

#define BROADCAST 0xff

void ioapic_reset(struct ioapic *ioapic)
{
    ioapic->id = 0;
    ioapic->selected = 0;
    ioapic->levels = 0;
    for (unsigned pin = 0; pin < LAYOUT_IOAPIC_PINS; pin++)
        ioapic->entries[pin] = ENTRY_MASKED;
}

void ioapic_init(struct ioapic *ioapic, struct apic_bus *apic_bus)
{
    *ioapic = (struct ioapic){.bus = apic_bus};
    ioapic_reset(ioapic);
}

static struct apic_message message_of(uint64_t entry)
{
    uint32_t destination = (uint32_t)(entry >> ENTRY_DESTINATION_SHIFT);

    return (struct apic_message){
        .destination = destination,
        .broadcast = destination == BROADCAST,
        .logical = (entry & ENTRY_LOGICAL) != 0,
        .delivery = entry >> ENTRY_DELIVERY_SHIFT & 7,
        .level = (entry & ENTRY_LEVEL) != 0,
        .vector = (uint8_t)entry,
    };
}

static void send(struct ioapic *ioapic, unsigned pin)
{
    uint64_t *entry = &ioapic->entries[pin];
    struct apic_message message = message_of(*entry);

    if (message.delivery == APIC_STARTUP) /* reserved here */
        return;
    /* The bit before the message: its end may come from within. */
    if (message.level && message.delivery <= APIC_LOWEST_PRIORITY)
        *entry |= ENTRY_REMOTE_IRR;
    if (apic_bus_send(ioapic->bus, &message) == 0)
        *entry &= ~ENTRY_REMOTE_IRR;
}

/* Sends for a level-triggered pin that is up and whose last interrupt has ended. */
static void update_level(struct ioapic *ioapic, unsigned pin)
{
    uint64_t entry = ioapic->entries[pin];

    if ((ioapic->levels >> pin & 1) != 0 &&
        (entry & (ENTRY_LEVEL | ENTRY_MASKED | ENTRY_REMOTE_IRR)) == ENTRY_LEVEL)
        send(ioapic, pin);
}

void ioapic_set_pin(struct ioapic *ioapic, unsigned pin, bool level)
{
    uint32_t bit = UINT32_C(1) << pin;
    bool edge = level && (ioapic->levels & bit) == 0;

    if (!level) {
        ioapic->levels &= ~bit;
        return;
    }
    ioapic->levels |= bit;
    if ((ioapic->entries[pin] & ENTRY_LEVEL) != 0)
        update_level(ioapic, pin);
    else if (edge && (ioapic->entries[pin] & ENTRY_MASKED) == 0)
        send(ioapic, pin); /* an edge while masked is lost (3.2.4, bit 16) */
}

void ioapic_end_of_interrupt(struct ioapic *ioapic, uint8_t vector)
{
    for (unsigned pin = 0; pin < LAYOUT_IOAPIC_PINS; pin++) {
        uint64_t *entry = &ioapic->entries[pin];

        if ((uint8_t)*entry != vector || (*entry & ENTRY_REMOTE_IRR) == 0)
            continue;
        *entry &= ~ENTRY_REMOTE_IRR;
        update_level(ioapic, pin);
    }
}

/* ---- registers
 * ------------------------------------------------------------------------- */

static uint32_t read_selected(const struct ioapic *ioapic)
{
    unsigned index = ioapic->selected - REGISTER_ENTRIES;

    switch (ioapic->selected) {
    case REGISTER_ID:
    case REGISTER_ARBITRATION:
        return ioapic->id;
    case REGISTER_VERSION:
        return VERSION;
    default:
        if (index / 2 >= LAYOUT_IOAPIC_PINS)
            return 0;
        return (uint32_t)(ioapic->entries[index / 2] >> (index % 2 * 32));
    }
}

/* Edge-triggered entries have no remote IRR; kernels clear it by a turn through that
 * mode, as this version has no register for it. */
static void write_entry(struct ioapic *ioapic, unsigned pin, unsigned shift,
                        uint32_t value)
{
    uint64_t writable = (uint64_t)UINT32_MAX << shift & ENTRY_WRITABLE;
    uint64_t *entry = &ioapic->entries[pin];

    *entry = (*entry & ~writable) | ((uint64_t)value << shift & writable);
    if ((*entry & ENTRY_LEVEL) == 0)
        *entry &= ~ENTRY_REMOTE_IRR;
    update_level(ioapic, pin);
}

static void write_selected(struct ioapic *ioapic, uint32_t value)
{
    unsigned index = ioapic->selected - REGISTER_ENTRIES;

    if (ioapic->selected == REGISTER_ID)
        ioapic->id = value & ID_WRITABLE;
    else if (index / 2 < LAYOUT_IOAPIC_PINS)
        write_entry(ioapic, index / 2, index % 2 * 32, value);
}

static uint64_t ioapic_read(void *device, uint64_t offset, unsigned size)
{
    struct ioapic *ioapic = device;
    uint32_t value = 0;

    (void)size; /* the bus cuts the value to it */
    pthread_mutex_lock(&ioapic->bus->lock);
    if (offset == OFFSET_SELECT)
        value = ioapic->selected;
    else if (offset == OFFSET_DATA)
        value = read_selected(ioapic);
    pthread_mutex_unlock(&ioapic->bus->lock);
    return value;
}

static void ioapic_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct ioapic *ioapic = device;

    pthread_mutex_lock(&ioapic->bus->lock);
    if (offset == OFFSET_SELECT)
        ioapic->selected = (uint8_t)value;
    else if (offset == OFFSET_DATA && size == 4) /* as a whole (3.1.2) */
        write_selected(ioapic, (uint32_t)value);
    pthread_mutex_unlock(&ioapic->bus->lock);
}

static const struct bus_ops ioapic_ops = {
    .name = "IOAPIC",
    .width_bytes = 4,
    .read = ioapic_read,
    .write = ioapic_write,
};

int ioapic_attach(struct ioapic *ioapic, struct bus *mmio, struct error *err)
{
    return bus_attach(mmio, LAYOUT_IOAPIC, WINDOW_BYTES, &ioapic_ops, ioapic, err);
}
