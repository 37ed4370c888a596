/* SPDX-License-Identifier: Apache-2.0 */
/* Who answers where on a bus, and in which pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/bus.h"
#include <errno.h>

#define MAX_ACCESSES 8

struct access {
    uint64_t offset;
    unsigned size;
    bool write;
    uint64_t value;
};

/* Answers reads with all bits set but those of the offset, and notes every access. */
struct fake {
    size_t count;
    struct access accesses[MAX_ACCESSES];
};

static struct access *note(struct fake *fake, uint64_t offset, unsigned size)
{
    struct access *access = &fake->accesses[fake->count++];

    assert_true(fake->count <= MAX_ACCESSES);
    *access = (struct access){.offset = offset, .size = size};
    return access;
}

static uint64_t fake_read(void *device, uint64_t offset, unsigned size)
{
    note(device, offset, size);
    return UINT64_C(0xf8f7f6f5f4f3f200) + 0xa0 + offset;
}

static void fake_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct access *access = note(device, offset, size);

    access->write = true;
    access->value = value;
}

static const struct bus_ops wide_ops = {
    .name = "wide", .width_bytes = 8, .read = fake_read, .write = fake_write};
static const struct bus_ops dword_ops = {
    .name = "dword", .width_bytes = 4, .read = fake_read, .write = fake_write};
static const struct bus_ops byte_ops = {
    .name = "byte", .width_bytes = 1, .read = fake_read, .write = fake_write};

/* One access that counts its reads in the place of a value. */
static void fake_read_string(void *device, uint64_t offset, unsigned size, uint32_t count,
                             uint8_t *data)
{
    note(device, offset, size)->value = count;
    for (uint32_t i = 0; i < size * count; i++)
        data[i] = (uint8_t)(i + 1);
}

static const struct bus_ops string_ops = {.name = "string",
                                          .width_bytes = 2,
                                          .read = fake_read,
                                          .write = fake_write,
                                          .read_string = fake_read_string};

static void attach(struct bus *bus, uint64_t start, uint64_t size,
                   const struct bus_ops *ops, struct fake *fake)
{
    struct error err = ERROR_NONE;

    *fake = (struct fake){.count = 0};
    assert_int_equal(bus_attach(bus, start, size, ops, fake, &err), 0);
}

static void assert_access(const struct fake *fake, size_t index, uint64_t offset,
                          unsigned size)
{
    assert_true(index < fake->count);
    assert_int_equal(fake->accesses[index].offset, offset);
    assert_int_equal(fake->accesses[index].size, size);
}

static void reads_all_ones_where_nobody_answers(void **state)
{
    struct bus bus;

    (void)state;
    bus_init(&bus, "port");
    assert_true(bus_read(&bus, 0x80, 1) == 0xff);
    assert_true(bus_read(&bus, 0x80, 2) == 0xffff);
    assert_true(bus_read(&bus, 0x80, 4) == 0xffffffff);
    assert_true(bus_read(&bus, 0x80, 8) == UINT64_MAX);
    assert_true(bus_read(&bus, UINT64_MAX, 8) == UINT64_MAX);
    bus_write(&bus, UINT64_MAX, 8, 0);
}

static void finds_the_range_among_many(void **state)
{
    static const uint64_t starts[] = {0x50, 0x10, 0x30, 0x70, 0x20};
    struct fake fakes[5];
    struct bus bus;

    (void)state;
    bus_init(&bus, "port");
    for (size_t i = 0; i < 5; i++)
        attach(&bus, starts[i], 0x10, &wide_ops, &fakes[i]);
    for (size_t i = 0; i < 5; i++) {
        assert_true(bus_read(&bus, starts[i], 1) == 0xa0);
        assert_true(bus_read(&bus, starts[i] + 15, 1) == 0xaf);
        assert_int_equal(fakes[i].count, 2);
    }
    assert_true(bus_read(&bus, 0x0f, 1) == 0xff);
    assert_true(bus_read(&bus, 0x40, 1) == 0xff);
    assert_true(bus_read(&bus, 0x80, 1) == 0xff);
}

static void cuts_values_to_the_size(void **state)
{
    struct fake fake;
    struct bus bus;

    (void)state;
    bus_init(&bus, "port");
    attach(&bus, 0x10, 8, &wide_ops, &fake);
    assert_true(bus_read(&bus, 0x10, 1) == 0xa0);
    assert_true(bus_read(&bus, 0x10, 2) == 0xf2a0);
    assert_true(bus_read(&bus, 0x10, 4) == 0xf4f3f2a0);
    assert_true(bus_read(&bus, 0x10, 8) == UINT64_C(0xf8f7f6f5f4f3f2a0));
    bus_write(&bus, 0x10, 1, UINT64_C(0x1122334455667788));
    bus_write(&bus, 0x10, 2, UINT64_C(0x1122334455667788));
    bus_write(&bus, 0x10, 4, UINT64_C(0x1122334455667788));
    bus_write(&bus, 0x10, 8, UINT64_C(0x1122334455667788));
    assert_true(fake.accesses[4].value == 0x88);
    assert_true(fake.accesses[5].value == 0x7788);
    assert_true(fake.accesses[6].value == 0x55667788);
    assert_true(fake.accesses[7].value == UINT64_C(0x1122334455667788));
}

static void splits_what_is_wider_than_the_device(void **state)
{
    struct fake bytes;
    struct fake dwords;
    struct bus bus;

    (void)state;
    bus_init(&bus, "port");
    attach(&bus, 0x10, 8, &byte_ops, &bytes);
    attach(&bus, 0x20, 8, &dword_ops, &dwords);
    assert_true(bus_read(&bus, 0x12, 2) == 0xa3a2);
    assert_access(&bytes, 0, 2, 1);
    assert_access(&bytes, 1, 3, 1);
    bus_write(&bus, 0x14, 4, 0x44332211);
    for (unsigned i = 0; i < 4; i++) {
        assert_access(&bytes, 2 + i, 4 + i, 1);
        assert_int_equal(bytes.accesses[2 + i].value, 0x11 * (i + 1));
    }
    assert_true(bus_read(&bus, 0x20, 8) == UINT64_C(0xf4f3f2a4f4f3f2a0));
    assert_int_equal(dwords.count, 2);
    assert_access(&dwords, 0, 0, 4);
    assert_access(&dwords, 1, 4, 4);
}

static void does_accesses_across_an_end_byte_by_byte(void **state)
{
    struct fake first;
    struct fake second;
    struct bus bus;

    (void)state;
    bus_init(&bus, "MMIO");
    attach(&bus, 0x10, 4, &wide_ops, &first);
    attach(&bus, 0x14, 2, &byte_ops, &second);
    assert_true(bus_read(&bus, 0x12, 8) == UINT64_C(0xffffffffa1a0a3a2));
    assert_access(&first, 0, 2, 1);
    assert_access(&first, 1, 3, 1);
    assert_access(&second, 0, 0, 1);
    assert_access(&second, 1, 1, 1);
    bus_write(&bus, 0x0e, 4, 0x44332211);
    assert_int_equal(first.count, 4);
    assert_access(&first, 2, 0, 1);
    assert_int_equal(first.accesses[2].value, 0x33);
    assert_int_equal(first.accesses[3].value, 0x44);
}

static void does_odd_sizes_byte_by_byte(void **state)
{
    struct fake fake;
    struct bus bus;

    (void)state;
    bus_init(&bus, "MMIO");
    attach(&bus, 0x10, 8, &wide_ops, &fake);
    assert_true(bus_read(&bus, 0x10, 3) == 0xa2a1a0);
    for (unsigned i = 0; i < 3; i++)
        assert_access(&fake, i, i, 1);
}

static void strings_are_one_call_where_the_device_takes_them(void **state)
{
    struct fake fake;
    struct bus bus;
    uint8_t data[6] = {0};

    (void)state;
    bus_init(&bus, "port");
    attach(&bus, 0x10, 4, &string_ops, &fake);
    bus_read_string(&bus, 0x12, 2, 3, data);
    assert_int_equal(fake.count, 1);
    assert_access(&fake, 0, 2, 2);
    assert_int_equal(fake.accesses[0].value, 3);
    assert_memory_equal(data, "\1\2\3\4\5\6", 6);
    /* Wider than the device, or across its end: as single reads are. */
    bus_read_string(&bus, 0x10, 4, 1, data);
    assert_int_equal(fake.count, 3);
    assert_access(&fake, 1, 0, 2);
    assert_access(&fake, 2, 2, 2);
    bus_read_string(&bus, 0x13, 2, 2, data);
    assert_memory_equal(data, "\xa3\xff\xa3\xff", 4);
    assert_access(&fake, 3, 3, 1);
    assert_access(&fake, 4, 3, 1);
}

static void strings_are_single_reads_elsewhere(void **state)
{
    struct fake fake;
    struct bus bus;
    uint8_t data[6] = {0};

    (void)state;
    bus_init(&bus, "port");
    attach(&bus, 0x10, 4, &byte_ops, &fake);
    bus_read_string(&bus, 0x11, 1, 3, data);
    assert_int_equal(fake.count, 3);
    assert_memory_equal(data, "\xa1\xa1\xa1", 3);
    bus_read_string(&bus, 0x11, 2, 2, data);
    assert_memory_equal(data, "\xa1\xa2\xa1\xa2", 4);
    bus_read_string(&bus, 0x20, 2, 3, data);
    assert_memory_equal(data, "\xff\xff\xff\xff\xff\xff", 6);
    bus_read_string(&bus, 0x11, 1, 0, data);
    assert_int_equal(fake.count, 7);
}

static void wraps_no_range(void **state)
{
    struct error err = ERROR_NONE;
    struct fake fake = {.count = 0};
    struct bus bus;

    (void)state;
    bus_init(&bus, "MMIO");
    assert_int_equal(bus_attach(&bus, UINT64_MAX - 3, 8, &wide_ops, &fake, &err),
                     -EINVAL);
    assert_string_equal(err.text,
                        "wide cannot have 8 bytes at MMIO address 0xfffffffffffffffc");
    err = ERROR_NONE;
    assert_int_equal(bus_attach(&bus, 0x10, 0, &wide_ops, &fake, &err), -EINVAL);
    assert_string_equal(err.text, "wide cannot have 0 bytes at MMIO address 0x10");
}

static void refuses_overlap_naming_both(void **state)
{
    static const struct {
        uint64_t start;
        uint64_t size;
        const char *text;
    } cases[] = {
        {0x0c, 5,
         "dword needs port addresses 0xc to 0x10, but byte has 0x10 to 0x17; choose "
         "another address"},
        {0x17, 1,
         "dword needs port addresses 0x17 to 0x17, but byte has 0x10 to 0x17; choose "
         "another address"},
        {0x0, 0x100,
         "dword needs port addresses 0x0 to 0xff, but byte has 0x10 to 0x17; choose "
         "another address"},
        {0x10, 8,
         "dword needs port addresses 0x10 to 0x17, but byte has 0x10 to 0x17; choose "
         "another address"},
    };
    struct fake fake;
    struct bus bus;

    (void)state;
    bus_init(&bus, "port");
    attach(&bus, 0x10, 8, &byte_ops, &fake);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct error err = ERROR_NONE;

        assert_int_equal(
            bus_attach(&bus, cases[i].start, cases[i].size, &dword_ops, &fake, &err),
            -EADDRNOTAVAIL);
        assert_string_equal(err.text, cases[i].text);
    }
    assert_int_equal(bus.count, 1);
    attach(&bus, 0x0f, 1, &dword_ops, &fake);
    attach(&bus, 0x18, 1, &dword_ops, &fake);
}

static void says_when_it_is_full(void **state)
{
    struct error err = ERROR_NONE;
    struct fake fake;
    struct bus bus;

    (void)state;
    bus_init(&bus, "port");
    for (uint64_t i = 0; i < BUS_MAX_RANGES; i++)
        attach(&bus, i, 1, &byte_ops, &fake);
    assert_int_equal(bus_attach(&bus, 0x100, 1, &byte_ops, &fake, &err), -ENOSPC);
    assert_string_equal(err.text,
                        "no room for byte on the port bus: it has all its 64 ranges");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_ones_where_nobody_answers),
        cmocka_unit_test(finds_the_range_among_many),
        cmocka_unit_test(cuts_values_to_the_size),
        cmocka_unit_test(splits_what_is_wider_than_the_device),
        cmocka_unit_test(does_accesses_across_an_end_byte_by_byte),
        cmocka_unit_test(does_odd_sizes_byte_by_byte),
        cmocka_unit_test(strings_are_one_call_where_the_device_takes_them),
        cmocka_unit_test(strings_are_single_reads_elsewhere),
        cmocka_unit_test(wraps_no_range),
        cmocka_unit_test(refuses_overlap_naming_both),
        cmocka_unit_test(says_when_it_is_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
