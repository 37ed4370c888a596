/* SPDX-License-Identifier: Apache-2.0 */
/* husk doctor, with accelerators made by hand on the host that there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "accel/accel.h"
#include "base/fd.h"
#include "cli/cli.h"

/* ---- accelerators ---- */

static bool slow_works;
static bool fast_works;

static int probe_fast(struct error *err)
{
    return fast_works ? 0 : error_set(err, ENOENT, "fast: no such device");
}

static int probe_slow(struct error *err)
{
    return slow_works ? 0 : error_set(err, EACCES, "slow: not today");
}

static const struct accel_ops fast = {.name = "fast", .probe = probe_fast};
static const struct accel_ops slow = {.name = "slow", .probe = probe_slow};
const struct accel_ops *const accels[] = {&fast, &slow, NULL};

int accel_speed(const struct accel_ops *accel, uint32_t *mips, struct error *err)
{
    (void)err;
    *mips = accel == &fast ? 5000 : 700;
    return 0;
}

int accel_choose(const char *name, const struct accel_ops **accel, char *reason,
                 size_t reason_size, struct error *err)
{
    assert_string_equal(name, "auto");
    if (!fast_works && !slow_works)
        return error_set(err, ENODEV, "no accelerator works on this host; sorry");
    *accel = fast_works ? &fast : &slow;
    (void)snprintf(reason, reason_size, "%s it is", (*accel)->name);
    return 0;
}

/* ---- running it ---- */

static char output[8192];
static struct error failure;

static int run(const char *argument)
{
    char word[16] = "";
    char *argv[] = {word, NULL};
    int saved_stdout = dup(STDOUT_FILENO);
    int file = memfd_create("stdout", MFD_CLOEXEC);
    int code;
    off_t size;

    if (argument != NULL)
        (void)snprintf(word, sizeof(word), "%s", argument);
    failure = ERROR_NONE;
    memset(output, 0, sizeof(output));
    (void)fflush(stdout);
    assert_true(dup2(file, STDOUT_FILENO) >= 0);
    code = cli_doctor(argument == NULL ? 0 : 1, argv, &failure);
    (void)fflush(stdout);
    (void)dup2(saved_stdout, STDOUT_FILENO);
    size = lseek(file, 0, SEEK_END);
    assert_in_range(size, 0, sizeof(output) - 1);
    assert_int_equal(fd_read_at(file, 0, output, (size_t)size), 0);
    fd_close(&file);
    fd_close(&saved_stdout);
    return code;
}

static int set_up(void **state)
{
    (void)state;
    fast_works = false;
    slow_works = true;
    return 0;
}

/* ---- tests ---- */

static void text_begins_with_the_accelerators(void **state)
{
    static const char start[] = "fast        fast: no such device\n"
                                "slow        700 MIPS\n"
                                "auto        slow it is\n"
                                "processor   ";

    (void)state;
    assert_int_equal(run(NULL), 0);
    output[sizeof(start) - 1] = '\0';
    assert_string_equal(output, start);
}

static void text_has_a_line_for_each_thing(void **state)
{
    static const char *const titles[] = {
        "\nprocessor   ", "\n  has       ", "\n  lacks     ", "\nhuge pages  ",
        "\nKSM         ", "\ntun         ", "\nio_uring    ", "\nlimits      "};

    (void)state;
    assert_int_equal(run(NULL), 0);
    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
        assert_non_null(strstr(output, titles[i]));
}

static void json_says_the_same(void **state)
{
    static const char start[] =
        "{\"schema\": 1, \"accelerators\": [{\"works\": false, \"reason\": \"fast: no "
        "such "
        "device\", \"name\": \"fast\"}, {\"works\": true, \"mips\": 700, \"name\": "
        "\"slow\"}], \"auto\": {\"works\": true, \"name\": \"slow\", \"reason\": \"slow "
        "it is\"}, \"processor\": {\"vendor\": ";
    static const char *const keys[] = {"accelerators", "auto", "processor", "huge_pages",
                                       "ksm",          "tun",  "io_uring",  "limits"};
    json_t *document;

    (void)state;
    assert_int_equal(run("--json"), 0);
    document = json_loads(output, 0, NULL);
    assert_non_null(document);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_non_null(json_object_get(document, keys[i]));
    assert_int_equal(json_object_size(document), 1 + sizeof(keys) / sizeof(keys[0]));
    json_decref(document);
    output[sizeof(start) - 1] = '\0';
    assert_string_equal(output, start);
}

static void limits_are_the_process_own(void **state)
{
    struct rlimit before;
    struct rlimit limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 77, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(run("--json"), 0);
    assert_non_null(strstr(output, "\"open_files\": 77}"));
    assert_int_equal(run(NULL), 0);
    assert_non_null(strstr(output, " bytes, open files 77\n"));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void without_an_accelerator_it_fails(void **state)
{
    (void)state;
    slow_works = false;
    assert_int_equal(run(NULL), EXIT_HOST_FAILURE);
    assert_non_null(strstr(
        output, "\nauto        no accelerator works on this host; sorry\nprocessor"));
    assert_int_equal(run("--json"), EXIT_HOST_FAILURE);
}

static void other_words_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run("kvm"), EXIT_USAGE);
    assert_string_equal(failure.text, "doctor takes only --json; 'kvm' is too much");
    assert_string_equal(output, "");
}

#define DOCTOR_TEST(function) cmocka_unit_test_setup(function, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DOCTOR_TEST(text_begins_with_the_accelerators),
        DOCTOR_TEST(text_has_a_line_for_each_thing),
        DOCTOR_TEST(json_says_the_same),
        DOCTOR_TEST(limits_are_the_process_own),
        DOCTOR_TEST(without_an_accelerator_it_fails),
        DOCTOR_TEST(other_words_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
