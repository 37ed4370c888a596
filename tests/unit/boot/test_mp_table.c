/* SPDX-License-Identifier: Apache-2.0 */
/* The MP table, read as a kernel reads it: by its floating pointer, entry by entry. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "boot/builder_private.h"

#define TABLE_START UINT64_C(0xf0000)
#define POINTER_BYTES 16
#define HEADER_BYTES 44

enum { PROCESSOR, BUS, IO_APIC, IO_INTERRUPT, LOCAL_INTERRUPT, ENTRY_TYPES };

struct mp_table {
    uint8_t *bytes;
    size_t size_bytes;
    const uint8_t *header;
    const uint8_t *entries[ENTRY_TYPES]; /* the first of each type */
    uint32_t counts[ENTRY_TYPES];
};

static void assert_sums_to_zero(const uint8_t *bytes, size_t size_bytes)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < size_bytes; i++)
        sum = (uint8_t)(sum + bytes[i]);
    assert_int_equal(sum, 0);
}

/* Entries come sorted by type; those of processors have 20 bytes, all others 8. */
static void read_entries(struct mp_table *table)
{
    const uint8_t *at = table->header + HEADER_BYTES;
    const uint8_t *end = table->header + load_le16(table->header + 4);
    uint8_t type = 0;
    uint32_t count = 0;

    while (at < end) {
        assert_true(at[0] >= type && at[0] < ENTRY_TYPES);
        type = at[0];
        if (table->counts[type]++ == 0)
            table->entries[type] = at;
        count++;
        at += type == PROCESSOR ? 20 : 8;
    }
    assert_ptr_equal(at, end);
    assert_int_equal(load_le16(table->header + 34), count);
}

static struct mp_table make_table(uint32_t cpu_count)
{
    struct mp_table table = {.bytes = NULL};

    table.bytes = boot_mp_table(cpu_count, &table.size_bytes);
    assert_non_null(table.bytes);
    table.header = table.bytes + (load_le32(table.bytes + 4) - TABLE_START);
    assert_int_equal(table.header - table.bytes, POINTER_BYTES);
    assert_int_equal(POINTER_BYTES + load_le16(table.header + 4), table.size_bytes);
    read_entries(&table);
    return table;
}

static void floating_pointer_leads_to_the_table(void **state)
{
    struct mp_table table = make_table(1);
    (void)state;

    assert_memory_equal(table.bytes, "_MP_", 4);
    assert_int_equal(table.bytes[8], 1);  /* length: one paragraph */
    assert_int_equal(table.bytes[9], 4);  /* version 1.4 */
    assert_int_equal(table.bytes[11], 0); /* a table, no default configuration */
    assert_int_equal(table.bytes[12], 0); /* no IMCR */
    assert_sums_to_zero(table.bytes, POINTER_BYTES);
    free(table.bytes);
}

static void header_names_the_local_apics(void **state)
{
    struct mp_table table = make_table(1);
    (void)state;

    assert_memory_equal(table.header, "PCMP", 4);
    assert_int_equal(table.header[6], 4); /* version 1.4 */
    assert_memory_equal(table.header + 8, "HUSK    HUSKPC      ", 20);
    assert_int_equal(load_le32(table.header + 28), 0); /* no table of the OEM's */
    assert_int_equal(load_le32(table.header + 36), 0xfee00000);
    assert_int_equal(load_le32(table.header + 40), 0); /* no extended entries */
    free(table.bytes);
}

static void holds_any_number_of_processors(void **state)
{
    static const uint32_t cpu_counts[] = {1, 2, 4, 254, 255};
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cpu_counts); i++) {
        struct mp_table table = make_table(cpu_counts[i]);

        assert_sums_to_zero(table.header, load_le16(table.header + 4));
        assert_int_equal(table.counts[PROCESSOR], cpu_counts[i]);
        assert_int_equal(table.counts[BUS], 2);
        assert_int_equal(table.counts[IO_APIC], 1);
        assert_int_equal(table.counts[IO_INTERRUPT], 15 + 32 * 4);
        assert_int_equal(table.counts[LOCAL_INTERRUPT], 2);
        assert_int_equal(table.size_bytes, 16 + 44 + cpu_counts[i] * 20 + 148 * 8);
        free(table.bytes);
    }
}

static void lists_each_processor_once_and_the_first_as_bootstrap(void **state)
{
    struct mp_table table = make_table(254);
    (void)state;

    for (size_t i = 0; i < 254; i++) {
        const uint8_t *processor = table.entries[PROCESSOR] + 20 * i;

        assert_int_equal(processor[1], i);              /* local APIC id */
        assert_int_equal(processor[2], 0x14);           /* its version */
        assert_int_equal(processor[3], i == 0 ? 3 : 1); /* enabled, bootstrap */
        assert_int_equal(load_le32(processor + 4), 0x600);
        assert_int_equal(load_le32(processor + 8), 0x381); /* FPU, MCE, CX8, APIC */
    }
    free(table.bytes);
}

static void names_two_buses_and_the_ioapic(void **state)
{
    static const uint8_t expected[] = {
        1, 0, 'P', 'C',  'I', ' ', ' ',  ' ',  /* PCI bus 0 */
        1, 1, 'I', 'S',  'A', ' ', ' ',  ' ',  /* the next free number */
        2, 0, 17,  0x01, 0,   0,   0xc0, 0xfe, /* enabled */
    };
    struct mp_table table = make_table(4);
    (void)state;

    assert_memory_equal(table.entries[BUS], expected, sizeof(expected));
    free(table.bytes);
}

static void isa_lines_keep_their_numbers_but_for_the_timer(void **state)
{
    static const uint8_t expected[][2] = {
        {0, 2}, {1, 1},   {3, 3},   {4, 4},   {5, 5},   {6, 6},   {7, 7},  {8, 8},
        {9, 9}, {10, 10}, {11, 11}, {12, 12}, {13, 13}, {14, 14}, {15, 15}};
    struct mp_table table = make_table(4);
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        const uint8_t *interrupt = table.entries[IO_INTERRUPT] + 8 * i;

        assert_int_equal(interrupt[1], 0); /* vectored */
        /* The SCI is level-triggered and active high. */
        assert_int_equal(load_le16(interrupt + 2), expected[i][0] == 9 ? 0xd : 0);
        assert_int_equal(interrupt[4], 1); /* ISA */
        assert_int_equal(interrupt[5], expected[i][0]);
        assert_int_equal(interrupt[6], 0);
        assert_int_equal(interrupt[7], expected[i][1]);
    }
    free(table.bytes);
}

static void pci_pins_take_the_lines_of_the_dsdt(void **state)
{
    struct mp_table table = make_table(4);
    (void)state;

    for (size_t slot = 0; slot < 32; slot++) {
        for (size_t pin = 0; pin < 4; pin++) {
            const uint8_t *interrupt =
                table.entries[IO_INTERRUPT] + 8 * (15 + slot * 4 + pin);

            assert_int_equal(interrupt[1], 0);
            assert_int_equal(load_le16(interrupt + 2), 0); /* level, active low */
            assert_int_equal(interrupt[4], 0);             /* PCI bus 0 */
            assert_int_equal(interrupt[5], slot * 4 + pin);
            assert_int_equal(interrupt[6], 0);
            assert_int_equal(interrupt[7], 16 + (slot + pin) % 8);
        }
    }
    free(table.bytes);
}

static void the_8259s_reach_lint0_and_nmi_is_lint1(void **state)
{
    static const uint8_t expected[] = {
        4, 3, 0, 0, 1, 0, 0,    0, /* ExtINT: LINT0 of the first processor */
        4, 1, 0, 0, 1, 0, 0xff, 1, /* NMI: LINT1 of all */
    };
    struct mp_table table = make_table(4);
    (void)state;

    assert_memory_equal(table.entries[LOCAL_INTERRUPT], expected, sizeof(expected));
    free(table.bytes);
}

static void lies_where_kernels_scan_and_not_in_ram(void **state)
{
    struct fixture fixture;
    const struct boot_range *range;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.cpu_count = 255;
    fixture_build(&fixture);
    range = fixture_find(&fixture, "MP table");
    assert_range(range, TABLE_START, 16 + 44 + 255 * 20 + 148 * 8, BOOT_GENERATED, NULL);
    assert_false(boot_e820_is_ram(fixture.plan, range->gpa, 1));
    assert_true(fixture_find(&fixture, "ACPI tables")->size_bytes <= 0x10000);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floating_pointer_leads_to_the_table),
        cmocka_unit_test(header_names_the_local_apics),
        cmocka_unit_test(holds_any_number_of_processors),
        cmocka_unit_test(lists_each_processor_once_and_the_first_as_bootstrap),
        cmocka_unit_test(names_two_buses_and_the_ioapic),
        cmocka_unit_test(isa_lines_keep_their_numbers_but_for_the_timer),
        cmocka_unit_test(pci_pins_take_the_lines_of_the_dsdt),
        cmocka_unit_test(the_8259s_reach_lint0_and_nmi_is_lint1),
        cmocka_unit_test(lies_where_kernels_scan_and_not_in_ram),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
