/* SPDX-License-Identifier: Apache-2.0 */
/* One start of a guest, watched from outside. */
#ifndef HUSK_BENCH_BOOT_RUN_PRIVATE_H
#define HUSK_BENCH_BOOT_RUN_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum boot_mark {
    BOOT_INIT_END,     /* the first instruction of the machine */
    BOOT_START_KERNEL, /* the first byte on its serial port */
    BOOT_START_USER,   /* the line of the first program */
    BOOT_PROCESSOR,    /* what of a processor it has taken until then */
    BOOT_USS,          /* in MiB: what it has of memory then, and shares with nobody */
    BOOT_MARK_COUNT,
};

struct boot_command {
    const char *const *arguments; /* of a monitor, the serial port on its output */
    const char *line;             /* what the first program says */
    const char *running; /* what is said on its errors when the machine begins to run;
                          * NULL: nothing is */
    bool has_timer;      /* it is a husk that prints its boot timer when ended */
    uint64_t timeout_ms;
    int interrupt_fd;
};

/* Ends the guest after its line. marks[] of what is not known are left alone. */
int boot_run(const struct boot_command *command, double marks[BOOT_MARK_COUNT],
             struct error *err) MUST_CHECK;

/* The stage `init_end` of what --boot-timer=json prints, in `text`; negative: not there.
 */
double boot_read_init_end(const char *text);

#endif
