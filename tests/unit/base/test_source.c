/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes at offsets, from memory and from files, behind one range check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/source.h"

static const char text[] = "0123456789";

static void reads_the_same_from_memory_and_file(void **state)
{
    CLEANUP_FD int fd = memfd_create("test", MFD_CLOEXEC);
    struct source sources[] = {source_from_memory(text, 10), source_from_fd(fd, 10)};

    (void)state;
    assert_int_equal(fd_write_all(fd, text, 10), 0);
    for (size_t i = 0; i < 2; i++) {
        struct error err = ERROR_NONE;
        char to[4] = "";

        assert_int_equal(source_read(&sources[i], 7, to, 3, &err), 0);
        assert_string_equal(to, "789");
        assert_int_equal(source_read(&sources[i], 10, to, 0, &err), 0);
        assert_int_equal(err.code, 0);
    }
}

static void names_what_is_needed_outside_the_source(void **state)
{
    struct source source = source_from_memory(text, 10);
    struct error err = ERROR_NONE;
    struct error wrapped = ERROR_NONE;
    char to[8] = "";

    (void)state;
    assert_int_equal(source_read(&source, 7, to, 4, &err), -ERANGE);
    assert_string_equal(err.text, "ends at byte 10, but 4 bytes at offset 7 are needed");
    assert_string_equal(to, "");
    assert_int_equal(source_read(&source, UINT64_MAX, to, 2, &wrapped), -ERANGE);
    assert_string_equal(
        wrapped.text,
        "ends at byte 10, but 2 bytes at offset 18446744073709551615 are needed");
}

static void empty_source_without_data_reads_nothing(void **state)
{
    struct source source = source_from_memory(NULL, 0);
    struct error err = ERROR_NONE;
    char to = 'x';

    (void)state;
    assert_int_equal(source_read(&source, 0, &to, 0, &err), 0);
    assert_int_equal(source_read(&source, 0, &to, 1, &err), -ERANGE);
    assert_int_equal(to, 'x');
}

static void notices_a_file_that_became_shorter(void **state)
{
    CLEANUP_FD int fd = memfd_create("test", MFD_CLOEXEC);
    struct source source = source_from_fd(fd, 10);
    struct error err = ERROR_NONE;
    char to[8];

    (void)state;
    assert_int_equal(fd_write_all(fd, text, 10), 0);
    assert_int_equal(ftruncate(fd, 5), 0);
    assert_int_equal(source_read(&source, 3, to, 4, &err), -ENODATA);
    assert_string_equal(err.text, "became shorter while it was read");
}

static void says_why_a_read_failed(void **state)
{
    int ends[2];
    struct source source;
    struct error err = ERROR_NONE;
    char to;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    source = source_from_fd(ends[0], 10);
    assert_int_equal(source_read(&source, 0, &to, 1, &err), -ESPIPE);
    assert_string_equal(err.text, "cannot read: Illegal seek");
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_same_from_memory_and_file),
        cmocka_unit_test(names_what_is_needed_outside_the_source),
        cmocka_unit_test(empty_source_without_data_reads_nothing),
        cmocka_unit_test(notices_a_file_that_became_shorter),
        cmocka_unit_test(says_why_a_read_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
