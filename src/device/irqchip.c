/* SPDX-License-Identifier: Apache-2.0 */
/* All interrupt controllers and the 8254 in one struct; see irqchip.h. */
#include "device/irqchip.h"

#include <errno.h>
#include <stdlib.h>

#include "base/timer.h"
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
    struct loop_timer *lapic_timers; /* one a local APIC */
    struct ioapic ioapic;
    struct pic pic;
    struct pit pit;
    struct loop_timer pit_timer;
};

static void set_timer(void *context, uint64_t deadline_ns)
{
    if (deadline_ns == ALARM_OFF)
        loop_timer_disarm(context);
    else
        loop_timer_arm(context, deadline_ns);
}

static int make_lapics(struct irqchip *irqchip, const struct irqchip_options *options,
                       struct error *err)
{
    struct apic_bus *apic_bus = &irqchip->apic_bus;

    apic_bus->lapics = calloc(options->cpu_count, sizeof(apic_bus->lapics[0]));
    irqchip->lapic_timers = calloc(options->cpu_count, sizeof(irqchip->lapic_timers[0]));
    if (apic_bus->lapics == NULL || irqchip->lapic_timers == NULL)
        return error_set_errno(err, ENOMEM, "cannot allocate %u local APICs",
                               options->cpu_count);
    apic_bus->count = options->cpu_count;
    for (uint32_t i = 0; i < options->cpu_count; i++) {
        struct loop_timer *timer = &irqchip->lapic_timers[i];
        const struct lapic_options lapic = {
            .index = i,
            .monotonic_ns = options->monotonic_ns,
            .alarm = {.set = set_timer, .context = timer},
        };

        if (loop_timer_init(timer, options->loop, lapic_timer_expired,
                            &apic_bus->lapics[i], err) < 0)
            return err->code;
        lapic_init(&apic_bus->lapics[i], apic_bus, &lapic);
    }
    return 0;
}

static int make_chips(struct irqchip *irqchip, const struct irqchip_options *options,
                      struct error *err)
{
    const struct irq_line external = {.set = apic_bus_external,
                                      .context = &irqchip->apic_bus};
    const struct irq_line timer = {
        .set = irqchip_set_line, .context = irqchip, .line = LAYOUT_IRQ_TIMER};
    const struct alarm alarm = {.set = set_timer, .context = &irqchip->pit_timer};

    if (loop_timer_init(&irqchip->pit_timer, options->loop, pit_expired, &irqchip->pit,
                        err) < 0)
        return err->code;
    ioapic_init(&irqchip->ioapic, &irqchip->apic_bus);
    pic_init(&irqchip->pic, &irqchip->apic_bus.lock, external);
    pit_init(&irqchip->pit, timer, alarm, options->monotonic_ns);
    return 0;
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
        loop_timer_finish(&irqchip->lapic_timers[i]);
    loop_timer_finish(&irqchip->pit_timer);
    free(irqchip->lapic_timers);
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
    if (gsi < LAYOUT_ISA_LINES)
        pic_set_line(&irqchip->pic, gsi, level);
    ioapic_set_pin(&irqchip->ioapic,
                   gsi == LAYOUT_IRQ_TIMER ? LAYOUT_IOAPIC_TIMER_PIN : gsi, level);
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
