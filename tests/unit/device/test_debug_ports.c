/* SPDX-License-Identifier: Apache-2.0 */
/* The debug console and the debug exit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder.h"

#define CONSOLE 0xe9
#define FIRMWARE_CONSOLE 0x402
#define EXIT 0x501

static void console_can_be_found_and_written(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(port_in(recorder, CONSOLE), 0xe9);
    port_out(recorder, CONSOLE, 'o');
    port_out(recorder, CONSOLE, 'k');
    assert_string_equal(recorder->debug_console, "ok");
    assert_int_equal(recorder->console_size, 0);
    bus_write(&recorder->ports, CONSOLE, 4, 0x44434241); /* the next ports are nobody's */
    assert_string_equal(recorder->debug_console, "okA");
    assert_int_equal(bus_read(&recorder->ports, CONSOLE, 2), 0xffe9);
}

/* SeaBIOS and OVMF look for it there, by the same byte. */
static void console_is_where_firmware_looks_for_it_too(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(port_in(recorder, FIRMWARE_CONSOLE), 0xe9);
    port_out(recorder, FIRMWARE_CONSOLE, 'o');
    port_out(recorder, CONSOLE, 'k');
    assert_string_equal(recorder->debug_console, "ok");
}

static void exit_takes_every_width(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, EXIT, 0x10);
    assert_int_equal(recorder->debug_exits, 1);
    assert_int_equal(recorder->debug_exit_value, 0x10);
    bus_write(&recorder->ports, EXIT, 2, 0x1234);
    assert_int_equal(recorder->debug_exit_value, 0x1234);
    bus_write(&recorder->ports, EXIT, 4, 0xdeadbeef);
    assert_int_equal(recorder->debug_exit_value, 0xdeadbeef);
    assert_int_equal(recorder->debug_exits, 3);
    port_out(recorder, EXIT + 3, 7);
    assert_int_equal(recorder->debug_exit_value, 7);
    assert_int_equal(bus_read(&recorder->ports, EXIT, 4), 0);
    assert_int_equal(port_in(recorder, EXIT + 4), 0xff);
    assert_int_equal(recorder->debug_exits, 4);
}

static void neither_is_there_unless_asked_for(void **state)
{
    struct recorder recorder = {.chipset = NULL};
    struct chipset_options options = recorder_options(&recorder);

    (void)state;
    options.debug_console.write = NULL;
    options.debug_exit_port = 0;
    recorder_create_with(&recorder, &options);
    assert_int_equal(port_in(&recorder, CONSOLE), 0xff);
    assert_int_equal(port_in(&recorder, FIRMWARE_CONSOLE), 0xff);
    assert_int_equal(port_in(&recorder, EXIT), 0xff);
    port_out(&recorder, CONSOLE, 'x');
    port_out(&recorder, EXIT, 1);
    assert_int_equal(recorder.debug_console_size, 0);
    assert_int_equal(recorder.debug_exits, 0);
    recorder_destroy(&recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED_TEST(console_can_be_found_and_written),
        RECORDED_TEST(console_is_where_firmware_looks_for_it_too),
        RECORDED_TEST(exit_takes_every_width),
        cmocka_unit_test(neither_is_there_unless_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
