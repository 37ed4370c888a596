/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits ACPI Machine Language: as many of the terms of ACPI 6.4, chapter 20, as husk's
 * DSDT consists of. Names are given as four characters, padded with '_' by the caller.
 *
 * Terms that contain others are opened and closed in pairs:
 *
 *     size_t device = aml_device_open(aml, "PCI0");
 *     aml_name_eisa_id(aml, "_HID", "PNP0A08");
 *     aml_close(aml, device);
 */
#ifndef HUSK_BOOT_AML_PRIVATE_H
#define HUSK_BOOT_AML_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

struct aml {
    uint8_t *bytes; /* borrowed */
    size_t capacity;
    size_t used; /* never more than capacity: an overrun is a bug and aborts */
};

size_t aml_scope_open(struct aml *aml, const char *name);
size_t aml_device_open(struct aml *aml, const char *name);
size_t aml_package_open(struct aml *aml, uint8_t element_count);
void aml_close(struct aml *aml, size_t opened);

void aml_name(struct aml *aml, const char *name); /* a value must follow */
void aml_integer(struct aml *aml, uint32_t value);
void aml_string(struct aml *aml, const char *text);
void aml_eisa_id(struct aml *aml, const char *id); /* "PNP0A08" */

void aml_name_integer(struct aml *aml, const char *name, uint32_t value);
void aml_name_eisa_id(struct aml *aml, const char *name, const char *id);

/* _CRS, whose value is a resource template (ACPI 6.4, 6.2.2 and 6.4): between open and
 * close come descriptors only. */
struct aml_resources {
    size_t buffer;
    size_t size_at;
};
struct aml_resources aml_resources_open(struct aml *aml);
void aml_resources_close(struct aml *aml, struct aml_resources resources);

void aml_io_ports(struct aml *aml, uint16_t start, uint8_t count);
void aml_irq(struct aml *aml, uint8_t line); /* edge, active high, as on ISA */
void aml_memory32_fixed(struct aml *aml, uint32_t start, uint32_t size_bytes);
/* What a bridge hands on. Ends are inclusive. */
void aml_bus_window(struct aml *aml, uint16_t first, uint16_t last);
void aml_io_window(struct aml *aml, uint16_t first, uint16_t last);
void aml_memory32_window(struct aml *aml, uint32_t first, uint32_t last);
void aml_memory64_window(struct aml *aml, uint64_t first, uint64_t last);

#endif
