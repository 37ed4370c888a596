/* SPDX-License-Identifier: Apache-2.0 */
/* The IOAPIC: registers, edge- and level-triggered pins, destinations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "apic_fixture.h"
#include "base/bytes.h"

#define SELECT (LAYOUT_IOAPIC + 0x00)
#define DATA (LAYOUT_IOAPIC + 0x10)
#define PIN 14
#define VECTOR 0x55
#define LEVEL 0x8000u
#define REMOTE_IRR 0x4000u
#define MASKED 0x10000u
#define LOGICAL 0x800u
#define LOWEST_PRIORITY 0x100u

static uint32_t get(struct apic_fixture *fixture, uint8_t index)
{
    bus_write(&fixture->mmio, SELECT, 4, index);
    return (uint32_t)bus_read(&fixture->mmio, DATA, 4);
}

static void set(struct apic_fixture *fixture, uint8_t index, uint32_t value)
{
    bus_write(&fixture->mmio, SELECT, 4, index);
    bus_write(&fixture->mmio, DATA, 4, value);
}

static void program(struct apic_fixture *fixture, unsigned pin, uint32_t low,
                    uint8_t destination)
{
    set(fixture, (uint8_t)(0x11 + 2 * pin), (uint32_t)destination << 24);
    set(fixture, (uint8_t)(0x10 + 2 * pin), low);
}

static uint32_t entry(struct apic_fixture *fixture, unsigned pin)
{
    return get(fixture, (uint8_t)(0x10 + 2 * pin));
}

static void pulse(struct apic_fixture *fixture, unsigned pin)
{
    apic_set_ioapic_pin(fixture, pin, true);
    apic_set_ioapic_pin(fixture, pin, false);
}

static void end(struct apic_fixture *fixture, unsigned cpu)
{
    apic_write(fixture, cpu, APIC_REG_EOI, 0);
}

/* Interrupts of vCPU 0, taken and ended. */
static unsigned interrupts(struct apic_fixture *fixture)
{
    unsigned count = 0;

    while (apic_acknowledge(fixture, 0) == VECTOR) {
        end(fixture, 0);
        count++;
    }
    return count;
}

/* ---- registers ---- */

static void has_24_pins_masked_at_power_on(void **state)
{
    struct apic_fixture *fixture = *state;

    assert_int_equal(get(fixture, 0x00), 0);
    assert_int_equal(get(fixture, 0x01), 0x00170011);
    for (uint8_t pin = 0; pin < 24; pin++) {
        assert_int_equal(entry(fixture, pin), MASKED);
        assert_int_equal(get(fixture, (uint8_t)(0x11 + 2 * pin)), 0);
    }
    assert_int_equal(get(fixture, 0x40), 0);
    assert_int_equal(get(fixture, 0x03), 0);
}

static void keeps_only_writable_bits(void **state)
{
    struct apic_fixture *fixture = *state;

    set(fixture, 0x00, 0xffffffff);
    assert_int_equal(get(fixture, 0x00), 0x0f000000);
    assert_int_equal(get(fixture, 0x02), 0x0f000000); /* arbitration follows the id */
    set(fixture, 0x02, 0);
    assert_int_equal(get(fixture, 0x02), 0x0f000000);
    set(fixture, 0x01, 0);
    assert_int_equal(get(fixture, 0x01), 0x00170011);
    set(fixture, 0x10, 0xffffffff);
    set(fixture, 0x11, 0xffffffff);
    assert_int_equal(get(fixture, 0x10), 0x0001afff);
    assert_int_equal(get(fixture, 0x11), 0xff000000);
    assert_int_equal(bus_read(&fixture->mmio, SELECT, 4), 0x11);
    bus_write(&fixture->mmio, DATA, 1, 0); /* not as a whole */
    assert_int_equal(get(fixture, 0x11), 0xff000000);
    set(fixture, 0x40, 0xffffffff); /* there is none */
}

/* ---- edges ---- */

static void rising_edge_interrupts_once(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PIN, VECTOR, 0);
    apic_set_ioapic_pin(fixture, PIN, true);
    apic_set_ioapic_pin(fixture, PIN, true);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_TMR + 0x20), 0);
    assert_int_equal(interrupts(fixture), 1);
    apic_set_ioapic_pin(fixture, PIN, false);
    assert_int_equal(interrupts(fixture), 0);
    apic_set_ioapic_pin(fixture, PIN, true);
    assert_int_equal(interrupts(fixture), 1);
    assert_int_equal(entry(fixture, PIN), VECTOR);
}

static void edge_while_masked_is_lost(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PIN, MASKED | VECTOR, 0);
    apic_set_ioapic_pin(fixture, PIN, true);
    program(fixture, PIN, VECTOR, 0);
    assert_int_equal(interrupts(fixture), 0);
    apic_set_ioapic_pin(fixture, PIN, false);
    apic_set_ioapic_pin(fixture, PIN, true);
    assert_int_equal(interrupts(fixture), 1);
}

/* ---- levels ---- */

static void level_interrupts_until_it_is_down(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PIN, LEVEL | VECTOR, 0);
    apic_set_ioapic_pin(fixture, PIN, true);
    assert_int_equal(entry(fixture, PIN), REMOTE_IRR | LEVEL | VECTOR);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_TMR + 0x20), 1u << 21);
    assert_int_equal(apic_acknowledge(fixture, 0), VECTOR);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    end(fixture, 0); /* still up */
    assert_int_equal(entry(fixture, PIN), REMOTE_IRR | LEVEL | VECTOR);
    assert_int_equal(apic_acknowledge(fixture, 0), VECTOR);
    apic_set_ioapic_pin(fixture, PIN, false);
    end(fixture, 0);
    assert_int_equal(entry(fixture, PIN), LEVEL | VECTOR);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
}

static void levels_before_the_end_are_one(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PIN, LEVEL | VECTOR, 0);
    pulse(fixture, PIN);
    pulse(fixture, PIN);
    pulse(fixture, PIN);
    assert_int_equal(interrupts(fixture), 1);
}

static void level_while_masked_comes_later(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PIN, MASKED | LEVEL | VECTOR, 0);
    apic_set_ioapic_pin(fixture, PIN, true);
    assert_int_equal(interrupts(fixture), 0);
    assert_int_equal(entry(fixture, PIN), MASKED | LEVEL | VECTOR);
    set(fixture, 0x10 + 2 * PIN, LEVEL | VECTOR);
    assert_int_equal(apic_acknowledge(fixture, 0), VECTOR);
}

static void two_pins_may_share_a_vector(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, 16, LEVEL | VECTOR, 0);
    program(fixture, 17, LEVEL | VECTOR, 0);
    apic_set_ioapic_pin(fixture, 16, true);
    apic_set_ioapic_pin(fixture, 17, true);
    assert_int_equal(apic_acknowledge(fixture, 0), VECTOR);
    apic_set_ioapic_pin(fixture, 16, false);
    end(fixture, 0);
    assert_int_equal(entry(fixture, 16), LEVEL | VECTOR);
    assert_int_equal(entry(fixture, 17), REMOTE_IRR | LEVEL | VECTOR);
    apic_set_ioapic_pin(fixture, 17, false);
    assert_int_equal(interrupts(fixture), 1);
}

/* kvm-unit-tests' ioapic test changes the destination in the handler. */
static void new_destination_in_service_ends_as_usual(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_enable(fixture, 1);
    program(fixture, PIN, LEVEL | VECTOR, 0);
    apic_set_ioapic_pin(fixture, PIN, true);
    assert_int_equal(apic_acknowledge(fixture, 0), VECTOR);
    apic_set_ioapic_pin(fixture, PIN, false);
    set(fixture, 0x11 + 2 * PIN, 1u << 24);
    end(fixture, 0);
    assert_int_equal(entry(fixture, PIN), LEVEL | VECTOR);
    apic_set_ioapic_pin(fixture, PIN, true);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    assert_int_equal(apic_acknowledge(fixture, 1), VECTOR);
}

/* Kernels clear a stuck remote IRR by a turn through edge mode. */
static void edge_mode_clears_remote_irr(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PIN, LEVEL | VECTOR, 0);
    pulse(fixture, PIN);
    assert_int_equal(entry(fixture, PIN), REMOTE_IRR | LEVEL | VECTOR);
    set(fixture, 0x10 + 2 * PIN, MASKED | VECTOR);
    set(fixture, 0x10 + 2 * PIN, LEVEL | VECTOR);
    assert_int_equal(entry(fixture, PIN), LEVEL | VECTOR);
}

static void edges_do_not_reach_the_ioapic_when_they_end(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PIN, LEVEL | VECTOR, 0);
    program(fixture, PIN + 1, VECTOR, 0);
    apic_set_ioapic_pin(fixture, PIN, true);
    assert_int_equal(apic_acknowledge(fixture, 0), VECTOR);
    pulse(fixture, PIN + 1); /* the same vector, now as an edge */
    end(fixture, 0);
    assert_int_equal(entry(fixture, PIN), REMOTE_IRR | LEVEL | VECTOR);
}

static void nobody_there_sets_no_remote_irr(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PIN, LEVEL | VECTOR, 9);
    apic_set_ioapic_pin(fixture, PIN, true);
    assert_int_equal(entry(fixture, PIN), LEVEL | VECTOR);
    set(fixture, 0x11 + 2 * PIN, 0); /* somebody is */
    assert_int_equal(apic_acknowledge(fixture, 0), VECTOR);
}

/* ---- where to ---- */

static unsigned receivers(struct apic_fixture *fixture)
{
    unsigned found = 0;

    for (unsigned cpu = 0; cpu < FIXTURE_CPUS; cpu++)
        if (apic_acknowledge(fixture, cpu) == VECTOR) {
            found |= 1u << cpu;
            end(fixture, cpu);
        }
    return found;
}

static void goes_where_the_entry_says(void **state)
{
    static const struct {
        uint32_t low;
        uint8_t destination;
        unsigned set;
    } cases[] = {
        {VECTOR, 2, 0x4},
        {VECTOR, 0xff, 0xf},
        {LOGICAL | VECTOR, 0x0f, 0xf},
        {LOGICAL | VECTOR, 0x06, 0x6},
        {LOGICAL | LOWEST_PRIORITY | VECTOR, 0x0e, 0x8},
        {LOWEST_PRIORITY | VECTOR, 1, 0x2},
        {0x200 | VECTOR, 1, 0}, /* SMI */
        {0x300 | VECTOR, 1, 0}, /* reserved */
        {0x600 | VECTOR, 1, 0}, /* reserved: no start-up from here */
        {0x700 | VECTOR, 1, 0}, /* ExtINT */
    };
    struct apic_fixture *fixture = *state;

    for (unsigned cpu = 0; cpu < FIXTURE_CPUS; cpu++) {
        apic_enable(fixture, cpu);
        apic_write(fixture, cpu, APIC_REG_LDR, 1u << (24 + cpu));
        apic_write(fixture, cpu, APIC_REG_TPR, cpu == 3 ? 0 : 0x10);
    }
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        program(fixture, PIN, cases[i].low, cases[i].destination);
        pulse(fixture, PIN);
        assert_int_equal(receivers(fixture), cases[i].set);
    }
    assert_int_equal(fixture->events[1][IRQ_EVENT_STARTUP], 0);
}

static void nmi_and_init_are_edges(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PIN, LEVEL | 0x400, 1);
    apic_set_ioapic_pin(fixture, PIN, true);
    assert_int_equal(fixture->events[1][IRQ_EVENT_NMI], 1);
    assert_int_equal(entry(fixture, PIN), LEVEL | 0x400);
    program(fixture, PIN + 1, 0x500, 1);
    apic_set_ioapic_pin(fixture, PIN + 1, true);
    assert_int_equal(fixture->events[1][IRQ_EVENT_INIT], 1);
}

static void reaches_x2apics_by_8_bits(void **state)
{
    struct apic_fixture *fixture = *state;

    for (unsigned cpu = 0; cpu < FIXTURE_CPUS; cpu++) {
        apic_enable(fixture, cpu);
        apic_enter_x2apic(fixture, cpu);
    }
    program(fixture, PIN, VECTOR, 0xff);
    pulse(fixture, PIN);
    for (unsigned cpu = 0; cpu < FIXTURE_CPUS; cpu++)
        assert_int_equal(apic_acknowledge(fixture, cpu), VECTOR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        APIC_TEST(has_24_pins_masked_at_power_on),
        APIC_TEST(keeps_only_writable_bits),
        APIC_TEST(rising_edge_interrupts_once),
        APIC_TEST(edge_while_masked_is_lost),
        APIC_TEST(level_interrupts_until_it_is_down),
        APIC_TEST(levels_before_the_end_are_one),
        APIC_TEST(level_while_masked_comes_later),
        APIC_TEST(two_pins_may_share_a_vector),
        APIC_TEST(new_destination_in_service_ends_as_usual),
        APIC_TEST(edge_mode_clears_remote_irr),
        APIC_TEST(edges_do_not_reach_the_ioapic_when_they_end),
        APIC_TEST(nobody_there_sets_no_remote_irr),
        APIC_TEST(goes_where_the_entry_says),
        APIC_TEST(nmi_and_init_are_edges),
        APIC_TEST(reaches_x2apics_by_8_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
