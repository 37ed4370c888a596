/* SPDX-License-Identifier: Apache-2.0 */
/* The engines, and the ways to open them, that one suite of tests runs with. */
#ifndef HUSK_TESTS_DISK_VARIANTS_H
#define HUSK_TESTS_DISK_VARIANTS_H

#include "disk_fixture.h"

/* Three more pages than something round. */
#define DISK_BYTES (MIB + 3 * UINT64_C(4096))

struct variant {
    const char *name;
    struct disk_options options;
    uint32_t direct_bytes; /* what O_DIRECT wants, if not what the host says */
};
extern const struct variant *variant; /* the one that was chosen */

/* Chooses by the program's argument. 0, or the exit code: there is no such variant, or
 * this host has it not. */
int variant_choose(int argc, char **argv);

struct disk *open_variant(const struct test_file *file);

#endif
