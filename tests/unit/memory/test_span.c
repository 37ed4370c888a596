/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that are files: persistent memory. */
#include "memory_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define PMEM GIB
#define PMEM_BYTES (2 * MIB)

/* 1 MiB of RAM, and a file of 2 MiB. */
static struct memory *memory_with_file_span(void)
{
    const struct memory_span spans[] = {{0, MIB}, {PMEM, PMEM_BYTES}};
    const struct memory_options options = {.file_span_count = 1, .prefault = true};
    struct memory *memory = NULL;
    struct error err = ERROR_NONE;

    if (memory_create(spans, ARRAY_SIZE(spans), &options, &memory, &err) < 0)
        fail_msg("%s", err.text);
    return memory;
}

static struct memory *memory_with(int fd, bool shared)
{
    struct memory *memory = memory_with_file_span();
    struct error err = ERROR_NONE;

    if (memory_map_span(memory, PMEM, fd, shared, "pmem", &err) < 0)
        fail_msg("%s", err.text);
    return memory;
}

static char byte_in_file(int fd, off_t at)
{
    char byte;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    return byte;
}

static int read_only(int fd)
{
    char path[64];
    int opened;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    opened = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(opened >= 0);
    return opened;
}

static void what_is_written_to_a_shared_span_is_in_the_file(void **state)
{
    int fd = file_of(PMEM_BYTES);
    struct memory *memory = memory_with(fd, true);

    (void)state;
    assert_int_equal(byte_at(memory, PMEM + PAGE), 'b');
    assert_int_equal(memory_write(memory, PMEM + PAGE + 7, "X", 1), 0);
    assert_int_equal(byte_in_file(fd, PAGE + 7), 'X');
    assert_int_equal(pwrite(fd, "Y", 1, 3 * PAGE), 1);
    assert_int_equal(byte_at(memory, PMEM + 3 * PAGE), 'Y');
    memory_destroy(memory);
    (void)close(fd);
}

static void what_is_written_to_a_private_span_is_not_in_the_file(void **state)
{
    int fd = file_of(PMEM_BYTES);
    int reader = read_only(fd);
    struct memory *memory = memory_with(reader, false);

    (void)state;
    assert_int_equal(memory_write(memory, PMEM + PAGE, "X", 1), 0);
    assert_int_equal(byte_at(memory, PMEM + PAGE), 'X');
    assert_int_equal(byte_in_file(fd, PAGE), 'b');
    memory_destroy(memory);
    (void)close(reader);
    (void)close(fd);
}

static void behind_the_file_there_are_zeros(void **state)
{
    int fd = file_of(PAGE + 5);
    struct memory *memory = memory_with(fd, true);

    (void)state;
    assert_int_equal(byte_at(memory, PMEM + PAGE + 4), 'b');
    assert_int_equal(byte_at(memory, PMEM + PAGE + 5), 0);
    assert_int_equal(byte_at(memory, PMEM + PMEM_BYTES - 1), 0);
    assert_int_equal(memory_write(memory, PMEM + PMEM_BYTES - 1, "X", 1), 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), PAGE + 5);
    memory_destroy(memory);
    (void)close(fd);
}

static void span_ends_where_it_should_though_the_file_goes_on(void **state)
{
    int fd = file_of(PMEM_BYTES + PAGE);
    struct memory *memory = memory_with(fd, true);
    char byte;

    (void)state;
    assert_int_equal(memory_read(memory, PMEM + PMEM_BYTES - 1, &byte, 1), 0);
    assert_int_equal(memory_read(memory, PMEM + PMEM_BYTES, &byte, 1), -EFAULT);
    memory_destroy(memory);
    (void)close(fd);
}

static void reset_keeps_a_span_that_is_a_file(void **state)
{
    int fd = file_of(PMEM_BYTES);
    int kernel = file_of(PAGE);
    struct memory *memory = memory_with(fd, false);
    struct error err = ERROR_NONE;

    (void)state;
    map_or_fail(memory, 0, kernel, 0, PAGE, "kernel");
    assert_int_equal(memory_write(memory, PMEM, "X", 1), 0);
    assert_int_equal(memory_reset(memory, &err), 0);
    assert_int_equal(byte_at(memory, 0), 0);
    assert_int_equal(byte_at(memory, PMEM), 'X');
    assert_int_equal(byte_at(memory, PMEM + PAGE), 'b');
    memory_destroy(memory);
    (void)close(kernel);
    (void)close(fd);
}

static void advice_is_for_ram_alone(void **state)
{
    int fd = file_of(PMEM_BYTES);
    struct memory *memory = memory_with(fd, true);
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(ftruncate(fd, 0), 0); /* whoever touches it now has a loss */
    assert_int_equal(memory_apply_advice(memory, &err), 0);
    memory_destroy(memory);
    (void)close(fd);
}

static void empty_file_is_refused(void **state)
{
    struct memory *memory = memory_with_file_span();
    int fd = file_of(0);
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(memory_map_span(memory, PMEM, fd, true, "pmem a", &err), -ENODATA);
    assert_string_equal(err.text, "pmem a: is empty");
    memory_destroy(memory);
    (void)close(fd);
}

static void file_that_cannot_be_written_is_no_shared_span(void **state)
{
    struct memory *memory = memory_with_file_span();
    int fd = file_of(PMEM_BYTES);
    int reader = read_only(fd);
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(memory_map_span(memory, PMEM, reader, true, "pmem a", &err),
                     -EACCES);
    assert_string_equal(err.text, "pmem a: cannot map: Permission denied");
    memory_destroy(memory);
    (void)close(reader);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_to_a_shared_span_is_in_the_file),
        cmocka_unit_test(what_is_written_to_a_private_span_is_not_in_the_file),
        cmocka_unit_test(behind_the_file_there_are_zeros),
        cmocka_unit_test(span_ends_where_it_should_though_the_file_goes_on),
        cmocka_unit_test(reset_keeps_a_span_that_is_a_file),
        cmocka_unit_test(advice_is_for_ram_alone),
        cmocka_unit_test(empty_file_is_refused),
        cmocka_unit_test(file_that_cannot_be_written_is_no_shared_span),
    };

    return cmocka_run_group_tests_name("memory spans", tests, NULL, NULL);
}
