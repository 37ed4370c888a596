/* SPDX-License-Identifier: Apache-2.0 */
/* ACPI tables in guest memory, for guests that no firmware gives any: the RSDP at the
 * start of the BIOS area, where kernels look for it, the tables behind. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "boot/acpi_private.h"
#include "boot/builder_private.h"
#include "x86/layout.h"

#define TABLES_OFFSET ACPI_TABLES_ALIGNMENT
_Static_assert(sizeof(struct acpi_rsdp) <= TABLES_OFFSET, "the RSDP comes first");

uint8_t boot_checksum(const void *bytes, size_t size)
{
    const uint8_t *byte = bytes;
    uint8_t sum = 0;

    for (size_t i = 0; i < size; i++)
        sum = (uint8_t)(sum + byte[i]);
    return (uint8_t)-sum;
}

/* From offsets to addresses; sums come after. */
static void place(const struct acpi_tables *tables, uint8_t *bytes)
{
    static const size_t starts[] = {[ACPI_RSDP] = 0, [ACPI_TABLES] = TABLES_OFFSET};
    const uint32_t tables_gpa = LAYOUT_ACPI_START + TABLES_OFFSET;

    for (size_t i = 0; i < tables->pointer_count; i++) {
        const struct acpi_pointer *pointer = &tables->pointers[i];
        uint8_t *field = bytes + starts[pointer->blob] + pointer->at;

        /* Below 4 GiB: the upper half of a wide one stays 0. */
        store_le32(field, load_le32(field) + tables_gpa);
    }
    for (size_t i = 0; i < tables->checksum_count; i++) {
        const struct acpi_checksum *checksum = &tables->checksums[i];
        uint8_t *blob = bytes + starts[checksum->blob];

        blob[checksum->at] = boot_checksum(blob + checksum->start, checksum->size_bytes);
    }
}

uint8_t *boot_acpi_tables(const struct boot_options *options, uint64_t memory_end,
                          size_t *size_bytes)
{
    struct acpi_tables tables;
    uint8_t *bytes;

    if (!acpi_tables_init(&tables, options, memory_end))
        return NULL;
    *size_bytes = TABLES_OFFSET + tables.used;
    bytes = calloc(1, *size_bytes);
    if (bytes != NULL) {
        memcpy(bytes, &tables.rsdp, sizeof(tables.rsdp));
        memcpy(bytes + TABLES_OFFSET, tables.bytes, tables.used);
        place(&tables, bytes);
    }
    acpi_tables_finish(&tables);
    return bytes;
}

int boot_acpi_add(struct boot_builder *builder, struct error *err)
{
    size_t size_bytes = 0;
    uint8_t *bytes =
        boot_acpi_tables(builder->options, boot_pmem_end(builder->plan), &size_bytes);

    return boot_builder_add_generated(builder, LAYOUT_ACPI_START, bytes, size_bytes,
                                      "ACPI tables", err);
}
