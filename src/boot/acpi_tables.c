/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ACPI tables of husk's PC: RSDP, FACS, DSDT, FADT, MADT, MCFG, RSDT, XSDT, and HPET
 * if there is one.
 *
 * Fixed hardware (not "hardware reduced"), because kernels know it best: PM1 event and
 * control blocks, PM timer, SCI. Section numbers are those of ACPI 6.4. The addresses
 * come from x86/layout.h, like those the devices answer at.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "boot/acpi_private.h"
#include "x86/layout.h"

#define OEM_ID "HUSK  "
#define OEM_TABLE_ID "HUSKPC  "
#define CREATOR_ID "HUSK"
#define TABLE_ALIGNMENT 16

/* ---- table layouts ---- */

struct __attribute__((packed)) address { /* 5.2.3.2, generic address structure */
    uint8_t space;
    uint8_t bit_width;
    uint8_t bit_offset;
    uint8_t access;
    uint64_t address;
};
#define SPACE_MEMORY 0
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

struct __attribute__((packed)) fadt { /* 5.2.9 */
    struct acpi_header header;
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
    struct acpi_header header;
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
    struct acpi_header header;
    uint64_t reserved;
    uint64_t ecam;
    uint16_t segment;
    uint8_t first_bus;
    uint8_t last_bus;
    uint32_t reserved_56;
};
_Static_assert(sizeof(struct mcfg) == 60, "4.1.2");

struct __attribute__((packed)) hpet { /* IA-PC HPET Specification 1.0a, 3.2.4 */
    struct acpi_header header;
    uint32_t id; /* of its capabilities, the low half */
    struct address registers;
    uint8_t number;
    uint16_t shortest_period; /* in ticks: what does not lose interrupts */
    uint8_t page_protection;  /* 0: none promised */
};
_Static_assert(sizeof(struct hpet) == 56, "3.2.4");
#define HPET_SHORTEST_TICKS 10000 /* 100 us, as the device has it */

#define MAX_LISTED_TABLES 4 /* FADT, MADT, MCFG, HPET */

struct table_list {
    uint32_t at[MAX_LISTED_TABLES];
    size_t count;
};

struct __attribute__((packed)) xsdt { /* 5.2.8 */
    struct acpi_header header;
    uint64_t tables[MAX_LISTED_TABLES];
};

struct __attribute__((packed)) rsdt { /* 5.2.7: the same for who knows no ACPI 2.0 */
    struct acpi_header header;
    uint32_t tables[MAX_LISTED_TABLES];
};

/* ---- what depends on addresses ---- */

static void add_pointer(struct acpi_tables *tables, enum acpi_blob blob, size_t at,
                        uint8_t size_bytes)
{
    CHECK(tables->pointer_count < ACPI_MAX_POINTERS);
    tables->pointers[tables->pointer_count++] =
        (struct acpi_pointer){.blob = blob, .at = (uint32_t)at, .size_bytes = size_bytes};
}

static void add_checksum(struct acpi_tables *tables, enum acpi_blob blob, size_t at,
                         size_t start, size_t size_bytes)
{
    CHECK(tables->checksum_count < ACPI_MAX_CHECKSUMS);
    tables->checksums[tables->checksum_count++] = (struct acpi_checksum){
        .blob = blob,
        .at = (uint32_t)at,
        .start = (uint32_t)start,
        .size_bytes = (uint32_t)size_bytes,
    };
}

/* ---- putting tables in ---- */

struct acpi_header acpi_table_header(const char *signature, uint8_t revision,
                                     size_t size_bytes)
{
    struct acpi_header header = {
        .length = (uint32_t)size_bytes,
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

void acpi_tables_end(struct acpi_tables *tables, size_t size_bytes)
{
    CHECK(range_within(tables->used, size_bytes, tables->capacity));
    add_checksum(tables, ACPI_TABLES,
                 tables->used + offsetof(struct acpi_header, checksum), tables->used,
                 size_bytes);
    tables->used += size_bytes;
}

static uint32_t put_table(struct acpi_tables *tables, const struct acpi_header *table)
{
    size_t at = (size_t)align_up(tables->used, TABLE_ALIGNMENT);

    CHECK(range_within(at, table->length, tables->capacity));
    memcpy(tables->bytes + at, table, table->length);
    tables->used = at;
    acpi_tables_end(tables, table->length);
    return (uint32_t)at;
}

/* ---- the fixed tables ---- */

static uint32_t put_facs(struct acpi_tables *tables)
{
    struct facs facs = {.length = sizeof(facs), .version = 2};
    uint32_t at;

    memcpy(facs.signature, "FACS", sizeof(facs.signature));
    tables->used = (size_t)align_up(tables->used, ACPI_TABLES_ALIGNMENT);
    at = (uint32_t)tables->used;
    CHECK(range_within(at, sizeof(facs), tables->capacity));
    memcpy(tables->bytes + at, &facs, sizeof(facs));
    tables->used += sizeof(facs);
    return at;
}

static struct address io_address(uint16_t port, uint8_t bit_width, uint8_t access)
{
    return (struct address){
        .space = SPACE_IO, .bit_width = bit_width, .access = access, .address = port};
}

static uint32_t put_fadt(struct acpi_tables *tables, uint32_t facs, uint32_t dsdt)
{
    struct fadt fadt = {
        .header = acpi_table_header("FACP", 6, sizeof(fadt)),
        .facs = facs,
        .dsdt = dsdt,
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
    uint32_t at = put_table(tables, &fadt.header);

    add_pointer(tables, ACPI_TABLES, at + offsetof(struct fadt, facs), 4);
    add_pointer(tables, ACPI_TABLES, at + offsetof(struct fadt, dsdt), 4);
    add_pointer(tables, ACPI_TABLES, at + offsetof(struct fadt, x_dsdt), 8);
    return at;
}

static uint32_t put_madt(struct acpi_tables *tables, uint32_t cpu_count)
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

    table.madt.header = acpi_table_header("APIC", 5, sizeof(table) - unused_bytes);
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
    return put_table(tables, &table.madt.header);
}

static uint32_t put_mcfg(struct acpi_tables *tables)
{
    struct mcfg mcfg = {
        .header = acpi_table_header("MCFG", 1, sizeof(mcfg)),
        .ecam = LAYOUT_ECAM_START,
    };

    return put_table(tables, &mcfg.header);
}

static uint32_t put_hpet(struct acpi_tables *tables)
{
    const struct hpet hpet = {
        .header = acpi_table_header("HPET", 1, sizeof(hpet)),
        .id = LAYOUT_HPET_ID,
        .registers = {.space = SPACE_MEMORY, .bit_width = 64, .address = LAYOUT_HPET},
        .shortest_period = HPET_SHORTEST_TICKS,
    };

    return put_table(tables, &hpet.header);
}

/* Both lists name the same tables. */
static void put_lists(struct acpi_tables *tables, const struct table_list *listed)
{
    struct rsdt rsdt = {
        .header = acpi_table_header("RSDT", 1,
                                    offsetof(struct rsdt, tables) + 4 * listed->count)};
    struct xsdt xsdt = {
        .header = acpi_table_header("XSDT", 1,
                                    offsetof(struct xsdt, tables) + 8 * listed->count)};
    uint32_t rsdt_at, xsdt_at;

    for (size_t i = 0; i < listed->count; i++) {
        rsdt.tables[i] = listed->at[i];
        xsdt.tables[i] = listed->at[i];
    }
    rsdt_at = put_table(tables, &rsdt.header);
    xsdt_at = put_table(tables, &xsdt.header);
    for (size_t i = 0; i < listed->count; i++) {
        add_pointer(tables, ACPI_TABLES, rsdt_at + offsetof(struct rsdt, tables) + 4 * i,
                    4);
        add_pointer(tables, ACPI_TABLES, xsdt_at + offsetof(struct xsdt, tables) + 8 * i,
                    8);
    }
    tables->rsdp.rsdt = rsdt_at;
    tables->rsdp.xsdt = xsdt_at;
}

static void finish_rsdp(struct acpi_tables *tables)
{
    struct acpi_rsdp *rsdp = &tables->rsdp;

    rsdp->revision = 2;
    rsdp->length = sizeof(*rsdp);
    memcpy(rsdp->signature, "RSD PTR ", sizeof(rsdp->signature));
    memcpy(rsdp->oem_id, OEM_ID, sizeof(rsdp->oem_id));
    add_pointer(tables, ACPI_RSDP, offsetof(struct acpi_rsdp, rsdt), 4);
    add_pointer(tables, ACPI_RSDP, offsetof(struct acpi_rsdp, xsdt), 8);
    add_checksum(tables, ACPI_RSDP, offsetof(struct acpi_rsdp, checksum), 0,
                 ACPI_RSDP_VERSION_1_BYTES);
    add_checksum(tables, ACPI_RSDP, offsetof(struct acpi_rsdp, extended_checksum), 0,
                 sizeof(*rsdp));
}

/* ---- all of them ---- */

bool acpi_tables_init(struct acpi_tables *tables, const struct boot_options *options,
                      uint64_t memory_end)
{
    uint32_t facs, dsdt;
    struct table_list listed = {.count = 0};

    CHECK(options->cpu_count <= LAYOUT_MAX_CPUS);
    *tables = (struct acpi_tables){.capacity = LAYOUT_ACPI_LIMIT - LAYOUT_ACPI_START -
                                               ACPI_TABLES_ALIGNMENT};
    tables->bytes = calloc(1, tables->capacity);
    if (tables->bytes == NULL)
        return false;
    facs = put_facs(tables);
    dsdt = acpi_put_dsdt(tables, options, memory_end);
    listed.at[listed.count++] = put_fadt(tables, facs, dsdt);
    listed.at[listed.count++] = put_madt(tables, options->cpu_count);
    listed.at[listed.count++] = put_mcfg(tables);
    if (options->hpet)
        listed.at[listed.count++] = put_hpet(tables);
    put_lists(tables, &listed);
    finish_rsdp(tables);
    return true;
}

void acpi_tables_finish(struct acpi_tables *tables)
{
    free(tables->bytes);
    tables->bytes = NULL;
}
