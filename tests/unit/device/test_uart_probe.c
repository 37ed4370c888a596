/* SPDX-License-Identifier: Apache-2.0 */
/* What Linux's 8250 driver asks of a port before it uses it as a 16550A. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder.h"
#include "uart_ports.h"

#define LCR_CONF_MODE_A 0x80
#define LCR_CONF_MODE_B 0xbf

/* autoconfig(): is there a port at all? */
static void interrupt_enable_holds_four_bits(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_IER, 0);
    port_out(recorder, 0x80, 0xff);
    assert_int_equal(port_in(recorder, COM1_IER) & 0x0f, 0x00);
    port_out(recorder, COM1_IER, 0x0f);
    assert_int_equal(port_in(recorder, COM1_IER) & 0x0f, 0x0f);
}

/* autoconfig(): does loopback drive the modem inputs? */
static void loopback_shows_rts_and_out2(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_MCR, MCR_LOOP | MCR_OUT2 | MCR_RTS);
    assert_int_equal(port_in(recorder, COM1_MSR) & 0xf0, 0x90);
}

/* autoconfig(): which of 8250, 16450, 16550, 16550A? */
static void fifo_identity_is_that_of_a_16550a(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_LCR, LCR_CONF_MODE_B);
    port_out(recorder, COM1_FCR, 0); /* the place of the EFR on larger chips */
    port_out(recorder, COM1_LCR, 0);
    assert_int_equal(port_in(recorder, COM1_IIR) >> 6, 0);
    port_out(recorder, COM1_FCR, FCR_ENABLE);
    assert_int_equal(port_in(recorder, COM1_IIR) >> 6, 3);
}

/* autoconfig_16550a(): none of the larger relatives. */
static void is_no_larger_relative(void **state)
{
    struct recorder *recorder = *state;
    uint8_t control;

    port_out(recorder, COM1_FCR, FCR_ENABLE);
    port_out(recorder, COM1_LCR, LCR_CONF_MODE_A); /* 16650: EFR would read 0 */
    assert_int_not_equal(port_in(recorder, COM1_IIR), 0);
    port_out(recorder, COM1_LCR, LCR_CONF_MODE_B);
    assert_int_not_equal(port_in(recorder, COM1_IIR), 0);

    port_out(recorder, COM1_LCR, 0); /* National: register 2 mirrors MCR in bank 2 */
    control = port_in(recorder, COM1_MCR);
    port_out(recorder, COM1_MCR, control ^ MCR_LOOP);
    port_out(recorder, COM1_LCR, 0xe0);
    assert_int_equal((port_in(recorder, COM1_IIR) ^ control) & MCR_LOOP, 0);
    port_out(recorder, COM1_LCR, 0);
    port_out(recorder, COM1_MCR, control);

    port_out(recorder, COM1_LCR, LCR_CONF_MODE_A); /* TI 16750: 64-byte FIFO bit */
    port_out(recorder, COM1_FCR, FCR_ENABLE | 0x20);
    assert_int_equal(port_in(recorder, COM1_IIR) & 0x20, 0);

    port_out(recorder, COM1_LCR, 0); /* XScale: unit enable bit sticks */
    port_out(recorder, COM1_IER, 0x40);
    assert_int_equal(port_in(recorder, COM1_IER), 0);
}

/* serial8250_do_startup(): UART_BUG_THRE, the interrupt must come again. */
static void transmitter_interrupt_is_raised_twice(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(port_in(recorder, COM1_LSR) & 0x60, 0x60);
    port_out(recorder, COM1_IER, IER_TRANSMITTED);
    assert_int_equal(port_in(recorder, COM1_IIR) & 0x0f, 0x02);
    port_out(recorder, COM1_IER, 0);
    port_out(recorder, COM1_IER, IER_TRANSMITTED);
    assert_int_equal(port_in(recorder, COM1_IIR) & 0x0f, 0x02);
}

/* serial8250_do_startup(): UART_BUG_TXEN, enabling must raise at once. */
static void enabling_transmitter_interrupt_raises_it_at_once(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_IER, IER_TRANSMITTED);
    assert_int_equal(port_in(recorder, COM1_LSR) & 0x40, 0x40);
    assert_int_equal(port_in(recorder, COM1_IIR) & 0x01, 0);
}

/* serial8250_do_startup(): the FIFOs are cleared and the status registers read; input
 * that waits outside must still be there when the port is open. */
static void startup_loses_no_input(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(chipset_console_input(recorder->chipset, (const uint8_t *)"a", 1),
                     0);
    port_out(recorder, COM1_FCR, FCR_ENABLE);
    port_out(recorder, COM1_FCR, FCR_ENABLE | FCR_CLEAR_RECEIVED | FCR_CLEAR_TRANSMITTED);
    port_out(recorder, COM1_FCR, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(port_in(recorder, COM1_LSR), 0x60);
        (void)port_in(recorder, COM1_DATA);
        (void)port_in(recorder, COM1_IIR);
        (void)port_in(recorder, COM1_MSR);
    }
    port_out(recorder, COM1_LCR, 0x03);
    port_out(recorder, COM1_MCR, MCR_OUT2);
    port_out(recorder, COM1_FCR, FCR_ENABLE | FCR_TRIGGER_8);
    port_out(recorder, COM1_MCR, MCR_OUT2 | MCR_RTS | MCR_DTR);
    assert_int_equal(recorder->rooms, 0);
    port_out(recorder, COM1_IER, IER_LINE | IER_RECEIVED);
    assert_int_equal(recorder->rooms, 1);
}

/* Case 56: `--serial none` with console=ttyS0 must not make the kernel wait for a
 * transmitter that is never ready. */
static void without_serial_it_is_an_idle_port(void **state)
{
    struct recorder recorder = {.chipset = NULL};
    struct chipset_options options = recorder_options(&recorder);
    struct chipset_counters counters;

    (void)state;
    options.serial = false;
    recorder_create_with(&recorder, &options);
    state = (void *[]){&recorder};
    assert_int_equal(port_in(&recorder, COM1_LSR), 0x60);
    port_out(&recorder, COM1_DATA, 'x');
    assert_int_equal(port_in(&recorder, COM1_LSR), 0x60);
    assert_int_equal(port_in(&recorder, COM1_MSR), 0xb0);
    interrupt_enable_holds_four_bits(state);
    loopback_shows_rts_and_out2(state);
    fifo_identity_is_that_of_a_16550a(state);
    chipset_reset(recorder.chipset);
    transmitter_interrupt_is_raised_twice(state);
    assert_int_equal(recorder.console_size, 0);
    chipset_counters(recorder.chipset, &counters);
    assert_int_equal(counters.console_bytes_out, 0);
    recorder_destroy(&recorder);
}

/* COM2 to COM4 are not there: autoconfig() must see it from IER. */
static void other_ports_are_absent(void **state)
{
    static const uint16_t ports[] = {0x2f8, 0x3e8, 0x2e8};
    struct recorder *recorder = *state;

    for (size_t i = 0; i < 3; i++) {
        port_out(recorder, (uint16_t)(ports[i] + 1), 0);
        assert_int_equal(port_in(recorder, (uint16_t)(ports[i] + 1)), 0xff);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED_TEST(interrupt_enable_holds_four_bits),
        RECORDED_TEST(loopback_shows_rts_and_out2),
        RECORDED_TEST(fifo_identity_is_that_of_a_16550a),
        RECORDED_TEST(is_no_larger_relative),
        RECORDED_TEST(transmitter_interrupt_is_raised_twice),
        RECORDED_TEST(enabling_transmitter_interrupt_raises_it_at_once),
        RECORDED_TEST(startup_loses_no_input),
        cmocka_unit_test(without_serial_it_is_an_idle_port),
        RECORDED_TEST(other_ports_are_absent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
