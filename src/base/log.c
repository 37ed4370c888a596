/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics on stderr; see log.h. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static _Atomic int level_limit = LOG_WARN;
static atomic_bool raw_terminal;

void log_set_level(enum log_level level)
{
    atomic_store(&level_limit, (int)level);
}

bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load(&level_limit);
}

void log_set_raw_terminal(bool raw)
{
    atomic_store(&raw_terminal, raw);
}

/* Foreign text must neither end the line nor speak to the terminal (escape sequences). */
static void replace_control_characters(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = '?';
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char prefix[] = "husk: ";
    char line[ERROR_TEXT_BYTES + 64];
    const char *ending = atomic_load(&raw_terminal) ? "\r\n" : "\n";
    size_t room = sizeof(line) - sizeof(prefix) - 2;
    size_t used = sizeof(prefix) - 1;
    int saved_errno = errno;
    va_list args;
    int wanted;

    if (!log_enabled(level))
        return;
    memcpy(line, prefix, sizeof(prefix));
    va_start(args, format);
    wanted = vsnprintf(line + used, room, format, args);
    va_end(args);
    if (wanted > 0)
        used += (size_t)wanted < room ? (size_t)wanted : room - 1;
    replace_control_characters(line, used);
    memcpy(line + used, ending, strlen(ending));
    used += strlen(ending);
    if (write(STDERR_FILENO, line, used) < 0) {
        /* nowhere left to complain */
    }
    errno = saved_errno;
}

bool log_gate_open(struct log_gate *gate)
{
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t next_ns = atomic_load(&gate->next_ns);

    return now_ns >= next_ns && atomic_compare_exchange_strong(&gate->next_ns, &next_ns,
                                                               now_ns + NS_PER_SECOND);
}
