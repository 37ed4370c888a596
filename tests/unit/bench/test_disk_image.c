/* SPDX-License-Identifier: Apache-2.0 */
/* The image that is measured on, and the orders at its start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "bench/directory_private.h"
#include "bench/disk_image_private.h"

#define IMAGE_BYTES ((size_t)1 * MIB)
#define BLOCK_BYTES ((size_t)4 * KIB)

static char *directory;
static char path[256];

static int make(void **state)
{
    struct error err = ERROR_NONE;

    (void)state;
    directory = bench_directory_make(&err);
    assert_non_null(directory);
    (void)snprintf(path, sizeof(path), "%s/disk", directory);
    return disk_image_make(path, IMAGE_BYTES, &err);
}

static int finish(void **state)
{
    (void)state;
    bench_directory_remove(directory);
    return 0;
}

static char *read_image(void)
{
    FILE *file = fopen(path, "r");
    char *bytes = calloc(1, IMAGE_BYTES + 1);

    assert_non_null(file);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, IMAGE_BYTES + 1, file), IMAGE_BYTES);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

static void no_block_of_an_image_is_a_hole_or_like_another(void **state)
{
    char *bytes = read_image();
    struct stat status;

    (void)state;
    assert_int_equal(stat(path, &status), 0);
    assert_true((size_t)status.st_blocks * 512 >= IMAGE_BYTES);
    for (size_t i = BLOCK_BYTES; i < IMAGE_BYTES; i += BLOCK_BYTES)
        assert_memory_not_equal(bytes, bytes + i, BLOCK_BYTES);
    free(bytes);
}

static void a_guest_finds_its_orders_at_the_start_behind_its_arguments(void **state)
{
    static const char start[] = "set -- /dev/vda /mnt 16 1\n#!/bin/sh\n";
    struct error err = ERROR_NONE;
    char *before = read_image();
    char *bytes;

    (void)state;
    assert_int_equal(disk_image_prepare(path, "/dev/vda /mnt 16 1", &err), 0);
    bytes = read_image();
    assert_memory_equal(bytes, start, strlen(start));
    /* A C string: nothing is left of what stood there, and the rest is as it was. */
    assert_string_equal(bytes + strlen("set -- /dev/vda /mnt 16 1\n"),
                        disk_measure_script);
    assert_int_equal(bytes[16 * KIB - 1], 0);
    assert_memory_equal(bytes + 16 * KIB, before + 16 * KIB, IMAGE_BYTES - 16 * KIB);
    free(before);
    free(bytes);
}

static void an_image_that_exists_is_left_alone_and_named(void **state)
{
    struct error err = ERROR_NONE;
    char expected[512];

    (void)state;
    (void)snprintf(expected, sizeof(expected),
                   "%s: cannot make a disk of 1 MiB: File exists", path);
    assert_true(disk_image_make(path, IMAGE_BYTES, &err) < 0);
    assert_string_equal(err.text, expected);
}

static void a_directory_is_removed_with_all_that_is_in_it(void **state)
{
    struct error err = ERROR_NONE;
    char *full = bench_directory_make(&err);
    char deeper[256];

    (void)state;
    assert_non_null(full);
    (void)snprintf(deeper, sizeof(deeper), "%s/deeper", full);
    assert_int_equal(mkdir(deeper, 0700), 0);
    (void)snprintf(deeper, sizeof(deeper), "%s/deeper/link", full);
    assert_int_equal(symlink(directory, deeper), 0);
    (void)snprintf(deeper, sizeof(deeper), "%s", full);
    bench_directory_remove(full);
    assert_int_equal(access(deeper, F_OK), -1);
    assert_int_equal(access(path, F_OK), 0); /* a link is not followed */
    bench_directory_remove(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_block_of_an_image_is_a_hole_or_like_another),
        cmocka_unit_test(a_guest_finds_its_orders_at_the_start_behind_its_arguments),
        cmocka_unit_test(an_image_that_exists_is_left_alone_and_named),
        cmocka_unit_test(a_directory_is_removed_with_all_that_is_in_it),
    };

    return cmocka_run_group_tests(tests, make, finish);
}
