/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets an interrupt message; see apic_bus_private.h. */
#include "device/apic_bus_private.h"

#include "device/lapic_private.h"

void apic_bus_event(const struct apic_bus *bus, uint32_t cpu_index, enum irq_event event,
                    uint8_t vector)
{
    if (bus->processors.event != NULL)
        bus->processors.event(bus->processors.context, cpu_index, event, vector);
}

static bool is_meant(const struct lapic *lapic, const struct apic_message *message)
{
    if (!lapic_is_on(lapic) || lapic == message->except)
        return false;
    if (message->broadcast)
        return true;
    return message->logical ? lapic_has_logical_id(lapic, message->destination)
                            : lapic->index == message->destination;
}

/* The least busy of those that are meant; among equals they take turns. NULL: none
 * accepts fixed interrupts. */
static struct lapic *find_receiver(struct apic_bus *bus,
                                   const struct apic_message *message)
{
    struct lapic *best = NULL;

    for (uint32_t i = 1; i <= bus->count; i++) {
        struct lapic *lapic = &bus->lapics[(bus->last_receiver + i) % bus->count];

        if (!is_meant(lapic, message) || !lapic_is_enabled(lapic))
            continue;
        if (best == NULL ||
            lapic_processor_priority(lapic) < lapic_processor_priority(best))
            best = lapic;
    }
    if (best != NULL)
        bus->last_receiver = best->index;
    return best;
}

unsigned apic_bus_send(struct apic_bus *bus, const struct apic_message *message)
{
    unsigned taken = 0;

    if (message->delivery == APIC_LOWEST_PRIORITY) {
        struct lapic *receiver = find_receiver(bus, message);

        return receiver != NULL && lapic_deliver(receiver, message) ? 1 : 0;
    }
    for (uint32_t i = 0; i < bus->count; i++)
        if (is_meant(&bus->lapics[i], message) && lapic_deliver(&bus->lapics[i], message))
            taken++;
    return taken;
}

void apic_bus_external(void *context, uint32_t line, bool level)
{
    struct apic_bus *bus = context;

    for (uint32_t i = 0; i < bus->count; i++)
        lapic_set_pin(&bus->lapics[i], line, level);
}
