/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the cache share: a packed kernel, and a directory that goes away. */
#ifndef HUSK_TESTS_IMAGE_CACHE_FIXTURE_H
#define HUSK_TESTS_IMAGE_CACHE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image/cache_private.h"

#define KERNEL_BYTES 204800

/* A packed kernel in memory and the directory of a cache, fresh for each test. */
struct fixture {
    char root[64];
    char directory[96];
    struct image_cache_options options;
    uint8_t kernel[KERNEL_BYTES];
    uint8_t packed[KERNEL_BYTES + 1024];
    struct source source;
    struct image_payload payload;
    struct image_cache_result result;
};

/* Makes another kernel for each seed. */
void pack_kernel(struct fixture *fixture, uint32_t seed);

int set_up(void **state);
int tear_down(void **state);
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* True if the result is the whole kernel. */
bool content_is_right(const struct fixture *fixture);

/* Opens through the cache and expects this outcome and the right bytes. */
void open_expecting(struct fixture *fixture, enum image_cache_outcome outcome);
void open_expecting_reason(struct fixture *fixture, enum image_cache_outcome outcome,
                           const char *reason);

/* Names in the cache's directory that end so. */
size_t count_names(const struct fixture *fixture, const char *ending);

/* The path of the entry in the result, with another suffix. Valid until the next call. */
const char *sibling(const struct fixture *fixture, const char *suffix);

void write_file(const char *path, const char *text);

#endif
