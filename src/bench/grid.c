/* SPDX-License-Identifier: Apache-2.0 */
/* Every way with every set; see grid_private.h. */
#include "bench/grid_private.h"

static bool is_peer(const struct bench_way *way)
{
    return way->type != NULL;
}

/* How many of the ways are measured. */
static size_t count_ways(const struct bench_grid *grid,
                         const struct bench_options *options)
{
    size_t count = 0;

    while (count < grid->way_count &&
           (!is_peer(&grid->ways[count]) || options->peer != NULL))
        count++;
    return count;
}

struct bench_cell bench_grid_cell(const struct bench_grid *grid,
                                  const struct bench_options *options, size_t subject)
{
    size_t ways = count_ways(grid, options);
    size_t set = subject / ways;

    return (struct bench_cell){.set = set % grid->set_count,
                               .way = &grid->ways[subject % ways],
                               .accel = options->accels[set / grid->set_count]};
}

void bench_grid_choose(const struct bench_cell *cell, const struct bench_options *options,
                       struct bench_machine *machine)
{
    const struct bench_way *way = cell->way;

    machine->program = is_peer(way) ? options->peer : options->husk;
    machine->type = way->type;
    machine->accel = is_peer(way) ? bench_peer_accel(cell->accel) : cell->accel;
    machine->options = way->options;
}

static int add_row(const struct bench_grid *grid, struct bench_subjects *subjects,
                   size_t subject, size_t measure, struct error *err)
{
    const struct bench_options *options = subjects->options;
    const struct bench_cell cell = bench_grid_cell(grid, options, subject);
    const bool peer = is_peer(cell.way);
    const struct bench_row row = {
        .set = grid->sets[cell.set],
        .group = grid->measures[measure].name,
        .program = peer ? bench_file_name(options->peer) : "husk",
        .way = cell.way->name,
        .accel = peer ? bench_peer_accel(cell.accel) : cell.accel,
        .beside = cell.accel,
        .is_peer = peer,
        .unit = grid->measures[measure].unit};

    return bench_subjects_add(subjects, subject, measure, &row, err);
}

int bench_grid_init(const struct bench_grid *grid, const struct bench_options *options,
                    struct bench_report *report, struct bench_subjects *subjects,
                    struct error *err)
{
    size_t ways = count_ways(grid, options);
    size_t count = options->accel_count * grid->set_count * ways;

    if (bench_subjects_init(subjects, options, report, count, grid->measure_count, err) <
        0)
        return err->code;
    for (size_t first = 0; first < count; first += ways)
        for (size_t measure = 0; measure < grid->measure_count; measure++)
            for (size_t i = 0; i < ways; i++)
                if (add_row(grid, subjects, first + i, measure, err) < 0)
                    return err->code;
    return 0;
}
