/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts from one local APIC to others: destinations, delivery modes, shorthands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "apic_fixture.h"
#include "base/bytes.h"

#define TO_SELF 0x40000
#define TO_ALL 0x80000
#define TO_OTHERS 0xc0000
#define LOGICAL 0x800
#define LOWEST_PRIORITY 0x100

static int setup_all_enabled(void **state)
{
    struct apic_fixture *fixture;

    apic_setup(state);
    fixture = *state;
    for (unsigned cpu = 1; cpu < FIXTURE_CPUS; cpu++)
        apic_enable(fixture, cpu);
    return 0;
}

static void send(struct apic_fixture *fixture, uint8_t destination, uint32_t command)
{
    apic_write(fixture, 0, APIC_REG_ICR_HIGH, (uint32_t)destination << 24);
    apic_write(fixture, 0, APIC_REG_ICR, command);
}

/* Bit n: vCPU n has got `vector` (which thereby ends). */
static unsigned receivers(struct apic_fixture *fixture, int vector)
{
    unsigned set = 0;

    for (unsigned cpu = 0; cpu < FIXTURE_CPUS; cpu++)
        if (apic_acknowledge(fixture, cpu) == vector) {
            set |= 1u << cpu;
            if (lapic_is_x2apic(&fixture->lapics[cpu]))
                assert_true(apic_write_msr(fixture, cpu, MSR_X2APIC(APIC_REG_EOI), 0));
            else
                apic_write(fixture, cpu, APIC_REG_EOI, 0);
        }
    return set;
}

/* Bit n: vCPU n was told of `event`; forgotten thereby. */
static unsigned told(struct apic_fixture *fixture, enum irq_event event)
{
    unsigned set = 0;

    for (unsigned cpu = 0; cpu < FIXTURE_CPUS; cpu++) {
        if (fixture->events[cpu][event] != 0)
            set |= 1u << cpu;
        fixture->events[cpu][event] = 0;
    }
    return set;
}

/* What a processor sends without the command register. */
static void sends_to_an_id_by_call(void **state)
{
    struct apic_fixture *fixture = *state;
    const struct irq_source *source = &fixture->lapics[0].source;

    assert_true(source->send(source->context, 2, 0x55));
    assert_int_equal(receivers(fixture, 0x55), 0x4);
    assert_true(source->send(source->context, 3, 0x400)); /* NMI */
    assert_int_equal(told(fixture, IRQ_EVENT_NMI), 0x8);
    assert_false(source->send(source->context, FIXTURE_CPUS, 0x55));
    assert_false(source->send(source->context, 0xff, 0x55)); /* an id, not a broadcast */
    assert_int_equal(receivers(fixture, 0x55), 0);
}

static void physical_destinations(void **state)
{
    static const struct {
        uint8_t destination;
        unsigned set;
    } cases[] = {{0, 0x1}, {1, 0x2}, {3, 0x8}, {4, 0}, {0xfe, 0}, {0xff, 0xf}};
    struct apic_fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        send(fixture, cases[i].destination, 0x55);
        assert_int_equal(told(fixture, IRQ_EVENT_INTERRUPT), cases[i].set);
        assert_int_equal(receivers(fixture, 0x55), cases[i].set);
    }
    assert_int_equal(apic_read(fixture, 0, APIC_REG_ICR), 0x55); /* idle */
}

static void shorthands(void **state)
{
    struct apic_fixture *fixture = *state;

    send(fixture, 2, TO_SELF | 0x55);
    assert_int_equal(receivers(fixture, 0x55), 0x1);
    send(fixture, 2, TO_ALL | 0x56);
    assert_int_equal(receivers(fixture, 0x56), 0xf);
    send(fixture, 2, TO_OTHERS | 0x57);
    assert_int_equal(receivers(fixture, 0x57), 0xe);
}

static void flat_logical_destinations(void **state)
{
    struct apic_fixture *fixture = *state;

    for (unsigned cpu = 0; cpu < FIXTURE_CPUS; cpu++)
        apic_write(fixture, cpu, APIC_REG_LDR, 1u << (24 + cpu));
    send(fixture, 0x0a, LOGICAL | 0x55);
    assert_int_equal(receivers(fixture, 0x55), 0xa);
    send(fixture, 0xf0, LOGICAL | 0x55);
    assert_int_equal(receivers(fixture, 0x55), 0);
    apic_write(fixture, 3, APIC_REG_LDR, 0);
    send(fixture, 0xff, LOGICAL | 0x55); /* all, also who has no logical id */
    assert_int_equal(receivers(fixture, 0x55), 0xf);
}

static void cluster_logical_destinations(void **state)
{
    static const uint32_t ids[FIXTURE_CPUS] = {0x11, 0x12, 0x21, 0x22};
    static const struct {
        uint8_t destination;
        unsigned set;
    } cases[] = {{0x13, 0x3}, {0x22, 0x8}, {0x2c, 0},
                 {0xf1, 0x5}, {0x33, 0},   {0xff, 0xf}};
    struct apic_fixture *fixture = *state;

    for (unsigned cpu = 0; cpu < FIXTURE_CPUS; cpu++) {
        apic_write(fixture, cpu, APIC_REG_DFR, 0x0fffffff);
        apic_write(fixture, cpu, APIC_REG_LDR, ids[cpu] << 24);
    }
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        send(fixture, cases[i].destination, LOGICAL | 0x55);
        assert_int_equal(receivers(fixture, 0x55), cases[i].set);
    }
}

static void x2apic_destinations(void **state)
{
    static const struct {
        uint64_t command;
        unsigned set;
    } cases[] = {
        {UINT64_C(0x0000000200000055), 0x4},
        {UINT64_C(0x000000ff00000055), 0}, /* 8-bit broadcast is just a number */
        {UINT64_C(0xffffffff00000055), 0xf},
        {UINT64_C(0x0000000500000855), 0x5}, /* logical: cluster 0, bits 0 and 2 */
        {UINT64_C(0x0001000f00000855), 0},   /* cluster 1 */
        {UINT64_C(0xffffffff00000855), 0xf},
    };
    struct apic_fixture *fixture = *state;

    for (unsigned cpu = 0; cpu < FIXTURE_CPUS; cpu++)
        apic_enter_x2apic(fixture, cpu);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_true(
            apic_write_msr(fixture, 0, MSR_X2APIC(APIC_REG_ICR), cases[i].command));
        assert_int_equal(receivers(fixture, 0x55), cases[i].set);
    }
}

static void lowest_priority_goes_to_the_least_busy(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_write(fixture, 0, APIC_REG_TPR, 0x30);
    apic_write(fixture, 1, APIC_REG_TPR, 0x20);
    apic_write(fixture, 2, APIC_REG_TPR, 0x10);
    apic_write(fixture, 3, APIC_REG_TPR, 0x20);
    send(fixture, 0xff, LOGICAL | LOWEST_PRIORITY | 0x55);
    assert_int_equal(receivers(fixture, 0x55), 0x4);
    apic_write(fixture, 2, APIC_REG_SVR, 0xff); /* disabled ones do not take part */
    send(fixture, 0xff, LOGICAL | LOWEST_PRIORITY | 0x55);
    assert_int_equal(receivers(fixture, 0x55), 0x8);
    send(fixture, 0xff, LOGICAL | LOWEST_PRIORITY | 0x55); /* equals take turns */
    assert_int_equal(receivers(fixture, 0x55), 0x2);
    send(fixture, 0xff, LOGICAL | LOWEST_PRIORITY | 0x55);
    assert_int_equal(receivers(fixture, 0x55), 0x8);
    send(fixture, 9, LOWEST_PRIORITY | 0x55);
    assert_int_equal(receivers(fixture, 0x55), 0);
}

static void nmi_init_and_startup_reach_who_takes_no_interrupts(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_write(fixture, 1, APIC_REG_SVR, 0xff);
    send(fixture, 1, 0x55);
    assert_int_equal(told(fixture, IRQ_EVENT_INTERRUPT), 0);
    send(fixture, 1, 0x400);
    assert_int_equal(told(fixture, IRQ_EVENT_NMI), 0x2);
    send(fixture, 1, 0x4500);
    assert_int_equal(told(fixture, IRQ_EVENT_INIT), 0x2);
    send(fixture, 1, 0x4600 | 0x9a);
    assert_int_equal(told(fixture, IRQ_EVENT_STARTUP), 0x2);
    assert_int_equal(fixture->startup_vector[1], 0x9a);
    send(fixture, 0, TO_OTHERS | 0x4500);
    assert_int_equal(told(fixture, IRQ_EVENT_INIT), 0xe);
    send(fixture, 0, TO_OTHERS | 0x4600);
    assert_int_equal(told(fixture, IRQ_EVENT_STARTUP), 0xe);
}

static void init_clears_the_receiver_but_its_id_and_mode(void **state)
{
    struct apic_fixture *fixture = *state;
    uint64_t value;

    apic_write(fixture, 1, APIC_REG_TPR, 0x30);
    apic_write(fixture, 1, APIC_REG_LVT_LINT0, 0x700);
    send(fixture, 1, 0x55);
    send(fixture, 1, 0x4500);
    assert_int_equal(apic_read(fixture, 1, APIC_REG_ID), 0x01000000);
    assert_int_equal(apic_read(fixture, 1, APIC_REG_TPR), 0);
    assert_int_equal(apic_read(fixture, 1, APIC_REG_SVR), 0xff);
    assert_int_equal(apic_read(fixture, 1, APIC_REG_LVT_LINT0), 0x10000);
    assert_int_equal(apic_read(fixture, 1, APIC_REG_IRR + 0x20), 0);
    apic_enter_x2apic(fixture, 2);
    send(fixture, 2, 0x4500);
    assert_true(apic_read_msr(fixture, 2, MSR_APIC_BASE, &value));
    assert_int_equal(value, 0xfee00c00);
}

/* Linux sends it between INIT and STARTUP. */
static void init_level_deassert_is_ignored(void **state)
{
    struct apic_fixture *fixture = *state;

    send(fixture, 1, 0x8500);
    assert_int_equal(told(fixture, IRQ_EVENT_INIT), 0);
    send(fixture, 1, 0xc500);
    assert_int_equal(told(fixture, IRQ_EVENT_INIT), 0x2);
}

static void smi_and_reserved_modes_vanish(void **state)
{
    static const uint32_t modes[] = {0x200, 0x300, 0x700};
    struct apic_fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        send(fixture, 1, modes[i] | 0x55);
        assert_int_equal(receivers(fixture, 0x55), 0);
    }
    for (enum irq_event event = IRQ_EVENT_INTERRUPT; event <= IRQ_EVENT_STARTUP; event++)
        assert_int_equal(told(fixture, event), 0);
}

static void who_is_off_gets_nothing(void **state)
{
    struct apic_fixture *fixture = *state;

    assert_true(apic_write_msr(fixture, 2, MSR_APIC_BASE, 0xfee00000));
    send(fixture, 0, TO_ALL | 0x55);
    assert_int_equal(receivers(fixture, 0x55), 0xb);
    send(fixture, 2, 0x4500);
    assert_int_equal(told(fixture, IRQ_EVENT_INIT), 0);
}

static void illegal_vector_is_an_error_at_both_ends(void **state)
{
    struct apic_fixture *fixture = *state;

    send(fixture, 1, 0x05);
    for (unsigned cpu = 0; cpu < 2; cpu++)
        apic_write(fixture, cpu, APIC_REG_ESR, 0);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_ESR), 0x20);
    assert_int_equal(apic_read(fixture, 1, APIC_REG_ESR), 0x40);
    assert_int_equal(told(fixture, IRQ_EVENT_INTERRUPT), 0);
}

static void commands_are_edges(void **state)
{
    struct apic_fixture *fixture = *state;

    send(fixture, 1, 0x8055); /* the trigger mode is for INIT only */
    assert_int_equal(apic_read(fixture, 1, APIC_REG_TMR + 0x20), 0);
    assert_int_equal(receivers(fixture, 0x55), 0x2);
}

#define MESSAGE_TEST(function)                                                           \
    cmocka_unit_test_setup_teardown(function, setup_all_enabled, apic_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MESSAGE_TEST(sends_to_an_id_by_call),
        MESSAGE_TEST(physical_destinations),
        MESSAGE_TEST(shorthands),
        MESSAGE_TEST(flat_logical_destinations),
        MESSAGE_TEST(cluster_logical_destinations),
        MESSAGE_TEST(x2apic_destinations),
        MESSAGE_TEST(lowest_priority_goes_to_the_least_busy),
        MESSAGE_TEST(nmi_init_and_startup_reach_who_takes_no_interrupts),
        MESSAGE_TEST(init_clears_the_receiver_but_its_id_and_mode),
        MESSAGE_TEST(init_level_deassert_is_ignored),
        MESSAGE_TEST(smi_and_reserved_modes_vanish),
        MESSAGE_TEST(who_is_off_gets_nothing),
        MESSAGE_TEST(illegal_vector_is_an_error_at_both_ends),
        MESSAGE_TEST(commands_are_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
