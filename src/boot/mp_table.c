/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MP table: what the ACPI tables say of processors and interrupt lines, for kernels
 * that know no ACPI. Section numbers are those of the MultiProcessor Specification 1.4.
 *
 * A kernel finds it by its floating pointer, which lies in the last 64 KiB below 1 MiB,
 * one of the three places it scans (4). The table itself follows: for all processors that
 * husk can have it is larger than the other two places, 1 KiB each.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "boot/builder_private.h"
#include "x86/layout.h"

#define REVISION_1_4 4

struct __attribute__((packed)) floating_pointer { /* 4.1 */
    char signature[4];
    uint32_t table;
    uint8_t paragraphs; /* length of this structure in units of 16 bytes */
    uint8_t revision;
    uint8_t checksum;
    uint8_t default_configuration; /* 0: there is a table */
    uint8_t features;              /* bit 7 clear: no IMCR, starts in virtual wire mode */
    uint8_t reserved[3];
};
_Static_assert(sizeof(struct floating_pointer) == 16, "4.1");

struct __attribute__((packed)) header { /* 4.2 */
    char signature[4];
    uint16_t length;
    uint8_t revision;
    uint8_t checksum;
    char oem_id[8];
    char product_id[12];
    uint32_t oem_table;
    uint16_t oem_table_bytes;
    uint16_t entry_count;
    uint32_t local_apic;
    uint16_t extended_bytes;
    uint8_t extended_checksum;
    uint8_t reserved;
};
_Static_assert(sizeof(struct header) == 44, "4.2");

enum entry_type { /* table 4-3; entries stand in this order */
                  ENTRY_PROCESSOR = 0,
                  ENTRY_BUS = 1,
                  ENTRY_IO_APIC = 2,
                  ENTRY_IO_INTERRUPT = 3,
                  ENTRY_LOCAL_INTERRUPT = 4,
};

struct __attribute__((packed)) processor { /* 4.3.1 */
    uint8_t type;
    uint8_t apic_id;
    uint8_t apic_version;
    uint8_t flags;
    uint32_t signature;
    uint32_t features;
    uint8_t reserved[8];
};
_Static_assert(sizeof(struct processor) == 20, "4.3.1");
#define LOCAL_APIC_VERSION 0x14 /* as its version register says */
#define PROCESSOR_ENABLED 0x1
#define PROCESSOR_BOOTSTRAP 0x2
/* A plan knows no accelerator, so not what CPUID will answer; kernels ask that
 * themselves. Here is what every processor of husk has: family 6; FPU, MCE, CX8 and APIC
 * (tables 4-5 and 4-6). */
#define PROCESSOR_SIGNATURE 0x600
#define PROCESSOR_FEATURES (1u << 0 | 1u << 7 | 1u << 8 | 1u << 9)

struct __attribute__((packed)) bus { /* 4.3.2 */
    uint8_t type;
    uint8_t id;
    char name[6];
};
_Static_assert(sizeof(struct bus) == 8, "4.3.2");
enum {
    BUS_PCI = 0,
    BUS_ISA = 1
}; /* PCI buses have their own number (D.1), so ISA follows */

struct __attribute__((packed)) io_apic { /* 4.3.3 */
    uint8_t type;
    uint8_t id;
    uint8_t version;
    uint8_t flags;
    uint32_t address;
};
_Static_assert(sizeof(struct io_apic) == 8, "4.3.3");
/* 3.6.6 wants an id that no local APIC has. The register holds four bits, so with more
 * than 15 processors there is none, and kernels compare the table with the register: the
 * id is the register's value after a reset. */
#define IO_APIC_ID 0
#define IO_APIC_VERSION 0x11
#define IO_APIC_ENABLED 0x1

struct __attribute__((packed)) interrupt { /* 4.3.4 and 4.3.5 */
    uint8_t type;
    uint8_t kind;
    uint16_t flags;
    uint8_t source_bus;
    uint8_t source_line; /* PCI: slot << 2 | pin (D.2) */
    uint8_t apic_id;
    uint8_t apic_pin;
};
_Static_assert(sizeof(struct interrupt) == 8, "4.3.4");
enum interrupt_kind { KIND_VECTORED = 0, KIND_NMI = 1, KIND_EXTINT = 3 }; /* table 4-11 */
/* Table 4-10. As the bus has it: ISA edge and active high, PCI level and active low. */
#define AS_BUS 0x0
#define ACTIVE_HIGH_LEVEL 0xd
#define BOOTSTRAP_APIC_ID 0
#define ALL_LOCAL_APICS 0xff

#define PCI_PINS 4
#define ISA_INTERRUPTS (LAYOUT_ISA_LINES - 1) /* none for the cascade */
#define BUS_COUNT 2
#define LOCAL_INTERRUPTS 2

struct __attribute__((packed)) table {
    struct floating_pointer pointer;
    struct header header;
    /* As many processors as there are; what follows moves up. */
    struct processor processors[LAYOUT_MAX_CPUS];
    struct bus buses[BUS_COUNT];
    struct io_apic io_apic;
    struct interrupt isa[ISA_INTERRUPTS];
    struct interrupt pci[LAYOUT_PCI_SLOTS * PCI_PINS];
    struct interrupt local[LOCAL_INTERRUPTS];
};
#define ENTRIES_WITHOUT_PROCESSORS                                                       \
    (BUS_COUNT + 1 + ISA_INTERRUPTS + LAYOUT_PCI_SLOTS * PCI_PINS + LOCAL_INTERRUPTS)
_Static_assert(sizeof(struct table) <= LAYOUT_MP_TABLE_LIMIT - LAYOUT_MP_TABLE_START,
               "the place that kernels scan");

static void describe_processors(struct table *table, uint32_t cpu_count)
{
    for (uint32_t i = 0; i < cpu_count; i++)
        table->processors[i] = (struct processor){
            .type = ENTRY_PROCESSOR,
            .apic_id = (uint8_t)i,
            .apic_version = LOCAL_APIC_VERSION,
            .flags = i == 0 ? PROCESSOR_ENABLED | PROCESSOR_BOOTSTRAP : PROCESSOR_ENABLED,
            .signature = PROCESSOR_SIGNATURE,
            .features = PROCESSOR_FEATURES,
        };
}

static void describe_buses(struct table *table)
{
    static const struct bus buses[BUS_COUNT] = {
        {ENTRY_BUS, BUS_PCI, {'P', 'C', 'I', ' ', ' ', ' '}},
        {ENTRY_BUS, BUS_ISA, {'I', 'S', 'A', ' ', ' ', ' '}},
    };

    memcpy(table->buses, buses, sizeof(buses));
    table->io_apic = (struct io_apic){
        .type = ENTRY_IO_APIC,
        .id = IO_APIC_ID,
        .version = IO_APIC_VERSION,
        .flags = IO_APIC_ENABLED,
        .address = LAYOUT_IOAPIC,
    };
}

/* The same lines as in the MADT: the timer on another pin, the SCI level-triggered. */
static void describe_isa_interrupts(struct table *table)
{
    struct interrupt *interrupt = table->isa;

    for (uint32_t line = 0; line < LAYOUT_ISA_LINES; line++) {
        if (line == LAYOUT_IRQ_CASCADE)
            continue;
        *interrupt++ = (struct interrupt){
            .type = ENTRY_IO_INTERRUPT,
            .kind = KIND_VECTORED,
            .flags = line == LAYOUT_IRQ_ACPI ? ACTIVE_HIGH_LEVEL : AS_BUS,
            .source_bus = BUS_ISA,
            .source_line = (uint8_t)line,
            .apic_id = IO_APIC_ID,
            .apic_pin =
                line == LAYOUT_IRQ_TIMER ? LAYOUT_IOAPIC_TIMER_PIN : (uint8_t)line,
        };
    }
}

static void describe_pci_interrupts(struct table *table)
{
    for (uint32_t slot = 0; slot < LAYOUT_PCI_SLOTS; slot++)
        for (uint32_t pin = 0; pin < PCI_PINS; pin++)
            table->pci[slot * PCI_PINS + pin] = (struct interrupt){
                .type = ENTRY_IO_INTERRUPT,
                .kind = KIND_VECTORED,
                .flags = AS_BUS,
                .source_bus = BUS_PCI,
                .source_line = (uint8_t)(slot << 2 | pin),
                .apic_id = IO_APIC_ID,
                .apic_pin = LAYOUT_PCI_GSI(slot, pin),
            };
}

/* Virtual wire mode (3.6.2.2): the 8259s reach LINT0 of the processor that starts. */
static void describe_local_interrupts(struct table *table)
{
    table->local[0] = (struct interrupt){
        .type = ENTRY_LOCAL_INTERRUPT,
        .kind = KIND_EXTINT,
        .flags = AS_BUS,
        .source_bus = BUS_ISA,
        .apic_id = BOOTSTRAP_APIC_ID,
        .apic_pin = 0,
    };
    table->local[1] = (struct interrupt){
        .type = ENTRY_LOCAL_INTERRUPT,
        .kind = KIND_NMI,
        .flags = AS_BUS,
        .source_bus = BUS_ISA,
        .apic_id = ALL_LOCAL_APICS,
        .apic_pin = 1,
    };
}

/* Closes the gap behind the processors there are. Returns the size of the whole. */
static size_t close_gap(struct table *table, uint32_t cpu_count)
{
    size_t tail_bytes = sizeof(*table) - offsetof(struct table, buses);

    memmove(&table->processors[cpu_count], table->buses, tail_bytes);
    return offsetof(struct table, processors) + cpu_count * sizeof(table->processors[0]) +
           tail_bytes;
}

static void write_headers(struct table *table, uint32_t cpu_count, size_t size_bytes)
{
    table->header = (struct header){
        .length = (uint16_t)(size_bytes - offsetof(struct table, header)),
        .revision = REVISION_1_4,
        .entry_count = (uint16_t)(cpu_count + ENTRIES_WITHOUT_PROCESSORS),
        .local_apic = LAYOUT_LOCAL_APIC,
    };
    memcpy(table->header.signature, "PCMP", sizeof(table->header.signature));
    memcpy(table->header.oem_id, "HUSK    ", sizeof(table->header.oem_id));
    memcpy(table->header.product_id, "HUSKPC      ", sizeof(table->header.product_id));
    table->header.checksum = boot_checksum(&table->header, table->header.length);

    table->pointer = (struct floating_pointer){
        .table = LAYOUT_MP_TABLE_START + offsetof(struct table, header),
        .paragraphs = sizeof(table->pointer) / 16,
        .revision = REVISION_1_4,
    };
    memcpy(table->pointer.signature, "_MP_", sizeof(table->pointer.signature));
    table->pointer.checksum = boot_checksum(&table->pointer, sizeof(table->pointer));
}

uint8_t *boot_mp_table(uint32_t cpu_count, size_t *size_bytes)
{
    struct table *table = calloc(1, sizeof(*table));

    CHECK(cpu_count <= LAYOUT_MAX_CPUS);
    if (table == NULL)
        return NULL;
    describe_processors(table, cpu_count);
    describe_buses(table);
    describe_isa_interrupts(table);
    describe_pci_interrupts(table);
    describe_local_interrupts(table);
    *size_bytes = close_gap(table, cpu_count);
    write_headers(table, cpu_count, *size_bytes);
    return (uint8_t *)table;
}

int boot_mp_table_add(struct boot_builder *builder, struct error *err)
{
    size_t size_bytes = 0;
    uint8_t *bytes = boot_mp_table(builder->options->cpu_count, &size_bytes);

    return boot_builder_add_generated(builder, LAYOUT_MP_TABLE_START, bytes, size_bytes,
                                      "MP table", err);
}
