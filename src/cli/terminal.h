/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's side of a console: standard input, raw if it is a terminal, with the escape
 * keys (Ctrl-A and a letter) taken out. Everything on the loop's thread.
 */
#ifndef HUSK_CLI_TERMINAL_H
#define HUSK_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/loop.h"

#define TERMINAL_ESCAPE 0x01 /* Ctrl-A */

/* Takes the escape keys out of a stream of bytes; a sequence may be cut anywhere. */
struct escape_filter {
    bool escaped; /* Ctrl-A seen, its letter outstanding */
};

/* Copies `size` input bytes to `plain` (room for as many), without escape sequences; each
 * letter behind Ctrl-A but 'a' is given to `key`. Returns the number of plain bytes. */
size_t escape_filter_feed(struct escape_filter *filter, const uint8_t *bytes, size_t size,
                          uint8_t *plain, void (*key)(void *context, char letter),
                          void *context);

struct terminal_ops {
    /* Takes as many bytes as it has room for. The rest is offered again, but what was
     * typed on a terminal is lost: the next key may be the one that quits. */
    size_t (*input)(void *context, const uint8_t *bytes, size_t size);
    void (*key)(void *context, char letter);
    /* The terminal has this size: told at the start, and whenever it changes. NULL:
     * nobody wants to know. */
    void (*resized)(void *context, uint16_t columns, uint16_t rows);
};

struct terminal;

/* Starts reading standard input. A terminal goes raw until terminal_close, and is
 * restored on every other way out too (exit, fatal signals); when the process has been
 * stopped and goes on, it goes raw again. End of file on input is no event. */
int terminal_open(struct loop *loop, const struct terminal_ops *ops, void *context,
                  struct terminal **terminal, struct error *err) MUST_CHECK;
void terminal_close(struct terminal *terminal); /* accepts NULL */

bool terminal_is_raw(const struct terminal *terminal);

#endif
