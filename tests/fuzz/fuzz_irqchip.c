/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what guests, devices and time can do to the interrupt controllers and the
 * interval timer, in any order.
 *
 * The input is a list of steps of 8 bytes: what to do, a processor, a place, a value.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/virtual_clock.h"
#include "device/irqchip.h"
#include "x86/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEP_BYTES 8
#define CPUS 3
#define MSR_APIC_BASE 0x1b
#define MSR_TSC_DEADLINE 0x6e0
#define MSR_X2APIC 0x800

enum step_kind {
    STEP_PORT,
    STEP_MMIO,
    STEP_PAGE,
    STEP_MSR,
    STEP_ACKNOWLEDGE,
    STEP_PRIORITY,
    STEP_LINE,
    STEP_MESSAGE,
    STEP_TIME,
    STEP_RESET,
    STEP_KINDS,
};

struct machine {
    struct virtual_clock clock;
    struct bus ports;
    struct bus mmio;
    struct irqchip *irqchip;
};

static void take_event(void *context, uint32_t cpu_index, enum irq_event event,
                       uint8_t vector)
{
    (void)context;
    (void)vector;
    CHECK(cpu_index < CPUS && event <= IRQ_EVENT_STARTUP);
}

/* A counter of one tick a nanosecond. */
static uint64_t ns_until_tsc(void *context, uint32_t cpu_index, uint64_t tsc)
{
    const struct machine *machine = context;

    CHECK(cpu_index < CPUS);
    return tsc - min_u64(tsc, machine->clock.now_ns);
}

static void connect_processors(struct machine *machine)
{
    const struct irqchip_processors processors = {
        .event = take_event, .ns_until_tsc = ns_until_tsc, .context = machine};

    irqchip_connect(machine->irqchip, &processors);
}

/* Reads with an even step, writes with an odd one. */
static void access_bus(const struct bus *bus, const uint8_t *step)
{
    const struct bus_range *range = &bus->ranges[step[2] % bus->count];
    uint64_t address = range->start + step[3] % range->size;
    unsigned size = bus->count == 1 ? 4 : 1;

    if (step[1] % 2 != 0)
        bus_write(bus, address, size, load_le32(step + 4));
    else
        CHECK(bus_read(bus, address, size) >> (8 * size) == 0);
}

static void access_page(const struct irq_source *source, const uint8_t *step)
{
    uint64_t gpa = LAYOUT_LOCAL_APIC + (uint64_t)step[3] * 16;
    uint64_t value;

    if (step[2] % 2 != 0)
        (void)source->write(source->context, gpa, 4, load_le32(step + 4));
    else
        (void)source->read(source->context, gpa, 4, &value);
}

static void access_msr(const struct irq_source *source, const uint8_t *step)
{
    uint32_t index = MSR_X2APIC + step[3] % 64;
    uint64_t value = load_le32(step + 4);

    if (step[3] >= 0xc0)
        index = step[3] % 2 != 0 ? MSR_APIC_BASE : MSR_TSC_DEADLINE;
    if (index == MSR_X2APIC + 0x30) /* ICR: both halves */
        value = value << 32 | value;
    if (step[2] % 2 != 0)
        (void)source->write_msr(source->context, index, value);
    else
        (void)source->read_msr(source->context, index, &value);
}

static void set_priority(const struct irq_source *source, uint8_t priority)
{
    source->set_priority(source->context, priority & 0xf);
    CHECK(source->get_priority(source->context) == (priority & 0xf));
}

static void pass_time(struct machine *machine, uint64_t ns)
{
    virtual_clock_advance(&machine->clock, machine->clock.now_ns + ns);
}

static void reset(struct machine *machine)
{
    irqchip_connect(machine->irqchip, NULL);
    irqchip_reset(machine->irqchip);
    for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
        const struct irq_source *source = irqchip_source(machine->irqchip, cpu);

        CHECK(source->acknowledge(source->context) == -1);
    }
    connect_processors(machine);
}

static void do_step(struct machine *machine, const uint8_t *step)
{
    const struct irq_source *source =
        irqchip_source(machine->irqchip, step[1] / 2 % CPUS);
    uint32_t value = load_le32(step + 4);

    switch ((enum step_kind)(step[0] % STEP_KINDS)) {
    case STEP_PORT:
        access_bus(&machine->ports, step);
        break;
    case STEP_MMIO:
        access_bus(&machine->mmio, step);
        break;
    case STEP_PAGE:
        access_page(source, step);
        break;
    case STEP_MSR:
        access_msr(source, step);
        break;
    case STEP_ACKNOWLEDGE:
        CHECK(source->acknowledge(source->context) <= 0xff);
        break;
    case STEP_PRIORITY:
        set_priority(source, step[2]);
        break;
    case STEP_LINE:
        irqchip_set_line(machine->irqchip, step[2], step[3] % 2 != 0);
        break;
    case STEP_MESSAGE:
        irqchip_signal_msi(machine->irqchip,
                           LAYOUT_LOCAL_APIC + (uint64_t)load_le16(step + 2) * 4, value);
        break;
    case STEP_TIME:
        pass_time(machine, (uint64_t)value << step[2] % 16);
        break;
    case STEP_RESET:
        reset(machine);
        break;
    case STEP_KINDS:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct machine machine = {.irqchip = NULL};
    struct irqchip_options options = {.cpu_count = CPUS, .clock = &machine.clock.clock};
    struct error err = ERROR_NONE;

    virtual_clock_init(&machine.clock);
    bus_init(&machine.ports, "port");
    bus_init(&machine.mmio, "MMIO");
    CHECK(irqchip_create(&options, &machine.ports, &machine.mmio, &machine.irqchip,
                         &err) == 0);
    connect_processors(&machine);
    for (; size >= STEP_BYTES; data += STEP_BYTES, size -= STEP_BYTES)
        do_step(&machine, data);
    irqchip_destroy(machine.irqchip);
    return 0;
}
