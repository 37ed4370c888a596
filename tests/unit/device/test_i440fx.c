/* SPDX-License-Identifier: Apache-2.0 */
/* The PCI functions that PC firmware looks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "recorder.h"

#define ADDRESS 0xcf8
#define DATA 0xcfc
#define ECAM 0xe0000000
#define ENABLE 0x80000000

#define HOST 0x00 /* device * 8 + function */
#define ISA 0x08
#define POWER 0x0b

static uint32_t read_register(struct recorder *recorder, uint32_t slot, uint32_t offset,
                              unsigned size)
{
    bus_write(&recorder->ports, ADDRESS, 4, ENABLE | slot << 8 | (offset & 0xfc));
    return (uint32_t)bus_read(&recorder->ports, DATA + offset % 4, size);
}

static void write_register(struct recorder *recorder, uint32_t slot, uint32_t offset,
                           unsigned size, uint32_t value)
{
    bus_write(&recorder->ports, ADDRESS, 4, ENABLE | slot << 8 | (offset & 0xfc));
    bus_write(&recorder->ports, DATA + offset % 4, size, value);
}

static int setup_firmware(void **state)
{
    struct recorder *recorder = calloc(1, sizeof(*recorder));
    struct chipset_options options;

    if (recorder == NULL)
        return -1;
    options = recorder_options(recorder);
    options.firmware = true;
    recorder_create_with(recorder, &options);
    *state = recorder;
    return 0;
}

/* SeaBIOS takes a machine for QEMU's by the subsystem of 00:00.0. */
static void host_bridge_is_a_82441fx_of_qemu(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(read_register(recorder, HOST, 0x00, 4), 0x12378086);
    assert_int_equal(read_register(recorder, HOST, 0x08, 4), 0x06000002);
    assert_int_equal(read_register(recorder, HOST, 0x0e, 1), 0x00);
    assert_int_equal(read_register(recorder, HOST, 0x2c, 4), 0x11001af4);
    assert_int_equal(bus_read(&recorder->mmio, ECAM, 4), 0x12378086);
}

/* SeaBIOS of 256 KiB copies itself only then, and half of it is nowhere else. */
static void no_memory_below_1_mib_is_said_to_be_ram_at_first(void **state)
{
    struct recorder *recorder = *state;

    for (uint32_t offset = 0x59; offset <= 0x5f; offset++)
        assert_int_equal(read_register(recorder, HOST, offset, 1), 0x00);
}

static void registers_of_the_bridges_keep_what_is_written(void **state)
{
    struct recorder *recorder = *state;

    write_register(recorder, HOST, 0x59, 1, 0x10);
    write_register(recorder, HOST, 0x5a, 2, 0x1131);
    assert_int_equal(read_register(recorder, HOST, 0x58, 4), 0x11311000);
    write_register(recorder, ISA, 0x60, 4, 0x0b0b0a0a);
    assert_int_equal(read_register(recorder, ISA, 0x60, 4), 0x0b0b0a0a);
    write_register(recorder, ISA, 0xff, 1, 0x5a);
    assert_int_equal(read_register(recorder, ISA, 0xff, 1), 0x5a);
}

static void headers_do_not_change_but_for_command_and_interrupt_line(void **state)
{
    static const uint32_t slots[] = {HOST, ISA, POWER};
    struct recorder *recorder = *state;

    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
        for (uint32_t offset = 0; offset < 0x40; offset += 4) {
            uint32_t before = read_register(recorder, slots[i], offset, 4);

            write_register(recorder, slots[i], offset, 4, ~before);
            if (offset == 0x04)
                before ^= 0x07;
            if (offset == 0x3c)
                before ^= 0xff;
            assert_int_equal(read_register(recorder, slots[i], offset, 4), before);
        }
    }
}

static void isa_bridge_has_the_power_function_behind_it(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(read_register(recorder, ISA, 0x00, 4), 0x70008086);
    assert_int_equal(read_register(recorder, ISA, 0x08, 4), 0x06010000);
    assert_int_equal(read_register(recorder, ISA, 0x0e, 1), 0x80);
    assert_int_equal(read_register(recorder, ISA + 1, 0x00, 4), 0xffffffff);
    assert_int_equal(read_register(recorder, ISA + 2, 0x00, 4), 0xffffffff);
    assert_int_equal(read_register(recorder, POWER, 0x00, 4), 0x71138086);
    assert_int_equal(read_register(recorder, POWER, 0x08, 4), 0x06800003);
    assert_int_equal(read_register(recorder, POWER + 1, 0x00, 4), 0xffffffff);
}

/* OVMF reads where the PM timer is; SeaBIOS and qboot put it where it is already; system
 * management mode, which husk has not, is not to be set up. */
static void power_block_is_enabled_at_its_place_and_cannot_be_moved(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(read_register(recorder, POWER, 0x40, 4), 0x601);
    assert_int_equal(read_register(recorder, POWER, 0x80, 1), 0x01);
    assert_int_equal(read_register(recorder, POWER, 0x58, 4), 0x02000000);
    write_register(recorder, POWER, 0x40, 4, 0xb001);
    write_register(recorder, POWER, 0x80, 1, 0x00);
    assert_int_equal(read_register(recorder, POWER, 0x40, 4), 0x601);
    assert_int_equal(read_register(recorder, POWER, 0x80, 1), 0x01);
}

/* Linux's driver for it then finds it switched off. */
static void power_function_has_no_smbus(void **state)
{
    struct recorder *recorder = *state;

    write_register(recorder, POWER, 0x90, 4, 0x701);
    write_register(recorder, POWER, 0xd2, 1, 0x09);
    assert_int_equal(read_register(recorder, POWER, 0x90, 4), 0);
    assert_int_equal(read_register(recorder, POWER, 0xd2, 1), 0);
}

static void nothing_lies_behind_a_conventional_configuration_space(void **state)
{
    struct recorder *recorder = *state;

    bus_write(&recorder->mmio, ECAM + 0x100, 4, 0x12345678);
    assert_int_equal(bus_read(&recorder->mmio, ECAM + 0x100, 4), 0);
    assert_int_equal(bus_read(&recorder->mmio, ECAM + 0xfff, 1), 0);
}

static void reset_brings_the_first_values_back(void **state)
{
    struct recorder *recorder = *state;

    write_register(recorder, HOST, 0x59, 1, 0x10);
    write_register(recorder, ISA, 0x60, 4, 0x0b0b0a0a);
    write_register(recorder, POWER, 0x3c, 1, 0x05);
    chipset_reset(recorder->chipset);
    assert_int_equal(read_register(recorder, HOST, 0x59, 1), 0x00);
    assert_int_equal(read_register(recorder, ISA, 0x60, 4), 0x80808080);
    assert_int_equal(read_register(recorder, POWER, 0x3c, 1), 0x00);
}

#define FIRMWARE_TEST(function)                                                          \
    cmocka_unit_test_setup_teardown(function, setup_firmware, recorder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIRMWARE_TEST(host_bridge_is_a_82441fx_of_qemu),
        FIRMWARE_TEST(no_memory_below_1_mib_is_said_to_be_ram_at_first),
        FIRMWARE_TEST(registers_of_the_bridges_keep_what_is_written),
        FIRMWARE_TEST(headers_do_not_change_but_for_command_and_interrupt_line),
        FIRMWARE_TEST(isa_bridge_has_the_power_function_behind_it),
        FIRMWARE_TEST(power_block_is_enabled_at_its_place_and_cannot_be_moved),
        FIRMWARE_TEST(power_function_has_no_smbus),
        FIRMWARE_TEST(nothing_lies_behind_a_conventional_configuration_space),
        FIRMWARE_TEST(reset_brings_the_first_values_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
