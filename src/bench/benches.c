/* SPDX-License-Identifier: Apache-2.0 */
/* The table of benches. */
#include "bench/benches_private.h"

#include <string.h>

const struct bench benches[] = {
    {.name = "multiboot",
     .summary = "time from process start to a Multiboot kernel's first line",
     .runs = 10,
     .accels = "soft,kvm",
     .run = bench_multiboot,
     .print_table = bench_print_table},
    {.name = "cpu",
     .summary = "how fast programs run in a guest, beside how fast they run here",
     .runs = 10,
     .accels = "soft",
     .options = (const char *const[]){"--kernel", "--programs", "--tier", "--time",
                                      "--together", NULL},
     .run = bench_cpu,
     .print_table = bench_print_matrix},
    {.name = "disk",
     .summary = "fio and bonnie++ in a guest, with each engine, beside the host",
     .runs = 2,
     .accels = "soft",
     .options = (const char *const[]){"--engine", "--size", "--guest", NULL},
     .run = bench_disk,
     .print_table = bench_print_disk_table},
    {.name = "boot",
     .summary = "time from process start to a stock kernel's first program",
     .runs = 10,
     .accels = "soft",
     .options = (const char *const[]){"--kernel", NULL},
     .run = bench_boot,
     .print_table = bench_print_matrix},
    {.name = "memory",
     .summary = "what idle instances of one kernel take of the host's memory",
     .runs = 1,
     .accels = "soft",
     .options = (const char *const[]){"--kernel", "--instances", NULL},
     .run = bench_memory,
     .print_table = bench_print_matrix},
    {.name = NULL},
};

const struct bench *bench_find(const char *name)
{
    for (const struct bench *row = benches; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}
