/* SPDX-License-Identifier: Apache-2.0 */
/* What fio 3.33 and bonnie++ 2.00a really print, and what they print when all is not
 * well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "bench/disk_output_private.h"

/* The twenty fields of percentiles, all alike. */
#define FIVE "1.000000%=0;2.000000%=0;3.000000%=0;4.000000%=0;5.000000%=0;"
#define PERCENTILES FIVE FIVE FIVE FIVE
#define NOTHING                                                                          \
    "0;0;0;0;0;0;0.000000;0.000000;0;0;0.000000;0.000000;" PERCENTILES                   \
    "0;0;0.000000;0.000000;0;0;0.000000%;0.000000;0.000000;"
#define PROCESSOR "25.000000%;50.000000%;16963;0;0;"
#define REST "0.0%;0.0%;0.1%;99.9%;0.0%;vda;0;0;0;0;0;0;0;0.00%"

#define READS(name, error)                                                               \
    "3;fio-3.33;" name ";2;" error                                                       \
    ";8768;8759;2189;2000;82;2210;210.992680;131.356378;12;6295;218.929689;380.633024;"  \
    "" PERCENTILES                                                                       \
    "96;7000;429.0;400.0;8000;9000;100.000000%;8759.0;12.0;" NOTHING PROCESSOR REST
#define WRITES(name)                                                                     \
    "3;fio-3.33;" name ";6;0;" NOTHING                                                   \
    "4096;2048;512;2000;82;2210;210.992680;131.356378;12;6295;218.929689;380.633024;"    \
    "" PERCENTILES                                                                       \
    "96;7000;429.0;400.0;8000;9000;100.000000%;8759.0;12.0;" PROCESSOR REST

#define BONNIE(rates)                                                                    \
    "1.98,2.00a,husk-bench,1,1796070336,256M,,8192,5,,," rates                           \
    ",,,,,,,,,,,,,,,,,,,113ms,33740us,,24311us,2s,,,,,,"

static void marks_say_what_begins_and_ends(void **state)
{
    const char *name;

    (void)state;
    assert_int_equal(disk_parse_mark("husk-bench begin fsync", &name), DISK_MARK_BEGIN);
    assert_string_equal(name, "fsync");
    assert_int_equal(disk_parse_mark("husk-bench end bonnie", &name), DISK_MARK_END);
    assert_string_equal(name, "bonnie");
    assert_int_equal(disk_parse_mark("husk-bench done", &name), DISK_MARK_DONE);
    assert_int_equal(disk_parse_mark("husk-bench done it", &name), DISK_MARK_NONE);
    assert_int_equal(disk_parse_mark("husk-bench failed: fio", &name), DISK_MARK_NONE);
    assert_int_equal(disk_parse_mark("fio: husk-bench done", &name), DISK_MARK_NONE);
    assert_int_equal(disk_parse_mark("", &name), DISK_MARK_NONE);
}

static void jobs_are_known_by_their_names(void **state)
{
    (void)state;
    assert_int_equal(disk_parse_job_name("random-write-32"), DISK_JOB_RANDOM_WRITE_32);
    assert_int_equal(disk_parse_job_name("fsync"), DISK_JOB_FSYNC);
    assert_int_equal(disk_parse_job_name("bonnie"), DISK_JOB_COUNT);
    assert_int_equal(disk_parse_job_name(""), DISK_JOB_COUNT);
}

static void assert_figures(const char *line, enum disk_job expected_job, double requests,
                           double bytes)
{
    struct disk_job_figures figures = {.known = false};
    enum disk_job job = DISK_JOB_COUNT;

    assert_true(disk_parse_fio(line, &job, &figures));
    assert_int_equal(job, expected_job);
    assert_true(figures.known);
    assert_true(figures.requests == requests);
    assert_true(figures.bytes == bytes);
    assert_true(figures.seconds == 2);
    assert_true(figures.processor_seconds == 1.5); /* 75 % */
}

static void figures_of_fio_are_those_of_the_direction_that_the_job_has(void **state)
{
    (void)state;
    assert_figures(READS("random-read-1", "0"), DISK_JOB_RANDOM_READ_1, 2192,
                   8768 * 1024);
    assert_figures(READS("sequential-read", "0"), DISK_JOB_SEQUENTIAL_READ, 8.5625,
                   8768 * 1024);
    assert_figures(WRITES("random-write-32"), DISK_JOB_RANDOM_WRITE_32, 1024,
                   4096 * 1024);
    assert_figures(WRITES("fsync"), DISK_JOB_FSYNC, 1024, 4096 * 1024);
}

static void refuse_fio(const char *line)
{
    struct disk_job_figures figures;
    enum disk_job job;

    assert_false(disk_parse_fio(line, &job, &figures));
}

static void lines_that_are_no_good_jobs_are_no_figures(void **state)
{
    char cut[] = READS("random-read-1", "0");

    (void)state;
    refuse_fio("");
    refuse_fio("fsync : Saving output of prerun in fsync.prerun.txt");
    refuse_fio(READS("random-read-1", "5")); /* an errno */
    refuse_fio(READS("random-read-2", "0")); /* nobody's job */
    refuse_fio(WRITES("random-read-1"));     /* it has read nothing */
    *strstr(cut, ";25.000000%") = '\0';
    refuse_fio(cut);
}

static void bonnie_tells_rates_and_longest_times(void **state)
{
    struct disk_step_figures steps[DISK_STEP_COUNT];

    (void)state;
    assert_true(
        disk_parse_bonnie(BONNIE("23771,82,45554,70,,,86365,61,4820,334"), steps));
    assert_true(steps[DISK_STEP_WRITE].rate == 23771);
    assert_true(steps[DISK_STEP_REWRITE].rate == 45554);
    assert_true(steps[DISK_STEP_READ].rate == 86365);
    assert_true(steps[DISK_STEP_SEEK].rate == 4820);
    assert_true(steps[DISK_STEP_WRITE].latency_us == 113000);
    assert_true(steps[DISK_STEP_REWRITE].latency_us == 33740);
    assert_true(steps[DISK_STEP_READ].latency_us == 24311);
    assert_true(steps[DISK_STEP_SEEK].latency_us == 2000000);
}

static void what_was_too_quick_for_bonnie_is_not_known(void **state)
{
    struct disk_step_figures steps[DISK_STEP_COUNT];

    (void)state;
    assert_true(disk_parse_bonnie(BONNIE("23771,82,,,,,+++++,+++,4820,334"), steps));
    assert_true(steps[DISK_STEP_WRITE].rate == 23771);
    assert_true(steps[DISK_STEP_REWRITE].rate == -1);
    assert_true(steps[DISK_STEP_READ].rate == -1);
    assert_true(steps[DISK_STEP_SEEK].rate == 4820);
}

static void lines_of_others_are_not_bonnies(void **state)
{
    struct disk_step_figures steps[DISK_STEP_COUNT];
    char other_format[] = BONNIE("1,2,3,4,,,5,6,7,8");
    char cut[] = BONNIE("1,2,3,4,,,5,6,7,8");
    char many[8192];

    (void)state;
    other_format[3] = '7';
    *strstr(cut, ",2s") = '\0';
    memset(many, ',', sizeof(many) - 1);
    many[sizeof(many) - 1] = '\0';
    assert_false(disk_parse_bonnie("", steps));
    assert_false(disk_parse_bonnie(READS("fsync", "0"), steps));
    assert_false(disk_parse_bonnie(other_format, steps));
    assert_false(disk_parse_bonnie(cut, steps));
    assert_false(disk_parse_bonnie(many, steps));
    memcpy(many, "1.98", 4);
    many[1000] = '\0';
    assert_false(disk_parse_bonnie(many, steps));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_say_what_begins_and_ends),
        cmocka_unit_test(jobs_are_known_by_their_names),
        cmocka_unit_test(figures_of_fio_are_those_of_the_direction_that_the_job_has),
        cmocka_unit_test(lines_that_are_no_good_jobs_are_no_figures),
        cmocka_unit_test(bonnie_tells_rates_and_longest_times),
        cmocka_unit_test(what_was_too_quick_for_bonnie_is_not_known),
        cmocka_unit_test(lines_of_others_are_not_bonnies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
