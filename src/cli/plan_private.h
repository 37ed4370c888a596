/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `husk plan` that have files of their own. */
#ifndef HUSK_CLI_PLAN_PRIVATE_H
#define HUSK_CLI_PLAN_PRIVATE_H

#include <jansson.h>

#include "base/error.h"
#include "boot/boot.h"
#include "config/config.h"

/* plan_fw_cfg.c: what the guest can ask for. */
void plan_print_fw_cfg(const struct boot_plan *plan);
json_t *plan_json_fw_cfg(const struct boot_plan *plan);

/* plan.c: text of others must neither end the line nor speak to the terminal. */
void plan_print_foreign(const char *before, const char *text, const char *behind);

/* plan_disks.c */
struct plan_disk {
    struct config_disk config;
    uint64_t size_bytes;
};
struct plan_disks {
    size_t count;
    struct plan_disk items[CONFIG_MAX_DISKS];
};
int plan_look_at_disks(const struct vm_config *config, struct plan_disks *disks,
                       struct error *err) MUST_CHECK;
void plan_print_disks(const struct plan_disks *disks);
json_t *plan_json_disks(const struct plan_disks *disks);

#endif
