/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ACPI tables for firmware to place: the blobs, and a script that says how (QEMU,
 * hw/acpi/bios-linker-loader.c; SeaBIOS, qboot and OVMF know it).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "boot/acpi_private.h"
#include "boot/fw_cfg_private.h"

#define RSDP_FILE "etc/acpi/rsdp"
#define TABLES_FILE "etc/acpi/tables"
#define SCRIPT_FILE "etc/table-loader"

enum command {
    COMMAND_ALLOCATE = 1,
    COMMAND_ADD_POINTER = 2,
    COMMAND_ADD_CHECKSUM = 3,
};

enum zone {
    ZONE_HIGH = 1,      /* anywhere in RAM */
    ZONE_BIOS_AREA = 2, /* 0xf0000 to 0xfffff */
};

#define RSDP_ALIGNMENT 16 /* ACPI 6.4, 5.2.5.1 */

/* Little-endian, filled up with zeros. */
struct __attribute__((packed)) script_entry {
    uint32_t command;
    union {
        struct __attribute__((packed)) {
            char file[FW_CFG_NAME_BYTES];
            uint32_t alignment;
            uint8_t zone;
        } allocate;
        struct __attribute__((packed)) {
            char file[FW_CFG_NAME_BYTES]; /* has the pointer */
            char target[FW_CFG_NAME_BYTES];
            uint32_t at;
            uint8_t size_bytes;
        } pointer;
        struct __attribute__((packed)) {
            char file[FW_CFG_NAME_BYTES];
            uint32_t at;
            uint32_t start;
            uint32_t size_bytes;
        } checksum;
        uint8_t bytes[124];
    };
};
_Static_assert(sizeof(struct script_entry) == 128, "bios-linker-loader.c");

#define SCRIPT_MAX_ENTRIES (2 + ACPI_MAX_POINTERS + ACPI_MAX_CHECKSUMS)

static void write_name(char *to, enum acpi_blob blob)
{
    static const char *const names[] = {
        [ACPI_RSDP] = RSDP_FILE, [ACPI_TABLES] = TABLES_FILE};

    memcpy(to, names[blob], strlen(names[blob]));
}

static void write_allocate(struct script_entry *entry, enum acpi_blob blob,
                           uint32_t alignment, enum zone zone)
{
    entry->command = COMMAND_ALLOCATE;
    write_name(entry->allocate.file, blob);
    entry->allocate.alignment = alignment;
    entry->allocate.zone = (uint8_t)zone;
}

static void write_pointer(struct script_entry *entry, const struct acpi_pointer *pointer)
{
    entry->command = COMMAND_ADD_POINTER;
    write_name(entry->pointer.file, pointer->blob);
    write_name(entry->pointer.target, ACPI_TABLES);
    entry->pointer.at = pointer->at;
    entry->pointer.size_bytes = pointer->size_bytes;
}

static void write_checksum(struct script_entry *entry,
                           const struct acpi_checksum *checksum)
{
    entry->command = COMMAND_ADD_CHECKSUM;
    write_name(entry->checksum.file, checksum->blob);
    entry->checksum.at = checksum->at;
    entry->checksum.start = checksum->start;
    entry->checksum.size_bytes = checksum->size_bytes;
}

static size_t write_script(struct script_entry *script, const struct acpi_tables *tables)
{
    size_t count = 0;

    write_allocate(&script[count++], ACPI_RSDP, RSDP_ALIGNMENT, ZONE_BIOS_AREA);
    write_allocate(&script[count++], ACPI_TABLES, ACPI_TABLES_ALIGNMENT, ZONE_HIGH);
    for (size_t i = 0; i < tables->pointer_count; i++)
        write_pointer(&script[count++], &tables->pointers[i]);
    for (size_t i = 0; i < tables->checksum_count; i++)
        write_checksum(&script[count++], &tables->checksums[i]);
    return count;
}

static int add_script(struct boot_builder *builder, const struct acpi_tables *tables,
                      struct error *err)
{
    struct boot_fw_item item = {.name = SCRIPT_FILE, .what = "how to place ACPI tables"};
    struct script_entry *script = calloc(SCRIPT_MAX_ENTRIES, sizeof(*script));

    if (script != NULL)
        item.size_bytes = write_script(script, tables) * sizeof(*script);
    return boot_fw_add_generated(builder, &item, (uint8_t *)script, err);
}

static int add_blob(struct boot_builder *builder, const char *name, const char *what,
                    const void *blob, size_t size_bytes, struct error *err)
{
    const struct boot_fw_item item = {
        .name = name, .what = what, .size_bytes = size_bytes};
    uint8_t *bytes = malloc(size_bytes);

    if (bytes != NULL)
        memcpy(bytes, blob, size_bytes);
    return boot_fw_add_generated(builder, &item, bytes, err);
}

int boot_fw_add_acpi(struct boot_builder *builder, struct error *err)
{
    struct acpi_tables tables;
    int status;

    if (!acpi_tables_init(&tables, builder->options, boot_pmem_end(builder->plan)))
        return error_set(err, -ENOMEM, "out of memory for the ACPI tables");
    status = add_blob(builder, RSDP_FILE, "ACPI root pointer", &tables.rsdp,
                      sizeof(tables.rsdp), err);
    if (status == 0)
        status =
            add_blob(builder, TABLES_FILE, "ACPI tables", tables.bytes, tables.used, err);
    if (status == 0)
        status = add_script(builder, &tables, err);
    acpi_tables_finish(&tables);
    return status;
}
