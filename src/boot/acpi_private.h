/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ACPI tables before they have addresses: two blobs, and what depends on where these
 * will be. Whoever places them (acpi.c in guest memory, fw_cfg_acpi.c by way of firmware)
 * does the rest. Section numbers are those of ACPI 6.4.
 */
#ifndef HUSK_BOOT_ACPI_PRIVATE_H
#define HUSK_BOOT_ACPI_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/boot.h"

struct __attribute__((packed)) acpi_rsdp { /* 5.2.5.3 */
    char signature[8];
    uint8_t checksum; /* of the first 20 bytes, which is all that version 1 had */
    char oem_id[6];
    uint8_t revision;
    uint32_t rsdt;
    uint32_t length;
    uint64_t xsdt;
    uint8_t extended_checksum;
    uint8_t reserved[3];
};
_Static_assert(sizeof(struct acpi_rsdp) == 36, "5.2.5.3");
#define ACPI_RSDP_VERSION_1_BYTES 20

struct __attribute__((packed)) acpi_header { /* 5.2.6 */
    char signature[4];
    uint32_t length;
    uint8_t revision;
    uint8_t checksum;
    char oem_id[6];
    char oem_table_id[8];
    uint32_t oem_revision;
    char creator_id[4];
    uint32_t creator_revision;
};
_Static_assert(sizeof(struct acpi_header) == 36, "5.2.6");

enum acpi_blob { ACPI_RSDP, ACPI_TABLES };

/* A field that holds an offset in ACPI_TABLES: the address of these is to be added. */
struct acpi_pointer {
    enum acpi_blob blob;
    uint32_t at;
    uint8_t size_bytes; /* 4 or 8 */
};

/* A byte, 0 as yet, that makes the sum of a range 0. To be set in this order. */
struct acpi_checksum {
    enum acpi_blob blob;
    uint32_t at;
    uint32_t start;
    uint32_t size_bytes;
};

#define ACPI_MAX_POINTERS 16
#define ACPI_MAX_CHECKSUMS 9
#define ACPI_TABLES_ALIGNMENT 64 /* the FACS needs it (5.2.10) */

struct acpi_tables {
    struct acpi_rsdp rsdp;
    uint8_t *bytes; /* owned */
    size_t capacity;
    size_t used;
    struct acpi_pointer pointers[ACPI_MAX_POINTERS];
    size_t pointer_count;
    struct acpi_checksum checksums[ACPI_MAX_CHECKSUMS];
    size_t checksum_count;
};

/* `memory_end`: see boot_acpi_tables. False if out of memory. */
bool acpi_tables_init(struct acpi_tables *tables, const struct boot_options *options,
                      uint64_t memory_end);
void acpi_tables_finish(struct acpi_tables *tables);

/* ---- for those who write tables ---- */

struct acpi_header acpi_table_header(const char *signature, uint8_t revision,
                                     size_t size_bytes);

/* The table that begins with `used` is complete. */
void acpi_tables_end(struct acpi_tables *tables, size_t size_bytes);

/* acpi_dsdt.c; the table's offset. */
uint32_t acpi_put_dsdt(struct acpi_tables *tables, const struct boot_options *options,
                       uint64_t memory_end);

#endif
