/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has of the host's memory, and roughly what for, seen from outside. */
#ifndef HUSK_BENCH_SMAPS_PRIVATE_H
#define HUSK_BENCH_SMAPS_PRIVATE_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

/* A mapping is put down to one of these. */
enum smaps_kind {
    SMAPS_GUEST,   /* in the one row of mappings that is as large as the guest's memory */
    SMAPS_CODE,    /* executable, and no program's: made by the process itself */
    SMAPS_PROGRAM, /* of other files */
    SMAPS_OTHER,
};
#define SMAPS_KINDS 4

struct smaps_sum {
    uint64_t rss_bytes;
    uint64_t pss_bytes;
    uint64_t private_bytes[SMAPS_KINDS]; /* USS */
};

/* Adds those of process `pid`, whose guest has `memory_bytes` of RAM. */
int smaps_add(pid_t pid, uint64_t memory_bytes, struct smaps_sum *sum,
              struct error *err) MUST_CHECK;

/* The same of the text of a smaps file (Linux, Documentation/filesystems/proc.rst). */
void smaps_add_text(FILE *text, uint64_t memory_bytes, struct smaps_sum *sum);

#endif
