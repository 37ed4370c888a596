/* SPDX-License-Identifier: Apache-2.0 */
/* Reading /proc/PID/smaps; see smaps_private.h. */
#include "bench/smaps_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* Guest memory may be several mappings, each behind the other: files, and what lies
 * between them. It is told from the rest by its size, so a row of such neighbours is
 * looked at as a whole when it is over. */
struct row {
    uint64_t start;
    uint64_t end;
    bool is_data; /* which guest memory is: to be written to, and not executed */
    uint64_t private_bytes[SMAPS_KINDS]; /* if it is not the guest's */
};

struct mapping {
    uint64_t start;
    uint64_t end;
    bool is_writable;
    bool is_executable;
    bool has_file;
    bool is_made; /* a file without a place in the file system: memfd */
    uint64_t private_bytes;
};

/* "START-END PERMISSIONS OFFSET DEVICE INODE [PATH]": the first line of a mapping. */
static bool read_head(const char *line, struct mapping *mapping)
{
    uint64_t start;
    uint64_t end;
    char permissions[5];
    unsigned long inode;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %lu", &start, &end, permissions,
               &inode) != 4)
        return false;
    *mapping = (struct mapping){
        .start = start,
        .end = end,
        .is_writable = permissions[1] == 'w',
        .is_executable = permissions[2] == 'x',
        .has_file = inode != 0,
        .is_made = strstr(line, "/memfd:") != NULL,
    };
    return true;
}

static enum smaps_kind kind_of(const struct mapping *mapping)
{
    bool is_own = !mapping->has_file || mapping->is_made;

    if (is_own)
        return mapping->is_executable || mapping->is_made ? SMAPS_CODE : SMAPS_OTHER;
    return SMAPS_PROGRAM;
}

static void end_row(const struct row *row, uint64_t memory_bytes, struct smaps_sum *sum)
{
    bool is_guest = row->is_data && row->end - row->start >= memory_bytes;

    for (int kind = 0; kind < SMAPS_KINDS; kind++)
        sum->private_bytes[is_guest ? SMAPS_GUEST : kind] += row->private_bytes[kind];
}

static bool is_data(const struct mapping *mapping)
{
    return mapping->is_writable && !mapping->is_executable;
}

static void add_mapping(struct row *row, const struct mapping *mapping,
                        uint64_t memory_bytes, struct smaps_sum *sum)
{
    if (!row->is_data || !is_data(mapping) || mapping->start != row->end) {
        end_row(row, memory_bytes, sum);
        *row = (struct row){.start = mapping->start, .is_data = is_data(mapping)};
    }
    row->end = mapping->end;
    row->private_bytes[kind_of(mapping)] += mapping->private_bytes;
}

/* The value of a line "KEY:   123 kB"; 0 for other lines. */
static uint64_t size_of(const char *line, const char *key)
{
    size_t length = strlen(key);

    if (strncmp(line, key, length) != 0 || line[length] != ':')
        return 0;
    return strtoull(line + length + 1, NULL, 10) * KIB;
}

void smaps_add_text(FILE *text, uint64_t memory_bytes, struct smaps_sum *sum)
{
    struct mapping mapping = {.start = 0};
    struct row row = {.start = 0};
    char line[4096 + 128]; /* a path and what is in front of it */

    while (fgets(line, sizeof(line), text) != NULL) {
        struct mapping next;

        if (read_head(line, &next)) {
            add_mapping(&row, &mapping, memory_bytes, sum);
            mapping = next;
            continue;
        }
        sum->rss_bytes += size_of(line, "Rss");
        sum->pss_bytes += size_of(line, "Pss");
        /* A process's own memory file is mapped twice, and so its pages count as shared.
         */
        if (mapping.is_made)
            mapping.private_bytes += size_of(line, "Pss");
        else
            mapping.private_bytes +=
                size_of(line, "Private_Clean") + size_of(line, "Private_Dirty");
    }
    add_mapping(&row, &mapping, memory_bytes, sum);
    end_row(&row, memory_bytes, sum);
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
