/* SPDX-License-Identifier: Apache-2.0 */
/* The stage timer: what is noted, and how it is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "vm/stages.h"

static void notes_the_first_mark_only(void **state)
{
    struct stages stages = {0};
    uint64_t first_ns;

    (void)state;
    stages_mark(&stages, STAGE_PLAN);
    first_ns = stages.at_ns[STAGE_PLAN];
    assert_true(first_ns > 0);
    while (clock_monotonic_ns() == first_ns)
        continue;
    stages_mark(&stages, STAGE_PLAN);
    assert_true(stages.at_ns[STAGE_PLAN] == first_ns);
    assert_true(stages.at_ns[STAGE_MEMORY] == 0);
}

static char *printed(const struct stages *stages,
                     void (*print)(const struct stages *stages, FILE *stream))
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    print(stages, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void json_has_every_stage_and_null_for_those_not_reached(void **state)
{
    struct stages stages = {0};
    char *text;

    (void)state;
    stages.at_ns[STAGE_CONFIG] = clock_start_ns() + 1500000;
    stages.at_ns[STAGE_INIT_END] = clock_start_ns() + 2 * NS_PER_MS + 1000;
    text = printed(&stages, stages_print_json);
    assert_string_equal(text, "{\"config\":1.500,\"plan\":null,"
                              "\"memory\":null,\"init_end\":2.001,\"start_kernel\":null,"
                              "\"start_user\":null,\"end\":null}");
    free(text);
}

static void table_shows_time_since_the_last_stage_reached(void **state)
{
    struct stages stages = {0};
    char *text;

    (void)state;
    stages.at_ns[STAGE_CONFIG] = clock_start_ns() + 1 * NS_PER_MS;
    stages.at_ns[STAGE_INIT_END] = clock_start_ns() + 3 * NS_PER_MS;
    text = printed(&stages, stages_print_table);
    assert_non_null(
        strstr(text, "\ninit_end              3.000        2.000  first guest"));
    assert_non_null(strstr(text, "\nmemory                    -            -  guest"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_the_first_mark_only),
        cmocka_unit_test(json_has_every_stage_and_null_for_those_not_reached),
        cmocka_unit_test(table_shows_time_since_the_last_stage_reached),
    };

    clock_mark_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
