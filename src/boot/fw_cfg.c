/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a guest can ask for by QEMU's firmware configuration interface: the plan's list of
 * items, and those that every guest is offered.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "boot/fw_cfg_private.h"
#include "x86/layout.h"

/* ---- items and their parts ---- */

int boot_fw_add_item(struct boot_builder *builder, const struct boot_fw_item *item,
                     struct error *err)
{
    struct boot_plan *plan = builder->plan;
    struct boot_fw_item *added = &plan->fw_items[plan->fw_item_count];

    if (plan->fw_item_count == BOOT_MAX_FW_ITEMS)
        return error_set(err, -E2BIG, "the boot plan has more than %d items of fw_cfg",
                         BOOT_MAX_FW_ITEMS);
    if (item->size_bytes > UINT32_MAX)
        return error_set(err, -EFBIG,
                         "%s has %" PRIu64
                         " bytes; what fw_cfg hands over has less than 4 GiB",
                         item->what, item->size_bytes);
    *added = *item;
    added->first_part = plan->fw_part_count;
    added->part_count = 0;
    plan->fw_item_count++;
    return 0;
}

/* The range of a file that goes on where the part before it has ended. */
static bool goes_on(const struct boot_fw_part *part, const struct boot_fw_part *before)
{
    return part->bytes == NULL && before->bytes == NULL && part->file == before->file &&
           part->at == before->at + before->size_bytes &&
           part->file_offset == before->file_offset + before->size_bytes;
}

static int add_part(struct boot_builder *builder, const struct boot_fw_part *part,
                    struct error *err)
{
    struct boot_plan *plan = builder->plan;
    struct boot_fw_item *item;

    CHECK(plan->fw_item_count > 0);
    item = &plan->fw_items[plan->fw_item_count - 1];
    CHECK(range_within(part->at, part->size_bytes, item->size_bytes));
    if (item->part_count > 0 && goes_on(part, &plan->fw_parts[plan->fw_part_count - 1])) {
        plan->fw_parts[plan->fw_part_count - 1].size_bytes += part->size_bytes;
        return 0;
    }
    if (plan->fw_part_count == BOOT_MAX_FW_PARTS)
        return error_set(err, -E2BIG,
                         "%s for fw_cfg has too many parts: all items have %d",
                         item->what, BOOT_MAX_FW_PARTS);
    plan->fw_parts[plan->fw_part_count++] = *part;
    item->part_count++;
    return 0;
}

int boot_fw_add_bytes(struct boot_builder *builder, uint64_t at, uint8_t *bytes,
                      size_t size_bytes, struct error *err)
{
    const struct boot_fw_part part = {.at = at, .size_bytes = size_bytes, .bytes = bytes};

    if (bytes == NULL)
        return error_set(err, -ENOMEM, "out of memory for an item of fw_cfg");
    if (add_part(builder, &part, err) < 0) {
        free(bytes);
        return err->code;
    }
    return 0;
}

int boot_fw_add_file_bytes(struct boot_builder *builder, uint64_t at, size_t file,
                           uint64_t file_offset, uint64_t size_bytes, struct error *err)
{
    const struct boot_fw_part part = {
        .at = at,
        .size_bytes = size_bytes,
        .file = file,
        .file_offset = file_offset,
    };

    CHECK(range_within(file_offset, size_bytes,
                       builder->plan->files[file].input->size_bytes));
    return size_bytes == 0 ? 0 : add_part(builder, &part, err);
}

int boot_fw_add_generated(struct boot_builder *builder, const struct boot_fw_item *item,
                          uint8_t *bytes, struct error *err)
{
    if (boot_fw_add_item(builder, item, err) < 0) {
        free(bytes);
        return err->code;
    }
    return boot_fw_add_bytes(builder, 0, bytes, item->size_bytes, err);
}

/* The item is `value`, as many bytes of it as the item has. */
static int add_value(struct boot_builder *builder, const struct boot_fw_item *item,
                     uint64_t value, struct error *err)
{
    uint8_t *bytes = malloc(item->size_bytes);
    uint8_t widest[8];

    CHECK(item->size_bytes <= sizeof(widest));
    store_le64(widest, value);
    if (bytes != NULL)
        memcpy(bytes, widest, item->size_bytes);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the plan has it, or nobody */
    return boot_fw_add_generated(builder, item, bytes, err);
}

int boot_fw_add_number(struct boot_builder *builder, uint16_t key, const char *what,
                       uint64_t value, unsigned size_bytes, struct error *err)
{
    const struct boot_fw_item item = {.key = key, .what = what, .size_bytes = size_bytes};

    return add_value(builder, &item, value, err);
}

/* ---- the memory map, as QEMU's file "etc/e820" has it ---- */

/* Packed u64 address, u64 size, u32 type. */
#define E820_ENTRY_BYTES 20

static void write_e820(uint8_t *entry, uint64_t gpa, uint64_t size_bytes, uint32_t type)
{
    store_le64(entry, gpa);
    store_le64(entry + 8, size_bytes);
    store_le32(entry + 16, type);
}

/* RAM in whole pieces, for what firmware keeps of it firmware knows best. Of the
 * addresses behind KVM's pages, too, it knows what it has there. */
static int add_memory_map(struct boot_builder *builder, struct error *err)
{
    const struct boot_plan *plan = builder->plan;
    struct boot_fw_item item = {.name = "etc/e820", .what = "memory map"};
    uint8_t *bytes = calloc(BOOT_MAX_E820, E820_ENTRY_BYTES);
    size_t used = 0;

    if (bytes == NULL)
        return error_set(err, -ENOMEM, "out of memory for the memory map");
    write_e820(bytes, 0, builder->low_ram_bytes, BOOT_E820_RAM);
    used = E820_ENTRY_BYTES;
    for (size_t i = 0; i < plan->e820_count; i++) {
        const struct boot_e820 *entry = &plan->e820[i];

        if (entry->gpa < builder->low_ram_bytes)
            continue;
        write_e820(bytes + used, entry->gpa,
                   entry->gpa == LAYOUT_KVM_IDENTITY_MAP ? LAYOUT_KVM_BYTES
                                                         : entry->size_bytes,
                   entry->type);
        used += E820_ENTRY_BYTES;
    }
    item.size_bytes = used;
    return boot_fw_add_generated(builder, &item, bytes, err);
}

/* What every guest is offered. */
static int add_machine(struct boot_builder *builder, struct error *err)
{
    const struct boot_options *options = builder->options;

    if (boot_fw_add_number(builder, FW_CFG_RAM_SIZE, "bytes of RAM",
                           options->memory_bytes, 8, err) < 0 ||
        boot_fw_add_number(builder, FW_CFG_NOGRAPHIC, "no screen", 1, 2, err) < 0 ||
        boot_fw_add_number(builder, FW_CFG_NB_CPUS, "number of CPUs", options->cpu_count,
                           2, err) < 0 ||
        boot_fw_add_number(builder, FW_CFG_MAX_CPUS, "most CPUs", options->cpu_count, 2,
                           err) < 0)
        return err->code;
    return add_memory_map(builder, err);
}

/* From where on firmware places 64-bit BARs; without it, that would be the end of RAM
 * (QEMU, hw/i386/pc.c), which is not what the DSDT says. */
static int add_high_window(struct boot_builder *builder, struct error *err)
{
    const struct boot_fw_item item = {.name = "etc/reserved-memory-end",
                                      .what = "start of the 64-bit PCI window",
                                      .size_bytes = sizeof(uint64_t)};

    return add_value(builder, &item,
                     LAYOUT_PCI_HIGH_WINDOW_START(boot_pmem_end(builder->plan)), err);
}

int boot_fw_cfg_build(struct boot_builder *builder, struct error *err)
{
    if (add_machine(builder, err) < 0)
        return err->code;
    if (!builder->inputs->has_firmware)
        return 0; /* the kernel and its tables are in memory already */
    if (boot_fw_add_acpi(builder, err) < 0 || add_high_window(builder, err) < 0)
        return err->code;
    return builder->inputs->has_kernel ? boot_fw_add_kernel(builder, err) : 0;
}
