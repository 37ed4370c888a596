/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ACPI tables of husk's PC: RSDP, FACS, DSDT, FADT, MADT, MCFG, XSDT.
 *
 * Fixed hardware (not "hardware reduced"), because kernels know it best: PM1 event and
 * control blocks, PM timer, SCI. Section numbers are those of ACPI 6.4. The addresses
 * come from x86/layout.h, like those the devices answer at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "boot/aml_private.h"
#include "boot/builder_private.h"
#include "x86/layout.h"

#define OEM_ID "HUSK  "
#define OEM_TABLE_ID "HUSKPC  "
#define CREATOR_ID "HUSK"

/* ---- table layouts ---- */

struct __attribute__((packed)) rsdp { /* 5.2.5.3 */
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
_Static_assert(sizeof(struct rsdp) == 36, "5.2.5.3");
#define RSDP_VERSION_1_BYTES 20

struct __attribute__((packed)) header { /* 5.2.6 */
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
_Static_assert(sizeof(struct header) == 36, "5.2.6");

struct __attribute__((packed)) address { /* 5.2.3.2, generic address structure */
    uint8_t space;
    uint8_t bit_width;
    uint8_t bit_offset;
    uint8_t access;
    uint64_t address;
};
#define SPACE_IO 1
enum { ACCESS_BYTE = 1, ACCESS_WORD = 2, ACCESS_DWORD = 3 };

struct __attribute__((packed)) facs { /* 5.2.10 */
    char signature[4];
    uint32_t length;
    uint32_t hardware_signature;
    uint32_t waking_vector;
    uint32_t global_lock;
    uint32_t flags;
    uint64_t x_waking_vector;
    uint8_t version;
    uint8_t reserved[31];
};
_Static_assert(sizeof(struct facs) == 64, "5.2.10");
#define FACS_ALIGNMENT 64

struct __attribute__((packed)) fadt { /* 5.2.9 */
    struct header header;
    uint32_t facs;
    uint32_t dsdt;
    uint8_t reserved_44;
    uint8_t profile; /* 0: unspecified */
    uint16_t sci_interrupt;
    uint32_t smi_command; /* 0: always in ACPI mode */
    uint8_t acpi_enable;
    uint8_t acpi_disable;
    uint8_t s4bios_request;
    uint8_t pstate_control;
    uint32_t pm1a_event;
    uint32_t pm1b_event;
    uint32_t pm1a_control;
    uint32_t pm1b_control;
    uint32_t pm2_control;
    uint32_t pm_timer;
    uint32_t gpe0;
    uint32_t gpe1;
    uint8_t pm1_event_bytes;
    uint8_t pm1_control_bytes;
    uint8_t pm2_control_bytes;
    uint8_t pm_timer_bytes;
    uint8_t gpe0_bytes;
    uint8_t gpe1_bytes;
    uint8_t gpe1_base;
    uint8_t cst_control;
    uint16_t c2_latency_us;
    uint16_t c3_latency_us;
    uint16_t flush_size;
    uint16_t flush_stride;
    uint8_t duty_offset;
    uint8_t duty_width;
    uint8_t day_alarm;
    uint8_t month_alarm;
    uint8_t century;
    uint16_t boot_architecture;
    uint8_t reserved_111;
    uint32_t flags;
    struct address reset_register;
    uint8_t reset_value;
    uint16_t arm_boot_architecture;
    uint8_t minor_version;
    uint64_t x_facs;
    uint64_t x_dsdt;
    struct address x_pm1a_event;
    struct address x_pm1b_event;
    struct address x_pm1a_control;
    struct address x_pm1b_control;
    struct address x_pm2_control;
    struct address x_pm_timer;
    struct address x_gpe0;
    struct address x_gpe1;
    struct address sleep_control;
    struct address sleep_status;
    uint64_t hypervisor_vendor;
};
_Static_assert(sizeof(struct fadt) == 276, "5.2.9, revision 6");

/* FADT flags (table 5.10). The power button is fixed hardware: its bit stays clear. */
#define FADT_WBINVD (1u << 0)
#define FADT_PROC_C1 (1u << 2)
#define FADT_SLP_BUTTON (1u << 5) /* there is no sleep button of fixed hardware */
#define FADT_FIX_RTC (1u << 6)    /* no RTC wake status in fixed hardware */
#define FADT_TMR_VAL_EXT (1u << 8)
#define FADT_RESET_REG_SUP (1u << 10)
/* IA-PC boot architecture flags (table 5.11). The bit of the 8042 stays clear: what is at
 * port 0x60 is its reset pulse, without a keyboard to look for. */
#define BOOT_LEGACY_DEVICES (1u << 0)
#define BOOT_VGA_NOT_PRESENT (1u << 2)
/* Latencies that say "state not supported" (5.2.9, P_LVL2_LAT and P_LVL3_LAT). */
#define NO_C2_US 101
#define NO_C3_US 1001
#define CENTURY_CMOS_INDEX 0x32
#define RESET_VALUE 0x06 /* port 0xcf9: reset bit with hard-reset bit */

struct __attribute__((packed)) madt { /* 5.2.12 */
    struct header header;
    uint32_t local_apic;
    uint32_t flags;
};
#define MADT_PCAT_COMPAT 1u /* there are 8259s to switch off */

struct __attribute__((packed)) madt_local_apic { /* 5.2.12.2 */
    uint8_t type;
    uint8_t length;
    uint8_t processor_uid;
    uint8_t apic_id;
    uint32_t flags;
};
#define LOCAL_APIC_ENABLED 1u

struct __attribute__((packed)) madt_io_apic { /* 5.2.12.3 */
    uint8_t type;
    uint8_t length;
    uint8_t id;
    uint8_t reserved;
    uint32_t address;
    uint32_t gsi_base;
};

struct __attribute__((packed)) madt_override { /* 5.2.12.5 */
    uint8_t type;
    uint8_t length;
    uint8_t bus; /* 0: ISA */
    uint8_t source;
    uint32_t gsi;
    uint16_t flags;
};
#define OVERRIDE_AS_BUS 0x0
#define OVERRIDE_ACTIVE_HIGH_LEVEL 0xd /* table 5.25: polarity 01, trigger mode 11 */

enum { MADT_LOCAL_APIC = 0, MADT_IO_APIC = 1, MADT_OVERRIDE = 2 };

struct __attribute__((packed)) mcfg { /* PCI Firmware Specification 3.3, 4.1.2 */
    struct header header;
    uint64_t reserved;
    uint64_t ecam;
    uint16_t segment;
    uint8_t first_bus;
    uint8_t last_bus;
    uint32_t reserved_56;
};
_Static_assert(sizeof(struct mcfg) == 60, "4.1.2");

struct __attribute__((packed)) xsdt { /* 5.2.8 */
    struct header header;
    uint64_t tables[3];
};

/* ---- the area they are written to ---- */

struct area {
    uint8_t *bytes; /* what will be at LAYOUT_ACPI_START */
    size_t capacity;
    size_t used;
};

static uint64_t area_put(struct area *area, const void *table, size_t size,
                         size_t alignment)
{
    size_t at = (size_t)align_up(area->used, alignment);

    CHECK(range_within(at, size, area->capacity));
    if (table != NULL)
        memcpy(area->bytes + at, table, size);
    area->used = at + size;
    return LAYOUT_ACPI_START + at;
}

static uint8_t checksum(const void *bytes, size_t size)
{
    const uint8_t *byte = bytes;
    uint8_t sum = 0;

    for (size_t i = 0; i < size; i++)
        sum = (uint8_t)(sum + byte[i]);
    return (uint8_t)-sum;
}

static struct header table_header(const char *signature, uint8_t revision, size_t length)
{
    struct header header = {
        .length = (uint32_t)length,
        .revision = revision,
        .oem_revision = 1,
        .creator_revision = 1,
    };

    memcpy(header.signature, signature, sizeof(header.signature));
    memcpy(header.oem_id, OEM_ID, sizeof(header.oem_id));
    memcpy(header.oem_table_id, OEM_TABLE_ID, sizeof(header.oem_table_id));
    memcpy(header.creator_id, CREATOR_ID, sizeof(header.creator_id));
    return header;
}

/* `table` begins with a struct header whose checksum is still 0. */
static uint64_t area_put_table(struct area *area, struct header *table)
{
    table->checksum = checksum(table, table->length);
    return area_put(area, table, table->length, 16);
}

/* ---- DSDT ---- */

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

static void describe_pci_host(struct aml *aml)
{
    size_t device = aml_device_open(aml, "PCI0");
    struct aml_resources resources;

    aml_name_eisa_id(aml, "_HID", "PNP0A08"); /* PCI Express host bridge */
    aml_name_eisa_id(aml, "_CID", "PNP0A03");
    aml_name_integer(aml, "_UID", 0);
    aml_name_integer(aml, "_BBN", 0);
    aml_name(aml, "_CRS");
    resources = aml_resources_open(aml);
    aml_bus_window(aml, 0, 0);
    aml_io_ports(aml, LAYOUT_PORT_PCI_ADDRESS, 8);
    aml_io_window(aml, 0, LAYOUT_PORT_PCI_ADDRESS - 1);
    aml_io_window(aml, LAYOUT_PORT_PCI_ADDRESS + 8, UINT16_MAX);
    aml_memory32_window(aml, LAYOUT_PCI_WINDOW_START, LAYOUT_PCI_WINDOW_LIMIT - 1);
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
    aml_name(aml, "_CRS");
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
    aml_name(aml, "_CRS");
    resources = aml_resources_open(aml);
    aml_io_ports(aml, port, port_count);
    aml_irq(aml, line);
    aml_resources_close(aml, resources);
    aml_close(aml, device);
}

static void describe_processors(struct aml *aml, uint32_t cpu_count)
{
    for (uint32_t i = 0; i < cpu_count; i++) {
        char name[8];
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

static uint64_t put_dsdt(struct area *area, uint32_t cpu_count)
{
    uint64_t gpa = area_put(area, NULL, 0, 16);
    uint8_t *table = area->bytes + area->used;
    struct aml aml = {
        .bytes = table,
        .capacity = area->capacity - area->used,
        .used = sizeof(struct header),
    };
    struct header header;
    size_t scope;

    CHECK(aml.capacity >= aml.used);
    describe_soft_off(&aml);
    scope = aml_scope_open(&aml, "\\_SB_");
    describe_pci_host(&aml);
    describe_motherboard(&aml);
    describe_isa_device(&aml, "COM1", "PNP0501", LAYOUT_PORT_COM1, 8, LAYOUT_IRQ_COM1);
    describe_isa_device(&aml, "RTC0", "PNP0B00", LAYOUT_PORT_RTC, 2, LAYOUT_IRQ_RTC);
    describe_processors(&aml, cpu_count);
    aml_close(&aml, scope);

    header = table_header("DSDT", 2, aml.used); /* revision 2: 64-bit integers */
    memcpy(table, &header, sizeof(header));
    table[offsetof(struct header, checksum)] = checksum(table, aml.used);
    area->used += aml.used;
    return gpa;
}

/* ---- the fixed tables ---- */

static uint64_t put_facs(struct area *area)
{
    struct facs facs = {.length = sizeof(facs), .version = 2};

    memcpy(facs.signature, "FACS", sizeof(facs.signature));
    return area_put(area, &facs, sizeof(facs), FACS_ALIGNMENT);
}

static struct address io_address(uint16_t port, uint8_t bit_width, uint8_t access)
{
    return (struct address){
        .space = SPACE_IO, .bit_width = bit_width, .access = access, .address = port};
}

static uint64_t put_fadt(struct area *area, uint64_t facs, uint64_t dsdt)
{
    struct fadt fadt = {
        .header = table_header("FACP", 6, sizeof(fadt)),
        .facs = (uint32_t)facs,
        .dsdt = (uint32_t)dsdt,
        .sci_interrupt = LAYOUT_IRQ_ACPI,
        .pm1a_event = LAYOUT_PORT_ACPI_EVENT,
        .pm1a_control = LAYOUT_PORT_ACPI_CONTROL,
        .pm_timer = LAYOUT_PORT_ACPI_TIMER,
        .pm1_event_bytes = 4,
        .pm1_control_bytes = 2,
        .pm_timer_bytes = 4,
        .c2_latency_us = NO_C2_US,
        .c3_latency_us = NO_C3_US,
        .century = CENTURY_CMOS_INDEX,
        .boot_architecture = BOOT_LEGACY_DEVICES | BOOT_VGA_NOT_PRESENT,
        .flags = FADT_WBINVD | FADT_PROC_C1 | FADT_SLP_BUTTON | FADT_FIX_RTC |
                 FADT_TMR_VAL_EXT | FADT_RESET_REG_SUP,
        .reset_register = io_address(LAYOUT_PORT_RESET, 8, ACCESS_BYTE),
        .reset_value = RESET_VALUE,
        .minor_version = 4,
        .x_dsdt = dsdt,
        .x_pm1a_event = io_address(LAYOUT_PORT_ACPI_EVENT, 32, ACCESS_WORD),
        .x_pm1a_control = io_address(LAYOUT_PORT_ACPI_CONTROL, 16, ACCESS_WORD),
        .x_pm_timer = io_address(LAYOUT_PORT_ACPI_TIMER, 32, ACCESS_DWORD),
    };

    return area_put_table(area, &fadt.header);
}

static uint64_t put_madt(struct area *area, uint32_t cpu_count)
{
    struct {
        struct madt madt;
        struct madt_io_apic io_apic;
        struct madt_override timer;
        struct madt_override acpi;
        struct madt_local_apic local_apics[LAYOUT_MAX_CPUS];
    } __attribute__((packed)) table = {
        .io_apic = {.type = MADT_IO_APIC,
                    .length = sizeof(struct madt_io_apic),
                    .address = LAYOUT_IOAPIC},
        .timer = {.type = MADT_OVERRIDE,
                  .length = sizeof(struct madt_override),
                  .source = 0,
                  .gsi = 2,
                  .flags = OVERRIDE_AS_BUS},
        .acpi = {.type = MADT_OVERRIDE,
                 .length = sizeof(struct madt_override),
                 .source = LAYOUT_IRQ_ACPI,
                 .gsi = LAYOUT_IRQ_ACPI,
                 .flags = OVERRIDE_ACTIVE_HIGH_LEVEL},
    };
    size_t unused_bytes = (LAYOUT_MAX_CPUS - cpu_count) * sizeof(table.local_apics[0]);

    table.madt.header = table_header("APIC", 5, sizeof(table) - unused_bytes);
    table.madt.local_apic = LAYOUT_LOCAL_APIC;
    table.madt.flags = MADT_PCAT_COMPAT;
    for (uint32_t i = 0; i < cpu_count; i++)
        table.local_apics[i] = (struct madt_local_apic){
            .type = MADT_LOCAL_APIC,
            .length = sizeof(struct madt_local_apic),
            .processor_uid = (uint8_t)i,
            .apic_id = (uint8_t)i,
            .flags = LOCAL_APIC_ENABLED,
        };
    return area_put_table(area, &table.madt.header);
}

static uint64_t put_mcfg(struct area *area)
{
    struct mcfg mcfg = {
        .header = table_header("MCFG", 1, sizeof(mcfg)),
        .ecam = LAYOUT_ECAM_START,
    };

    return area_put_table(area, &mcfg.header);
}

static void write_rsdp(struct area *area, uint64_t xsdt)
{
    struct rsdp rsdp = {.revision = 2, .length = sizeof(rsdp), .xsdt = xsdt};

    memcpy(rsdp.signature, "RSD PTR ", sizeof(rsdp.signature));
    memcpy(rsdp.oem_id, OEM_ID, sizeof(rsdp.oem_id));
    rsdp.checksum = checksum(&rsdp, RSDP_VERSION_1_BYTES);
    rsdp.extended_checksum = checksum(&rsdp, sizeof(rsdp));
    memcpy(area->bytes, &rsdp, sizeof(rsdp));
}

uint8_t *boot_acpi_tables(uint32_t cpu_count, size_t *size_bytes)
{
    struct area area = {.capacity = LAYOUT_ACPI_LIMIT - LAYOUT_ACPI_START};
    struct xsdt xsdt = {.header = table_header("XSDT", 1, sizeof(xsdt))};
    uint64_t facs, dsdt;

    CHECK(cpu_count <= LAYOUT_MAX_CPUS);
    area.bytes = calloc(1, area.capacity);
    if (area.bytes == NULL)
        return NULL;
    area.used = sizeof(struct rsdp); /* comes first, is known last */
    facs = put_facs(&area);
    dsdt = put_dsdt(&area, cpu_count);
    xsdt.tables[0] = put_fadt(&area, facs, dsdt);
    xsdt.tables[1] = put_madt(&area, cpu_count);
    xsdt.tables[2] = put_mcfg(&area);
    write_rsdp(&area, area_put_table(&area, &xsdt.header));
    *size_bytes = area.used;
    return area.bytes;
}

int boot_acpi_add(struct boot_builder *builder, struct error *err)
{
    size_t size_bytes = 0;
    uint8_t *bytes = boot_acpi_tables(builder->options->cpu_count, &size_bytes);

    return boot_builder_add_generated(builder, LAYOUT_ACPI_START, bytes, size_bytes,
                                      "ACPI tables", err);
}
