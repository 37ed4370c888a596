/* SPDX-License-Identifier: Apache-2.0 */
/* ACPI: power-off, the power button's interrupt, and the timer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/acpi_power_private.h"
#include "recorder.h"

#define STATUS 0x600
#define ENABLE 0x602
#define CONTROL 0x604
#define TIMER 0x608
#define SCI 9
#define POWER_BUTTON 0x0100

static unsigned in16(struct recorder *recorder, uint16_t port)
{
    return (unsigned)bus_read(&recorder->ports, port, 2);
}

static void out16(struct recorder *recorder, uint16_t port, uint16_t value)
{
    bus_write(&recorder->ports, port, 2, value);
}

static void is_in_acpi_mode_from_the_start(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(in16(recorder, CONTROL), 0x0001);
    out16(recorder, CONTROL, 0x0000);
    assert_int_equal(in16(recorder, CONTROL), 0x0001);
    assert_int_equal(in16(recorder, STATUS), 0);
    assert_int_equal(in16(recorder, ENABLE), 0);
}

/* Linux writes the sleep type first and sets the enable bit in a second write. */
static void s5_powers_off(void **state)
{
    struct recorder *recorder = *state;

    out16(recorder, CONTROL, 5 << 10 | 1);
    assert_int_equal(recorder->power_offs, 0);
    assert_int_equal(in16(recorder, CONTROL), 5 << 10 | 1);
    out16(recorder, CONTROL, 0x2000 | 5 << 10 | 1);
    assert_int_equal(recorder->power_offs, 1);
    assert_int_equal(in16(recorder, CONTROL), 5 << 10 | 1); /* enable reads 0 */
    assert_int_equal(recorder->resets, 0);
}

static void widely_known_port_write_powers_off(void **state)
{
    struct recorder *recorder = *state;

    out16(recorder, CONTROL, 0x2000);
    assert_int_equal(recorder->power_offs, 1);
}

static void byte_writes_power_off_too(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, CONTROL, 0x00);
    port_out(recorder, CONTROL + 1, 0x34);
    assert_int_equal(recorder->power_offs, 1);
}

static void other_sleep_types_do_nothing(void **state)
{
    static const uint16_t types[] = {1, 2, 3, 4, 6, 7};
    struct recorder *recorder = *state;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        out16(recorder, CONTROL, (uint16_t)(0x2000 | types[i] << 10));
    assert_int_equal(recorder->power_offs, 0);
}

static void button_raises_sci_until_acknowledged(void **state)
{
    struct recorder *recorder = *state;

    out16(recorder, ENABLE, POWER_BUTTON);
    assert_int_equal(recorder->irq_changes[SCI], 0);
    assert_true(chipset_power_button(recorder->chipset));
    assert_true(recorder->irq_levels[SCI]);
    assert_int_equal(in16(recorder, STATUS), POWER_BUTTON);
    out16(recorder, STATUS, (uint16_t)~POWER_BUTTON); /* other bits clear nothing here */
    assert_int_equal(in16(recorder, STATUS), POWER_BUTTON);
    out16(recorder, STATUS, POWER_BUTTON);
    assert_int_equal(in16(recorder, STATUS), 0);
    assert_false(recorder->irq_levels[SCI]);
}

static void button_waits_for_a_guest_that_enables_it(void **state)
{
    struct recorder *recorder = *state;

    assert_false(chipset_power_button(recorder->chipset));
    assert_int_equal(recorder->irq_changes[SCI], 0);
    assert_int_equal(in16(recorder, STATUS), POWER_BUTTON);
    out16(recorder, ENABLE, POWER_BUTTON);
    assert_true(recorder->irq_levels[SCI]);
    out16(recorder, ENABLE, 0);
    assert_false(recorder->irq_levels[SCI]);
}

static void event_block_takes_bytes_and_double_words(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, ENABLE + 1, POWER_BUTTON >> 8);
    assert_int_equal(in16(recorder, ENABLE), POWER_BUTTON);
    (void)chipset_power_button(recorder->chipset);
    assert_int_equal(bus_read(&recorder->ports, STATUS, 4), 0x01000100);
    port_out(recorder, STATUS, 0xff);
    assert_true(recorder->irq_levels[SCI]);
    port_out(recorder, STATUS + 1, 0x01);
    assert_false(recorder->irq_levels[SCI]);
    bus_write(&recorder->ports, STATUS, 4, 0x05210000);
    assert_int_equal(in16(recorder, ENABLE), 0x0521);
}

static void reset_clears_events_and_lowers_sci(void **state)
{
    struct recorder *recorder = *state;

    out16(recorder, ENABLE, POWER_BUTTON);
    out16(recorder, CONTROL, 5 << 10);
    (void)chipset_power_button(recorder->chipset);
    chipset_reset(recorder->chipset);
    assert_false(recorder->irq_levels[SCI]);
    assert_int_equal(in16(recorder, STATUS), 0);
    assert_int_equal(in16(recorder, ENABLE), 0);
    assert_int_equal(in16(recorder, CONTROL), 0x0001);
}

static void timer_counts_at_its_frequency(void **state)
{
    static const struct {
        uint64_t ns;
        uint32_t ticks;
    } cases[] = {
        {0, 0},
        {279, 0},
        {280, 1}, /* 279.365 ns a tick */
        {UINT64_C(1000000000), 3579545},
        {UINT64_C(2500000000), 8948862},
        {UINT64_C(1199864000000), 4294967181},
        {UINT64_C(1200000000000), 486704}, /* 4295454000 ticks, wrapped at 32 bits */
        {UINT64_MAX, 3047538368},
    };
    struct recorder *recorder = *state;
    struct machine_requests requests = recorder_requests(recorder);
    struct acpi_power power;
    struct error err = ERROR_NONE;
    struct bus ports;

    bus_init(&ports, "port");
    acpi_power_init(&power, recorder_irq_line(recorder, SCI), &requests,
                    &recorder->clock.clock);
    assert_int_equal(acpi_power_attach(&power, &ports, &err), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        virtual_clock_set(&recorder->clock, cases[i].ns);
        assert_int_equal(bus_read(&ports, TIMER, 4), cases[i].ticks);
        assert_int_equal(bus_read(&ports, TIMER + 2, 2), cases[i].ticks >> 16);
        assert_int_equal(bus_read(&ports, TIMER + 1, 1), cases[i].ticks >> 8 & 0xff);
    }
    bus_write(&ports, TIMER, 4, 0);
    assert_int_equal(bus_read(&ports, TIMER, 4), 3047538368);
}

static void timer_of_the_machine_follows_its_clock(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(bus_read(&recorder->ports, TIMER, 4), 0);
    virtual_clock_set(&recorder->clock, 1000000000);
    assert_int_equal(bus_read(&recorder->ports, TIMER, 4), 3579545);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED_TEST(is_in_acpi_mode_from_the_start),
        RECORDED_TEST(s5_powers_off),
        RECORDED_TEST(widely_known_port_write_powers_off),
        RECORDED_TEST(byte_writes_power_off_too),
        RECORDED_TEST(other_sleep_types_do_nothing),
        RECORDED_TEST(button_raises_sci_until_acknowledged),
        RECORDED_TEST(button_waits_for_a_guest_that_enables_it),
        RECORDED_TEST(event_block_takes_bytes_and_double_words),
        RECORDED_TEST(reset_clears_events_and_lowers_sci),
        RECORDED_TEST(timer_counts_at_its_frequency),
        RECORDED_TEST(timer_of_the_machine_follows_its_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
