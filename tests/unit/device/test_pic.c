/* SPDX-License-Identifier: Apache-2.0 */
/* The two 8259, through the first processor's LINT0 as a PC wires them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "apic_fixture.h"

#define MASTER 0x20
#define SLAVE 0xa0
#define EDGE_LEVEL 0x4d0
#define END 0x20

static uint8_t in(struct apic_fixture *fixture, uint16_t port)
{
    return (uint8_t)bus_read(&fixture->ports, port, 1);
}

static void out(struct apic_fixture *fixture, uint16_t port, uint8_t value)
{
    bus_write(&fixture->ports, port, 1, value);
}

/* Vectors 0x20 and 0x28, all lines open; `word4` is 1 for ends by the guest. */
static void start(struct apic_fixture *fixture, uint8_t word4)
{
    static const uint16_t ports[] = {MASTER, SLAVE};

    for (int i = 0; i < 2; i++) {
        out(fixture, ports[i], 0x11);
        out(fixture, ports[i] + 1, i == 0 ? 0x20 : 0x28);
        out(fixture, ports[i] + 1, i == 0 ? 4 : 2);
        out(fixture, ports[i] + 1, word4);
    }
}

static int setup_started(void **state)
{
    apic_setup(state);
    start(*state, 1);
    return 0;
}

static void pulse(struct apic_fixture *fixture, unsigned line)
{
    apic_set_pic_line(fixture, line, true);
    apic_set_pic_line(fixture, line, false);
}

static int take(struct apic_fixture *fixture)
{
    return apic_acknowledge(fixture, 0);
}

static void power_on_is_as_firmware_leaves_it(void **state)
{
    struct apic_fixture *fixture = *state;

    assert_int_equal(in(fixture, MASTER + 1), 0xfb);
    assert_int_equal(in(fixture, SLAVE + 1), 0xf3);
    apic_set_pic_line(fixture, 0, true);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 0);
    assert_int_equal(take(fixture), -1);
    pulse(fixture, 11); /* line 3 of the second chip, at vector 0x70 */
    assert_int_equal(take(fixture), 0x73);
    out(fixture, MASTER + 1, 0);
    assert_int_equal(take(fixture), 0x08);
}

static void line_is_a_vector_until_it_ends(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_set_pic_line(fixture, 3, true);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 1);
    assert_int_equal(in(fixture, MASTER), 0x08); /* requested */
    assert_int_equal(take(fixture), 0x23);
    assert_int_equal(in(fixture, MASTER), 0);
    out(fixture, MASTER, 0x0b); /* reads go to in-service */
    assert_int_equal(in(fixture, MASTER), 0x08);
    out(fixture, MASTER, 0x0a);
    assert_int_equal(take(fixture), -1);
    out(fixture, MASTER, END);
    assert_int_equal(take(fixture), -1); /* an edge is one request */
}

static void lower_lines_wait_and_higher_nest(void **state)
{
    struct apic_fixture *fixture = *state;

    pulse(fixture, 3);
    assert_int_equal(take(fixture), 0x23);
    pulse(fixture, 5);
    assert_int_equal(take(fixture), -1);
    pulse(fixture, 1);
    assert_int_equal(take(fixture), 0x21);
    out(fixture, MASTER, END); /* of the highest: line 1 */
    assert_int_equal(take(fixture), -1);
    out(fixture, MASTER, 0x60 | 3); /* of line 3 by name */
    assert_int_equal(take(fixture), 0x25);
}

static void second_chip_comes_through_the_first(void **state)
{
    struct apic_fixture *fixture = *state;

    pulse(fixture, 12);
    pulse(fixture, 3);
    assert_int_equal(in(fixture, MASTER), 0x0c);
    assert_int_equal(in(fixture, SLAVE), 0x10);
    assert_int_equal(take(fixture), 0x2c); /* the cascade is line 2 */
    assert_int_equal(take(fixture), -1);
    pulse(fixture, 9); /* higher on the second chip, but the first still serves it */
    assert_int_equal(take(fixture), -1);
    out(fixture, SLAVE, END);
    out(fixture, MASTER, END);
    assert_int_equal(take(fixture), 0x29);
    out(fixture, SLAVE, END);
    out(fixture, MASTER, END);
    assert_int_equal(take(fixture), 0x23);
}

static void special_nesting_lets_the_second_chip_nest(void **state)
{
    struct apic_fixture *fixture = *state;

    start(fixture, 0x11);
    pulse(fixture, 12);
    assert_int_equal(take(fixture), 0x2c);
    pulse(fixture, 9);
    assert_int_equal(take(fixture), 0x29);
}

static void masked_lines_wait(void **state)
{
    struct apic_fixture *fixture = *state;

    out(fixture, MASTER + 1, 0x10);
    pulse(fixture, 4);
    assert_int_equal(take(fixture), -1);
    assert_int_equal(in(fixture, MASTER), 0x10);
    out(fixture, MASTER + 1, 0x00);
    assert_int_equal(take(fixture), 0x24);
}

/* The pin is open for a moment only, and the processor comes late. */
static void request_that_is_gone_is_spurious(void **state)
{
    struct apic_fixture *fixture = *state;

    pulse(fixture, 4);
    out(fixture, MASTER + 1, 0xff);
    assert_int_equal(take(fixture), -1); /* LINT0 is down again */
    assert_int_equal(pic_acknowledge(&fixture->pic), 0x27);
    out(fixture, MASTER, 0x0b);
    assert_int_equal(in(fixture, MASTER), 0); /* nothing to end */
}

static void automatic_end_needs_no_command(void **state)
{
    struct apic_fixture *fixture = *state;

    start(fixture, 0x03);
    pulse(fixture, 3);
    pulse(fixture, 4);
    assert_int_equal(take(fixture), 0x23);
    assert_int_equal(take(fixture), 0x24);
    assert_int_equal(take(fixture), -1);
}

static void rotation_gives_each_line_its_turn(void **state)
{
    struct apic_fixture *fixture = *state;

    pulse(fixture, 3);
    assert_int_equal(take(fixture), 0x23);
    out(fixture, MASTER, 0xa0); /* end and rotate: line 3 is the lowest now */
    pulse(fixture, 3);
    pulse(fixture, 4);
    assert_int_equal(take(fixture), 0x24);
    out(fixture, MASTER, END);
    assert_int_equal(take(fixture), 0x23);
    out(fixture, MASTER, END);
    out(fixture, MASTER, 0xc0 | 7); /* the usual order again */
    pulse(fixture, 4);
    pulse(fixture, 3);
    assert_int_equal(take(fixture), 0x23);
}

static void special_mask_opens_all_but_the_masked(void **state)
{
    struct apic_fixture *fixture = *state;

    pulse(fixture, 1);
    assert_int_equal(take(fixture), 0x21);
    pulse(fixture, 5);
    assert_int_equal(take(fixture), -1);
    out(fixture, MASTER, 0x68); /* set special mask */
    out(fixture, MASTER + 1, 0x02);
    assert_int_equal(take(fixture), 0x25);
    out(fixture, MASTER, 0x48); /* clear it */
    pulse(fixture, 6);
    assert_int_equal(take(fixture), -1);
}

static void polling_acknowledges(void **state)
{
    struct apic_fixture *fixture = *state;

    out(fixture, MASTER, 0x0c);
    assert_int_equal(in(fixture, MASTER), 0);
    pulse(fixture, 6);
    out(fixture, MASTER, 0x0c);
    assert_int_equal(in(fixture, MASTER), 0x86);
    assert_int_equal(take(fixture), -1);
    out(fixture, MASTER, 0x0b);
    assert_int_equal(in(fixture, MASTER), 0x40);
}

static void level_triggered_lines_ask_as_long_as_they_are_up(void **state)
{
    struct apic_fixture *fixture = *state;

    out(fixture, EDGE_LEVEL, 0xff);
    out(fixture, EDGE_LEVEL + 1, 0xff);
    assert_int_equal(in(fixture, EDGE_LEVEL), 0xf8);
    assert_int_equal(in(fixture, EDGE_LEVEL + 1), 0xde);
    apic_set_pic_line(fixture, 10, true);
    assert_int_equal(take(fixture), 0x2a);
    out(fixture, SLAVE, END);
    out(fixture, MASTER, END);
    assert_int_equal(take(fixture), 0x2a);
    apic_set_pic_line(fixture, 10, false);
    out(fixture, SLAVE, END);
    out(fixture, MASTER, END);
    assert_int_equal(take(fixture), -1);
    pulse(fixture, 5); /* down before anybody looked */
    assert_int_equal(take(fixture), -1);
}

static void initialization_forgets_edges_masks_and_service(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_set_pic_line(fixture, 4, true);
    out(fixture, MASTER + 1, 0x08);
    apic_set_pic_line(fixture, 5, true);
    assert_int_equal(take(fixture), 0x24);
    start(fixture, 1);
    assert_int_equal(in(fixture, MASTER + 1), 0);
    assert_int_equal(take(fixture), -1); /* line 5 needs a new edge */
    apic_set_pic_line(fixture, 5, false);
    apic_set_pic_line(fixture, 5, true);
    assert_int_equal(take(fixture), 0x25);
}

static void initialization_may_be_short(void **state)
{
    struct apic_fixture *fixture = *state;

    out(fixture, MASTER, 0x12); /* single, no word 4 */
    out(fixture, MASTER + 1, 0x47);
    out(fixture, MASTER + 1, 0xfe); /* already the mask */
    assert_int_equal(in(fixture, MASTER + 1), 0xfe);
    pulse(fixture, 0);
    assert_int_equal(take(fixture), 0x40);
}

static void goes_to_every_processor_that_listens(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_enable(fixture, 1);
    apic_write(fixture, 1, APIC_REG_LVT_LINT0, 0x700);
    apic_set_pic_line(fixture, 4, true);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 1);
    assert_int_equal(fixture->events[1][IRQ_EVENT_INTERRUPT], 1);
    assert_int_equal(fixture->events[2][IRQ_EVENT_INTERRUPT], 0);
    assert_int_equal(apic_acknowledge(fixture, 1), 0x24); /* one of them gets it */
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
}

static void passes_a_local_apic_that_is_off(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_write(fixture, 0, APIC_REG_LVT_LINT0, 0x10700);
    apic_set_pic_line(fixture, 4, true);
    assert_int_equal(take(fixture), -1);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 0);
    assert_true(apic_write_msr(fixture, 0, MSR_APIC_BASE, 0xfee00100));
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 1);
    assert_int_equal(take(fixture), 0x24);
}

static void unmasking_lint0_finds_the_request(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_write(fixture, 0, APIC_REG_LVT_LINT0, 0x10700);
    apic_set_pic_line(fixture, 4, true);
    apic_write(fixture, 0, APIC_REG_LVT_LINT0, 0x700);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 1);
    assert_int_equal(take(fixture), 0x24);
}

static void is_before_the_local_apics_own_interrupts(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_write(fixture, 0, APIC_REG_TPR, 0xf0);
    apic_write(fixture, 0, APIC_REG_ICR, 0x40055);
    apic_set_pic_line(fixture, 4, true);
    assert_int_equal(take(fixture), 0x24); /* no priority holds it back */
    assert_int_equal(take(fixture), -1);
    apic_write(fixture, 0, APIC_REG_TPR, 0);
    assert_int_equal(take(fixture), 0x55);
}

#define PIC_TEST(function)                                                               \
    cmocka_unit_test_setup_teardown(function, setup_started, apic_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        APIC_TEST(power_on_is_as_firmware_leaves_it),
        PIC_TEST(line_is_a_vector_until_it_ends),
        PIC_TEST(lower_lines_wait_and_higher_nest),
        PIC_TEST(second_chip_comes_through_the_first),
        PIC_TEST(special_nesting_lets_the_second_chip_nest),
        PIC_TEST(masked_lines_wait),
        PIC_TEST(request_that_is_gone_is_spurious),
        PIC_TEST(automatic_end_needs_no_command),
        PIC_TEST(rotation_gives_each_line_its_turn),
        PIC_TEST(special_mask_opens_all_but_the_masked),
        PIC_TEST(polling_acknowledges),
        PIC_TEST(level_triggered_lines_ask_as_long_as_they_are_up),
        PIC_TEST(initialization_forgets_edges_masks_and_service),
        PIC_TEST(initialization_may_be_short),
        PIC_TEST(goes_to_every_processor_that_listens),
        PIC_TEST(passes_a_local_apic_that_is_off),
        PIC_TEST(unmasking_lint0_finds_the_request),
        PIC_TEST(is_before_the_local_apics_own_interrupts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
