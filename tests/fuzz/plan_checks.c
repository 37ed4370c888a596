/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of every boot plan: see plan_checks.h. */
#include "plan_checks.h"

#include "base/bytes.h"
#include "base/check.h"

static bool is_in_span(const struct boot_plan *plan, const struct boot_range *range)
{
    for (size_t i = 0; i < plan->span_count; i++) {
        const struct memory_span *span = &plan->spans[i];

        if (range->gpa >= span->gpa &&
            range_within(range->gpa - span->gpa, range->size_bytes, span->size_bytes))
            return true;
    }
    return false;
}

static void check_file_range(const struct boot_plan *plan, const struct boot_range *range,
                             bool huge_pages)
{
    const struct input_file *input;

    CHECK(range->file < plan->file_count);
    input = plan->files[range->file].input;
    CHECK(range_within(range->file_offset, range->size_bytes, input->size_bytes));
    if (range->kind == BOOT_COPY) {
        CHECK(range->reason != NULL && range->reason[0] != '\0');
        return;
    }
    CHECK(input->mode == INPUT_MAP && !huge_pages && range->reason == NULL);
    CHECK(is_aligned(range->gpa | range->file_offset | range->size_bytes, 4096));
}

void plan_checks_ranges(const struct boot_plan *plan, bool huge_pages)
{
    uint64_t sums[BOOT_GENERATED + 1] = {0};
    uint64_t end = 0;

    CHECK(plan->range_count <= BOOT_MAX_RANGES);
    for (size_t i = 0; i < plan->range_count; i++) {
        const struct boot_range *range = &plan->ranges[i];

        CHECK(range->size_bytes != 0 && range->gpa >= end && range->what != NULL);
        CHECK(is_in_span(plan, range));
        end = range->gpa + range->size_bytes;
        sums[range->kind] += range->size_bytes;
        if (range->kind == BOOT_MAP || range->kind == BOOT_COPY)
            check_file_range(plan, range, huge_pages);
        CHECK((range->kind == BOOT_GENERATED) == (range->bytes != NULL));
    }
    CHECK(plan->bytes.mapped == sums[BOOT_MAP] && plan->bytes.copied == sums[BOOT_COPY]);
    CHECK(plan->bytes.zeroed == sums[BOOT_ZERO]);
    CHECK(plan->bytes.generated == sums[BOOT_GENERATED]);
}

static void check_part(const struct boot_plan *plan, const struct boot_fw_item *item,
                       const struct boot_fw_part *part, uint64_t end)
{
    CHECK(part->size_bytes != 0 && part->at >= end);
    CHECK(range_within(part->at, part->size_bytes, item->size_bytes));
    if (part->bytes == NULL) {
        CHECK(part->file < plan->file_count);
        CHECK(range_within(part->file_offset, part->size_bytes,
                           plan->files[part->file].input->size_bytes));
    }
}

void plan_checks_fw_cfg(const struct boot_plan *plan)
{
    size_t next_part = 0;

    for (size_t i = 0; i < plan->fw_item_count; i++) {
        const struct boot_fw_item *item = &plan->fw_items[i];
        uint64_t end = 0;

        CHECK(item->what != NULL && item->size_bytes <= UINT32_MAX);
        CHECK(item->first_part == next_part);
        next_part += item->part_count;
        for (size_t j = item->first_part; j < next_part; j++) {
            check_part(plan, item, &plan->fw_parts[j], end);
            end = plan->fw_parts[j].at + plan->fw_parts[j].size_bytes;
        }
    }
    CHECK(next_part == plan->fw_part_count);
}

void plan_checks_machine(const struct boot_plan *plan, uint64_t memory_bytes)
{
    uint64_t ram_bytes = 0;
    uint64_t end = 0;

    for (size_t i = 0; i < plan->span_count; i++) {
        CHECK(plan->spans[i].size_bytes != 0 && plan->spans[i].gpa >= end);
        end = plan->spans[i].gpa + plan->spans[i].size_bytes;
        ram_bytes += plan->spans[i].size_bytes;
    }
    if (plan->protocol != BOOT_FIRMWARE)
        CHECK(ram_bytes == memory_bytes);
    end = 0;
    for (size_t i = 0; i < plan->e820_count; i++) {
        CHECK(plan->e820[i].size_bytes != 0 && plan->e820[i].gpa >= end);
        end = plan->e820[i].gpa + plan->e820[i].size_bytes;
    }
    CHECK(plan->protocol != BOOT_AUTO && plan->protocol_reason[0] != '\0');
}
