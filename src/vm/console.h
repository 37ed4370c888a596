/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The console hub between a guest's serial port and those who look at it: standard
 * output, a log file, and any number of attached sockets.
 *
 * Output goes into a ring and is written by a thread of its own, so that a terminal or
 * pipe that takes nothing never stops a vCPU; when the ring is full the oldest output is
 * dropped and the reader is told how much. Input waits in a queue until the guest makes
 * room.
 */
#ifndef HUSK_VM_CONSOLE_H
#define HUSK_VM_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct console;

/* What console output is kept for a slow reader, and for one who attaches late: 1 MiB. */
#define CONSOLE_RING_BYTES (UINT64_C(1) << 20)

/* `output_fd` (borrowed, or -1) gets everything; `log_path` (or NULL) is appended to. */
int console_create(int output_fd, const char *log_path, struct console **console,
                   struct error *err) MUST_CHECK;

/* Waits until all readers have taken all output so far; one that takes nothing for a
 * second is not waited for. Accepts NULL. */
void console_drain(struct console *console);

/* Drains, then ends all readers and watchers: their functions are not called any more.
 * Accepts NULL. */
void console_close(struct console *console);

/* Closes, then frees. Accepts NULL. */
void console_destroy(struct console *console);

/* Output from the guest. Any thread, never blocks. */
void console_output(struct console *console, const uint8_t *bytes, size_t size);

/* Calls `line` with each line of output from now on (without its ending; a line of over 1
 * KiB comes in pieces), on a thread of the console's own, until console_destroy. */
int console_watch_lines(struct console *console,
                        void (*line)(void *context, const char *text), void *context,
                        struct error *err) MUST_CHECK;

/* Adds a reader: gets the last `backlog_bytes` of output and all that follows, until
 * writing fails. The descriptor is taken over. Any thread. */
int console_attach(struct console *console, int fd, size_t backlog_bytes,
                   struct error *err) MUST_CHECK;

/* Input for the guest; what does not fit into the queue (64 KiB) is refused: returns the
 * number of bytes taken. Any thread. */
size_t console_input(struct console *console, const uint8_t *bytes, size_t size);

/* Connects the guest's end: `feed` takes as many bytes as the UART has room for. */
void console_connect(struct console *console,
                     size_t (*feed)(void *context, const uint8_t *bytes, size_t size),
                     void *context);

/* The guest's end has room again. Any thread. */
void console_room(struct console *console);

#endif
