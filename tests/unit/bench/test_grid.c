/* SPDX-License-Identifier: Apache-2.0 */
/* Benches of every way with every set: the rows' order, and what each subject is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "bench/grid_private.h"

static const char *const sets[] = {"small", "large"};
static const char *const options_of_one[] = {"--images", "map", NULL};
static const struct bench_way ways[] = {
    {"map", NULL, options_of_one},
    {"q35", "pc-q35", NULL},
};
static const struct bench_measure measures[] = {{"time", "ms"}, {"memory", "MiB"}};

static const struct bench_grid grid = {
    .sets = sets,
    .set_count = ARRAY_SIZE(sets),
    .ways = ways,
    .way_count = ARRAY_SIZE(ways),
    .measures = measures,
    .measure_count = ARRAY_SIZE(measures),
};

static const struct bench_options with_peer = {
    .husk = "/bin/husk",
    .peer = "/usr/bin/qemu",
    .accels = {"soft", "kvm"},
    .accel_count = 2,
};

static void make(const struct bench_options *options, struct bench_report *report,
                 struct bench_subjects *subjects)
{
    struct error err = ERROR_NONE;

    *report = (struct bench_report){.runs = 1};
    assert_int_equal(bench_grid_init(&grid, options, report, subjects, &err), 0);
}

static void rows_of_one_measure_of_one_set_come_together(void **state)
{
    static const char *const expected[][4] = {
        {"small", "time", "husk", "ms"},    {"small", "time", "qemu", "ms"},
        {"small", "memory", "husk", "MiB"}, {"small", "memory", "qemu", "MiB"},
        {"large", "time", "husk", "ms"},    {"large", "time", "qemu", "ms"},
        {"large", "memory", "husk", "MiB"}, {"large", "memory", "qemu", "MiB"},
    };
    struct bench_report report;
    struct bench_subjects subjects;

    (void)state;
    make(&with_peer, &report, &subjects);
    assert_int_equal(report.row_count, 2 * ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        assert_string_equal(report.rows[i].set, expected[i][0]);
        assert_string_equal(report.rows[i].group, expected[i][1]);
        assert_string_equal(report.rows[i].program, expected[i][2]);
        assert_string_equal(report.rows[i].unit, expected[i][3]);
        assert_string_equal(report.rows[i].accel, i % 2 == 0 ? "soft" : "tcg");
        assert_string_equal(report.rows[i].beside, "soft");
    }
    assert_string_equal(report.rows[ARRAY_SIZE(expected) + 1].accel, "kvm");
    bench_subjects_finish(&subjects);
    bench_report_finish(&report);
}

static void without_a_peer_its_ways_are_left_out(void **state)
{
    struct bench_options options = with_peer;
    struct bench_report report;
    struct bench_subjects subjects;

    (void)state;
    options.peer = NULL;
    make(&options, &report, &subjects);
    assert_int_equal(report.row_count, 8);
    for (size_t i = 0; i < report.row_count; i++)
        assert_false(report.rows[i].is_peer);
    assert_int_equal(bench_grid_cell(&grid, &options, 3).set, 1);
    assert_string_equal(bench_grid_cell(&grid, &options, 3).accel, "kvm");
    bench_subjects_finish(&subjects);
    bench_report_finish(&report);
}

static void machine_is_the_ways_program(void **state)
{
    struct bench_machine machine = {.memory_mib = "16"};
    struct bench_cell cell = bench_grid_cell(&grid, &with_peer, 2);

    (void)state;
    assert_int_equal(cell.set, 1);
    bench_grid_choose(&cell, &with_peer, &machine);
    assert_string_equal(machine.program, "/bin/husk");
    assert_null(machine.type);
    assert_string_equal(machine.accel, "soft");
    assert_ptr_equal(machine.options, options_of_one);
    cell = bench_grid_cell(&grid, &with_peer, 3);
    bench_grid_choose(&cell, &with_peer, &machine);
    assert_string_equal(machine.program, "/usr/bin/qemu");
    assert_string_equal(machine.type, "pc-q35");
    assert_string_equal(machine.accel, "tcg");
    assert_string_equal(machine.memory_mib, "16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_one_measure_of_one_set_come_together),
        cmocka_unit_test(without_a_peer_its_ways_are_left_out),
        cmocka_unit_test(machine_is_the_ways_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
