/* SPDX-License-Identifier: Apache-2.0 */
/* The ACPI tables: checksums, fields, and what iasl reads in the DSDT. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "boot/builder_private.h"

#define TABLES_START UINT64_C(0xe0000)

struct tables {
    uint8_t *bytes;
    size_t size_bytes;
};

static struct tables make_tables_for(const struct boot_options *options)
{
    struct tables tables = {NULL, 0};

    tables.bytes = boot_acpi_tables(options, 33 * GIB, &tables.size_bytes);
    assert_non_null(tables.bytes);
    return tables;
}

static struct tables make_tables(uint32_t cpu_count)
{
    return make_tables_for(&(struct boot_options){.cpu_count = cpu_count});
}

static const uint8_t *at(const struct tables *tables, uint64_t gpa)
{
    assert_true(gpa >= TABLES_START && gpa - TABLES_START < tables->size_bytes);
    return tables->bytes + (gpa - TABLES_START);
}

static void assert_sums_to_zero(const uint8_t *bytes, size_t size_bytes)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < size_bytes; i++)
        sum = (uint8_t)(sum + bytes[i]);
    assert_int_equal(sum, 0);
}

/* The table of this signature, found as a kernel finds it; its checksum is right. */
static const uint8_t *find(const struct tables *tables, const char *signature)
{
    const uint8_t *xsdt = at(tables, load_le64(tables->bytes + 24));

    for (size_t i = 36; i < load_le32(xsdt + 4); i += 8) {
        const uint8_t *table = at(tables, load_le64(xsdt + i));

        if (memcmp(table, signature, 4) != 0)
            continue;
        assert_sums_to_zero(table, load_le32(table + 4));
        return table;
    }
    fail_msg("no %s", signature);
    abort();
}

static const uint8_t *find_dsdt(const struct tables *tables)
{
    return at(tables, load_le64(find(tables, "FACP") + 140));
}

static void rsdp_comes_first_and_leads_to_both_lists(void **state)
{
    struct tables tables = make_tables(1);
    const uint8_t *xsdt, *rsdt;
    (void)state;

    assert_memory_equal(tables.bytes, "RSD PTR ", 8);
    assert_int_equal(tables.bytes[15], 2);
    assert_int_equal(load_le32(tables.bytes + 20), 36);
    assert_sums_to_zero(tables.bytes, 20);
    assert_sums_to_zero(tables.bytes, 36);
    xsdt = at(&tables, load_le64(tables.bytes + 24));
    assert_memory_equal(xsdt, "XSDT", 4);
    assert_int_equal(load_le32(xsdt + 4), 36 + 3 * 8);
    assert_sums_to_zero(xsdt, load_le32(xsdt + 4));
    rsdt = at(&tables, load_le32(tables.bytes + 16));
    assert_memory_equal(rsdt, "RSDT", 4);
    assert_int_equal(load_le32(rsdt + 4), 36 + 3 * 4);
    assert_sums_to_zero(rsdt, load_le32(rsdt + 4));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(load_le32(rsdt + 36 + 4 * i), load_le64(xsdt + 36 + 8 * i));
    free(tables.bytes);
}

static void fadt_describes_the_power_block(void **state)
{
    struct tables tables = make_tables(1);
    const uint8_t *fadt = find(&tables, "FACP");
    (void)state;

    assert_int_equal(load_le32(fadt + 4), 276);
    assert_int_equal(fadt[8], 6);
    assert_int_equal(load_le16(fadt + 46), 9);     /* SCI_INT */
    assert_int_equal(load_le32(fadt + 48), 0);     /* SMI_CMD: always ACPI */
    assert_int_equal(load_le32(fadt + 56), 0x600); /* PM1a_EVT_BLK */
    assert_int_equal(load_le32(fadt + 64), 0x604); /* PM1a_CNT_BLK */
    assert_int_equal(load_le32(fadt + 76), 0x608); /* PM_TMR_BLK */
    assert_int_equal(fadt[88], 4);
    assert_int_equal(fadt[89], 2);
    assert_int_equal(fadt[91], 4);
    assert_int_equal(load_le16(fadt + 96), 101);
    assert_int_equal(load_le16(fadt + 98), 1001);
    assert_int_equal(fadt[108], 0x32);
    assert_int_equal(load_le16(fadt + 109), 0x5); /* legacy devices, no 8042, no VGA */
    assert_int_equal(load_le32(fadt + 112), 0x565);
    assert_int_equal(fadt[131], 4);
    assert_int_equal(load_le64(fadt + 140), load_le32(fadt + 40)); /* X_DSDT, DSDT */
    assert_int_equal(load_le64(fadt + 132), 0);                    /* X_FACS */
    free(tables.bytes);
}

static void fadt_registers_are_ports(void **state)
{
    static const struct {
        size_t offset;
        uint8_t bit_width;
        uint8_t access;
        uint64_t port;
    } registers[] = {
        {116, 8, 1, 0xcf9},  /* RESET_REG */
        {148, 32, 2, 0x600}, /* X_PM1a_EVT_BLK */
        {172, 16, 2, 0x604}, /* X_PM1a_CNT_BLK */
        {208, 32, 3, 0x608}, /* X_PM_TMR_BLK */
    };
    struct tables tables = make_tables(1);
    const uint8_t *fadt = find(&tables, "FACP");
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
        const uint8_t *address = fadt + registers[i].offset;

        assert_int_equal(address[0], 1); /* system I/O */
        assert_int_equal(address[1], registers[i].bit_width);
        assert_int_equal(address[2], 0);
        assert_int_equal(address[3], registers[i].access);
        assert_int_equal(load_le64(address + 4), registers[i].port);
    }
    assert_int_equal(fadt[128], 6); /* RESET_VALUE */
    free(tables.bytes);
}

static void facs_is_aligned_to_64(void **state)
{
    struct tables tables = make_tables(1);
    uint64_t gpa = load_le32(find(&tables, "FACP") + 36);
    (void)state;

    assert_int_equal(gpa % 64, 0);
    assert_memory_equal(at(&tables, gpa), "FACS", 4);
    assert_int_equal(load_le32(at(&tables, gpa) + 4), 64);
    free(tables.bytes);
}

static void madt_lists_each_cpu_once(void **state)
{
    static const uint8_t fixed[] = {
        1, 12, 0, 0, 0x00, 0x00, 0xc0, 0xfe, 0,  0, 0, 0, /* IOAPIC 0, GSI 0 */
        2, 10, 0, 0, 2,    0,    0,    0,    0,  0,       /* timer: line 2 */
        2, 10, 0, 9, 9,    0,    0,    0,    13, 0,       /* SCI: level, active high */
    };
    struct tables tables = make_tables(255);
    const uint8_t *madt = find(&tables, "APIC");
    (void)state;

    assert_int_equal(load_le32(madt + 4), 44 + sizeof(fixed) + (size_t)255 * 8);
    assert_int_equal(load_le32(madt + 36), 0xfee00000);
    assert_int_equal(load_le32(madt + 40), 1);
    assert_memory_equal(madt + 44, fixed, sizeof(fixed));
    for (size_t i = 0; i < 255; i++) {
        const uint8_t *local_apic = madt + 44 + sizeof(fixed) + 8 * i;

        assert_int_equal(local_apic[0], 0);
        assert_int_equal(local_apic[1], 8);
        assert_int_equal(local_apic[2], i);
        assert_int_equal(local_apic[3], i);
        assert_int_equal(load_le32(local_apic + 4), 1);
    }
    free(tables.bytes);
}

static void mcfg_names_the_ecam_area_of_bus_0(void **state)
{
    struct tables tables = make_tables(1);
    const uint8_t *mcfg = find(&tables, "MCFG");
    (void)state;

    assert_int_equal(load_le32(mcfg + 4), 60);
    assert_int_equal(load_le64(mcfg + 44), 0xe0000000);
    assert_int_equal(load_le16(mcfg + 52), 0);
    assert_int_equal(mcfg[54], 0);
    assert_int_equal(mcfg[55], 0);
    free(tables.bytes);
}

static void hpet_is_described_only_where_there_is_one(void **state)
{
    struct tables tables = make_tables(1);
    const uint8_t *hpet;
    (void)state;

    assert_int_equal(load_le32(at(&tables, load_le32(tables.bytes + 16)) + 4),
                     36 + 3 * 4);
    free(tables.bytes);
    tables = make_tables_for(&(struct boot_options){.cpu_count = 1, .hpet = true});
    assert_int_equal(load_le32(at(&tables, load_le32(tables.bytes + 16)) + 4),
                     36 + 4 * 4);
    hpet = find(&tables, "HPET");
    assert_int_equal(load_le32(hpet + 4), 56);
    assert_int_equal(load_le32(hpet + 36), 0x80862201);
    assert_int_equal(hpet[40], 0); /* memory */
    assert_int_equal(load_le64(hpet + 44), 0xfed00000);
    assert_int_equal(hpet[52], 0);
    free(tables.bytes);
}

static void dsdt_has_a_checksum_and_fits_for_all_cpus(void **state)
{
    (void)state;
    for (uint32_t cpu_count = 1; cpu_count <= 255; cpu_count++) {
        struct tables tables = make_tables(cpu_count);
        const uint8_t *dsdt = find_dsdt(&tables);

        assert_memory_equal(dsdt, "DSDT", 4);
        assert_sums_to_zero(dsdt, load_le32(dsdt + 4));
        assert_true(tables.size_bytes <= 0x10000);
        free(tables.bytes);
    }
}

static void pci_has_a_window_for_firmware_only_with_firmware(void **state)
{
    static const char *const paths[] = {NULL, "bios.bin"};
    static const uint8_t limits[] = {0x00, 0x00, 0x00, 0xf0, 0xff, 0xff, 0xbf, 0xfe};
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        struct tables tables = make_tables_for(
            &(struct boot_options){.cpu_count = 1, .firmware_path = paths[i]});
        const uint8_t *dsdt = find_dsdt(&tables);
        const void *found = memmem(dsdt, load_le32(dsdt + 4), limits, sizeof(limits));

        assert_int_equal(found != NULL, paths[i] != NULL);
        free(tables.bytes);
    }
}

/* ---- iasl as a second opinion on the AML ---- */

/* The disassembly of the DSDT; the test is skipped without iasl. */
static char *disassemble(const uint8_t *dsdt)
{
    char directory[] = "/tmp/husk-acpi-XXXXXX";
    char path[64], command[256];
    char *text = calloc(1, 1 << 20);
    FILE *file;

    assert_non_null(text);
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/dsdt.aml", directory);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(dsdt, 1, load_le32(dsdt + 4), file), load_le32(dsdt + 4));
    assert_int_equal(fclose(file), 0);
    (void)snprintf(command, sizeof(command),
                   "cd %s && iasl -d dsdt.aml >iasl.log 2>&1 && iasl dsdt.dsl >>iasl.log "
                   "2>&1 && grep '0 Errors, 0 Warnings' iasl.log >/dev/null",
                   directory);
    if (system(command) != 0) {
        (void)snprintf(command, sizeof(command), "cat %s/iasl.log", directory);
        (void)!system(command);
        fail_msg("iasl finds a fault in the DSDT");
    }
    (void)snprintf(path, sizeof(path), "%s/dsdt.dsl", directory);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(command, sizeof(command), "rm -r %s", directory);
    assert_int_equal(system(command), 0);
    return text;
}

/* Runs of white space count as one blank. */
static void squeeze(char *text)
{
    char *to = text;
    bool blank = false;

    for (const char *from = text; *from != '\0'; from++) {
        bool is_blank = *from == ' ' || *from == '\n' || *from == '\t' || *from == '\r';

        if (is_blank && blank)
            continue;
        *to = *from;
        if (is_blank)
            *to = ' ';
        to++;
        blank = is_blank;
    }
    *to = '\0';
}

static void iasl_reads_what_is_meant(void **state)
{
    static const char *const expected[] = {
        "Name (\\_S5, Package (0x04) // _S5_: S5 System State { 0x05, Zero, Zero, Zero "
        "})",
        "EisaId (\"PNP0A08\") /* PCI Express Bus */",
        "Name (_CID, EisaId (\"PNP0A03\") /* PCI Bus */)",
        "0x0000, // Range Minimum 0x0CF7, // Range Maximum 0x0000, // Translation Offset "
        "0x0CF8, // Length",
        "0x0D00, // Range Minimum 0xFFFF, // Range Maximum 0x0000, // Translation Offset "
        "0xF300, // Length",
        "0xC0000000, // Range Minimum 0xDFFFFFFF, // Range Maximum 0x00000000, // "
        "Translation Offset 0x20000000, // Length",
        "0xF0000000, // Range Minimum 0xFEBFFFFF, // Range Maximum 0x00000000, // "
        "Translation Offset 0x0EC00000, // Length",
        "0x0000001000000000, // Range Minimum 0x00000017FFFFFFFF, // Range Maximum "
        "0x0000000000000000, // Translation Offset 0x0000000800000000, // Length",
        "Package (0x04) { 0xFFFF, Zero, Zero, 0x10 }",
        "Package (0x04) { 0x0001FFFF, Zero, Zero, 0x11 }",
        "Package (0x04) { 0x001FFFFF, 0x03, Zero, 0x12 }",
        "Memory32Fixed (ReadWrite, 0xE0000000, // Address Base 0x00100000, // Address "
        "Length )",
        "0x0600, // Range Minimum 0x0600, // Range Maximum 0x01, // Alignment 0x0C, // "
        "Length",
        "EisaId (\"PNP0501\")",
        "0x03F8, // Range Minimum 0x03F8, // Range Maximum 0x01, // Alignment 0x08, // "
        "Length ) IRQNoFlags () {4}",
        "EisaId (\"PNP0B00\")",
        "IRQNoFlags () {8}",
        "Device (FWCF) { Name (_HID, \"QEMU0002\") // _HID: Hardware ID Name (_STA, "
        "0x0B) // _STA: Status",
        "0x0510, // Range Minimum 0x0510, // Range Maximum 0x01, // Alignment 0x0C, // "
        "Length",
        "Device (HPET) { Name (_HID, EisaId (\"PNP0103\")",
        "Memory32Fixed (ReadWrite, 0xFED00000, // Address Base 0x00000400, // Address "
        "Length )",
        "Device (C000) { Name (_HID, \"ACPI0007\" /* Processor Device */) // _HID: "
        "Hardware ID Name (_UID, Zero) // _UID: Unique ID }",
        "Device (C002) { Name (_HID, \"ACPI0007\" /* Processor Device */) // _HID: "
        "Hardware ID Name (_UID, 0x02) // _UID: Unique ID }",
    };
    struct tables tables;
    char *text;
    (void)state;

    if (system("command -v iasl >/dev/null") != 0) {
        print_message("skipped: iasl (package acpica-tools) is not installed\n");
        skip();
    }
    tables = make_tables_for(&(struct boot_options){
        .cpu_count = 3, .hpet = true, .firmware_path = "bios.bin"});
    text = disassemble(find_dsdt(&tables));
    squeeze(text);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        if (strstr(text, expected[i]) == NULL)
            fail_msg("iasl does not read '%s' in:\n%s", expected[i], text);
    assert_null(strstr(text, "Device (C003)"));
    free(text);
    free(tables.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rsdp_comes_first_and_leads_to_both_lists),
        cmocka_unit_test(fadt_describes_the_power_block),
        cmocka_unit_test(fadt_registers_are_ports),
        cmocka_unit_test(facs_is_aligned_to_64),
        cmocka_unit_test(madt_lists_each_cpu_once),
        cmocka_unit_test(mcfg_names_the_ecam_area_of_bus_0),
        cmocka_unit_test(hpet_is_described_only_where_there_is_one),
        cmocka_unit_test(dsdt_has_a_checksum_and_fits_for_all_cpus),
        cmocka_unit_test(pci_has_a_window_for_firmware_only_with_firmware),
        cmocka_unit_test(iasl_reads_what_is_meant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
