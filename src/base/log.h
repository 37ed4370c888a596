/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diagnostics on stderr, one line each, prefixed "husk: ". Any thread; a line is one
 * write(2), so lines of several threads never mix. Messages quote what files and guests
 * say, so control characters in them become '?'. errno is kept.
 */
#ifndef HUSK_BASE_LOG_H
#define HUSK_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum log_level {
    LOG_ERROR, /* the requested thing did not happen */
    LOG_WARN,  /* it happened, but not as well as asked */
    LOG_INFO,  /* -v */
    LOG_DEBUG, /* -vv */
};

/* Lines above this level are dropped; LOG_WARN at start. */
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* While the terminal is raw, lines must end in "\r\n"; cli/terminal.c switches it. */
void log_set_raw_terminal(bool raw);

void log_line(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

/* For what a guest can provoke at will: true at most once a second for each gate. */
struct log_gate {
    _Atomic uint64_t next_ns;
};
bool log_gate_open(struct log_gate *gate);

#endif
