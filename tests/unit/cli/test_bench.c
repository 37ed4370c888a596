/* SPDX-License-Identifier: Apache-2.0 */
/* What arguments of husk bench mean, and which end has which exit code. The table of
 * benches is replaced by one that notes what it is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accel/accel.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "bench/bench.h"
#include "cli/cli.h"

/* ---- the bench ---- */

/* Only the names matter here. */
static const struct accel_ops kvm = {.name = "kvm"};
static const struct accel_ops soft = {.name = "soft"};
const struct accel_ops *const accels[] = {&kvm, &soft, NULL};

static struct bench_options asked; /* of the last call */
static char asked_accels[64];
static char asked_only[64];
static char asked_tiers[64];

/* What the next call does. */
static bool measures_nothing;
static bool is_interrupted;
static bool fails;

static int note(const struct bench_options *options, struct bench_report *report,
                struct error *err)
{
    static const double sample = 1.5;

    asked = *options;
    asked_accels[0] = '\0';
    for (size_t i = 0; i < options->accel_count; i++) {
        size_t used = strlen(asked_accels);

        (void)snprintf(asked_accels + used, sizeof(asked_accels) - used, "%s ",
                       options->accels[i]);
    }
    asked_tiers[0] = '\0';
    for (size_t i = 0; i < options->tier_count; i++) {
        size_t used = strlen(asked_tiers);

        (void)snprintf(asked_tiers + used, sizeof(asked_tiers) - used, "%s ",
                       options->tiers[i]);
    }
    (void)snprintf(asked_only, sizeof(asked_only), "%s",
                   options->only == NULL ? "all" : options->only);
    if (fails)
        return error_set(err, EIO, "no room for its files");
    *report = (struct bench_report){
        .bench = "noting", .measure = "nothing", .runs = options->runs, .row_count = 1};
    report->rows = calloc(1, sizeof(*report->rows));
    assert_non_null(report->rows);
    report->rows[0] = (struct bench_row){.group = "g",
                                         .program = "husk",
                                         .way = "w",
                                         .accel = "a",
                                         .beside = "a",
                                         .unit = "ms",
                                         .samples = malloc(sizeof(sample)),
                                         .sample_count = measures_nothing ? 0 : 1};
    assert_non_null(report->rows[0].samples);
    report->rows[0].samples[0] = sample;
    report->interrupted = is_interrupted;
    if (is_interrupted)
        (void)raise(SIGTERM); /* blocked, so it waits in the descriptor */
    return 0;
}

const struct bench benches[] = {
    {.name = "noting",
     .summary = "notes what it is asked for",
     .runs = 10,
     .accels = "soft,kvm",
     .options = (const char *const[]){"--programs", "--tier", "--time", "--together",
                                      "--instances", NULL},
     .run = note,
     .print_table = bench_print_table},
    {.name = "other",
     .summary = "the same",
     .runs = 10,
     .accels = "soft,kvm",
     .run = note,
     .print_table = bench_print_table},
    {.name = NULL},
};

const struct bench *bench_find(const char *name)
{
    for (const struct bench *row = benches; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* ---- running it ---- */

static struct error err;
static char printed[4096];

/* Up to NULL. Standard output goes to `printed`. */
#define run(...) run_bench((const char *const[]){__VA_ARGS__})
static int run_bench(const char *const *words)
{
    char *arguments[16] = {NULL};
    int count = 0;
    FILE *file = tmpfile();
    int before = dup(STDOUT_FILENO);
    int code;

    for (; words[count] != NULL; count++)
        arguments[count] = strdup(words[count]);
    assert_non_null(file);
    (void)fflush(stdout);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    err = ERROR_NONE;
    code = cli_bench(count, arguments, &err);
    (void)fflush(stdout);
    assert_true(dup2(before, STDOUT_FILENO) >= 0);
    assert_int_equal(close(before), 0);
    rewind(file);
    printed[fread(printed, 1, sizeof(printed) - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    for (int i = 0; i < count; i++)
        free(arguments[i]);
    return code;
}

static int reset(void **state)
{
    (void)state;
    measures_nothing = false;
    is_interrupted = false;
    fails = false;
    return 0;
}

/* ---- arguments ---- */

static void defaults_are_ten_runs_on_both_accelerators_without_peer(void **state)
{
    (void)state;
    assert_int_equal(run("noting", NULL), EXIT_SUCCESS);
    assert_string_equal(asked.husk, "/proc/self/exe");
    assert_null(asked.peer);
    assert_string_equal(asked_only, "all");
    assert_int_equal(asked.runs, 10);
    assert_string_equal(asked_accels, "soft kvm ");
    assert_true(asked.interrupt_fd >= 0);
}

static void options_stand_before_and_behind_the_name(void **state)
{
    (void)state;
    assert_int_equal(run("--runs=3", "noting", "--accel", "kvm", "--peer=/bin/true",
                         "--only", "placed", NULL),
                     EXIT_SUCCESS);
    assert_string_equal(asked_only, "placed");
    assert_non_null(asked.peer);
    assert_int_equal(asked.runs, 3);
    assert_string_equal(asked_accels, "kvm ");
    assert_int_equal(run("noting", "--accel", "kvm", "--accel", "soft,,kvm", NULL),
                     EXIT_SUCCESS);
    assert_string_equal(asked_accels, "soft kvm ");
}

static void options_of_a_bench_reach_it_and_no_other(void **state)
{
    (void)state;
    assert_int_equal(run("--tier=one,two", "noting", "--programs", "a,b", NULL),
                     EXIT_SUCCESS);
    assert_string_equal(asked_tiers, "one two ");
    assert_non_null(asked.programs);
    assert_int_equal(run("noting", NULL), EXIT_SUCCESS);
    assert_string_equal(asked_tiers, "");
    assert_null(asked.programs);
    assert_false(asked.processor_time);
    assert_int_equal(run("noting", "--time", "processor", NULL), EXIT_SUCCESS);
    assert_true(asked.processor_time);
    assert_int_equal(run("noting", "--time=clock", NULL), EXIT_SUCCESS);
    assert_false(asked.processor_time);
    assert_int_equal(run("noting", "--time=wall", NULL), EXIT_USAGE);
    assert_string_equal(err.text, "--time 'wall': must be clock or processor");
    assert_int_equal(run("--tier", "one", "other", NULL), EXIT_USAGE);
    assert_string_equal(err.text, "bench other takes no --tier");
    assert_int_equal(run("noting", "--kernel", "x", NULL), EXIT_USAGE);
    assert_string_equal(err.text, "bench noting takes no --kernel");
}

static void numbers_of_instances_are_a_list(void **state)
{
    static const char *const wrong[] = {"0", "257", "", "1,", "two", "-1", "1;2"};

    (void)state;
    assert_int_equal(run("noting", "--instances", "1,16,256", NULL), EXIT_SUCCESS);
    assert_int_equal(asked.instance_count, 3);
    assert_int_equal(asked.instances[1], 16);
    assert_int_equal(asked.instances[2], 256);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        char expected[128];

        (void)snprintf(expected, sizeof(expected),
                       "--instances '%s': must be numbers from 1 to 256, by commas",
                       wrong[i]);
        assert_int_equal(run("noting", "--instances", wrong[i], NULL), EXIT_USAGE);
        assert_string_equal(err.text, expected);
    }
    assert_int_equal(run("noting", "--instances", "1,1,1,1,1,1,1,1,1", NULL), EXIT_USAGE);
    assert_string_equal(err.text, "--instances '1,1,1,1,1,1,1,1,1': more than 8 numbers");
}

static void programs_run_together_are_a_number_above_one(void **state)
{
    static const char *const wrong[] = {"1", "0", "17", "", "two", "-2", "2x"};

    (void)state;
    assert_int_equal(run("noting", "--together", "16", NULL), EXIT_SUCCESS);
    assert_int_equal(asked.together, 16);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        char expected[64];

        (void)snprintf(expected, sizeof(expected), "--together '%s': must be 2 to 16",
                       wrong[i]);
        assert_int_equal(run("noting", "--together", wrong[i], NULL), EXIT_USAGE);
        assert_string_equal(err.text, expected);
    }
}

static void assert_refused(const char *first, const char *second, const char *expected)
{
    assert_int_equal(run(first, second, NULL), EXIT_USAGE);
    assert_string_equal(err.text, expected);
    assert_string_equal(printed, "");
}

static void a_bench_must_be_named(void **state)
{
    (void)state;
    assert_refused(NULL, NULL, "bench needs a name: noting, other");
    assert_refused("--json", NULL, "bench needs a name: noting, other");
    assert_refused("disk", NULL, "unknown bench 'disk'; there is: noting, other");
    assert_refused("noting", "other", "one bench at a time: 'other' is one too many");
}

static void wrong_options_are_refused_with_the_nearest(void **state)
{
    (void)state;
    assert_refused("noting", "--run", "unknown option '--run'; did you mean '--runs'?");
    assert_refused("noting", "--zzzzzzzz",
                   "unknown option '--zzzzzzzz'; --help lists the options");
    assert_refused("noting", "--json=yes", "--json takes no value");
    assert_refused("noting", "--svg", "--svg needs a value: --svg FILE");
    assert_refused("noting", "--accel=tcg",
                   "--accel: there is no accelerator 'tcg'; husk doctor names those that "
                   "there are");
    assert_refused("noting", "--peer", "--peer needs a value: --peer PROGRAM");
}

static void wrong_values_are_refused_with_the_range(void **state)
{
    static const char *const wrong[] = {"0", "1001", "-1",
                                        "",  "3x",   "99999999999999999999"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        char expected[128];
        char option[64];

        (void)snprintf(option, sizeof(option), "--runs=%s", wrong[i]);
        (void)snprintf(expected, sizeof(expected), "--runs '%s': must be 1 to 1000",
                       wrong[i]);
        assert_refused("noting", option, expected);
    }
    assert_refused("noting", "--accel=,", "--accel ',': has no names");
    assert_refused("noting", "--accel=kvm,kvm,kvm,kvm,kvm",
                   "--accel 'kvm,kvm,kvm,kvm,kvm': more than 4 names");
}

/* ---- results ---- */

static void results_are_a_table_or_json_on_standard_output(void **state)
{
    (void)state;
    assert_int_equal(run("noting", NULL), EXIT_SUCCESS);
    assert_ptr_equal(strstr(printed, "noting: nothing\n"), printed);
    assert_int_equal(run("noting", "--json", NULL), EXIT_SUCCESS);
    assert_ptr_equal(strstr(printed, "{\"schema\": 1, \"bench\": \"noting\""), printed);
}

static void a_chart_is_written_beside_the_results(void **state)
{
    char path[] = "/tmp/husk-test-XXXXXX";
    CLEANUP_FD int fd = mkstemp(path);
    char text[16] = "";

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(run("noting", "--svg", path, NULL), EXIT_SUCCESS);
    assert_int_equal(read(fd, text, 4), 4);
    assert_string_equal(text, "<svg");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(run("noting", "--svg", "/no/such/chart", NULL), EXIT_HOST_FAILURE);
    assert_string_equal(err.text,
                        "--svg /no/such/chart: cannot create it: No such file or "
                        "directory");
}

static void a_full_disk_is_told(void **state)
{
    (void)state;
    assert_int_equal(run("noting", "--svg", "/dev/full", NULL), EXIT_HOST_FAILURE);
    assert_string_equal(err.text,
                        "--svg /dev/full: cannot write it: No space left on device");
}

static void a_bench_that_cannot_begin_prints_nothing(void **state)
{
    (void)state;
    fails = true;
    assert_int_equal(run("noting", NULL), EXIT_HOST_FAILURE);
    assert_string_equal(err.text, "no room for its files");
    assert_string_equal(printed, "");
}

static void without_any_result_the_exit_code_says_so(void **state)
{
    (void)state;
    measures_nothing = true;
    assert_int_equal(run("noting", NULL), EXIT_HOST_FAILURE);
    assert_non_null(strstr(printed, "not measured"));
}

static void an_interrupted_bench_shows_what_there_is_and_ends_by_the_signal(void **state)
{
    (void)state;
    is_interrupted = true;
    assert_int_equal(run("noting", NULL), EXIT_SIGNAL_BASE + SIGTERM);
    assert_non_null(strstr(printed, "interrupted before all of 10 runs\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults_are_ten_runs_on_both_accelerators_without_peer,
                               reset),
        cmocka_unit_test_setup(options_stand_before_and_behind_the_name, reset),
        cmocka_unit_test_setup(options_of_a_bench_reach_it_and_no_other, reset),
        cmocka_unit_test_setup(numbers_of_instances_are_a_list, reset),
        cmocka_unit_test_setup(programs_run_together_are_a_number_above_one, reset),
        cmocka_unit_test_setup(a_bench_must_be_named, reset),
        cmocka_unit_test_setup(wrong_options_are_refused_with_the_nearest, reset),
        cmocka_unit_test_setup(wrong_values_are_refused_with_the_range, reset),
        cmocka_unit_test_setup(results_are_a_table_or_json_on_standard_output, reset),
        cmocka_unit_test_setup(a_chart_is_written_beside_the_results, reset),
        cmocka_unit_test_setup(a_full_disk_is_told, reset),
        cmocka_unit_test_setup(a_bench_that_cannot_begin_prints_nothing, reset),
        cmocka_unit_test_setup(without_any_result_the_exit_code_says_so, reset),
        cmocka_unit_test_setup(
            an_interrupted_bench_shows_what_there_is_and_ends_by_the_signal, reset),
    };

    return cmocka_run_group_tests_name("cli/bench", tests, NULL, NULL);
}
