/* SPDX-License-Identifier: Apache-2.0 */
/* Error sentences; see error.h. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int negative_errno(int code)
{
    if (code == 0)
        return -EIO;
    return code < 0 ? code : -code;
}

static void append(char *text, size_t capacity, const char *tail)
{
    size_t used = strlen(text);

    (void)snprintf(text + used, capacity - used, "%s", tail);
}

__attribute__((format(printf, 3, 0))) static void
set_text(struct error *err, int code, const char *format, va_list args)
{
    err->code = negative_errno(code);
    (void)vsnprintf(err->text, sizeof(err->text), format, args);
}

int error_set(struct error *err, int code, const char *format, ...)
{
    va_list args;

    if (err->code != 0)
        return err->code;
    va_start(args, format);
    set_text(err, code, format, args);
    va_end(args);
    return err->code;
}

int error_set_errno(struct error *err, int code, const char *format, ...)
{
    va_list args;

    if (err->code != 0)
        return err->code;
    va_start(args, format);
    set_text(err, code, format, args);
    va_end(args);
    append(err->text, sizeof(err->text), ": ");
    append(err->text, sizeof(err->text), strerror(-err->code));
    return err->code;
}

int error_prefix(struct error *err, const char *format, ...)
{
    char prefixed[ERROR_TEXT_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(prefixed, sizeof(prefixed), format, args);
    va_end(args);
    append(prefixed, sizeof(prefixed), ": ");
    append(prefixed, sizeof(prefixed), err->text);
    memcpy(err->text, prefixed, sizeof(prefixed));
    return err->code;
}
