/* SPDX-License-Identifier: Apache-2.0 */
/* The accelerators that are built in, and the choice among them. */
#include "accel/accels_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct accel_ops *const accels[] = {
#ifdef HUSK_HAVE_KVM
    &accel_kvm,
#endif
    NULL,
};

/* What does not fit is cut. */
static void PRINTF_LIKE(3, 4)
    append(char *text, size_t text_size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text + used, text_size - used, format, args);
    va_end(args);
}

static int choose_named(const struct accel_ops *const *table, const char *name,
                        const struct accel_ops **accel, struct error *err)
{
    char names[128] = "";

    for (; *table != NULL; table++) {
        if (strcmp((*table)->name, name) == 0) {
            *accel = *table;
            return 0;
        }
        append(names, sizeof(names), "%s, ", (*table)->name);
    }
    return error_set(err, EINVAL, "unknown accelerator '%s': there are %sauto", name,
                     names);
}

static int choose_first_working(const struct accel_ops *const *table,
                                const struct accel_ops **accel, char *reason,
                                size_t reason_size, struct error *err)
{
    char refusals[ERROR_TEXT_BYTES] = "";

    for (; *table != NULL; table++) {
        struct error refusal = ERROR_NONE;

        if ((*table)->probe(&refusal) == 0) {
            *accel = *table;
            (void)snprintf(reason, reason_size, "%s works on this host%s", (*table)->name,
                           refusals);
            return 0;
        }
        append(refusals, sizeof(refusals), "; %s", refusal.text);
    }
    return error_set(err, ENODEV, "no accelerator works on this host%s", refusals);
}

int accel_choose_from(const struct accel_ops *const *table, const char *name,
                      const struct accel_ops **accel, char *reason, size_t reason_size,
                      struct error *err)
{
    if (strcmp(name, "auto") == 0)
        return choose_first_working(table, accel, reason, reason_size, err);
    (void)snprintf(reason, reason_size, "%s was asked for", name);
    return choose_named(table, name, accel, err);
}

int accel_choose(const char *name, const struct accel_ops **accel, char *reason,
                 size_t reason_size, struct error *err)
{
    return accel_choose_from(accels, name, accel, reason, reason_size, err);
}
