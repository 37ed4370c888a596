/* SPDX-License-Identifier: Apache-2.0 */
/* The DSDT: what the machine's devices are and where, in AML (ACPI 6.4). The addresses
 * come from x86/layout.h, like those the devices answer at. */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "boot/acpi_private.h"
#include "boot/aml_private.h"
#include "x86/layout.h"

/* _STA (6.3.7): present, enabled, working, but nothing to show to a user. */
#define DEVICE_PRESENT_HIDDEN 0x0b

/* Slot S, pin P goes to GSI 16 + (S + P) % 8: the IOAPIC's lines that no ISA device has.
 * Neighbouring slots take different lines for their first pin. */
static void describe_pci_interrupts(struct aml *aml)
{
    size_t table;

    aml_name(aml, "_PRT");
    table = aml_package_open(aml, LAYOUT_PCI_SLOTS * 4);
    for (uint32_t slot = 0; slot < LAYOUT_PCI_SLOTS; slot++) {
        for (uint32_t pin = 0; pin < 4; pin++) {
            size_t entry = aml_package_open(aml, 4);

            aml_integer(aml, slot << 16 | 0xffff); /* all functions */
            aml_integer(aml, pin);
            aml_integer(aml, 0); /* no link device: the next value is a GSI */
            aml_integer(aml, LAYOUT_PCI_GSI(slot, pin));
            aml_close(aml, entry);
        }
    }
    aml_close(aml, table);
}

static void describe_pci_host(struct aml *aml, const struct boot_options *options,
                              uint64_t memory_end)
{
    const uint64_t high_window = LAYOUT_PCI_HIGH_WINDOW_START(memory_end);
    size_t device = aml_device_open(aml, "PCI0");
    struct aml_resources resources;

    aml_name_eisa_id(aml, "_HID", "PNP0A08"); /* PCI Express host bridge */
    aml_name_eisa_id(aml, "_CID", "PNP0A03");
    aml_name_integer(aml, "_UID", 0);
    aml_name_integer(aml, "_BBN", 0);
    resources = aml_resources_open(aml);
    aml_bus_window(aml, 0, 0);
    aml_io_ports(aml, LAYOUT_PORT_PCI_ADDRESS, 8);
    aml_io_window(aml, 0, LAYOUT_PORT_PCI_ADDRESS - 1);
    aml_io_window(aml, LAYOUT_PORT_PCI_ADDRESS + 8, UINT16_MAX);
    aml_memory32_window(aml, LAYOUT_PCI_WINDOW_START, LAYOUT_PCI_WINDOW_LIMIT - 1);
    if (options->firmware_path != NULL)
        aml_memory32_window(aml, LAYOUT_PCI_FIRMWARE_WINDOW_START,
                            LAYOUT_PCI_FIRMWARE_WINDOW_LIMIT - 1);
    aml_memory64_window(aml, high_window, high_window + LAYOUT_PCI_HIGH_WINDOW_BYTES - 1);
    aml_resources_close(aml, resources);
    describe_pci_interrupts(aml);
    aml_close(aml, device);
}

/* What is used but belongs to no other device. An ECAM area has to be named here, too
 * (PCI Firmware Specification 3.3, 4.1.2). */
static void describe_motherboard(struct aml *aml)
{
    size_t device = aml_device_open(aml, "MBRD");
    struct aml_resources resources;

    aml_name_eisa_id(aml, "_HID", "PNP0C02");
    aml_name_integer(aml, "_UID", 0);
    resources = aml_resources_open(aml);
    aml_memory32_fixed(aml, LAYOUT_ECAM_START, LAYOUT_ECAM_BYTES);
    aml_io_ports(aml, LAYOUT_PORT_ACPI_EVENT,
                 LAYOUT_PORT_ACPI_TIMER + 4 - LAYOUT_PORT_ACPI_EVENT);
    aml_resources_close(aml, resources);
    aml_close(aml, device);
}

static void describe_isa_device(struct aml *aml, const char *name, const char *id,
                                uint16_t port, uint8_t port_count, uint8_t line)
{
    size_t device = aml_device_open(aml, name);
    struct aml_resources resources;

    aml_name_eisa_id(aml, "_HID", id);
    aml_name_integer(aml, "_UID", 0);
    resources = aml_resources_open(aml);
    aml_io_ports(aml, port, port_count);
    aml_irq(aml, line);
    aml_resources_close(aml, resources);
    aml_close(aml, device);
}

static void describe_processors(struct aml *aml, uint32_t cpu_count)
{
    for (uint32_t i = 0; i < cpu_count; i++) {
        char name[16];
        size_t device;

        (void)snprintf(name, sizeof(name), "C%03X", i);
        device = aml_device_open(aml, name);
        aml_name(aml, "_HID");
        aml_string(aml, "ACPI0007");
        aml_name_integer(aml, "_UID", i); /* the MADT's processor UID */
        aml_close(aml, device);
    }
}

/* Soft off (7.4.2): the value for PM1a_CNT's SLP_TYP, for PM1b's, two reserved. */
static void describe_soft_off(struct aml *aml)
{
    size_t package;

    aml_name(aml, "\\_S5_");
    package = aml_package_open(aml, 4);
    aml_integer(aml, LAYOUT_ACPI_S5_TYPE);
    aml_integer(aml, 0);
    aml_integer(aml, 0);
    aml_integer(aml, 0);
    aml_close(aml, package);
}

/* QEMU's firmware configuration interface, as Linux's qemu_fw_cfg looks for it: selector,
 * data and DMA address are one range. */
static void describe_fw_cfg(struct aml *aml)
{
    size_t device = aml_device_open(aml, "FWCF");
    struct aml_resources resources;

    aml_name(aml, "_HID");
    aml_string(aml, "QEMU0002");
    aml_name_integer(aml, "_STA", DEVICE_PRESENT_HIDDEN);
    resources = aml_resources_open(aml);
    aml_io_ports(aml, LAYOUT_PORT_FW_CFG,
                 LAYOUT_PORT_FW_CFG_DMA + 8 - LAYOUT_PORT_FW_CFG);
    aml_resources_close(aml, resources);
    aml_close(aml, device);
}

/* Only its registers: which interrupts it has they say themselves. */
static void describe_hpet(struct aml *aml)
{
    size_t device = aml_device_open(aml, "HPET");
    struct aml_resources resources;

    aml_name_eisa_id(aml, "_HID", "PNP0103");
    aml_name_integer(aml, "_UID", 0);
    resources = aml_resources_open(aml);
    aml_memory32_fixed(aml, LAYOUT_HPET, LAYOUT_HPET_BYTES);
    aml_resources_close(aml, resources);
    aml_close(aml, device);
}

uint32_t acpi_put_dsdt(struct acpi_tables *tables, const struct boot_options *options,
                       uint64_t memory_end)
{
    size_t at = (size_t)align_up(tables->used, 16);
    uint8_t *table = tables->bytes + at;
    struct aml aml = {
        .bytes = table,
        .capacity = tables->capacity - at,
        .used = sizeof(struct acpi_header),
    };
    struct acpi_header header;
    size_t scope;

    CHECK(aml.capacity >= aml.used);
    describe_soft_off(&aml);
    scope = aml_scope_open(&aml, "\\_SB_");
    describe_pci_host(&aml, options, memory_end);
    describe_motherboard(&aml);
    describe_isa_device(&aml, "COM1", "PNP0501", LAYOUT_PORT_COM1, 8, LAYOUT_IRQ_COM1);
    describe_isa_device(&aml, "RTC0", "PNP0B00", LAYOUT_PORT_RTC, 2, LAYOUT_IRQ_RTC);
    describe_fw_cfg(&aml);
    if (options->hpet)
        describe_hpet(&aml);
    describe_processors(&aml, options->cpu_count);
    aml_close(&aml, scope);

    header = acpi_table_header("DSDT", 2, aml.used); /* revision 2: 64-bit integers */
    memcpy(table, &header, sizeof(header));
    tables->used = at;
    acpi_tables_end(tables, aml.used);
    return (uint32_t)at;
}
