/* SPDX-License-Identifier: Apache-2.0 */
/* The interrupt controllers as the machine has them: lines, messages, timers in a loop,
 * and processors on threads of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/irqchip.h"
#include "x86/layout.h"

#define CPUS 2
#define PIC_VECTOR 0x20
#define PIN_VECTOR 0x40 /* of IOAPIC pin 0 */

struct fixture {
    struct loop *loop;
    struct host_clock clock;
    struct bus ports;
    struct bus mmio;
    struct irqchip *irqchip;
    atomic_uint events[CPUS][4];
    void (*on_event)(struct fixture *fixture, uint32_t cpu_index);
};

static void note_event(void *context, uint32_t cpu_index, enum irq_event event,
                       uint8_t vector)
{
    struct fixture *fixture = context;

    (void)vector;
    atomic_fetch_add(&fixture->events[cpu_index][event], 1);
    if (fixture->on_event != NULL)
        fixture->on_event(fixture, cpu_index);
}

static uint64_t no_tsc(void *context, uint32_t cpu_index, uint64_t tsc)
{
    (void)context;
    (void)cpu_index;
    (void)tsc;
    return 0;
}

static void connect_processors(struct fixture *fixture)
{
    const struct irqchip_processors processors = {
        .event = note_event, .ns_until_tsc = no_tsc, .context = fixture};

    irqchip_connect(fixture->irqchip, &processors);
}

static void write_apic(struct fixture *fixture, uint32_t cpu, uint32_t offset,
                       uint32_t value)
{
    const struct irq_source *source = irqchip_source(fixture->irqchip, cpu);

    assert_true(source->write(source->context, LAYOUT_LOCAL_APIC + offset, 4, value));
}

static int acknowledge(struct fixture *fixture, uint32_t cpu)
{
    const struct irq_source *source = irqchip_source(fixture->irqchip, cpu);

    return source->acknowledge(source->context);
}

static void write_entry(struct fixture *fixture, unsigned pin, uint32_t low)
{
    bus_write(&fixture->mmio, LAYOUT_IOAPIC, 4, 0x10 + 2 * pin);
    bus_write(&fixture->mmio, LAYOUT_IOAPIC + 0x10, 4, low);
}

static void out(struct fixture *fixture, uint16_t port, uint8_t value)
{
    bus_write(&fixture->ports, port, 1, value);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct irqchip_options options = {.cpu_count = CPUS};
    struct error err = ERROR_NONE;

    assert_non_null(fixture);
    assert_int_equal(loop_create(&fixture->loop, &err), 0);
    host_clock_init(&fixture->clock, fixture->loop);
    options.clock = &fixture->clock.clock;
    bus_init(&fixture->ports, "port");
    bus_init(&fixture->mmio, "MMIO");
    assert_int_equal(irqchip_create(&options, &fixture->ports, &fixture->mmio,
                                    &fixture->irqchip, &err),
                     0);
    connect_processors(fixture);
    for (uint32_t cpu = 0; cpu < CPUS; cpu++)
        write_apic(fixture, cpu, 0xf0, 0x1ff);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    irqchip_destroy(fixture->irqchip);
    loop_destroy(fixture->loop);
    free(fixture);
    return 0;
}

/* Opens all pins for edges, vector by pin. */
static void open_all_pins(struct fixture *fixture)
{
    for (unsigned pin = 0; pin < LAYOUT_IOAPIC_PINS; pin++)
        write_entry(fixture, pin, PIN_VECTOR + pin);
}

static void lines_reach_the_pins_that_the_madt_names(void **state)
{
    struct fixture *fixture = *state;

    out(fixture, 0x21, 0xff);
    out(fixture, 0xa1, 0xff);
    open_all_pins(fixture);
    for (uint32_t line = 0; line < LAYOUT_IOAPIC_PINS; line++) {
        int expected = line == 0 ? PIN_VECTOR + 2 : PIN_VECTOR + (int)line;

        if (line == 2)
            expected = -1;
        irqchip_set_line(fixture->irqchip, line, true);
        assert_int_equal(acknowledge(fixture, 0), expected);
        write_apic(fixture, 0, 0xb0, 0);
    }
    irqchip_set_line(fixture->irqchip, LAYOUT_IOAPIC_PINS, true); /* there is none */
    irqchip_set_line(fixture->irqchip, UINT32_MAX, true);
    assert_int_equal(acknowledge(fixture, 0), -1);
}

static void replaced_timer_does_not_reach_its_line(void **state)
{
    struct fixture *fixture = *state;

    open_all_pins(fixture);
    irqchip_replace_timer(fixture->irqchip, true);
    out(fixture, 0x43, 0x34); /* the output of counter 0 rises */
    assert_int_equal(acknowledge(fixture, 0), -1);
    irqchip_set_line(fixture->irqchip, LAYOUT_IRQ_TIMER, true);
    assert_int_equal(acknowledge(fixture, 0), PIN_VECTOR + 2);
    write_apic(fixture, 0, 0xb0, 0);
    irqchip_set_line(fixture->irqchip, LAYOUT_IRQ_TIMER, false);
    irqchip_replace_timer(fixture->irqchip, false);
    assert_int_equal(acknowledge(fixture, 0), PIN_VECTOR + 2);
    write_apic(fixture, 0, 0xb0, 0);
    irqchip_replace_timer(fixture->irqchip, true);
    irqchip_replace_timer(fixture->irqchip, false);
    assert_int_equal(acknowledge(fixture, 0), PIN_VECTOR + 2);
}

static void isa_lines_reach_the_8259_too(void **state)
{
    static const uint16_t ports[] = {0x20, 0xa0};
    struct fixture *fixture = *state;

    for (int i = 0; i < 2; i++) {
        out(fixture, ports[i], 0x11);
        out(fixture, ports[i] + 1, (uint8_t)(PIC_VECTOR + 8 * i));
        out(fixture, ports[i] + 1, i == 0 ? 4 : 2);
        out(fixture, ports[i] + 1, 3); /* automatic end */
    }
    for (uint32_t line = 0; line < LAYOUT_IOAPIC_PINS; line++) {
        int expected = line < 16 && line != 2 ? PIC_VECTOR + (int)line : -1;

        irqchip_set_line(fixture->irqchip, line, true);
        assert_int_equal(acknowledge(fixture, 0), expected);
    }
}

static void messages_go_where_their_address_says(void **state)
{
    struct fixture *fixture = *state;

    irqchip_signal_msi(fixture->irqchip, 0xfee00000, 0x51);
    assert_int_equal(acknowledge(fixture, 0), 0x51);
    irqchip_signal_msi(fixture->irqchip, 0xfee01000, 0x52);
    assert_int_equal(acknowledge(fixture, 1), 0x52);
    irqchip_signal_msi(fixture->irqchip, 0xfeeff000, 0x63); /* all */
    assert_int_equal(acknowledge(fixture, 0), 0x63);
    assert_int_equal(acknowledge(fixture, 1), 0x63);
    write_apic(fixture, 1, 0xd0, 0x02000000);
    irqchip_signal_msi(fixture->irqchip, 0xfee02004, 0x74); /* logical */
    assert_int_equal(acknowledge(fixture, 0), -1);
    assert_int_equal(acknowledge(fixture, 1), 0x74);
    irqchip_signal_msi(fixture->irqchip, 0xfee01000, 0x400); /* NMI */
    assert_int_equal(fixture->events[1][IRQ_EVENT_NMI], 1);
}

static void redirectable_message_takes_the_least_busy(void **state)
{
    struct fixture *fixture = *state;

    write_apic(fixture, 0, 0xd0, 0x01000000);
    write_apic(fixture, 1, 0xd0, 0x02000000);
    write_apic(fixture, 1, 0x80, 0x20);
    irqchip_signal_msi(fixture->irqchip, 0xfee0300c, 0x55);
    assert_int_equal(acknowledge(fixture, 1), -1);
    assert_int_equal(acknowledge(fixture, 0), 0x55);
}

static void messages_that_are_none_vanish(void **state)
{
    struct fixture *fixture = *state;

    irqchip_signal_msi(fixture->irqchip, 0xfed00000, 0x51);
    irqchip_signal_msi(fixture->irqchip, UINT64_C(0x1fee00000), 0x51);
    irqchip_signal_msi(fixture->irqchip, 0xfee00000, 0x651); /* start-up */
    assert_int_equal(acknowledge(fixture, 0), -1);
    assert_int_equal(fixture->events[0][IRQ_EVENT_STARTUP], 0);
}

static void stop_loop(struct fixture *fixture, uint32_t cpu_index)
{
    if (cpu_index == 0)
        loop_stop(fixture->loop);
}

static void run(struct fixture *fixture)
{
    struct error err = ERROR_NONE;

    fixture->on_event = stop_loop;
    assert_int_equal(loop_run(fixture->loop, &err), 0);
    fixture->on_event = NULL;
}

static void both_timers_interrupt(void **state)
{
    struct fixture *fixture = *state;

    write_apic(fixture, 0, 0x3e0, 0xb);
    write_apic(fixture, 0, 0x320, 0x31);
    write_apic(fixture, 0, 0x380, 1000000);
    run(fixture);
    assert_int_equal(acknowledge(fixture, 0), 0x31);
    write_apic(fixture, 0, 0xb0, 0);

    open_all_pins(fixture);
    out(fixture, 0x43, 0x30);
    out(fixture, 0x40, 0xa9);
    out(fixture, 0x40, 0x04);
    run(fixture);
    assert_int_equal(acknowledge(fixture, 0), PIN_VECTOR + 2);
}

static void reset_is_power_on_and_lets_the_lines_down(void **state)
{
    struct fixture *fixture = *state;
    const struct irq_source *source = irqchip_source(fixture->irqchip, 0);
    uint64_t value;

    open_all_pins(fixture);
    irqchip_set_line(fixture->irqchip, 5, true);
    irqchip_connect(fixture->irqchip, NULL);
    irqchip_reset(fixture->irqchip);
    connect_processors(fixture);
    assert_true(source->read(source->context, LAYOUT_LOCAL_APIC + 0xf0, 4, &value));
    assert_int_equal(value, 0xff);
    write_apic(fixture, 0, 0xf0, 0x1ff);
    assert_int_equal(acknowledge(fixture, 0), -1);
    open_all_pins(fixture);
    irqchip_set_line(fixture->irqchip, 5, true); /* a new edge */
    assert_int_equal(acknowledge(fixture, 0), PIN_VECTOR + 5);
}

static void without_processors_nobody_is_told(void **state)
{
    struct fixture *fixture = *state;
    unsigned before = fixture->events[0][IRQ_EVENT_INTERRUPT];

    irqchip_connect(fixture->irqchip, NULL);
    irqchip_signal_msi(fixture->irqchip, 0xfee00000, 0x51);
    irqchip_signal_msi(fixture->irqchip, 0xfee00000, 0x400);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], before);
    assert_int_equal(fixture->events[0][IRQ_EVENT_NMI], 0);
    assert_int_equal(acknowledge(fixture, 0), 0x51); /* but it is there */
}

/* ---- threads ---- */

#define ROUNDS 2000

struct player {
    struct fixture *fixture;
    uint32_t cpu;
};

/* Sends the other vCPU an interrupt and waits for its answer, over and over. */
static void *play(void *context)
{
    struct player *player = context;
    uint32_t self = player->cpu;

    for (int i = 0; i < ROUNDS; i++) {
        if (self == 0) {
            write_apic(player->fixture, self, 0x310, 1u << 24);
            write_apic(player->fixture, self, 0x300, 0x55);
        }
        while (acknowledge(player->fixture, self) != 0x55)
            (void)sched_yield();
        write_apic(player->fixture, self, 0xb0, 0);
        if (self == 1) {
            write_apic(player->fixture, self, 0x310, 0);
            write_apic(player->fixture, self, 0x300, 0x55);
        }
    }
    return NULL;
}

static void *shake(void *context)
{
    struct fixture *fixture = context;

    for (int i = 0; i < ROUNDS; i++) {
        irqchip_set_line(fixture->irqchip, (uint32_t)(i % 24), i % 2 != 0);
        irqchip_signal_msi(fixture->irqchip, 0xfee00000, 0x400);
        write_apic(fixture, 0, 0x380, i % 2 != 0 ? 1 : 0);
        out(fixture, 0x43, 0x34);
        out(fixture, 0x40, 1);
        out(fixture, 0x40, 0);
        if (i % 100 == 0)
            connect_processors(fixture);
    }
    loop_stop(fixture->loop);
    return NULL;
}

/* Two vCPUs, a device and the loop's timers at once. */
static void no_interrupt_is_lost_among_threads(void **state)
{
    struct fixture *fixture = *state;
    struct player players[CPUS] = {{fixture, 0}, {fixture, 1}};
    pthread_t threads[CPUS + 1];
    struct error err = ERROR_NONE;

    write_apic(fixture, 0, 0x320, 0x20031 | 0x10000); /* periodic, masked */
    for (int i = 0; i < CPUS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    assert_int_equal(pthread_create(&threads[CPUS], NULL, shake, fixture), 0);
    assert_int_equal(loop_run(fixture->loop, &err), 0);
    for (int i = 0; i <= CPUS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(fixture->events[0][IRQ_EVENT_NMI], ROUNDS);
}

#define CHIP_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHIP_TEST(lines_reach_the_pins_that_the_madt_names),
        CHIP_TEST(replaced_timer_does_not_reach_its_line),
        CHIP_TEST(isa_lines_reach_the_8259_too),
        CHIP_TEST(messages_go_where_their_address_says),
        CHIP_TEST(redirectable_message_takes_the_least_busy),
        CHIP_TEST(messages_that_are_none_vanish),
        CHIP_TEST(both_timers_interrupt),
        CHIP_TEST(reset_is_power_on_and_lets_the_lines_down),
        CHIP_TEST(without_processors_nobody_is_told),
        CHIP_TEST(no_interrupt_is_lost_among_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
