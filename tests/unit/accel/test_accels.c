/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of an accelerator, from tables made by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "accel/accels_private.h"

static int probe_works(struct error *err)
{
    (void)err;
    return 0;
}

static int probe_fast_fails(struct error *err)
{
    return error_set(err, ENOENT, "fast: no such device");
}

static int probe_slow_fails(struct error *err)
{
    return error_set(err, EACCES, "slow: not today");
}

static const struct accel_ops fast_broken = {.name = "fast", .probe = probe_fast_fails};
static const struct accel_ops slow_working = {.name = "slow", .probe = probe_works};
static const struct accel_ops slow_broken = {.name = "slow", .probe = probe_slow_fails};
static const struct accel_ops fast_working = {.name = "fast", .probe = probe_works};

/* What say_speed says; 0: it cannot be measured. */
static uint32_t fast_mips;
static uint32_t slow_mips;

static int say_speed(const struct accel_ops *accel, uint32_t *mips, struct error *err)
{
    *mips = accel == &fast_working ? fast_mips : slow_mips;
    if (*mips == 0)
        return error_set(err, EIO, "%s: broke down", accel->name);
    return 0;
}

struct choice {
    const struct accel_ops *accel;
    char reason[256];
    struct error err;
    int result;
};

static struct choice choose(const struct accel_ops *const *table, const char *name)
{
    struct choice choice = {.err = ERROR_NONE};

    choice.result = accel_choose_from(table, name, say_speed, &choice.accel,
                                      choice.reason, sizeof(choice.reason), &choice.err);
    return choice;
}

static void auto_takes_the_only_one_that_works(void **state)
{
    const struct accel_ops *const table[] = {&slow_working, NULL};
    struct choice choice = choose(table, "auto");

    (void)state;
    assert_int_equal(choice.result, 0);
    assert_ptr_equal(choice.accel, &slow_working);
    assert_string_equal(choice.reason, "slow works on this host");
}

static void auto_takes_the_fastest(void **state)
{
    const struct accel_ops *const table[] = {&fast_working, &slow_broken, &slow_working,
                                             NULL};
    struct choice choice;

    (void)state;
    fast_mips = 5000;
    slow_mips = 700;
    choice = choose(table, "auto");
    assert_ptr_equal(choice.accel, &fast_working);
    assert_string_equal(choice.reason, "fast is the fastest on this host (fast 5000 "
                                       "MIPS, slow 700 MIPS); slow: not today");
    fast_mips = 2;
    choice = choose(table, "auto");
    assert_ptr_equal(choice.accel, &slow_working);
    assert_string_equal(choice.reason, "slow is the fastest on this host (fast 2 MIPS, "
                                       "slow 700 MIPS); slow: not today");
}

static void auto_takes_the_first_of_equals(void **state)
{
    const struct accel_ops *const table[] = {&fast_working, &slow_working, NULL};
    struct choice choice;

    (void)state;
    fast_mips = slow_mips = 700;
    choice = choose(table, "auto");
    assert_ptr_equal(choice.accel, &fast_working);
}

static void auto_passes_over_what_cannot_be_measured(void **state)
{
    const struct accel_ops *const table[] = {&fast_working, &slow_working, NULL};
    struct choice choice;

    (void)state;
    fast_mips = 0;
    slow_mips = 700;
    choice = choose(table, "auto");
    assert_int_equal(choice.result, 0);
    assert_ptr_equal(choice.accel, &slow_working);
    assert_string_equal(choice.reason, "slow is the fastest on this host (fast: broke "
                                       "down, slow 700 MIPS)");
    slow_mips = 0;
    choice = choose(table, "auto");
    assert_int_equal(choice.result, 0);
    assert_ptr_equal(choice.accel, &fast_working);
}

static void auto_says_why_it_passed_one_over(void **state)
{
    const struct accel_ops *const table[] = {&fast_broken, &slow_working, NULL};
    struct choice choice = choose(table, "auto");

    (void)state;
    assert_int_equal(choice.result, 0);
    assert_ptr_equal(choice.accel, &slow_working);
    assert_string_equal(choice.reason, "slow works on this host; fast: no such device");
}

static void auto_without_any_gives_each_reason(void **state)
{
    const struct accel_ops *const table[] = {&fast_broken, &slow_broken, NULL};
    struct choice choice = choose(table, "auto");

    (void)state;
    assert_int_equal(choice.result, -ENODEV);
    assert_string_equal(
        choice.err.text,
        "no accelerator works on this host; fast: no such device; slow: not today");
}

static void a_name_is_taken_without_a_probe(void **state)
{
    const struct accel_ops *const table[] = {&fast_working, &slow_broken, NULL};
    struct choice choice = choose(table, "slow");

    (void)state;
    assert_int_equal(choice.result, 0);
    assert_ptr_equal(choice.accel, &slow_broken);
    assert_string_equal(choice.reason, "slow was asked for");
}

static void an_unknown_name_lists_the_known(void **state)
{
    const struct accel_ops *const table[] = {&fast_working, &slow_working, NULL};
    struct choice choice = choose(table, "xen");

    (void)state;
    assert_int_equal(choice.result, -EINVAL);
    assert_string_equal(choice.err.text,
                        "unknown accelerator 'xen': there are fast, slow, auto");
}

static void a_short_reason_is_cut(void **state)
{
    const struct accel_ops *const table[] = {&fast_working, NULL};
    const struct accel_ops *accel;
    struct error err = ERROR_NONE;
    char reason[8] = "xxxxxxx";

    (void)state;
    assert_int_equal(
        accel_choose_from(table, "auto", say_speed, &accel, reason, sizeof(reason), &err),
        0);
    assert_string_equal(reason, "fast wo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_takes_the_only_one_that_works),
        cmocka_unit_test(auto_takes_the_fastest),
        cmocka_unit_test(auto_takes_the_first_of_equals),
        cmocka_unit_test(auto_passes_over_what_cannot_be_measured),
        cmocka_unit_test(auto_says_why_it_passed_one_over),
        cmocka_unit_test(auto_without_any_gives_each_reason),
        cmocka_unit_test(a_name_is_taken_without_a_probe),
        cmocka_unit_test(an_unknown_name_lists_the_known),
        cmocka_unit_test(a_short_reason_is_cut),
    };

    return cmocka_run_group_tests_name("accel/accels", tests, NULL, NULL);
}
