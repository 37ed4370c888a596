/* SPDX-License-Identifier: Apache-2.0 */
/* The stage timer; see stages.h. */
#include "vm/stages.h"

#include "base/clock.h"

static const struct {
    const char *key;
    const char *meaning;
} stage_rows[STAGE_COUNT] = {
    [STAGE_CONFIG] = {"config", "configuration read"},
    [STAGE_PLAN] = {"plan", "files described, plan built"},
    [STAGE_MEMORY] = {"memory", "guest memory ready"},
    [STAGE_INIT_END] = {"init_end", "first guest instruction"},
    [STAGE_START_KERNEL] = {"start_kernel", "first console byte"},
    [STAGE_START_USER] = {"start_user", "user space, or the boot mark"},
    [STAGE_END] = {"end", "guest off"},
};

void stages_mark(struct stages *stages, enum stage stage)
{
    uint64_t unmarked = 0;

    /* Read first: the console marks its first byte on every byte. */
    if (atomic_load_explicit(&stages->at_ns[stage], memory_order_relaxed) != 0)
        return;
    (void)atomic_compare_exchange_strong(&stages->at_ns[stage], &unmarked,
                                         clock_monotonic_ns());
}

double stages_ms(const struct stages *stages, enum stage stage)
{
    uint64_t at_ns = atomic_load(&stages->at_ns[stage]);

    if (at_ns == 0)
        return -1.0;
    return (double)(at_ns - clock_start_ns()) / (double)NS_PER_MS;
}

void stages_print_table(const struct stages *stages, FILE *stream)
{
    double previous_ms = 0;

    (void)fprintf(stream, "%-14s %12s %12s  %s\n", "stage", "at ms", "took ms",
                  "reached");
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        double at_ms = stages_ms(stages, (enum stage)stage);

        if (at_ms < 0) {
            (void)fprintf(stream, "%-14s %12s %12s  %s\n", stage_rows[stage].key, "-",
                          "-", stage_rows[stage].meaning);
            continue;
        }
        (void)fprintf(stream, "%-14s %12.3f %12.3f  %s\n", stage_rows[stage].key, at_ms,
                      at_ms - previous_ms, stage_rows[stage].meaning);
        previous_ms = at_ms;
    }
}

void stages_print_json(const struct stages *stages, FILE *stream)
{
    (void)fputc('{', stream);
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        double at_ms = stages_ms(stages, (enum stage)stage);

        (void)fprintf(stream, "%s\"%s\":", stage == 0 ? "" : ",", stage_rows[stage].key);
        if (at_ms < 0)
            (void)fprintf(stream, "null");
        else
            (void)fprintf(stream, "%.3f", at_ms);
    }
    (void)fputc('}', stream);
}
