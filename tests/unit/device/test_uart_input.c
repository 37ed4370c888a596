/* SPDX-License-Identifier: Apache-2.0 */
/* Console input: when it is let in, how much, and when the sender is woken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "recorder.h"
#include "uart_ports.h"

/* Line status reads in a row after which a guest counts as polling for input. */
#define POLLS 8

static size_t input(struct recorder *recorder, const char *text)
{
    return chipset_console_input(recorder->chipset, (const uint8_t *)text, strlen(text));
}

static void listen_by_interrupt(struct recorder *recorder)
{
    port_out(recorder, COM1_FCR, FCR_ENABLE);
    port_out(recorder, COM1_MCR, MCR_OUT2);
    port_out(recorder, COM1_IER, IER_RECEIVED);
}

static void poll(struct recorder *recorder, unsigned times)
{
    while (times-- > 0)
        (void)port_in(recorder, COM1_LSR);
}

static void waits_until_receive_interrupts_can_arrive(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_FCR, FCR_ENABLE);
    assert_int_equal(input(recorder, "a"), 0);
    port_out(recorder, COM1_IER, IER_RECEIVED); /* as probing drivers do for a moment */
    assert_int_equal(input(recorder, "a"), 0);
    assert_int_equal(recorder->rooms, 0);
    port_out(recorder, COM1_MCR, MCR_OUT2);
    assert_int_equal(recorder->rooms, 1);
    assert_int_equal(input(recorder, "a"), 1);
    assert_int_equal(port_in(recorder, COM1_DATA), 'a');
}

static void waits_until_a_guest_polls(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(input(recorder, "ab"), 0);
    poll(recorder, POLLS - 1);
    assert_int_equal(recorder->rooms, 0);
    assert_int_equal(input(recorder, "ab"), 0);
    poll(recorder, 1);
    assert_int_equal(recorder->rooms, 1);
    assert_int_equal(input(recorder, "ab"), 1); /* no FIFO: one at a time */
    assert_int_equal(port_in(recorder, COM1_LSR), 0x61);
    assert_int_equal(port_in(recorder, COM1_DATA), 'a');
    assert_int_equal(recorder->rooms, 2);
    assert_int_equal(input(recorder, "b"), 1);
    assert_int_equal(port_in(recorder, COM1_DATA), 'b');
}

static void polling_to_send_is_not_listening(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(input(recorder, "a"), 0);
    for (int i = 0; i < 20; i++) {
        poll(recorder, 2);
        port_out(recorder, COM1_DATA, '.');
    }
    assert_int_equal(recorder->rooms, 0);
    assert_int_equal(input(recorder, "a"), 0);
}

static void takes_what_the_fifo_has_room_for(void **state)
{
    struct recorder *recorder = *state;
    struct chipset_counters counters;

    listen_by_interrupt(recorder);
    assert_int_equal(input(recorder, "0123456789"), 10);
    assert_int_equal(input(recorder, "abcdefghij"), 6);
    assert_int_equal(input(recorder, "ghij"), 0);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x61); /* nothing was overrun */
    chipset_counters(recorder->chipset, &counters);
    assert_int_equal(counters.console_bytes_in, 16);
    for (const char *expected = "0123456789abcdef"; *expected; expected++)
        assert_int_equal(port_in(recorder, COM1_DATA), *expected);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
}

static void says_once_that_there_is_room(void **state)
{
    struct recorder *recorder = *state;

    listen_by_interrupt(recorder);
    assert_int_equal(input(recorder, "0123456789abcdef"), 16);
    for (int i = 0; i < 16; i++)
        (void)port_in(recorder, COM1_DATA);
    assert_int_equal(recorder->rooms, 0); /* nobody came away short */
    assert_int_equal(input(recorder, "0123456789abcdefg"), 16);
    for (int i = 0; i < 15; i++)
        (void)port_in(recorder, COM1_DATA);
    assert_int_equal(recorder->rooms, 0);
    (void)port_in(recorder, COM1_DATA);
    assert_int_equal(recorder->rooms, 1);
    (void)port_in(recorder, COM1_DATA);
    assert_int_equal(recorder->rooms, 1);
}

static void clearing_the_fifo_makes_room(void **state)
{
    struct recorder *recorder = *state;

    listen_by_interrupt(recorder);
    assert_int_equal(input(recorder, "0123456789abcdefg"), 16);
    port_out(recorder, COM1_FCR, FCR_ENABLE | FCR_CLEAR_RECEIVED);
    assert_int_equal(recorder->rooms, 1);
    assert_int_equal(input(recorder, "g"), 1);
}

static void waits_while_the_port_loops_back(void **state)
{
    struct recorder *recorder = *state;

    listen_by_interrupt(recorder);
    port_out(recorder, COM1_MCR, MCR_OUT2 | MCR_LOOP);
    assert_int_equal(input(recorder, "a"), 0);
    port_out(recorder, COM1_MCR, MCR_OUT2);
    assert_int_equal(recorder->rooms, 1);
    assert_int_equal(input(recorder, "a"), 1);
}

static void waiting_input_survives_a_reset(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(input(recorder, "a"), 0);
    chipset_reset(recorder->chipset);
    listen_by_interrupt(recorder);
    assert_int_equal(recorder->rooms, 1);
}

/* An unplugged cable: nobody may wait for room that never comes. */
static void without_serial_input_is_dropped(void **state)
{
    struct recorder recorder = {.chipset = NULL};
    struct chipset_options options = recorder_options(&recorder);

    (void)state;
    options.serial = false;
    recorder_create_with(&recorder, &options);
    assert_int_equal(input(&recorder, "abc"), 3);
    listen_by_interrupt(&recorder);
    assert_int_equal(input(&recorder, "abc"), 3);
    chipset_console_break(recorder.chipset);
    assert_int_equal(port_in(&recorder, COM1_LSR), 0x60);
    recorder_destroy(&recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED_TEST(waits_until_receive_interrupts_can_arrive),
        RECORDED_TEST(waits_until_a_guest_polls),
        RECORDED_TEST(polling_to_send_is_not_listening),
        RECORDED_TEST(takes_what_the_fifo_has_room_for),
        RECORDED_TEST(says_once_that_there_is_room),
        RECORDED_TEST(clearing_the_fifo_makes_room),
        RECORDED_TEST(waits_while_the_port_loops_back),
        RECORDED_TEST(waiting_input_survives_a_reset),
        cmocka_unit_test(without_serial_input_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
