/* SPDX-License-Identifier: Apache-2.0 */
/* The device for test suites. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder.h"

#include <stdlib.h>

#include "x86/layout.h"

#define LATCH 0xe0
#define FLUSH 0xe4
#define BYTE 0xe8
#define LINES 0x2000
#define WINDOW UINT64_C(0xff000000)

static int setup(void **state)
{
    struct recorder *recorder = calloc(1, sizeof(*recorder));
    struct chipset_options options;

    if (recorder == NULL)
        return -1;
    options = recorder_options(recorder);
    options.test_device = true;
    recorder_create_with(recorder, &options);
    *state = recorder;
    return 0;
}

static void latch_keeps_what_was_written_in_any_width(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(bus_read(&recorder->ports, LATCH, 4), 0);
    bus_write(&recorder->ports, LATCH, 4, 0x12345678);
    assert_int_equal(bus_read(&recorder->ports, LATCH, 4), 0x12345678);
    bus_write(&recorder->ports, LATCH + 2, 2, 0xabcd);
    bus_write(&recorder->ports, LATCH, 1, 0xff);
    assert_int_equal(bus_read(&recorder->ports, LATCH, 4), 0xabcd56ff);
    assert_int_equal(bus_read(&recorder->ports, LATCH + 1, 2), 0xcd56);
    assert_int_equal(port_in(recorder, LATCH + 3), 0xab);
}

static void byte_latch_is_apart_from_the_wide_one(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, BYTE, 0x5a);
    assert_int_equal(port_in(recorder, BYTE), 0x5a);
    assert_int_equal(bus_read(&recorder->ports, LATCH, 4), 0);
}

static void flush_port_changes_nothing(void **state)
{
    struct recorder *recorder = *state;

    bus_write(&recorder->ports, FLUSH, 4, 0x100000);
    assert_int_equal(bus_read(&recorder->ports, FLUSH, 4), 0xffffffff);
    assert_int_equal(bus_read(&recorder->ports, LATCH, 4), 0);
}

static void line_has_the_level_of_bit_0(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, LINES + 5, 1);
    assert_true(recorder->irq_levels[5]);
    port_out(recorder, LINES + 23, 0xff);
    assert_true(recorder->irq_levels[23]);
    port_out(recorder, LINES + 5, 0xfe);
    assert_false(recorder->irq_levels[5]);
    assert_int_equal(recorder->irq_changes[5], 2);
    assert_int_equal(port_in(recorder, LINES + 24), 0xff); /* nobody's */
    port_out(recorder, LINES + 24, 1);
}

static void window_is_memory_in_any_width(void **state)
{
    struct recorder *recorder = *state;

    bus_write(&recorder->mmio, WINDOW, 8, 0x1122334455667788);
    bus_write(&recorder->mmio, WINDOW + 3, 1, 0xee);
    assert_int_equal(bus_read(&recorder->mmio, WINDOW, 8), 0x11223344ee667788);
    assert_int_equal(bus_read(&recorder->mmio, WINDOW + 2, 4), 0x3344ee66);
    bus_write(&recorder->mmio, WINDOW + 0xfffe, 2, 0xbeef);
    assert_int_equal(bus_read(&recorder->mmio, WINDOW + 0xfffe, 2), 0xbeef);
    bus_write(&recorder->mmio, WINDOW + 0xfffe, 4, 0x12345678); /* half of it outside */
    assert_int_equal(bus_read(&recorder->mmio, WINDOW + 0xfffe, 4), 0xffff5678);
}

static void reset_clears_memory_and_lowers_only_its_own_lines(void **state)
{
    struct recorder *recorder = *state;

    bus_write(&recorder->ports, LATCH, 4, 0x12345678);
    port_out(recorder, BYTE, 1);
    bus_write(&recorder->mmio, WINDOW + 0x8000, 8, UINT64_MAX);
    port_out(recorder, LINES + 7, 1);
    chipset_reset(recorder->chipset);
    assert_int_equal(bus_read(&recorder->ports, LATCH, 4), 0);
    assert_int_equal(port_in(recorder, BYTE), 0);
    assert_int_equal(bus_read(&recorder->mmio, WINDOW + 0x8000, 8), 0);
    assert_false(recorder->irq_levels[7]);
    assert_int_equal(recorder->irq_changes[7], 2);
    assert_int_equal(recorder->irq_changes[LAYOUT_IRQ_TIMER], 0);
}

static void is_not_there_unless_asked_for(void **state)
{
    struct recorder recorder;

    (void)state;
    recorder_create(&recorder);
    bus_write(&recorder.ports, LATCH, 4, 0);
    assert_int_equal(bus_read(&recorder.ports, LATCH, 4), 0xffffffff);
    assert_int_equal(bus_read(&recorder.mmio, WINDOW, 4), 0xffffffff);
    port_out(&recorder, LINES + 5, 1);
    assert_int_equal(recorder.irq_changes[5], 0);
    recorder_destroy(&recorder);
}

#define DEVICE_TEST(function)                                                            \
    cmocka_unit_test_setup_teardown(function, setup, recorder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(latch_keeps_what_was_written_in_any_width),
        DEVICE_TEST(byte_latch_is_apart_from_the_wide_one),
        DEVICE_TEST(flush_port_changes_nothing),
        DEVICE_TEST(line_has_the_level_of_bit_0),
        DEVICE_TEST(window_is_memory_in_any_width),
        DEVICE_TEST(reset_clears_memory_and_lowers_only_its_own_lines),
        cmocka_unit_test(is_not_there_unless_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
