/* SPDX-License-Identifier: Apache-2.0 */
/* The keyboard controller: resets, A20, and that there is no keyboard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder.h"

#define DATA 0x60
#define COMMAND 0x64
#define CONTROL_A 0x92
#define KEYBOARD_IRQ 1

static uint8_t ask(struct recorder *recorder, uint8_t command)
{
    port_out(recorder, COMMAND, command);
    assert_int_equal(port_in(recorder, COMMAND) & 0x03, 0x01);
    return port_in(recorder, DATA);
}

static void has_nothing_to_read_at_power_on(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(port_in(recorder, COMMAND), 0x14);
    assert_int_equal(port_in(recorder, DATA), 0x00);
    assert_int_equal(port_in(recorder, COMMAND), 0x14);
}

static void pulsing_the_reset_line_resets(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COMMAND, 0xfe);
    assert_int_equal(recorder->resets, 1);
    port_out(recorder, COMMAND, 0xf0); /* all four lines */
    assert_int_equal(recorder->resets, 2);
    port_out(recorder, COMMAND, 0xff); /* none */
    port_out(recorder, COMMAND, 0xfd); /* another */
    port_out(recorder, DATA, 0xfe);    /* not a command */
    assert_int_equal(recorder->resets, 2);
    assert_int_equal(recorder->power_offs, 0);
}

static void output_port_switches_a20_and_resets(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(ask(recorder, 0xd0), 0xcf);
    port_out(recorder, COMMAND, 0xd1);
    port_out(recorder, DATA, 0xdd); /* A20 off */
    assert_int_equal(ask(recorder, 0xd0), 0xdd);
    assert_int_equal(port_in(recorder, CONTROL_A), 0x00);
    port_out(recorder, COMMAND, 0xd1);
    port_out(recorder, DATA, 0xdf); /* A20 on */
    assert_int_equal(port_in(recorder, CONTROL_A), 0x02);
    assert_int_equal(recorder->resets, 0);
    port_out(recorder, COMMAND, 0xd1);
    port_out(recorder, DATA, 0xde);
    assert_int_equal(recorder->resets, 1);
}

static void control_port_a_switches_a20_and_resets(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(port_in(recorder, CONTROL_A), 0x02);
    port_out(recorder, CONTROL_A, 0x00);
    assert_int_equal(port_in(recorder, CONTROL_A), 0x00);
    port_out(recorder, CONTROL_A, 0x02);
    assert_int_equal(port_in(recorder, CONTROL_A), 0x02);
    assert_int_equal(recorder->resets, 0);
    port_out(recorder, CONTROL_A, 0x03);
    assert_int_equal(recorder->resets, 1);
}

static void answers_its_own_commands(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(ask(recorder, 0xaa), 0x55);
    assert_int_equal(ask(recorder, 0x20), 0x74);
    assert_int_equal(ask(recorder, 0x20), 0x74);
    assert_int_equal(ask(recorder, 0xc0), 0x80);
    port_out(recorder, COMMAND, 0x60);
    assert_int_equal(port_in(recorder, COMMAND), 0x1c); /* last write was a command */
    port_out(recorder, DATA, 0x47);
    assert_int_equal(port_in(recorder, COMMAND), 0x14);
    assert_int_equal(ask(recorder, 0x20), 0x47);
}

static void port_switches_show_in_the_configuration(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COMMAND, 0xae);
    assert_int_equal(ask(recorder, 0x20), 0x64);
    port_out(recorder, COMMAND, 0xa8);
    assert_int_equal(ask(recorder, 0x20), 0x44);
    port_out(recorder, COMMAND, 0xad);
    assert_int_equal(ask(recorder, 0x20), 0x54);
    port_out(recorder, COMMAND, 0xa7);
    assert_int_equal(ask(recorder, 0x20), 0x74);
}

/* Linux i8042_check_aux(): the echo must not look like the mouse's, and the port test
 * must fail; then it goes on without a mouse. */
static void has_no_mouse_port(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COMMAND, 0xd3);
    port_out(recorder, DATA, 0x5a);
    assert_int_equal(port_in(recorder, COMMAND), 0x15); /* bit 5 would be the mouse */
    assert_int_equal(port_in(recorder, DATA), 0x5a);
    assert_int_equal(ask(recorder, 0xa9), 0x01);
    port_out(recorder, COMMAND, 0xd4);
    port_out(recorder, DATA, 0xf2);
    assert_int_equal(port_in(recorder, COMMAND), 0x55);
    assert_int_equal(port_in(recorder, DATA), 0xfe);
}

/* A driver that speaks to the keyboard learns at once that nobody is there. */
static void has_no_keyboard(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(ask(recorder, 0xab), 0x01);
    port_out(recorder, DATA, 0xf2);
    assert_int_equal(port_in(recorder, COMMAND), 0x55); /* time-out and output full */
    assert_int_equal(port_in(recorder, DATA), 0xfe);
    assert_int_equal(port_in(recorder, COMMAND), 0x14);
}

static void interrupt_follows_the_output_buffer_if_enabled(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, DATA, 0xf2);
    assert_int_equal(recorder->irq_changes[KEYBOARD_IRQ], 0);
    (void)port_in(recorder, DATA);
    port_out(recorder, COMMAND, 0x60);
    port_out(recorder, DATA, 0x45);
    port_out(recorder, DATA, 0xf2);
    assert_true(recorder->irq_levels[KEYBOARD_IRQ]);
    (void)port_in(recorder, DATA);
    assert_false(recorder->irq_levels[KEYBOARD_IRQ]);
}

static void a_new_command_drops_the_one_that_waits(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COMMAND, 0xd1);
    port_out(recorder, COMMAND, 0x20);
    port_out(recorder, DATA, 0xde); /* for the keyboard, not the output port */
    assert_int_equal(recorder->resets, 0);
}

static void unknown_commands_have_no_answer(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COMMAND, 0x99);
    assert_int_equal(port_in(recorder, COMMAND), 0x1c);
}

static void reset_restores_everything(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COMMAND, 0x60);
    port_out(recorder, DATA, 0x45);
    port_out(recorder, CONTROL_A, 0);
    port_out(recorder, DATA, 0xf2);
    port_out(recorder, COMMAND, 0xd1);
    assert_true(recorder->irq_levels[KEYBOARD_IRQ]);
    chipset_reset(recorder->chipset);
    assert_false(recorder->irq_levels[KEYBOARD_IRQ]);
    assert_int_equal(port_in(recorder, COMMAND), 0x14);
    assert_int_equal(port_in(recorder, CONTROL_A), 0x02);
    port_out(recorder, DATA, 0xde);
    assert_int_equal(recorder->resets, 0);
    (void)port_in(recorder, DATA);
    assert_int_equal(ask(recorder, 0x20), 0x74);
}

static void leaves_the_speaker_port_to_the_timer(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(port_in(recorder, 0x61), 0xff);
    assert_int_equal(bus_read(&recorder->ports, 0x60, 4), 0xffffff00);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED_TEST(has_nothing_to_read_at_power_on),
        RECORDED_TEST(pulsing_the_reset_line_resets),
        RECORDED_TEST(output_port_switches_a20_and_resets),
        RECORDED_TEST(control_port_a_switches_a20_and_resets),
        RECORDED_TEST(answers_its_own_commands),
        RECORDED_TEST(port_switches_show_in_the_configuration),
        RECORDED_TEST(has_no_mouse_port),
        RECORDED_TEST(has_no_keyboard),
        RECORDED_TEST(interrupt_follows_the_output_buffer_if_enabled),
        RECORDED_TEST(a_new_command_drops_the_one_that_waits),
        RECORDED_TEST(unknown_commands_have_no_answer),
        RECORDED_TEST(reset_restores_everything),
        RECORDED_TEST(leaves_the_speaker_port_to_the_timer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
