/* SPDX-License-Identifier: Apache-2.0 */
/* What accels.c joins: the accelerators' tables, and the choice apart from the table it
 * is made from. */
#ifndef HUSK_ACCEL_ACCELS_PRIVATE_H
#define HUSK_ACCEL_ACCELS_PRIVATE_H

#include "accel/accel.h"

extern const struct accel_ops accel_kvm;

/* accel_choose among the NULL-terminated `table`. */
int accel_choose_from(const struct accel_ops *const *table, const char *name,
                      const struct accel_ops **accel, char *reason, size_t reason_size,
                      struct error *err) MUST_CHECK;

#endif
