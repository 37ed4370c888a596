/* SPDX-License-Identifier: Apache-2.0 */
/* husk cache: what it prints, and what it refuses. */
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
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "cli/cli.h"

/* 64 digits each; the numbers are in the last ones. */
#define ZEROS "00000000000000000000000000000000000000000000000000000000000000"
#define OLD_NAME ZEROS "01.elf"
#define NEW_NAME ZEROS "02.elf"

struct fixture {
    char directory[64];
    char output[4096];
    struct error err;
};

static void make_entry(const struct fixture *fixture, const char *name, off_t size,
                       time_t used_seconds)
{
    const struct timespec times[2] = {{.tv_sec = used_seconds}, {.tv_sec = used_seconds}};
    char path[256];
    CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, size), 0);
    assert_int_equal(futimens(fd, times), 0);
}

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){.directory = "/tmp/husk-cli-cache-XXXXXX"};
    assert_non_null(mkdtemp(fixture.directory));
    assert_int_equal(setenv("HUSK_CACHE_DIR", fixture.directory, 1), 0);
    assert_int_equal(setenv("TZ", "UTC0", 1), 0);
    tzset();
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {OLD_NAME, NEW_NAME, "lock"};
    struct fixture *fixture = *state;
    char path[256];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", fixture->directory, names[i]);
        (void)unlink(path);
    }
    return rmdir(fixture->directory);
}

/* Runs `husk cache` with up to three words; what it prints is in fixture->output. */
static int run(struct fixture *fixture, const char *first, const char *second,
               const char *third)
{
    char words[3][32] = {"", "", ""};
    char *argv[4] = {NULL};
    const char *const given[] = {first, second, third};
    int saved_stdout = dup(STDOUT_FILENO);
    int file = memfd_create("stdout", MFD_CLOEXEC);
    int argc = 0;
    int code;
    off_t size;

    for (size_t i = 0; i < ARRAY_SIZE(given) && given[i] != NULL; i++) {
        (void)snprintf(words[i], sizeof(words[i]), "%s", given[i]);
        argv[argc++] = words[i];
    }
    fixture->err = ERROR_NONE;
    memset(fixture->output, 0, sizeof(fixture->output));
    (void)fflush(stdout);
    assert_true(dup2(file, STDOUT_FILENO) >= 0);
    code = cli_cache(argc, argv, &fixture->err);
    (void)fflush(stdout);
    (void)dup2(saved_stdout, STDOUT_FILENO);
    size = lseek(file, 0, SEEK_END);
    assert_in_range(size, 0, sizeof(fixture->output) - 1);
    assert_int_equal(fd_read_at(file, 0, fixture->output, (size_t)size), 0);
    fd_close(&file);
    fd_close(&saved_stdout);
    return code;
}

static void lists_size_last_use_name_and_total(void **state)
{
    struct fixture *fixture = *state;
    char expected[512];

    make_entry(fixture, OLD_NAME, 1048576, 1000000000);
    make_entry(fixture, NEW_NAME, 1572864, 1700000000);
    assert_int_equal(run(fixture, "list", NULL, NULL), 0);
    (void)snprintf(expected, sizeof(expected),
                   "     1.5 MiB  2023-11-14 22:13:20  " NEW_NAME "\n"
                   "     1.0 MiB  2001-09-09 01:46:40  " OLD_NAME "\n"
                   "     2.5 MiB  in 2 unpacked kernels in %s\n",
                   fixture->directory);
    assert_string_equal(fixture->output, expected);
}

static void lists_as_json(void **state)
{
    struct fixture *fixture = *state;
    char expected[512];

    make_entry(fixture, OLD_NAME, 4096, 1000000000);
    assert_int_equal(run(fixture, "list", "--json", NULL), 0);
    (void)snprintf(expected, sizeof(expected),
                   "{\"schema\": 1, \"directory\": \"%s\", \"entries\": [{\"name\": "
                   "\"" OLD_NAME "\", \"size_bytes\": 4096, \"used_seconds\": "
                   "1000000000}], \"total_bytes\": 4096}\n",
                   fixture->directory);
    assert_string_equal(fixture->output, expected);
}

static void clear_says_how_many_went(void **state)
{
    struct fixture *fixture = *state;
    char expected[512];

    make_entry(fixture, OLD_NAME, 4096, 1000000000);
    assert_int_equal(run(fixture, "clear", NULL, NULL), 0);
    (void)snprintf(expected, sizeof(expected), "1 unpacked kernel removed from %s\n",
                   fixture->directory);
    assert_string_equal(fixture->output, expected);

    assert_int_equal(run(fixture, "--json", "clear", NULL), 0);
    (void)snprintf(expected, sizeof(expected),
                   "{\"schema\": 1, \"directory\": \"%s\", \"removed\": 0}\n",
                   fixture->directory);
    assert_string_equal(fixture->output, expected);
}

static void missing_directory_is_an_empty_cache(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(setenv("HUSK_CACHE_DIR", "/nonexistent/cache", 1), 0);
    assert_int_equal(run(fixture, "list", NULL, NULL), 0);
    assert_string_equal(fixture->output,
                        "     0.0 MiB  in 0 unpacked kernels in /nonexistent/cache\n");
}

static void directory_that_others_can_write_is_a_failure(void **state)
{
    struct fixture *fixture = *state;
    char expected[512];

    assert_int_equal(chmod(fixture->directory, 0777), 0);
    assert_int_equal(run(fixture, "clear", NULL, NULL), EXIT_HOST_FAILURE);
    (void)snprintf(expected, sizeof(expected),
                   "%s can be written by others (mode 0777); use chmod go-w",
                   fixture->directory);
    assert_string_equal(fixture->err.text, expected);
    assert_string_equal(fixture->output, "");
}

static void wrong_words_are_usage_errors(void **state)
{
    static const struct {
        const char *words[3];
        const char *text;
    } cases[] = {
        {{NULL}, "cache needs a word more: list or clear"},
        {{"--json"}, "cache needs a word more: list or clear"},
        {{"purge"}, "cache takes list or clear, and --json; 'purge' is too much"},
        {{"list", "clear"}, "cache takes list or clear, and --json; 'clear' is too much"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(
            run(fixture, cases[i].words[0], cases[i].words[1], cases[i].words[2]),
            EXIT_USAGE);
        assert_string_equal(fixture->err.text, cases[i].text);
        assert_string_equal(fixture->output, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_size_last_use_name_and_total, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(lists_as_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(clear_says_how_many_went, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_directory_is_an_empty_cache, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(directory_that_others_can_write_is_a_failure,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_words_are_usage_errors, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
