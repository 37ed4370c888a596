/* SPDX-License-Identifier: Apache-2.0 */
/* PCI configuration space by ports and by ECAM, and the reset register among them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/pci.h"
#include "recorder.h"

#define ADDRESS 0xcf8
#define RESET 0xcf9
#define DATA 0xcfc
#define ECAM 0xe0000000
#define ENABLE 0x80000000
#define BRIDGE_ID 0x00081b36

static uint32_t in32(struct recorder *recorder, uint16_t port)
{
    return (uint32_t)bus_read(&recorder->ports, port, 4);
}

static void out32(struct recorder *recorder, uint16_t port, uint32_t value)
{
    bus_write(&recorder->ports, port, 4, value);
}

/* Linux pci_check_type1(): byte access to the register's top must not be taken for its
 * own, the double word must stick, and a host bridge must be found. */
static void is_found_as_mechanism_one(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, 0xcfb, 0x01);
    assert_int_equal(in32(recorder, ADDRESS), 0);
    out32(recorder, ADDRESS, ENABLE);
    assert_int_equal(in32(recorder, ADDRESS), ENABLE);
    out32(recorder, ADDRESS, ENABLE | 0x08);
    assert_int_equal(bus_read(&recorder->ports, DATA + 2, 2), 0x0600);
}

/* Linux pci_check_type2(): these must not read back 0. */
static void is_not_found_as_mechanism_two(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, 0xcfb, 0);
    port_out(recorder, 0xcf8, 0);
    port_out(recorder, 0xcfa, 0);
    assert_int_equal(port_in(recorder, 0xcf8), 0xff);
    assert_int_equal(port_in(recorder, 0xcfa), 0xff);
}

static void address_register_keeps_the_bits_that_exist(void **state)
{
    struct recorder *recorder = *state;

    out32(recorder, ADDRESS, 0xffffffff);
    assert_int_equal(in32(recorder, ADDRESS), 0x80fffffc);
    bus_write(&recorder->ports, ADDRESS, 2, 0); /* passes by */
    assert_int_equal(in32(recorder, ADDRESS), 0x80fffffc);
    assert_int_equal(bus_read(&recorder->ports, ADDRESS, 2), 0xffff);
}

static void bridge_header_reads_the_same_at_every_width(void **state)
{
    static const uint32_t header[16] = {[0] = BRIDGE_ID, [2] = 0x06000000};
    struct recorder *recorder = *state;

    for (uint32_t reg = 0; reg < 256; reg += 4) {
        uint32_t expected = reg < 64 ? header[reg / 4] : 0;

        out32(recorder, ADDRESS, ENABLE | reg);
        assert_int_equal(in32(recorder, DATA), expected);
        assert_int_equal(bus_read(&recorder->mmio, ECAM + reg, 4), expected);
        for (uint16_t byte = 0; byte < 4; byte++) {
            assert_int_equal(port_in(recorder, (uint16_t)(DATA + byte)),
                             expected >> (8 * byte) & 0xff);
            assert_int_equal(bus_read(&recorder->mmio, ECAM + reg + byte, 1),
                             expected >> (8 * byte) & 0xff);
        }
        assert_int_equal(bus_read(&recorder->ports, DATA + 2, 2), expected >> 16);
    }
}

static void bridge_header_cannot_be_changed(void **state)
{
    struct recorder *recorder = *state;

    for (uint32_t reg = 0; reg < 64; reg += 4) {
        bus_write(&recorder->mmio, ECAM + reg, 4, 0xffffffff);
        out32(recorder, ADDRESS, ENABLE | reg);
        out32(recorder, DATA, 0xffffffff);
    }
    assert_int_equal(bus_read(&recorder->mmio, ECAM, 4), BRIDGE_ID);
    assert_int_equal(bus_read(&recorder->mmio, ECAM + 4, 4), 0);
    assert_int_equal(bus_read(&recorder->mmio, ECAM + 16, 4), 0);
}

static void all_other_functions_are_absent(void **state)
{
    struct recorder *recorder = *state;

    for (uint32_t slot = 1; slot < 256; slot++) {
        out32(recorder, ADDRESS, ENABLE | slot << 8);
        assert_int_equal(in32(recorder, DATA), 0xffffffff);
        assert_int_equal(bus_read(&recorder->ports, DATA, 2), 0xffff);
        assert_int_equal(bus_read(&recorder->mmio, ECAM + slot * 4096, 4), 0xffffffff);
        assert_int_equal(bus_read(&recorder->mmio, ECAM + slot * 4096 + 4095, 1), 0xff);
    }
    for (uint32_t bus = 1; bus < 256; bus++) {
        out32(recorder, ADDRESS, ENABLE | bus << 16);
        assert_int_equal(in32(recorder, DATA), 0xffffffff);
    }
    assert_int_equal(bus_read(&recorder->mmio, ECAM + 0x100000, 4), 0xffffffff);
}

static void data_register_is_nobodys_until_enabled(void **state)
{
    struct recorder *recorder = *state;

    assert_int_equal(in32(recorder, DATA), 0xffffffff);
    out32(recorder, ADDRESS, ENABLE);
    assert_int_equal(in32(recorder, DATA), BRIDGE_ID);
    out32(recorder, ADDRESS, 0);
    assert_int_equal(in32(recorder, DATA), 0xffffffff);
}

static void accesses_that_cross_are_bytes(void **state)
{
    struct recorder *recorder = *state;

    out32(recorder, ADDRESS, ENABLE | 0x08);
    assert_int_equal(bus_read(&recorder->ports, DATA + 3, 2), 0xff06);
    assert_int_equal(bus_read(&recorder->mmio, ECAM + 1, 4), 0x0000081b);
    assert_int_equal(bus_read(&recorder->mmio, ECAM + 0x0b, 2), 0x0006);
    assert_int_equal(bus_read(&recorder->mmio, ECAM, 8), BRIDGE_ID);
}

static void full_reset_needs_the_reset_bit_to_rise(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, RESET, 0x02);
    assert_int_equal(recorder->resets, 0);
    assert_int_equal(port_in(recorder, RESET), 0x02);
    port_out(recorder, RESET, 0x06);
    assert_int_equal(recorder->resets, 1);
    port_out(recorder, RESET, 0x06);
    assert_int_equal(recorder->resets, 1);
    port_out(recorder, RESET, 0x00);
    port_out(recorder, RESET, 0x0e);
    assert_int_equal(recorder->resets, 2);
    assert_int_equal(port_in(recorder, RESET), 0x0e);
}

/* What the FADT tells kernels to do: one write of 6. */
static void one_write_resets(void **state)
{
    struct recorder *recorder = *state;

    port_out(recorder, RESET, 0x06);
    assert_int_equal(recorder->resets, 1);
    assert_int_equal(recorder->power_offs, 0);
}

static void reset_register_is_a_byte_of_its_own(void **state)
{
    struct recorder *recorder = *state;

    out32(recorder, ADDRESS, ENABLE | 0x0600);
    assert_int_equal(recorder->resets, 0);
    assert_int_equal(port_in(recorder, RESET), 0x00);
    port_out(recorder, RESET, 0x02);
    assert_int_equal(in32(recorder, ADDRESS), ENABLE | 0x0600);
    bus_write(&recorder->ports, RESET, 2, 0x0606);
    assert_int_equal(recorder->resets, 0);
}

static void reset_clears_both_registers(void **state)
{
    struct recorder *recorder = *state;

    out32(recorder, ADDRESS, ENABLE);
    port_out(recorder, RESET, 0x06);
    chipset_reset(recorder->chipset);
    assert_int_equal(in32(recorder, ADDRESS), 0);
    assert_int_equal(port_in(recorder, RESET), 0);
}

/* A function that notes what it is asked. */
struct fake_function {
    unsigned reads;
    unsigned writes;
    uint32_t last_write; /* offset in the upper half, value in the lower */
};

static uint32_t fake_config_read(void *function, uint32_t offset, unsigned size)
{
    struct fake_function *fake = function;

    assert_true(offset % 4 + size <= 4);
    fake->reads++;
    return 0xdddddd00 | (offset & 0xff);
}

static void fake_config_write(void *function, uint32_t offset, unsigned size,
                              uint32_t value)
{
    struct fake_function *fake = function;

    assert_true(offset % 4 + size <= 4);
    fake->writes++;
    fake->last_write = offset << 16 | value;
}

static const struct pci_function_ops fake_ops = {
    .config_read = fake_config_read,
    .config_write = fake_config_write,
};

static void functions_get_aligned_accesses_only(void **state)
{
    struct fake_function fake = {.reads = 0};
    struct pci_bus bus = {.slots = {{.ops = NULL}}};

    (void)state;
    pci_bus_attach(&bus, 31, 7, &fake_ops, &fake);
    assert_int_equal(pci_bus_read(&bus, 255, 0x10, 4), 0xdddddd10);
    assert_int_equal(fake.reads, 1);
    assert_int_equal(pci_bus_read(&bus, 255, 0x13, 2), 0x1413);
    assert_int_equal(fake.reads, 3);
    pci_bus_write(&bus, 254, 0x20, 4, 0x44332211); /* nobody */
    assert_int_equal(fake.writes, 0);
    pci_bus_write(&bus, 255, 0x20, 4, 0x4433);
    assert_int_equal(fake.writes, 1);
    assert_int_equal(fake.last_write, 0x00204433);
    pci_bus_write(&bus, 255, 0x22, 4, 0x44332211);
    assert_int_equal(fake.writes, 5);
    assert_int_equal(fake.last_write, 0x00250044);
    pci_bus_write(&bus, 255, 4094, 4, 0x44332211); /* ends with the function */
    assert_int_equal(fake.writes, 7);
    assert_int_equal(fake.last_write, 0x0fff0022);
    assert_int_equal(pci_bus_read(&bus, 254, 0, 4), 0xffffffff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED_TEST(is_found_as_mechanism_one),
        RECORDED_TEST(is_not_found_as_mechanism_two),
        RECORDED_TEST(address_register_keeps_the_bits_that_exist),
        RECORDED_TEST(bridge_header_reads_the_same_at_every_width),
        RECORDED_TEST(bridge_header_cannot_be_changed),
        RECORDED_TEST(all_other_functions_are_absent),
        RECORDED_TEST(data_register_is_nobodys_until_enabled),
        RECORDED_TEST(accesses_that_cross_are_bytes),
        RECORDED_TEST(full_reset_needs_the_reset_bit_to_rise),
        RECORDED_TEST(one_write_resets),
        RECORDED_TEST(reset_register_is_a_byte_of_its_own),
        RECORDED_TEST(reset_clears_both_registers),
        cmocka_unit_test(functions_get_aligned_accesses_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
