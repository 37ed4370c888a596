/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc/PID/smaps says of a process's mappings (Linux,
 * Documentation/filesystems/proc.rst). Any thread. */
#ifndef HUSK_BASE_SMAPS_H
#define HUSK_BASE_SMAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct smaps_mapping {
    uint64_t start;
    uint64_t end;
    bool is_writable;
    bool is_executable;
    bool has_file;
    bool is_memory_file; /* the file is a memfd's */
    /* Of a memory file, which its process may have mapped twice, each is the PSS: pages
     * that count as shared then, though nobody shares them. */
    uint64_t rss_bytes;       /* resident */
    uint64_t pss_bytes;       /* shared pages counted in parts */
    uint64_t private_bytes;   /* nobody else has them mapped */
    uint64_t anonymous_bytes; /* no file's: written to */
};

typedef void smaps_visit(void *context, const struct smaps_mapping *mapping);

/* Calls `visit` for each mapping of the text, in its order. */
void smaps_read(FILE *text, smaps_visit *visit, void *context);

#endif
