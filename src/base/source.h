/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read-only bytes at offsets, from a file or from memory, behind one range check.
 *
 * Parsers read files through this rather than through a mapping: a file that somebody
 * truncates meanwhile is then a read error and not a SIGBUS, and fuzzers need no file.
 */
#ifndef HUSK_BASE_SOURCE_H
#define HUSK_BASE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct source {
    uint64_t size_bytes;
    int fd;              /* borrowed; -1: `data` holds the bytes */
    const uint8_t *data; /* borrowed */
};

struct source source_from_fd(int fd, uint64_t size_bytes);
struct source source_from_memory(const void *data, size_t size_bytes);

/* Reads exactly `size` bytes. Outside the source: -ERANGE, "ends at byte N, but M bytes
 * at offset O are needed". */
int source_read(const struct source *source, uint64_t offset, void *buffer, size_t size,
                struct error *err) MUST_CHECK;

#endif
