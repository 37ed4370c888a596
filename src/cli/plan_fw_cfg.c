/* SPDX-License-Identifier: Apache-2.0 */
/* husk plan: what the guest can ask for by fw_cfg. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/plan_private.h"

static void print_item(const struct boot_plan *plan, const struct boot_fw_item *item)
{
    char key[8] = "file";

    if (item->name == NULL)
        (void)snprintf(key, sizeof(key), "0x%04x", item->key);
    printf("  %-12s %10" PRIu64 "  %s%s%s\n", key, item->size_bytes,
           item->name == NULL ? "" : item->name, item->name == NULL ? "" : ": ",
           item->what);
    for (size_t i = 0; i < item->part_count; i++) {
        const struct boot_fw_part *part = &plan->fw_parts[item->first_part + i];

        if (part->bytes == NULL)
            printf("    +0x%08" PRIx64 " %10" PRIu64 "  offset 0x%" PRIx64 " of %s\n",
                   part->at, part->size_bytes, part->file_offset,
                   boot_file_role_name(plan->files[part->file].role));
    }
}

void plan_print_fw_cfg(const struct boot_plan *plan)
{
    printf("\nfw_cfg\n  %-12s %10s  %s\n", "key", "bytes", "what");
    for (size_t i = 0; i < plan->fw_item_count; i++)
        print_item(plan, &plan->fw_items[i]);
}

static json_t *json_part(const struct boot_plan *plan, const struct boot_fw_part *part)
{
    bool is_file = part->bytes == NULL;

    return json_pack("{s:I, s:I, s:s, s:o}", "at", (json_int_t)part->at, "size_bytes",
                     (json_int_t)part->size_bytes, "source",
                     is_file ? boot_file_role_name(plan->files[part->file].role) : "husk",
                     "source_offset",
                     is_file ? json_integer((json_int_t)part->file_offset) : json_null());
}

static json_t *json_item(const struct boot_plan *plan, const struct boot_fw_item *item)
{
    json_t *parts = json_array();

    for (size_t i = 0; i < item->part_count; i++)
        (void)json_array_append_new(
            parts, json_part(plan, &plan->fw_parts[item->first_part + i]));
    return json_pack("{s:o, s:s?, s:I, s:s, s:o}", "key",
                     item->name == NULL ? json_integer(item->key) : json_null(), "name",
                     item->name, "size_bytes", (json_int_t)item->size_bytes, "what",
                     item->what, "parts", parts);
}

json_t *plan_json_fw_cfg(const struct boot_plan *plan)
{
    json_t *items = json_array();

    for (size_t i = 0; i < plan->fw_item_count; i++)
        (void)json_array_append_new(items, json_item(plan, &plan->fw_items[i]));
    return items;
}
