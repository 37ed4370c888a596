/* SPDX-License-Identifier: Apache-2.0 */
/* The serial port's registers, line and modem status, loopback and FIFO. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder.h"
#include "uart_ports.h"

static void send_looped(struct recorder *recorder, const char *bytes)
{
    for (; *bytes; bytes++)
        port_out(recorder, COM1_DATA, (uint8_t)*bytes);
}

static void has_these_values_at_power_on(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(port_in(recorder, COM1_DATA), 0x00);
    assert_int_equal(port_in(recorder, COM1_IER), 0x00);
    assert_int_equal(port_in(recorder, COM1_IIR), 0x01);
    assert_int_equal(port_in(recorder, COM1_LCR), 0x00);
    assert_int_equal(port_in(recorder, COM1_MCR), 0x00);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
    assert_int_equal(port_in(recorder, COM1_MSR), 0xb0);
    assert_int_equal(port_in(recorder, COM1_SCR), 0x00);
}

static void keeps_only_the_bits_that_exist(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_IER, 0xff);
    assert_int_equal(port_in(recorder, COM1_IER), 0x0f);
    port_out(recorder, COM1_IER, 0x40);
    assert_int_equal(port_in(recorder, COM1_IER), 0x00);
    port_out(recorder, COM1_MCR, 0xff);
    assert_int_equal(port_in(recorder, COM1_MCR), 0x1f);
    port_out(recorder, COM1_MCR, 0x00);
    port_out(recorder, COM1_LCR, 0x7f);
    assert_int_equal(port_in(recorder, COM1_LCR), 0x7f);
    port_out(recorder, COM1_SCR, 0xa5);
    assert_int_equal(port_in(recorder, COM1_SCR), 0xa5);
    port_out(recorder, COM1_LSR, 0x00);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
}

static void hides_the_divisor_behind_the_latch_bit(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_IER, IER_LINE);
    port_out(recorder, COM1_LCR, LCR_DLAB);
    assert_int_equal(port_in(recorder, COM1_DATA), 0x0c);
    assert_int_equal(port_in(recorder, COM1_IER), 0x00);
    port_out(recorder, COM1_DATA, 0x34);
    port_out(recorder, COM1_IER, 0x12);
    assert_int_equal(port_in(recorder, COM1_DATA), 0x34);
    assert_int_equal(port_in(recorder, COM1_IER), 0x12);
    port_out(recorder, COM1_LCR, 0x03);
    assert_int_equal(port_in(recorder, COM1_IER), IER_LINE);
    assert_int_equal(recorder->console_size, 0);
    port_out(recorder, COM1_LCR, LCR_DLAB);
    assert_int_equal(port_in(recorder, COM1_DATA), 0x34);
}

static void sends_each_character_at_once(void **state)
{
    struct recorder *recorder = *state;
    struct chipset_counters counters;

    send_looped(recorder, "hi\n");
    assert_string_equal(recorder->console, "hi\n");
    assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
    chipset_counters(recorder->chipset, &counters);
    assert_int_equal(counters.console_bytes_out, 3);
    assert_int_equal(counters.console_bytes_in, 0);
}

static void takes_wide_accesses_as_bytes_in_a_row(void **state)
{
    struct recorder *recorder = *state;

    bus_write(&recorder->ports, COM1_LCR, 4, 0x00001a03);
    assert_int_equal(port_in(recorder, COM1_LCR), 0x03);
    assert_int_equal(port_in(recorder, COM1_MCR), 0x1a);
    assert_int_equal(bus_read(&recorder->ports, COM1_LCR, 2), 0x1a03);
    port_out(recorder, COM1_MCR, 0);
    bus_write(&recorder->ports, COM1_DATA, 2, 0x0f41);
    assert_string_equal(recorder->console, "A");
    assert_int_equal(port_in(recorder, COM1_IER), 0x0f);
    bus_write(&recorder->ports, COM1_SCR, 2, 0x3344); /* the next port is nobody's */
    assert_int_equal(port_in(recorder, COM1_SCR), 0x44);
    assert_int_equal(bus_read(&recorder->ports, COM1_SCR, 2), 0xff44);
}

static void loopback_joins_outputs_to_inputs(void **state)
{
    static const uint8_t cases[][2] = {
        {MCR_LOOP, 0x00},
        {MCR_LOOP | MCR_RTS, 0x10},
        {MCR_LOOP | MCR_DTR, 0x20},
        {MCR_LOOP | MCR_OUT1, 0x40},
        {MCR_LOOP | MCR_OUT2, 0x80},
        {MCR_LOOP | MCR_OUT2 | MCR_RTS, 0x90},
        {MCR_DTR | MCR_RTS | MCR_OUT1 | MCR_OUT2, 0xb0},
    };
    struct recorder *recorder = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        port_out(recorder, COM1_MCR, cases[i][0]);
        assert_int_equal(port_in(recorder, COM1_MSR) & 0xf0, cases[i][1]);
    }
}

static void modem_changes_stay_until_read(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_MCR, MCR_LOOP); /* CTS, DSR, DCD fall */
    assert_int_equal(port_in(recorder, COM1_MSR), 0x0b);
    assert_int_equal(port_in(recorder, COM1_MSR), 0x00);
    port_out(recorder, COM1_MCR, MCR_LOOP | MCR_OUT1); /* a ring begins: no change bit */
    assert_int_equal(port_in(recorder, COM1_MSR), 0x40);
    port_out(recorder, COM1_MCR, MCR_LOOP); /* it ends */
    assert_int_equal(port_in(recorder, COM1_MSR), 0x04);
    port_out(recorder, COM1_MCR, MCR_LOOP | MCR_RTS);
    port_out(recorder, COM1_MCR, MCR_LOOP); /* there and back: changed */
    assert_int_equal(port_in(recorder, COM1_MSR), 0x01);
    port_out(recorder, COM1_MCR, 0);
    assert_int_equal(port_in(recorder, COM1_MSR), 0xbb);
}

static void loopback_receives_what_it_sends(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_MCR, MCR_LOOP);
    port_out(recorder, COM1_DATA, 0x5a);
    assert_int_equal(recorder->console_size, 0);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x61);
    assert_int_equal(port_in(recorder, COM1_DATA), 0x5a);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
}

static void overrun_without_fifo_keeps_the_newer(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_MCR, MCR_LOOP);
    send_looped(recorder, "ab");
    assert_int_equal(port_in(recorder, COM1_LSR), 0x63);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x61);
    assert_int_equal(port_in(recorder, COM1_DATA), 'b');
    assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
}

static void overrun_with_fifo_keeps_the_older(void **state)
{
    struct recorder *recorder = *state;
    const char *sent = "0123456789abcdefX";

    port_out(recorder, COM1_FCR, FCR_ENABLE);
    port_out(recorder, COM1_MCR, MCR_LOOP);
    send_looped(recorder, sent);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x63);
    for (int i = 0; i < 16; i++)
        assert_int_equal(port_in(recorder, COM1_DATA), sent[i]);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
}

static void clearing_the_receive_fifo_drops_its_content(void **state)
{
    static const uint8_t clearing[] = {
        FCR_ENABLE | FCR_CLEAR_RECEIVED, /* asked for */
        0,                               /* switched off */
    };
    struct recorder *recorder = *state;

    port_out(recorder, COM1_MCR, MCR_LOOP);
    for (size_t i = 0; i < sizeof(clearing); i++) {
        port_out(recorder, COM1_FCR, FCR_ENABLE);
        send_looped(recorder, "abc");
        assert_int_equal(port_in(recorder, COM1_LSR), 0x61);
        port_out(recorder, COM1_FCR, clearing[i]);
        assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
    }
    send_looped(recorder, "d");
    port_out(recorder, COM1_FCR, FCR_ENABLE); /* switched on */
    assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
}

static void other_fifo_bits_leave_the_content_alone(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_MCR, MCR_LOOP);
    send_looped(recorder, "a");
    port_out(recorder, COM1_FCR, FCR_CLEAR_RECEIVED); /* void without the enable bit */
    assert_int_equal(port_in(recorder, COM1_DATA), 'a');
    port_out(recorder, COM1_FCR, FCR_ENABLE);
    send_looped(recorder, "b");
    port_out(recorder, COM1_FCR, FCR_ENABLE | FCR_CLEAR_TRANSMITTED | FCR_TRIGGER_14);
    assert_int_equal(port_in(recorder, COM1_DATA), 'b');
}

static void a_break_is_a_null_character_with_its_status(void **state)
{
    struct recorder *recorder = *state;

    chipset_console_break(recorder->chipset);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x71);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x61);
    assert_int_equal(port_in(recorder, COM1_DATA), 0x00);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
}

static void a_break_in_the_fifo_shows_when_it_is_first(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_FCR, FCR_ENABLE);
    port_out(recorder, COM1_MCR, MCR_LOOP);
    send_looped(recorder, "a");
    port_out(recorder, COM1_MCR, 0);
    chipset_console_break(recorder->chipset);
    assert_int_equal(port_in(recorder, COM1_LSR), 0xe1); /* somewhere in the FIFO */
    assert_int_equal(port_in(recorder, COM1_DATA), 'a');
    assert_int_equal(port_in(recorder, COM1_LSR), 0xf1); /* now in front */
    assert_int_equal(port_in(recorder, COM1_LSR), 0x61);
    assert_int_equal(port_in(recorder, COM1_DATA), 0x00);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
}

static void a_break_does_not_reach_a_port_in_loopback(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_MCR, MCR_LOOP);
    chipset_console_break(recorder->chipset);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED_TEST(has_these_values_at_power_on),
        RECORDED_TEST(keeps_only_the_bits_that_exist),
        RECORDED_TEST(hides_the_divisor_behind_the_latch_bit),
        RECORDED_TEST(sends_each_character_at_once),
        RECORDED_TEST(takes_wide_accesses_as_bytes_in_a_row),
        RECORDED_TEST(loopback_joins_outputs_to_inputs),
        RECORDED_TEST(modem_changes_stay_until_read),
        RECORDED_TEST(loopback_receives_what_it_sends),
        RECORDED_TEST(overrun_without_fifo_keeps_the_newer),
        RECORDED_TEST(overrun_with_fifo_keeps_the_older),
        RECORDED_TEST(clearing_the_receive_fifo_drops_its_content),
        RECORDED_TEST(other_fifo_bits_leave_the_content_alone),
        RECORDED_TEST(a_break_is_a_null_character_with_its_status),
        RECORDED_TEST(a_break_in_the_fifo_shows_when_it_is_first),
        RECORDED_TEST(a_break_does_not_reach_a_port_in_loopback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
