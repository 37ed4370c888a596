/* SPDX-License-Identifier: Apache-2.0 */
/* Reading smaps; see smaps.h. */
#include "base/smaps.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* "START-END PERMISSIONS OFFSET DEVICE INODE [PATH]": the first line of a mapping. */
static bool read_head(const char *line, struct smaps_mapping *mapping)
{
    char *rest;
    uint64_t start = strtoull(line, &rest, 16);
    uint64_t end;
    const char *permissions;
    int inode_at = -1;

    if (rest == line || *rest != '-')
        return false;
    end = strtoull(rest + 1, &rest, 16);
    permissions = rest + 1;
    (void)sscanf(rest, " %*4s %*x %*s %n", &inode_at);
    if (inode_at < 0)
        return false;
    *mapping = (struct smaps_mapping){
        .start = start,
        .end = end,
        .is_writable = permissions[1] == 'w',
        .is_executable = permissions[2] == 'x',
        .has_file = strtoull(rest + inode_at, NULL, 10) != 0,
        .is_memory_file = strstr(line, "/memfd:") != NULL,
    };
    return true;
}

/* The value of a line "KEY:   123 kB"; 0 for other lines. */
static uint64_t size_of(const char *line, const char *key)
{
    size_t length = strlen(key);

    if (strncmp(line, key, length) != 0 || line[length] != ':')
        return 0;
    return strtoull(line + length + 1, NULL, 10) * KIB;
}

static void read_field(const char *line, struct smaps_mapping *mapping)
{
    mapping->rss_bytes += size_of(line, "Rss");
    mapping->pss_bytes += size_of(line, "Pss");
    mapping->private_bytes +=
        size_of(line, "Private_Clean") + size_of(line, "Private_Dirty");
    mapping->anonymous_bytes += size_of(line, "Anonymous");
}

/* What smaps.h says of memory files. */
static void give(struct smaps_mapping *mapping, smaps_visit *visit, void *context)
{
    if (mapping->is_memory_file)
        mapping->rss_bytes = mapping->private_bytes = mapping->pss_bytes;
    visit(context, mapping);
}

void smaps_read(FILE *text, smaps_visit *visit, void *context)
{
    struct smaps_mapping mapping;
    bool has_mapping = false;
    char line[4096 + 128]; /* a path and what is in front of it */

    while (fgets(line, sizeof(line), text) != NULL) {
        struct smaps_mapping next;

        if (read_head(line, &next)) {
            if (has_mapping)
                give(&mapping, visit, context);
            mapping = next;
            has_mapping = true;
        } else if (has_mapping) {
            read_field(line, &mapping);
        }
    }
    if (has_mapping)
        give(&mapping, visit, context);
}
