/* SPDX-License-Identifier: Apache-2.0 */
/* The serial port's interrupts: causes, priorities, acknowledgement, the line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder.h"
#include "uart_ports.h"

#define IIR_FIFOS 0xc0
#define IIR_NONE 0x01
#define IIR_LINE 0x06
#define IIR_RECEIVED 0x04
#define IIR_TIMEOUT 0x0c
#define IIR_TRANSMITTED 0x02
#define IIR_MODEM 0x00

static void loop_back(struct recorder *recorder, unsigned count)
{
    uint8_t control = port_in(recorder, COM1_MCR);

    port_out(recorder, COM1_MCR, MCR_LOOP | MCR_RTS | MCR_DTR | MCR_OUT2);
    while (count-- > 0)
        port_out(recorder, COM1_DATA, 'x');
    port_out(recorder, COM1_MCR, control);
    (void)port_in(recorder, COM1_MSR);
}

static void transmitter_interrupt_comes_when_enabled(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_MCR, MCR_OUT2);
    assert_false(recorder->irq_levels[COM1_IRQ]);
    port_out(recorder, COM1_IER, IER_TRANSMITTED);
    assert_true(recorder->irq_levels[COM1_IRQ]);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_TRANSMITTED);
    assert_false(recorder->irq_levels[COM1_IRQ]); /* reading acknowledged it */
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_NONE);
}

static void transmitter_interrupt_comes_again_after_each_character(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_MCR, MCR_OUT2);
    port_out(recorder, COM1_IER, IER_TRANSMITTED);
    (void)port_in(recorder, COM1_IIR);
    for (int i = 0; i < 3; i++) {
        port_out(recorder, COM1_DATA, 'x');
        assert_true(recorder->irq_levels[COM1_IRQ]);
        assert_int_equal(port_in(recorder, COM1_IIR), IIR_TRANSMITTED);
        assert_false(recorder->irq_levels[COM1_IRQ]);
    }
}

static void transmitter_interrupt_comes_again_when_enabled_again(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_IER, IER_TRANSMITTED);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_TRANSMITTED);
    port_out(recorder, COM1_IER, IER_TRANSMITTED); /* no edge: stays acknowledged */
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_NONE);
    port_out(recorder, COM1_IER, 0);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_NONE);
    port_out(recorder, COM1_IER, IER_TRANSMITTED);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_TRANSMITTED);
}

static void identity_read_for_another_cause_acknowledges_nothing(void **state)
{
    struct recorder *recorder = *state;

    loop_back(recorder, 1);
    port_out(recorder, COM1_IER, IER_TRANSMITTED | IER_RECEIVED);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_RECEIVED);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_RECEIVED);
    (void)port_in(recorder, COM1_DATA);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_TRANSMITTED);
}

static void causes_come_in_order_of_priority(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_FCR, FCR_ENABLE);
    chipset_console_break(recorder->chipset);
    port_out(recorder, COM1_MCR, MCR_LOOP); /* modem inputs change */
    port_out(recorder, COM1_MCR, MCR_OUT2);
    port_out(recorder, COM1_IER, 0x0f);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_FIFOS | IIR_LINE);
    assert_int_equal(port_in(recorder, COM1_LSR), 0xf1);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_FIFOS | IIR_RECEIVED);
    assert_int_equal(port_in(recorder, COM1_DATA), 0);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_FIFOS | IIR_TRANSMITTED);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_FIFOS | IIR_MODEM);
    assert_true(recorder->irq_levels[COM1_IRQ]);
    assert_int_equal(port_in(recorder, COM1_MSR), 0xbb);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_FIFOS | IIR_NONE);
    assert_false(recorder->irq_levels[COM1_IRQ]);
    assert_int_equal(recorder->irq_changes[COM1_IRQ], 2); /* up once, down once */
}

static void disabled_causes_are_silent(void **state)
{
    struct recorder *recorder = *state;

    chipset_console_break(recorder->chipset);
    port_out(recorder, COM1_MCR, MCR_LOOP);
    port_out(recorder, COM1_MCR, MCR_OUT2);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_NONE);
    assert_int_equal(recorder->irq_changes[COM1_IRQ], 0);
    port_out(recorder, COM1_IER, IER_MODEM);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_MODEM);
}

static void received_means_trigger_level_and_timeout_means_less(void **state)
{
    static const struct {
        uint8_t trigger;
        unsigned level;
    } cases[] = {
        {FCR_TRIGGER_1, 1},
        {FCR_TRIGGER_4, 4},
        {FCR_TRIGGER_8, 8},
        {FCR_TRIGGER_14, 14},
    };
    struct recorder *recorder = *state;

    port_out(recorder, COM1_IER, IER_RECEIVED);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        port_out(recorder, COM1_FCR,
                 (uint8_t)(FCR_ENABLE | FCR_CLEAR_RECEIVED | cases[i].trigger));
        assert_int_equal(port_in(recorder, COM1_IIR), IIR_FIFOS | IIR_NONE);
        for (unsigned count = 1; count <= 16; count++) {
            loop_back(recorder, 1);
            assert_int_equal(port_in(recorder, COM1_IIR),
                             IIR_FIFOS |
                                 (count >= cases[i].level ? IIR_RECEIVED : IIR_TIMEOUT));
        }
    }
}

static void reading_all_that_came_lowers_the_line(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_FCR, FCR_ENABLE | FCR_TRIGGER_8);
    port_out(recorder, COM1_MCR, MCR_OUT2);
    port_out(recorder, COM1_IER, IER_RECEIVED);
    assert_int_equal(chipset_console_input(recorder->chipset, (const uint8_t *)"abc", 3),
                     3);
    assert_true(recorder->irq_levels[COM1_IRQ]);
    (void)port_in(recorder, COM1_DATA);
    (void)port_in(recorder, COM1_DATA);
    assert_true(recorder->irq_levels[COM1_IRQ]);
    (void)port_in(recorder, COM1_DATA);
    assert_false(recorder->irq_levels[COM1_IRQ]);
}

static void clearing_the_fifo_lowers_the_line(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_FCR, FCR_ENABLE);
    port_out(recorder, COM1_MCR, MCR_OUT2);
    port_out(recorder, COM1_IER, IER_RECEIVED);
    assert_int_equal(chipset_console_input(recorder->chipset, (const uint8_t *)"a", 1),
                     1);
    assert_true(recorder->irq_levels[COM1_IRQ]);
    port_out(recorder, COM1_FCR, FCR_ENABLE | FCR_CLEAR_RECEIVED);
    assert_false(recorder->irq_levels[COM1_IRQ]);
}

static void out2_connects_the_line(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_IER, IER_TRANSMITTED);
    assert_int_equal(recorder->irq_changes[COM1_IRQ], 0);
    port_out(recorder, COM1_MCR, MCR_OUT2);
    assert_true(recorder->irq_levels[COM1_IRQ]);
    port_out(recorder, COM1_MCR, 0);
    assert_false(recorder->irq_levels[COM1_IRQ]);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_TRANSMITTED); /* still due */
}

static void overrun_raises_line_status(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_IER, IER_LINE);
    loop_back(recorder, 2);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_LINE);
    assert_int_equal(port_in(recorder, COM1_LSR), 0x63);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_NONE);
}

static void reset_withdraws_a_pending_interrupt(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, COM1_MCR, MCR_OUT2);
    port_out(recorder, COM1_IER, IER_TRANSMITTED);
    assert_true(recorder->irq_levels[COM1_IRQ]);
    chipset_reset(recorder->chipset);
    assert_false(recorder->irq_levels[COM1_IRQ]);
    assert_int_equal(port_in(recorder, COM1_IIR), IIR_NONE);
    assert_int_equal(port_in(recorder, COM1_IER), 0);
    assert_int_equal(port_in(recorder, COM1_MCR), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED_TEST(transmitter_interrupt_comes_when_enabled),
        RECORDED_TEST(transmitter_interrupt_comes_again_after_each_character),
        RECORDED_TEST(transmitter_interrupt_comes_again_when_enabled_again),
        RECORDED_TEST(identity_read_for_another_cause_acknowledges_nothing),
        RECORDED_TEST(causes_come_in_order_of_priority),
        RECORDED_TEST(disabled_causes_are_silent),
        RECORDED_TEST(received_means_trigger_level_and_timeout_means_less),
        RECORDED_TEST(reading_all_that_came_lowers_the_line),
        RECORDED_TEST(clearing_the_fifo_lowers_the_line),
        RECORDED_TEST(out2_connects_the_line),
        RECORDED_TEST(overrun_raises_line_status),
        RECORDED_TEST(reset_withdraws_a_pending_interrupt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
