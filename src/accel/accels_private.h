/* SPDX-License-Identifier: Apache-2.0 */
/* What accels.c joins: the accelerators' tables, and the choice apart from the table it
 * is made from. */
#ifndef HUSK_ACCEL_ACCELS_PRIVATE_H
#define HUSK_ACCEL_ACCELS_PRIVATE_H

#include "accel/accel.h"

extern const struct accel_ops accel_kvm;
extern const struct accel_ops accel_soft;

/* Runs a short loop (some ms) and tells the speed in million instructions a second. The
 * error begins with the accelerator's name. */
int accel_measure(const struct accel_ops *accel, uint32_t *mips,
                  struct error *err) MUST_CHECK;

typedef int accel_speed_function(const struct accel_ops *accel, uint32_t *mips,
                                 struct error *err);

/* accel_choose among the NULL-terminated `table`. */
int accel_choose_from(const struct accel_ops *const *table, const char *name,
                      accel_speed_function *speed, const struct accel_ops **accel,
                      char *reason, size_t reason_size, struct error *err) MUST_CHECK;

#endif
