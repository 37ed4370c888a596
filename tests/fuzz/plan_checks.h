/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of every boot plan; a plan that breaks it aborts. */
#ifndef HUSK_TESTS_FUZZ_PLAN_CHECKS_H
#define HUSK_TESTS_FUZZ_PLAN_CHECKS_H

#include "boot/boot.h"

/* The plan's RAM is as much as was asked for; spans and memory map are sorted. */
void plan_checks_machine(const struct boot_plan *plan, uint64_t memory_bytes);

/* Ranges are sorted, lie in RAM and in their files; maps are whole pages, copies have a
 * reason, the sums are right. */
void plan_checks_ranges(const struct boot_plan *plan, bool huge_pages);

/* What is offered by fw_cfg: parts are sorted, lie in their item and in their file. */
void plan_checks_fw_cfg(const struct boot_plan *plan);

#endif
