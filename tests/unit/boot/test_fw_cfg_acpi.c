/* SPDX-License-Identifier: Apache-2.0 */
/* The ACPI tables for firmware: done as their script says, they are what husk places. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "boot/builder_private.h"

#define ENTRY_BYTES 128
#define RSDP_GPA 0xe0000u
#define TABLES_GPA 0xe0040u

struct blob {
    const char *name;
    uint8_t *bytes;
    size_t size_bytes;
    uint32_t gpa; /* 0: not allocated yet */
};

/* A firmware's linker and loader, reduced to what there is to link. */
struct loader {
    struct blob blobs[2];
    const uint8_t *script;
    size_t script_bytes;
};

static struct boot_fw_part only_part(const struct boot_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->fw_item_count; i++) {
        const struct boot_fw_item *item = &plan->fw_items[i];

        if (item->name == NULL || strcmp(item->name, name) != 0)
            continue;
        assert_int_equal(item->part_count, 1);
        assert_int_equal(plan->fw_parts[item->first_part].size_bytes, item->size_bytes);
        return plan->fw_parts[item->first_part];
    }
    fail_msg("no %s", name);
    abort();
}

static struct blob *find_blob(struct loader *loader, const uint8_t *name)
{
    for (size_t i = 0; i < 2; i++)
        if (strncmp(loader->blobs[i].name, (const char *)name, 56) == 0)
            return &loader->blobs[i];
    fail_msg("the script names %.56s", (const char *)name);
    abort();
}

static void allocate(struct loader *loader, const uint8_t *entry)
{
    struct blob *blob = find_blob(loader, entry + 4);
    bool is_rsdp = blob == &loader->blobs[0];

    assert_int_equal(blob->gpa, 0);
    assert_int_equal(load_le32(entry + 60), is_rsdp ? 16 : 64);
    assert_int_equal(entry[64], is_rsdp ? 2 : 1); /* the BIOS area, or anywhere */
    blob->gpa = is_rsdp ? RSDP_GPA : TABLES_GPA;
}

static void add_pointer(struct loader *loader, const uint8_t *entry)
{
    struct blob *blob = find_blob(loader, entry + 4);
    const struct blob *target = find_blob(loader, entry + 60);
    uint32_t at = load_le32(entry + 116);
    uint8_t size_bytes = entry[120];

    assert_true(blob->gpa != 0 && target->gpa != 0);
    assert_true(size_bytes == 4 || size_bytes == 8);
    assert_true(range_within(at, size_bytes, blob->size_bytes));
    assert_true(load_le32(blob->bytes + at) < target->size_bytes);
    if (size_bytes == 8)
        store_le64(blob->bytes + at, load_le64(blob->bytes + at) + target->gpa);
    else
        store_le32(blob->bytes + at, load_le32(blob->bytes + at) + target->gpa);
}

static void add_checksum(struct loader *loader, const uint8_t *entry)
{
    struct blob *blob = find_blob(loader, entry + 4);
    uint32_t at = load_le32(entry + 60);
    uint32_t start = load_le32(entry + 64);
    uint32_t size_bytes = load_le32(entry + 68);
    uint8_t sum = 0;

    assert_true(range_within(start, size_bytes, blob->size_bytes));
    assert_true(at >= start && at - start < size_bytes);
    assert_int_equal(blob->bytes[at], 0); /* some firmware relies on it */
    for (uint32_t i = 0; i < size_bytes; i++)
        sum = (uint8_t)(sum + blob->bytes[start + i]);
    blob->bytes[at] = (uint8_t)-sum;
}

static void run_script(struct loader *loader)
{
    assert_int_equal(loader->script_bytes % ENTRY_BYTES, 0);
    for (size_t i = 0; i < loader->script_bytes; i += ENTRY_BYTES) {
        const uint8_t *entry = loader->script + i;

        switch (load_le32(entry)) {
        case 1:
            allocate(loader, entry);
            break;
        case 2:
            add_pointer(loader, entry);
            break;
        case 3:
            add_checksum(loader, entry);
            break;
        default:
            fail_msg("command %u", load_le32(entry));
        }
    }
}

static void the_script_makes_the_tables_that_husk_places(void **state)
{
    struct fixture fixture;
    struct boot_fw_part rsdp, tables, script;
    struct loader loader;
    size_t size_bytes = 0;
    uint8_t *expected;
    (void)state;

    fixture_firmware(&fixture, 0x10000);
    fixture.options.cpu_count = 5;
    fixture_build(&fixture);
    rsdp = only_part(fixture.plan, "etc/acpi/rsdp");
    tables = only_part(fixture.plan, "etc/acpi/tables");
    script = only_part(fixture.plan, "etc/table-loader");
    loader = (struct loader){
        .blobs = {{"etc/acpi/rsdp", rsdp.bytes, rsdp.size_bytes, 0},
                  {"etc/acpi/tables", tables.bytes, tables.size_bytes, 0}},
        .script = script.bytes,
        .script_bytes = script.size_bytes,
    };
    run_script(&loader);

    expected = boot_acpi_tables(&fixture.options, 4 * GIB, &size_bytes);
    assert_non_null(expected);
    assert_int_equal(rsdp.size_bytes, 36);
    assert_int_equal(tables.size_bytes, size_bytes - 64);
    assert_memory_equal(rsdp.bytes, expected, 36);
    assert_memory_equal(tables.bytes, expected + 64, size_bytes - 64);
    free(expected);
    fixture_close(&fixture);
}

static void without_firmware_the_tables_are_in_memory_only(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture_build(&fixture);
    assert_int_equal(fixture_find(&fixture, "ACPI tables")->gpa, 0xe0000);
    for (size_t i = 0; i < fixture.plan->fw_item_count; i++)
        if (fixture.plan->fw_items[i].name != NULL)
            assert_string_equal(fixture.plan->fw_items[i].name, "etc/e820");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_script_makes_the_tables_that_husk_places),
        cmocka_unit_test(without_firmware_the_tables_are_in_memory_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
