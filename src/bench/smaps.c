/* SPDX-License-Identifier: Apache-2.0 */
/* Whose memory a mapping is; see smaps_private.h. */
#include "bench/smaps_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include "base/smaps.h"

/* Guest memory may be several mappings, each behind the other: files, and what lies
 * between them. It is told from the rest by its size, so a row of such neighbours is
 * looked at as a whole when it is over. */
struct row {
    uint64_t start;
    uint64_t end;
    bool is_data; /* which guest memory is: to be written to, and not executed */
    uint64_t private_bytes[SMAPS_KINDS]; /* if it is not the guest's */
};

static enum smaps_kind kind_of(const struct smaps_mapping *mapping)
{
    bool is_own = !mapping->has_file || mapping->is_memory_file;

    if (is_own)
        return mapping->is_executable || mapping->is_memory_file ? SMAPS_CODE
                                                                 : SMAPS_OTHER;
    return SMAPS_PROGRAM;
}

static void end_row(const struct row *row, uint64_t memory_bytes, struct smaps_sum *sum)
{
    bool is_guest = row->is_data && row->end - row->start >= memory_bytes;

    for (int kind = 0; kind < SMAPS_KINDS; kind++)
        sum->private_bytes[is_guest ? SMAPS_GUEST : kind] += row->private_bytes[kind];
}

static bool is_data(const struct smaps_mapping *mapping)
{
    return mapping->is_writable && !mapping->is_executable;
}

struct reading {
    uint64_t memory_bytes;
    struct row row;
    struct smaps_sum *sum;
};

static void add_mapping(void *context, const struct smaps_mapping *mapping)
{
    struct reading *reading = context;
    struct row *row = &reading->row;

    if (!row->is_data || !is_data(mapping) || mapping->start != row->end) {
        end_row(row, reading->memory_bytes, reading->sum);
        *row = (struct row){.start = mapping->start, .is_data = is_data(mapping)};
    }
    row->end = mapping->end;
    row->private_bytes[kind_of(mapping)] += mapping->private_bytes;
    reading->sum->rss_bytes += mapping->rss_bytes;
    reading->sum->pss_bytes += mapping->pss_bytes;
}

void smaps_add_text(FILE *text, uint64_t memory_bytes, struct smaps_sum *sum)
{
    struct reading reading = {.memory_bytes = memory_bytes, .sum = sum};

    smaps_read(text, add_mapping, &reading);
    end_row(&reading.row, memory_bytes, sum);
}

int smaps_add(pid_t pid, uint64_t memory_bytes, struct smaps_sum *sum, struct error *err)
{
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%jd/smaps", (intmax_t)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return error_set_errno(err, errno, "cannot open %s", path);
    smaps_add_text(file, memory_bytes, sum);
    (void)fclose(file);
    return 0;
}
