/* SPDX-License-Identifier: Apache-2.0 */
/* The files that are booted: what image/ finds in them, and that nothing in them is a
 * hole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "bench/guest_image_private.h"
#include "bench/multiboot_guest_private.h"
#include "image/image.h"

#define KERNEL_BYTES (195 * KIB)
#define MODULE_BYTES (64 * KIB)

static char directory[] = "/tmp/husk-test-XXXXXX";
static struct error err;

static uint8_t *contents(const struct guest_image *image, size_t size_bytes)
{
    CLEANUP_FD int fd = open(image->path, O_RDONLY | O_CLOEXEC);
    uint8_t *bytes = malloc(size_bytes);
    struct stat status;

    assert_non_null(bytes);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_size, size_bytes);
    assert_int_equal(fd_read_at(fd, 0, bytes, size_bytes), 0);
    return bytes;
}

static struct guest_image make_kernel(size_t size_bytes)
{
    struct guest_image kernel = {.path = NULL};

    err = ERROR_NONE;
    assert_int_equal(
        guest_image_make_kernel(&kernel, directory, "kernel", size_bytes, &err), 0);
    return kernel;
}

static void kernel_is_an_elf32_with_a_multiboot_1_header_alone(void **state)
{
    struct guest_image kernel = make_kernel(KERNEL_BYTES);
    uint8_t *bytes = contents(&kernel, KERNEL_BYTES);
    struct source source = source_from_memory(bytes, KERNEL_BYTES);
    struct image image;

    (void)state;
    assert_int_equal(image_describe(&source, &image, &err), 0);
    assert_int_equal(image.format, IMAGE_ELF32);
    assert_int_equal(image.elf.entry, GUEST_ADDRESS + GUEST_ENTRY_OFFSET);
    assert_true(image.multiboot1.present);
    assert_int_equal(image.multiboot1.header_offset, 4096);
    assert_false(image.multiboot2.present);
    assert_false(image.elf.has_pvh);
    free(bytes);
    guest_image_remove(&kernel);
}

static void no_page_of_a_kernel_or_module_is_a_hole(void **state)
{
    struct guest_image module = {.path = NULL};
    struct guest_image kernel = make_kernel(KERNEL_BYTES);
    uint8_t *kernel_bytes = contents(&kernel, KERNEL_BYTES);
    uint8_t *module_bytes;

    (void)state;
    assert_int_equal(
        guest_image_make_module(&module, directory, "module", MODULE_BYTES, &err), 0);
    module_bytes = contents(&module, MODULE_BYTES);
    /* Behind the code, that is. */
    for (size_t i = 8192; i < KERNEL_BYTES; i++)
        assert_int_not_equal(kernel_bytes[i], 0);
    for (size_t i = 0; i < MODULE_BYTES; i++)
        assert_int_not_equal(module_bytes[i], 0);
    for (size_t i = 4096; i < MODULE_BYTES; i += 4096)
        assert_int_not_equal(memcmp(module_bytes, module_bytes + i, 4096), 0);
    free(kernel_bytes);
    free(module_bytes);
    guest_image_remove(&kernel);
    guest_image_remove(&module);
}

static uint32_t sum_of(const uint8_t *bytes, size_t start, size_t end)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < 4096; i += 4)
        sum += load_le32(bytes + start + i) + load_le32(bytes + end - 4096 + i);
    return sum;
}

static void line_has_the_sum_of_kernel_and_module(void **state)
{
    struct guest_image module = {.path = NULL};
    struct guest_image kernel = make_kernel(GUEST_IMAGE_LEAST_BYTES);
    uint8_t *kernel_bytes = contents(&kernel, GUEST_IMAGE_LEAST_BYTES);
    uint8_t *module_bytes;
    char line[GUEST_IMAGE_LINE_BYTES];
    char expected[GUEST_IMAGE_LINE_BYTES];
    uint32_t sum = sum_of(kernel_bytes, 4096, GUEST_IMAGE_LEAST_BYTES);

    (void)state;
    assert_int_equal(
        guest_image_make_module(&module, directory, "module", MODULE_BYTES, &err), 0);
    module_bytes = contents(&module, MODULE_BYTES);
    guest_image_line(&kernel, NULL, line);
    (void)snprintf(expected, sizeof(expected), "husk-bench %08x\n", sum);
    assert_string_equal(line, expected);
    sum += sum_of(module_bytes, 0, MODULE_BYTES);
    guest_image_line(&kernel, &module, line);
    (void)snprintf(expected, sizeof(expected), "husk-bench %08x\n", sum);
    assert_string_equal(line, expected);
    free(kernel_bytes);
    free(module_bytes);
    guest_image_remove(&kernel);
    guest_image_remove(&module);
}

static void a_file_that_exists_is_left_alone_and_named(void **state)
{
    struct guest_image kernel = make_kernel(GUEST_IMAGE_LEAST_BYTES);
    struct guest_image again = {.path = NULL};
    char expected[128];

    (void)state;
    assert_int_equal(guest_image_make_kernel(&again, directory, "kernel",
                                             GUEST_IMAGE_LEAST_BYTES, &err),
                     -EEXIST);
    (void)snprintf(expected, sizeof(expected), "%s/kernel: cannot write it: File exists",
                   directory);
    assert_string_equal(err.text, expected);
    guest_image_remove(&again);
    guest_image_remove(&kernel);
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) == NULL ? -1 : 0;
}

/* Fails if a test has left a file. */
static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_is_an_elf32_with_a_multiboot_1_header_alone),
        cmocka_unit_test(no_page_of_a_kernel_or_module_is_a_hole),
        cmocka_unit_test(line_has_the_sum_of_kernel_and_module),
        cmocka_unit_test(a_file_that_exists_is_left_alone_and_named),
    };

    return cmocka_run_group_tests_name("bench/guest_image", tests, make_directory,
                                       remove_directory);
}
