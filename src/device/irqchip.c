/* SPDX-License-Identifier: Apache-2.0 */
/* All interrupt controllers and the 8254 in one struct; see irqchip.h. */
#include "device/irqchip.h"

#include <errno.h>
#include <stdlib.h>

#include "device/ioapic_private.h"
#include "device/lapic_private.h"
#include "device/pic_private.h"
#include "device/pit_private.h"
#include "x86/layout.h"

/* A message's address and data (SDM 10.11). */
#define MESSAGE_ADDRESS_SHIFT 20 /* the bits above choose the local APICs */
#define MESSAGE_DESTINATION_SHIFT 12
#define MESSAGE_REDIRECTABLE 0x8
#define MESSAGE_LOGICAL 0x4
#define MESSAGE_DELIVERY_SHIFT 8
#define MESSAGE_LEVEL 0x8000
#define MESSAGE_BROADCAST 0xff

struct irqchip {
    struct apic_bus apic_bus;
    struct ioapic ioapic;
    struct pic pic;
    struct pit pit;
    bool pit_level;         /* what the 8254 drives; under the bus's lock, as the next */
    bool timer_is_replaced; /* it does not reach its line */
};

/* With the bus's lock held. */
static void set_line(struct irqchip *irqchip, uint32_t gsi, bool level)
{
    if (gsi < LAYOUT_ISA_LINES)
        pic_set_line(&irqchip->pic, gsi, level);
    ioapic_set_pin(&irqchip->ioapic,
                   gsi == LAYOUT_IRQ_TIMER ? LAYOUT_IOAPIC_TIMER_PIN : gsi, level);
}

static void set_pit_line(void *context, uint32_t line, bool level)
{
    struct irqchip *irqchip = context;

    pthread_mutex_lock(&irqchip->apic_bus.lock);
    irqchip->pit_level = level;
    if (!irqchip->timer_is_replaced)
        set_line(irqchip, line, level);
    pthread_mutex_unlock(&irqchip->apic_bus.lock);
}

static int make_lapics(struct irqchip *irqchip, const struct irqchip_options *options,
                       struct error *err)
{
    struct apic_bus *apic_bus = &irqchip->apic_bus;

    apic_bus->lapics = calloc(options->cpu_count, sizeof(apic_bus->lapics[0]));
    if (apic_bus->lapics == NULL)
        return error_set_errno(err, ENOMEM, "cannot allocate %u local APICs",
                               options->cpu_count);
    apic_bus->count = options->cpu_count;
    for (uint32_t i = 0; i < options->cpu_count; i++)
        if (lapic_init(&apic_bus->lapics[i], apic_bus, i, options->clock, err) < 0)
            return err->code;
    return 0;
}

static int make_chips(struct irqchip *irqchip, const struct irqchip_options *options,
                      struct error *err)
{
    const struct irq_line external = {.set = apic_bus_external,
                                      .context = &irqchip->apic_bus};
    const struct irq_line timer = {
        .set = set_pit_line, .context = irqchip, .line = LAYOUT_IRQ_TIMER};

    ioapic_init(&irqchip->ioapic, &irqchip->apic_bus);
    pic_init(&irqchip->pic, &irqchip->apic_bus.lock, external);
    return pit_init(&irqchip->pit, timer, options->clock, err);
}

static int attach(struct irqchip *irqchip, struct bus *ports, struct bus *mmio,
                  struct error *err)
{
    int code = ioapic_attach(&irqchip->ioapic, mmio, err);

    if (code == 0)
        code = pic_attach(&irqchip->pic, ports, err);
    if (code == 0)
        code = pit_attach(&irqchip->pit, ports, err);
    return code;
}

int irqchip_create(const struct irqchip_options *options, struct bus *ports,
                   struct bus *mmio, struct irqchip **irqchip, struct error *err)
{
    struct irqchip *created = calloc(1, sizeof(*created));

    if (created == NULL)
        return error_set_errno(err, ENOMEM, "cannot allocate interrupt controllers");
    created->apic_bus = (struct apic_bus){
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .ioapic = &created->ioapic,
        .pic = &created->pic,
    };
    if (make_lapics(created, options, err) < 0 || make_chips(created, options, err) < 0 ||
        attach(created, ports, mmio, err) < 0) {
        irqchip_destroy(created);
        return err->code;
    }
    *irqchip = created;
    return 0;
}

void irqchip_destroy(struct irqchip *irqchip)
{
    if (irqchip == NULL)
        return;
    for (uint32_t i = 0; i < irqchip->apic_bus.count; i++)
        lapic_finish(&irqchip->apic_bus.lapics[i]);
    pit_finish(&irqchip->pit);
    free(irqchip->apic_bus.lapics);
    free(irqchip);
}

void irqchip_connect(struct irqchip *irqchip, const struct irqchip_processors *processors)
{
    pthread_mutex_lock(&irqchip->apic_bus.lock);
    if (processors != NULL)
        irqchip->apic_bus.processors = *processors;
    else
        irqchip->apic_bus.processors.event = NULL;
    pthread_mutex_unlock(&irqchip->apic_bus.lock);
}

void irqchip_reset(struct irqchip *irqchip)
{
    pit_reset(&irqchip->pit);
    pthread_mutex_lock(&irqchip->apic_bus.lock);
    pic_reset(&irqchip->pic);
    ioapic_reset(&irqchip->ioapic);
    irqchip->pit_level = false;
    irqchip->timer_is_replaced = false;
    for (uint32_t i = 0; i < irqchip->apic_bus.count; i++)
        lapic_power_on(&irqchip->apic_bus.lapics[i]);
    pthread_mutex_unlock(&irqchip->apic_bus.lock);
}

const struct irq_source *irqchip_source(struct irqchip *irqchip, uint32_t cpu_index)
{
    return &irqchip->apic_bus.lapics[cpu_index].source;
}

void irqchip_set_line(void *context, uint32_t gsi, bool level)
{
    struct irqchip *irqchip = context;

    if (gsi >= LAYOUT_IOAPIC_PINS || gsi == LAYOUT_IRQ_CASCADE)
        return;
    pthread_mutex_lock(&irqchip->apic_bus.lock);
    set_line(irqchip, gsi, level);
    pthread_mutex_unlock(&irqchip->apic_bus.lock);
}

void irqchip_replace_timer(struct irqchip *irqchip, bool replaced)
{
    pthread_mutex_lock(&irqchip->apic_bus.lock);
    irqchip->timer_is_replaced = replaced;
    set_line(irqchip, LAYOUT_IRQ_TIMER, !replaced && irqchip->pit_level);
    pthread_mutex_unlock(&irqchip->apic_bus.lock);
}

void irqchip_signal_msi(struct irqchip *irqchip, uint64_t address, uint32_t data)
{
    uint32_t destination = (uint32_t)(address >> MESSAGE_DESTINATION_SHIFT & 0xff);
    struct apic_message message = {
        .destination = destination,
        .broadcast = destination == MESSAGE_BROADCAST,
        .logical = (address & MESSAGE_LOGICAL) != 0,
        .delivery = data >> MESSAGE_DELIVERY_SHIFT & 7,
        .level = (data & MESSAGE_LEVEL) != 0,
        .vector = (uint8_t)data,
    };

    if (address >> MESSAGE_ADDRESS_SHIFT != LAYOUT_LOCAL_APIC >> MESSAGE_ADDRESS_SHIFT ||
        message.delivery == APIC_STARTUP)
        return;
    if (message.delivery == APIC_FIXED && (address & MESSAGE_REDIRECTABLE) != 0)
        message.delivery = APIC_LOWEST_PRIORITY;
    pthread_mutex_lock(&irqchip->apic_bus.lock);
    (void)apic_bus_send(&irqchip->apic_bus, &message);
    pthread_mutex_unlock(&irqchip->apic_bus.lock);
}
