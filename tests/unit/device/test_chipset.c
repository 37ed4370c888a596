/* SPDX-License-Identifier: Apache-2.0 */
/* The chipset as a whole: who sits where, what a reset does, what cannot be made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <time.h>

#include "recorder.h"

static void answers_at_these_addresses_only(void **state)
{
    static const struct {
        uint64_t start;
        uint64_t size;
    } expected[] = {
        {0x60, 1},  {0x64, 1},  {0x70, 2},  {0x92, 1},  {0xe9, 1},
        {0x3f8, 8}, {0x402, 1}, {0x501, 4}, {0x600, 4}, {0x604, 2},
        {0x608, 4}, {0xcf8, 4}, {0xcfc, 4},
    };
    struct recorder *recorder = *state;

    assert_int_equal(recorder->ports.count, sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < recorder->ports.count; i++) {
        assert_int_equal(recorder->ports.ranges[i].start, expected[i].start);
        assert_int_equal(recorder->ports.ranges[i].size, expected[i].size);
    }
    assert_int_equal(recorder->mmio.count, 4);
    assert_int_equal(recorder->mmio.ranges[0].start, 0xc0000000); /* PCI memory */
    assert_int_equal(recorder->mmio.ranges[0].size, 0x20000000);
    assert_int_equal(recorder->mmio.ranges[1].start, 0xe0000000);
    assert_int_equal(recorder->mmio.ranges[1].size, 0x100000);
    assert_int_equal(recorder->mmio.ranges[2].start, 0xf0000000); /* PCI, by firmware */
    assert_int_equal(recorder->mmio.ranges[2].size, 0xec00000);
    assert_int_equal(recorder->mmio.ranges[3].start, 0x800000000); /* PCI, 64 bits */
    assert_int_equal(recorder->mmio.ranges[3].size, 0x800000000);
}

static void refuses_a_debug_exit_on_another_device(void **state)
{
    struct recorder recorder = {.chipset = NULL};
    struct chipset_options options = recorder_options(&recorder);
    struct error err = ERROR_NONE;

    (void)state;
    bus_init(&recorder.ports, "port");
    bus_init(&recorder.mmio, "MMIO");
    options.debug_exit_port = 0x3f6;
    assert_int_equal(chipset_create(&options, &recorder.ports, &recorder.mmio,
                                    &recorder.chipset, &err),
                     -EADDRNOTAVAIL);
    assert_string_equal(err.text,
                        "debug exit needs port addresses 0x3f6 to 0x3f9, but serial port "
                        "has 0x3f8 to 0x3ff; choose another address");
    assert_null(recorder.chipset);
    chipset_destroy(recorder.chipset);
}

/* A guest's counter in CMOS tells it how often it has been reset. */
static void cmos_survives_a_reset_and_the_rest_does_not(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, 0x70, 0x40);
    port_out(recorder, 0x71, 0x5a);
    port_out(recorder, 0x3ff, 0xa5);
    chipset_reset(recorder->chipset);
    port_out(recorder, 0x70, 0x40);
    assert_int_equal(port_in(recorder, 0x71), 0x5a);
    assert_int_equal(port_in(recorder, 0x3ff), 0x00);
    for (int line = 0; line < RECORDER_LINES; line++)
        assert_int_equal(recorder->irq_changes[line], 0); /* none was up */
}

static void clock_tells_the_hosts_year(void **state)
{
    struct recorder *recorder = *state;
    time_t now;
    struct tm utc;
    int year;

    do { /* again, should a year end in between */
        now = time(NULL);
        assert_non_null(gmtime_r(&now, &utc));
        year = utc.tm_year % 100;
        port_out(recorder, 0x70, 0x09);
        now = time(NULL);
        assert_non_null(gmtime_r(&now, &utc));
    } while (utc.tm_year % 100 != year);
    assert_int_equal(port_in(recorder, 0x71), year / 10 * 16 + year % 10);
}

static void destroy_accepts_nothing(void **state)
{
    (void)state;
    chipset_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED_TEST(answers_at_these_addresses_only),
        cmocka_unit_test(refuses_a_debug_exit_on_another_device),
        RECORDED_TEST(cmos_survives_a_reset_and_the_rest_does_not),
        RECORDED_TEST(clock_tells_the_hosts_year),
        cmocka_unit_test(destroy_accepts_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
