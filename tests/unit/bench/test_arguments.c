/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of husk and of its peer for the same machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "bench/arguments_private.h"

static const char *const more[] = {"--images", "map", NULL};

static void assert_words(const struct bench_arguments *arguments,
                         const char *const *expected, size_t count)
{
    assert_int_equal(arguments->count, count);
    assert_null(arguments->words[count]);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(arguments->words[i], expected[i]);
}

static void husk_is_told_its_own_way(void **state)
{
    static const char *const expected[] = {
        "CACHE=none", "husk",     "run", "--accel",    "soft", "--memory",
        "64",         "--kernel", "vm",  "--initrd",   "ram",  "--cmdline",
        "quiet",      "--images", "map", "--no-reboot"};
    const struct bench_machine machine = {.program = "husk",
                                          .accel = "soft",
                                          .memory_mib = "64",
                                          .kernel = "vm",
                                          .initramfs = "ram",
                                          .cmdline = "quiet",
                                          .options = more};
    struct bench_arguments arguments = {.count = 0};

    (void)state;
    bench_arguments_append(&arguments, (const char *[]){"CACHE=none", NULL});
    bench_arguments_append_machine(&arguments, &machine);
    assert_words(&arguments, expected, ARRAY_SIZE(expected));
}

static void peer_is_told_as_qemu_and_what_is_not_there_is_left_out(void **state)
{
    static const char *const expected[] = {
        "qemu",      "-M",      "q35",     "-accel",      "tcg",
        "-m",        "64",      "-kernel", "vm",          "-display",
        "none",      "-serial", "stdio",   "-nodefaults", "-no-user-config",
        "-no-reboot"};
    const struct bench_machine machine = {.program = "qemu",
                                          .type = "q35",
                                          .accel = "tcg",
                                          .memory_mib = "64",
                                          .kernel = "vm"};
    struct bench_arguments arguments = {.count = 0};

    (void)state;
    bench_arguments_append_machine(&arguments, &machine);
    assert_words(&arguments, expected, ARRAY_SIZE(expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(husk_is_told_its_own_way),
        cmocka_unit_test(peer_is_told_as_qemu_and_what_is_not_there_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
