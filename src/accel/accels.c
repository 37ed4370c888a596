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
#ifdef HUSK_HAVE_SOFT
    &accel_soft,
#endif
    NULL,
};

/* More than the table has. */
#define MAX_WORKING 8

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

/* Those that work here; the others' reasons go to `refusals`. */
static size_t find_working(const struct accel_ops *const *table,
                           const struct accel_ops *working[MAX_WORKING], char *refusals,
                           size_t refusals_size)
{
    size_t count = 0;

    for (; *table != NULL && count < MAX_WORKING; table++) {
        struct error refusal = ERROR_NONE;

        if ((*table)->probe(&refusal) == 0)
            working[count++] = *table;
        else
            append(refusals, refusals_size, "; %s", refusal.text);
    }
    return count;
}

/* The fastest; among equals the first, also if none can be measured. */
static const struct accel_ops *find_fastest(const struct accel_ops *const *working,
                                            size_t count, accel_speed_function *speed,
                                            char *reason, size_t reason_size)
{
    const struct accel_ops *fastest = working[0];
    char speeds[ERROR_TEXT_BYTES] = "";
    uint32_t fastest_mips = 0;

    for (size_t i = 0; i < count; i++) {
        struct error failure = ERROR_NONE;
        uint32_t mips = 0;

        append(speeds, sizeof(speeds), "%s", i == 0 ? "" : ", ");
        if (speed(working[i], &mips, &failure) < 0)
            append(speeds, sizeof(speeds), "%s", failure.text);
        else
            append(speeds, sizeof(speeds), "%s %u MIPS", working[i]->name, mips);
        if (mips > fastest_mips) {
            fastest_mips = mips;
            fastest = working[i];
        }
    }
    (void)snprintf(reason, reason_size, "%s is the fastest on this host (%s)",
                   fastest->name, speeds);
    return fastest;
}

static int choose_best(const struct accel_ops *const *table, accel_speed_function *speed,
                       const struct accel_ops **accel, char *reason, size_t reason_size,
                       struct error *err)
{
    const struct accel_ops *working[MAX_WORKING];
    char refusals[ERROR_TEXT_BYTES] = "";
    size_t count = find_working(table, working, refusals, sizeof(refusals));

    if (count == 0)
        return error_set(err, ENODEV, "no accelerator works on this host%s", refusals);
    *accel = working[0];
    if (count == 1)
        (void)snprintf(reason, reason_size, "%s works on this host", (*accel)->name);
    else
        *accel = find_fastest(working, count, speed, reason, reason_size);
    append(reason, reason_size, "%s", refusals);
    return 0;
}

int accel_choose_from(const struct accel_ops *const *table, const char *name,
                      accel_speed_function *speed, const struct accel_ops **accel,
                      char *reason, size_t reason_size, struct error *err)
{
    if (strcmp(name, "auto") == 0)
        return choose_best(table, speed, accel, reason, reason_size, err);
    (void)snprintf(reason, reason_size, "%s was asked for", name);
    return choose_named(table, name, accel, err);
}

int accel_choose(const char *name, const struct accel_ops **accel, char *reason,
                 size_t reason_size, struct error *err)
{
    return accel_choose_from(accels, name, accel_speed, accel, reason, reason_size, err);
}
