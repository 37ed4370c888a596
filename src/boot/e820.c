/* SPDX-License-Identifier: Apache-2.0 */
/* Where a guest has RAM, and what it is told about it (the map named after BIOS call
 * INT 15h, AX=E820h; ACPI 6.4, 15.1). */
#include "base/bytes.h"
#include "base/check.h"
#include "boot/builder_private.h"
#include "x86/layout.h"

static void add_span(struct boot_plan *plan, uint64_t gpa, uint64_t size_bytes)
{
    if (size_bytes == 0)
        return;
    CHECK(plan->span_count < MEMORY_MAX_SPANS);
    plan->spans[plan->span_count++] =
        (struct memory_span){.gpa = gpa, .size_bytes = size_bytes};
}

static void add_entry(struct boot_plan *plan, uint64_t start, uint64_t end, uint32_t type)
{
    if (start >= end)
        return;
    CHECK(plan->e820_count < BOOT_MAX_E820);
    plan->e820[plan->e820_count++] =
        (struct boot_e820){.gpa = start, .size_bytes = end - start, .type = type};
}

void boot_e820_build(struct boot_builder *builder, uint64_t firmware_bytes)
{
    struct boot_plan *plan = builder->plan;
    uint64_t memory_bytes = builder->options->memory_bytes;
    uint64_t low_bytes = min_u64(memory_bytes, LAYOUT_LOW_RAM_LIMIT);
    uint64_t high_bytes = memory_bytes - low_bytes;
    uint64_t usable_bytes;

    builder->low_ram_bytes = low_bytes;
    usable_bytes = boot_builder_usable_low_bytes(builder);
    add_span(plan, 0, low_bytes);
    add_span(plan, LAYOUT_HIGH_RAM_START - firmware_bytes, firmware_bytes);
    add_span(plan, LAYOUT_HIGH_RAM_START, high_bytes);

    add_entry(plan, 0, LAYOUT_EBDA_START, BOOT_E820_RAM);
    add_entry(plan, LAYOUT_EBDA_START, LAYOUT_KERNEL_START, BOOT_E820_RESERVED);
    add_entry(plan, LAYOUT_KERNEL_START, usable_bytes, BOOT_E820_RAM);
    add_entry(plan, usable_bytes, low_bytes, BOOT_E820_RESERVED);
    /* PCI Firmware Specification 3.3, 4.1.2: the memory map reserves the ECAM area. */
    add_entry(plan, LAYOUT_ECAM_START, LAYOUT_ECAM_START + LAYOUT_ECAM_BYTES,
              BOOT_E820_RESERVED);
    /* KVM's own pages, and firmware. */
    add_entry(plan, LAYOUT_KVM_IDENTITY_MAP, LAYOUT_HIGH_RAM_START, BOOT_E820_RESERVED);
    add_entry(plan, LAYOUT_HIGH_RAM_START, LAYOUT_HIGH_RAM_START + high_bytes,
              BOOT_E820_RAM);
}

bool boot_e820_is_ram(const struct boot_plan *plan, uint64_t gpa, uint64_t size_bytes)
{
    for (size_t i = 0; i < plan->e820_count; i++) {
        const struct boot_e820 *entry = &plan->e820[i];

        if (entry->type == BOOT_E820_RAM && gpa >= entry->gpa &&
            range_within(gpa - entry->gpa, size_bytes, entry->size_bytes))
            return true;
    }
    return false;
}
