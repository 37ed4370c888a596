/* SPDX-License-Identifier: Apache-2.0 */
/* Files a guest starts from: what maps, what is read instead, what is refused. */
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/input_file.h"

struct fixture {
    char directory[64];
    char path[96];
};

static int make_file(void **state)
{
    static struct fixture fixture;
    CLEANUP_FD int fd = -1;

    (void)snprintf(fixture.directory, sizeof(fixture.directory),
                   "/tmp/husk-input-XXXXXX");
    assert_non_null(mkdtemp(fixture.directory));
    (void)snprintf(fixture.path, sizeof(fixture.path), "%s/kernel", fixture.directory);
    fd = open(fixture.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, "kernel bytes", 12), 0);
    *state = &fixture;
    return 0;
}

static int remove_file(void **state)
{
    struct fixture *fixture = *state;

    (void)unlink(fixture->path);
    return rmdir(fixture->directory);
}

static void assert_content(const struct input_file *file, const char *text)
{
    struct source source = input_file_source(file);
    struct error err = ERROR_NONE;
    char to[64] = "";

    assert_int_equal(source.size_bytes, strlen(text));
    assert_int_equal(source_read(&source, 0, to, strlen(text), &err), 0);
    assert_string_equal(to, text);
}

static void maps_a_regular_file_without_a_reason(void **state)
{
    struct fixture *fixture = *state;
    struct input_file file;
    struct error err = ERROR_NONE;

    assert_int_equal(input_file_open(&file, fixture->path, INPUT_POLICY_AUTO, &err), 0);
    assert_int_equal(file.mode, INPUT_MAP);
    assert_string_equal(file.reason, "");
    assert_string_equal(file.path, fixture->path);
    assert_content(&file, "kernel bytes");
    input_file_close(&file);
    assert_int_equal(file.fd, -1);
    input_file_close(&file); /* twice is harmless */
}

static void reads_when_told_to_copy(void **state)
{
    struct fixture *fixture = *state;
    struct input_file file;
    struct error err = ERROR_NONE;

    assert_int_equal(input_file_open(&file, fixture->path, INPUT_POLICY_COPY, &err), 0);
    assert_int_equal(file.mode, INPUT_READ);
    assert_string_equal(file.reason, "--images copy");
    assert_content(&file, "kernel bytes");
    input_file_close(&file);
}

static void turns_a_pipe_into_a_memory_file(void **state)
{
    struct input_file file;
    struct error err = ERROR_NONE;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fd_write_all(ends[1], "from a pipe", 11), 0);
    fd_close(&ends[1]);
    assert_int_equal(
        input_file_adopt(&file, ends[0], "/dev/stdin", INPUT_POLICY_MAP, &err), 0);
    assert_int_equal(file.mode, INPUT_MAP);
    assert_string_equal(file.reason, "pipe, read into a memory file");
    assert_content(&file, "from a pipe");
    assert_int_equal(fcntl(ends[0], F_GETFD), -1); /* taken over */
    input_file_close(&file);
}

static void turns_a_socket_into_a_memory_file(void **state)
{
    struct input_file file;
    struct error err = ERROR_NONE;
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(fd_write_all(ends[1], "from a socket", 13), 0);
    fd_close(&ends[1]);
    assert_int_equal(input_file_adopt(&file, ends[0], "-", INPUT_POLICY_AUTO, &err), 0);
    assert_string_equal(file.reason, "socket, read into a memory file");
    assert_content(&file, "from a socket");
    input_file_close(&file);
}

static void opens_a_descriptor_by_its_proc_path(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP_FD int fd = open(fixture->path, O_RDONLY | O_CLOEXEC);
    struct input_file file;
    struct error err = ERROR_NONE;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    assert_int_equal(input_file_open(&file, path, INPUT_POLICY_AUTO, &err), 0);
    assert_int_equal(file.mode, INPUT_MAP);
    assert_content(&file, "kernel bytes");
    input_file_close(&file);
}

/* A regular file that cannot be mapped: the sysfs and procfs ones have no mmap. */
static void reads_what_cannot_be_mapped(void **state)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    struct input_file file;
    struct error err = ERROR_NONE;

    (void)state;
    if (access(path, R_OK) < 0) {
        print_message("skipped: no %s\n", path);
        skip();
    }
    assert_int_equal(input_file_open(&file, path, INPUT_POLICY_AUTO, &err), 0);
    assert_int_equal(file.mode, INPUT_READ);
    assert_string_equal(file.reason, "mmap refused: No such device");
    input_file_close(&file);

    assert_int_equal(input_file_open(&file, path, INPUT_POLICY_MAP, &err), -ENODEV);
    assert_string_equal(err.text,
                        "cannot be mapped (mmap refused: No such device), and --images "
                        "map forbids reading it instead; use --images auto");
}

static void refuses_what_is_no_file(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *path;
        int code;
        const char *text;
    } cases[] = {
        {"/nonexistent/kernel", -ENOENT, "cannot open: No such file or directory"},
        {"/tmp", -EISDIR, "is a directory, not a file"},
        {"/dev/null", -ENODATA, "is empty"},
    };

    (void)fixture;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct input_file file;
        struct error err = ERROR_NONE;

        assert_int_equal(input_file_open(&file, cases[i].path, INPUT_POLICY_AUTO, &err),
                         cases[i].code);
        assert_string_equal(err.text, cases[i].text);
        assert_int_equal(file.fd, -1);
        input_file_close(&file);
    }
}

static void refuses_an_empty_file(void **state)
{
    struct fixture *fixture = *state;
    struct input_file file;
    struct error err = ERROR_NONE;

    assert_int_equal(truncate(fixture->path, 0), 0);
    assert_int_equal(input_file_open(&file, fixture->path, INPUT_POLICY_AUTO, &err),
                     -ENODATA);
    assert_string_equal(err.text, "is empty");
}

static void closes_an_all_zero_struct_without_touching_stdin(void **state)
{
    struct input_file file = {0};

    (void)state;
    input_file_close(&file);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(maps_a_regular_file_without_a_reason, make_file,
                                        remove_file),
        cmocka_unit_test_setup_teardown(reads_when_told_to_copy, make_file, remove_file),
        cmocka_unit_test(turns_a_pipe_into_a_memory_file),
        cmocka_unit_test(turns_a_socket_into_a_memory_file),
        cmocka_unit_test_setup_teardown(opens_a_descriptor_by_its_proc_path, make_file,
                                        remove_file),
        cmocka_unit_test(reads_what_cannot_be_mapped),
        cmocka_unit_test_setup_teardown(refuses_what_is_no_file, make_file, remove_file),
        cmocka_unit_test_setup_teardown(refuses_an_empty_file, make_file, remove_file),
        cmocka_unit_test(closes_an_all_zero_struct_without_touching_stdin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
