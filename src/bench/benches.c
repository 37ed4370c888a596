/* SPDX-License-Identifier: Apache-2.0 */
/* The table of benches. */
#include "bench/benches_private.h"

#include <string.h>

const struct bench benches[] = {
    {"multiboot", "time from process start to a Multiboot kernel's first line",
     bench_multiboot},
    {.name = NULL},
};

const struct bench *bench_find(const char *name)
{
    for (const struct bench *row = benches; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}
