/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `husk plan` that have files of their own. */
#ifndef HUSK_CLI_PLAN_PRIVATE_H
#define HUSK_CLI_PLAN_PRIVATE_H

#include <jansson.h>

#include "boot/boot.h"

/* plan_fw_cfg.c: what the guest can ask for. */
void plan_print_fw_cfg(const struct boot_plan *plan);
json_t *plan_json_fw_cfg(const struct boot_plan *plan);

#endif
