/* SPDX-License-Identifier: Apache-2.0 */
/* The fw_cfg device of a machine: the plan's items become the device's. */
#include <string.h>

#include "vm/vm_private.h"

static struct fw_cfg_part make_part(const struct boot_plan *plan,
                                    const struct boot_fw_part *part)
{
    struct fw_cfg_part made = {.at = part->at, .size_bytes = part->size_bytes};

    if (part->bytes != NULL) {
        made.source = source_from_memory(part->bytes, part->size_bytes);
    } else {
        made.source = input_file_source(plan->files[part->file].input);
        made.source_offset = part->file_offset;
    }
    return made;
}

static int add_item(struct fw_cfg *fw_cfg, const struct boot_plan *plan,
                    const struct boot_fw_item *item, struct error *err)
{
    struct fw_cfg_part parts[BOOT_MAX_FW_PARTS];

    for (size_t i = 0; i < item->part_count; i++)
        parts[i] = make_part(plan, &plan->fw_parts[item->first_part + i]);
    if (item->name != NULL)
        return fw_cfg_add_file(fw_cfg, item->name, item->size_bytes, parts,
                               item->part_count, err);
    return fw_cfg_add_item(fw_cfg, item->key, item->size_bytes, parts, item->part_count,
                           err);
}

int vm_make_fw_cfg(struct vm *vm, struct error *err)
{
    const struct boot_plan *plan = vm->plan;

    if (fw_cfg_create(vm->memory, strcmp(vm->config->transfer, "dma") == 0, &vm->fw_cfg,
                      err) < 0)
        return err->code;
    for (size_t i = 0; i < plan->fw_item_count; i++)
        if (add_item(vm->fw_cfg, plan, &plan->fw_items[i], err) < 0)
            return err->code;
    return fw_cfg_attach(vm->fw_cfg, &vm->ports, err);
}
