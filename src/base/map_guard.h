/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps of files that may lose their bytes.
 *
 * Whoever touches a mapped page that its file no longer reaches, or that the host has no
 * room for, gets SIGBUS. The process has one handler for it, here: those who map files
 * register where, and put something there when it happens, so that the access goes on.
 * Any other SIGBUS does what it would have done without the handler.
 */
#ifndef HUSK_BASE_MAP_GUARD_H
#define HUSK_BASE_MAP_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A process has one guest and a few disks; tests and benchmarks have more. */
#define MAP_GUARD_MAX 64

/* Owned by the caller, who keeps it in place while it is registered. */
struct map_guard {
    uintptr_t start;
    uintptr_t end;

    /* The page at `address`, inside of the range, is lost. Runs in signal context on the
     * thread that touched it: atomics, memcpy and map_guard_put_zero_page only. False if
     * nothing can be done; the process then ends. */
    bool (*repair)(void *context, uintptr_t address);
    void *context;
};

/* Any thread. The first call installs the handler. */
int map_guard_register(struct map_guard *guard, struct error *err) MUST_CHECK;

/* Nobody accesses the range any more. Accepts one that is not registered. */
void map_guard_unregister(struct map_guard *guard);

/* For `repair`: zeros in place of the page that holds `address`, unless another thread
 * has put them there already. */
bool map_guard_put_zero_page(uintptr_t address);

#endif
