/* SPDX-License-Identifier: Apache-2.0 */
/* See apic_fixture.h. */
#include "apic_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"

static void note_event(void *context, uint32_t cpu_index, enum irq_event event,
                       uint8_t vector)
{
    struct apic_fixture *fixture = context;

    fixture->events[cpu_index][event]++;
    if (event == IRQ_EVENT_STARTUP)
        fixture->startup_vector[cpu_index] = vector;
}

static uint64_t answer_tsc(void *context, uint32_t cpu_index, uint64_t tsc)
{
    struct apic_fixture *fixture = context;

    (void)cpu_index;
    fixture->asked_tsc = tsc;
    return fixture->ns_until_tsc;
}

int apic_setup(void **state)
{
    struct apic_fixture *fixture = calloc(1, sizeof(*fixture));
    const struct irq_line external = {.set = apic_bus_external};
    struct irq_line output = external;
    struct error err = ERROR_NONE;

    assert_non_null(fixture);
    virtual_clock_init(&fixture->clock);
    virtual_clock_set(&fixture->clock, 1000000000);
    fixture->apic_bus = (struct apic_bus){
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .count = FIXTURE_CPUS,
        .lapics = fixture->lapics,
        .ioapic = &fixture->ioapic,
        .pic = &fixture->pic,
        .processors = {.event = note_event,
                       .ns_until_tsc = answer_tsc,
                       .context = fixture},
    };
    for (uint32_t i = 0; i < FIXTURE_CPUS; i++)
        assert_int_equal(lapic_init(&fixture->lapics[i], &fixture->apic_bus, i,
                                    &fixture->clock.clock, &err),
                         0);
    output.context = &fixture->apic_bus;
    ioapic_init(&fixture->ioapic, &fixture->apic_bus);
    pic_init(&fixture->pic, &fixture->apic_bus.lock, output);
    bus_init(&fixture->ports, "port");
    bus_init(&fixture->mmio, "MMIO");
    assert_int_equal(pic_attach(&fixture->pic, &fixture->ports, &err), 0);
    assert_int_equal(ioapic_attach(&fixture->ioapic, &fixture->mmio, &err), 0);
    apic_enable(fixture, 0);
    *state = fixture;
    return 0;
}

int apic_teardown(void **state)
{
    free(*state);
    return 0;
}

uint32_t apic_read(struct apic_fixture *fixture, unsigned cpu, uint32_t offset)
{
    const struct irq_source *source = &fixture->lapics[cpu].source;
    uint64_t value = 0;

    assert_true(source->read(source->context, LAYOUT_LOCAL_APIC + offset, 4, &value));
    return (uint32_t)value;
}

void apic_write(struct apic_fixture *fixture, unsigned cpu, uint32_t offset,
                uint32_t value)
{
    const struct irq_source *source = &fixture->lapics[cpu].source;

    assert_true(source->write(source->context, LAYOUT_LOCAL_APIC + offset, 4, value));
}

bool apic_read_msr(struct apic_fixture *fixture, unsigned cpu, uint32_t index,
                   uint64_t *value)
{
    const struct irq_source *source = &fixture->lapics[cpu].source;

    return source->read_msr(source->context, index, value);
}

bool apic_write_msr(struct apic_fixture *fixture, unsigned cpu, uint32_t index,
                    uint64_t value)
{
    const struct irq_source *source = &fixture->lapics[cpu].source;

    return source->write_msr(source->context, index, value);
}

void apic_enable(struct apic_fixture *fixture, unsigned cpu)
{
    apic_write(fixture, cpu, APIC_REG_SVR, 0x1ff);
}

void apic_enter_x2apic(struct apic_fixture *fixture, unsigned cpu)
{
    uint64_t base = 0;

    assert_true(apic_read_msr(fixture, cpu, MSR_APIC_BASE, &base));
    assert_true(apic_write_msr(fixture, cpu, MSR_APIC_BASE, base | APIC_BASE_X2APIC));
}

int apic_acknowledge(struct apic_fixture *fixture, unsigned cpu)
{
    const struct irq_source *source = &fixture->lapics[cpu].source;

    return source->acknowledge(source->context);
}

void apic_pass_ns(struct apic_fixture *fixture, uint64_t ns)
{
    virtual_clock_advance(&fixture->clock, fixture->clock.now_ns + ns);
}

void apic_set_ioapic_pin(struct apic_fixture *fixture, unsigned pin, bool level)
{
    pthread_mutex_lock(&fixture->apic_bus.lock);
    ioapic_set_pin(&fixture->ioapic, pin, level);
    pthread_mutex_unlock(&fixture->apic_bus.lock);
}

void apic_set_pic_line(struct apic_fixture *fixture, unsigned line, bool level)
{
    pthread_mutex_lock(&fixture->apic_bus.lock);
    pic_set_line(&fixture->pic, line, level);
    pthread_mutex_unlock(&fixture->apic_bus.lock);
}
