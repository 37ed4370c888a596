/* SPDX-License-Identifier: Apache-2.0 */
/* A local APIC's priorities, and what arrives at it; see lapic_private.h. */
#include "device/lapic_private.h"

#include <string.h>

#include "device/ioapic_private.h"
#include "device/pic_private.h"
#include "x86/layout.h"

/* Vectors below belong to exceptions: they are errors (10.5.2). */
#define FIRST_LEGAL_VECTOR 16

#define PRIORITY_CLASS 0xf0u /* of a vector, and of TPR and PPR (10.8.3) */

#define DESTINATION_FORMAT_FLAT 0xffffffffu
#define DESTINATION_FORMAT_CLUSTER 0x0fffffffu

/* ---- sets of vectors
 * ------------------------------------------------------------------- */

static void vectors_set(struct lapic_vectors *vectors, uint8_t vector, bool on)
{
    uint32_t bit = UINT32_C(1) << (vector % 32);

    if (on)
        vectors->words[vector / 32] |= bit;
    else
        vectors->words[vector / 32] &= ~bit;
}

static bool vectors_has(const struct lapic_vectors *vectors, uint8_t vector)
{
    return (vectors->words[vector / 32] >> (vector % 32) & 1) != 0;
}

static int vectors_highest(const struct lapic_vectors *vectors)
{
    for (int i = 7; i >= 0; i--)
        if (vectors->words[i] != 0)
            return 32 * i + 31 - __builtin_clz(vectors->words[i]);
    return -1;
}

/* ---- states
 * ---------------------------------------------------------------------------- */

void lapic_clear(struct lapic *lapic)
{
    lapic_timer_stop(lapic);
    lapic->task_priority = 0;
    lapic->logical_destination = 0;
    lapic->destination_format = DESTINATION_FORMAT_FLAT;
    lapic->spurious = 0xff;
    lapic->errors = 0;
    lapic->new_errors = 0;
    lapic->command = 0;
    for (int i = 0; i < LVT_COUNT; i++)
        lapic->lvt[i] = LVT_MASKED;
    lapic->in_service = lapic->requested = lapic->level_triggered =
        (struct lapic_vectors){0};
    lapic->initial_count = 0;
    lapic->divide = 0;
    lapic->tsc_deadline = 0;
}

void lapic_power_on(struct lapic *lapic)
{
    lapic->base = LAYOUT_LOCAL_APIC | APIC_BASE_ENABLED;
    lapic_clear(lapic);
    memset(lapic->pins, 0, sizeof(lapic->pins));
    if (lapic->index != 0)
        return;
    lapic->base |= APIC_BASE_BOOTSTRAP;
    lapic->lvt[LVT_LINT0] = APIC_EXTERNAL << LVT_DELIVERY_SHIFT;
    lapic->lvt[LVT_LINT1] = APIC_NMI << LVT_DELIVERY_SHIFT;
}

int lapic_init(struct lapic *lapic, struct apic_bus *bus, uint32_t index,
               struct machine_clock *clock, struct error *err)
{
    *lapic = (struct lapic){
        .bus = bus,
        .index = index,
        .clock = clock,
        .source = lapic_source,
        .timer_ns = MACHINE_TIMER_OFF,
    };
    lapic->source.context = lapic;
    if (machine_timer_init(&lapic->timer, clock, lapic_timer_expired, lapic, err) < 0)
        return err->code;
    lapic_power_on(lapic);
    return 0;
}

void lapic_finish(struct lapic *lapic)
{
    machine_timer_finish(&lapic->timer);
}

/* ---- priorities
 * ------------------------------------------------------------------------ */

uint32_t lapic_processor_priority(const struct lapic *lapic)
{
    int in_service = vectors_highest(&lapic->in_service);
    uint32_t class = in_service < 0 ? 0 : (uint32_t)in_service & PRIORITY_CLASS;

    return (lapic->task_priority & PRIORITY_CLASS) >= class ? lapic->task_priority
                                                            : class;
}

/* The vector that the processor would take now, or -1. */
static int next_vector(const struct lapic *lapic)
{
    int vector = vectors_highest(&lapic->requested);

    if (vector < 0 || !lapic_is_enabled(lapic))
        return -1;
    if (((uint32_t)vector & PRIORITY_CLASS) <=
        (lapic_processor_priority(lapic) & PRIORITY_CLASS))
        return -1;
    return vector;
}

/* The 8259's request comes in at LINT0; with the APIC off the pin is INTR (10.4.3). */
static bool has_external(const struct lapic *lapic)
{
    uint32_t entry = lapic->lvt[LVT_LINT0];

    if (!lapic->pins[0])
        return false;
    if (!lapic_is_on(lapic))
        return true;
    return (entry & LVT_MASKED) == 0 &&
           (entry & LVT_DELIVERY) == APIC_EXTERNAL << LVT_DELIVERY_SHIFT;
}

void lapic_update(struct lapic *lapic)
{
    if (has_external(lapic) || next_vector(lapic) >= 0)
        apic_bus_event(lapic->bus, lapic->index, IRQ_EVENT_INTERRUPT, 0);
}

int lapic_take(struct lapic *lapic)
{
    int vector;

    if (has_external(lapic)) /* not subject to priorities (10.8.1) */
        return pic_acknowledge(lapic->bus->pic);
    vector = next_vector(lapic);
    if (vector < 0)
        return -1;
    vectors_set(&lapic->requested, (uint8_t)vector, false);
    vectors_set(&lapic->in_service, (uint8_t)vector, true);
    return vector;
}

void lapic_end_of_interrupt(struct lapic *lapic)
{
    int vector = vectors_highest(&lapic->in_service);

    if (vector < 0)
        return;
    vectors_set(&lapic->in_service, (uint8_t)vector, false);
    if (vectors_has(&lapic->level_triggered, (uint8_t)vector)) {
        for (unsigned pin = 0; pin < LAPIC_LINTS; pin++)
            if ((lapic->lvt[LVT_LINT0 + pin] & LVT_VECTOR) == (uint32_t)vector) {
                lapic->lvt[LVT_LINT0 + pin] &= ~LVT_REMOTE_IRR;
                lapic_update_pin(lapic, pin);
            }
        ioapic_end_of_interrupt(lapic->bus->ioapic, (uint8_t)vector);
    }
    lapic_update(lapic);
}

/* ---- arrivals
 * -------------------------------------------------------------------------- */

void lapic_report_error(struct lapic *lapic, uint32_t error)
{
    bool first = lapic->new_errors == 0;

    lapic->new_errors |= error;
    if (first) /* the next interrupt is for what comes after a write to ESR (10.5.3) */
        lapic_raise_local(lapic, LVT_ERROR);
}

static bool accept_fixed(struct lapic *lapic, uint8_t vector, bool level)
{
    if (!lapic_is_enabled(lapic))
        return false;
    if (vector < FIRST_LEGAL_VECTOR) {
        lapic_report_error(lapic, ERROR_RECEIVED_ILLEGAL_VECTOR);
        return false;
    }
    vectors_set(&lapic->requested, vector, true);
    vectors_set(&lapic->level_triggered, vector, level);
    lapic_update(lapic);
    return true;
}

bool lapic_deliver(struct lapic *lapic, const struct apic_message *message)
{
    switch (message->delivery) {
    case APIC_FIXED:
    case APIC_LOWEST_PRIORITY:
        return accept_fixed(lapic, message->vector, message->level);
    case APIC_NMI:
        apic_bus_event(lapic->bus, lapic->index, IRQ_EVENT_NMI, 0);
        return true;
    case APIC_INIT:
        lapic_clear(lapic);
        apic_bus_event(lapic->bus, lapic->index, IRQ_EVENT_INIT, 0);
        return true;
    case APIC_STARTUP:
        apic_bus_event(lapic->bus, lapic->index, IRQ_EVENT_STARTUP, message->vector);
        return true;
    case APIC_SMI:
    case APIC_EXTERNAL: /* there is one 8259, and it is at LINT0 */
        return false;
    }
    return false; /* reserved encodings */
}

void lapic_raise_local(struct lapic *lapic, enum lapic_lvt entry)
{
    uint32_t value = lapic->lvt[entry];
    struct apic_message message = {
        .delivery = (value & LVT_DELIVERY) >> LVT_DELIVERY_SHIFT,
        .level = (value & LVT_LEVEL) != 0,
        .vector = (uint8_t)value,
    };

    if ((value & LVT_MASKED) == 0 && message.delivery != APIC_STARTUP)
        (void)lapic_deliver(lapic, &message);
}

/* ---- pins
 * ------------------------------------------------------------------------------ */

/* A level-triggered fixed entry: requested as long as the pin is up and the one before
 * has ended. The pin's polarity is whatever its device means by "up". */
void lapic_update_pin(struct lapic *lapic, unsigned pin)
{
    uint32_t *entry = &lapic->lvt[LVT_LINT0 + pin];

    if (!lapic->pins[pin] || (*entry & (LVT_DELIVERY | LVT_MASKED)) != 0 ||
        (*entry & (LVT_LEVEL | LVT_REMOTE_IRR)) != LVT_LEVEL || !lapic_is_enabled(lapic))
        return;
    *entry |= LVT_REMOTE_IRR;
    lapic_raise_local(lapic, LVT_LINT0 + pin);
}

void lapic_set_pin(struct lapic *lapic, unsigned pin, bool level)
{
    uint32_t entry = lapic->lvt[LVT_LINT0 + pin];
    bool edge = level && !lapic->pins[pin];

    lapic->pins[pin] = level;
    if (!edge)
        return;
    if (!lapic_is_on(lapic)) { /* the pins are INTR and NMI */
        apic_bus_event(lapic->bus, lapic->index,
                       pin == 0 ? IRQ_EVENT_INTERRUPT : IRQ_EVENT_NMI, 0);
        return;
    }
    if ((entry & LVT_DELIVERY) == APIC_EXTERNAL << LVT_DELIVERY_SHIFT)
        lapic_update(lapic);
    else if ((entry & (LVT_DELIVERY | LVT_LEVEL)) == LVT_LEVEL)
        lapic_update_pin(lapic, pin);
    else
        lapic_raise_local(lapic, LVT_LINT0 + pin);
}

/* ---- logical destinations (10.6.2.2, 10.12.10.2)
 * --------------------------------------------------------------------------------- */

uint32_t lapic_logical_destination(const struct lapic *lapic)
{
    if (lapic_is_x2apic(lapic))
        return lapic->index >> 4 << 16 | UINT32_C(1) << (lapic->index & 0xf);
    return lapic->logical_destination;
}

bool lapic_has_logical_id(const struct lapic *lapic, uint32_t destination)
{
    uint32_t id = lapic_logical_destination(lapic);

    if (lapic_is_x2apic(lapic))
        return id >> 16 == destination >> 16 && (id & destination & 0xffff) != 0;
    id >>= 24;
    if (lapic->destination_format == DESTINATION_FORMAT_FLAT)
        return (id & destination & 0xff) != 0;
    if (lapic->destination_format != DESTINATION_FORMAT_CLUSTER)
        return false;
    return ((destination >> 4 & 0xf) == 0xf || (id ^ destination) >> 4 == 0) &&
           (id & destination & 0xf) != 0;
}
