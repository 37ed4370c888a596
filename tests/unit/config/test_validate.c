/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that do not go together, and the command line they make. */
#include "parse.h"

static void needs_something_to_boot(void **state)
{
    (void)state;
    expect_refused(WORDS("-m", "64"),
                   "no kernel is given; name one as in 'husk run vmlinuz', or use "
                   "--firmware");
    expect_refused(WORDS("k", "--protocol", "firmware"),
                   "--protocol firmware needs --firmware");
    expect_refused(WORDS("--firmware", "f", "-i", "a"),
                   "--initrd needs a kernel, and --firmware is none");
    expect_refused(WORDS(""), "IMAGE: the file name is empty");
}

static void huge_pages_hold_no_maps(void **state)
{
    struct vm_config config;

    (void)state;
    expect_refused(WORDS("k", "--huge-pages", "--memory", "65"),
                   "--huge-pages needs --memory to be a multiple of 2 MiB");
    expect_refused(WORDS("k", "--huge-pages", "--images=map"),
                   "--huge-pages cannot hold mapped files; leave out --images map");
    expect_parsed(&config, WORDS("k", "--huge-pages", "--memory", "64"));
    assert_true(config.huge_pages);
    config_finish(&config);
}

static void deterministic_is_one_software_cpu(void **state)
{
    struct vm_config config;

    (void)state;
    expect_refused(WORDS("k", "--deterministic", "--accel", "kvm"),
                   "--deterministic needs the software CPU; use --accel soft");
    expect_refused(WORDS("k", "--deterministic", "-c", "2"),
                   "--deterministic works with one vCPU only; use --cpus 1");
    expect_refused(WORDS("k", "--deterministic", "--console", "virtio"),
                   "--deterministic cannot repeat when a console of virtio answers; use "
                   "--console serial");
    expect_parsed(&config, WORDS("k", "--deterministic", "--accel", "soft"));
    assert_true(config.deterministic);
    config_finish(&config);
    expect_parsed(&config, WORDS("k", "--deterministic"));
    assert_string_equal(config.accel, "auto");
    config_finish(&config);
}

static void the_lockstep_checker_wants_translated_code_of_one_vcpu(void **state)
{
    static const char refusal[] =
        "--check compares translated code; use --accel soft, without --deterministic";
    struct vm_config config;

    (void)state;
    expect_refused(WORDS("k", "--check", "1"), refusal);
    expect_refused(WORDS("k", "--check", "1", "--accel", "soft,tier=interpreter"),
                   refusal);
    expect_refused(WORDS("k", "--check", "1", "--accel", "soft", "--deterministic"),
                   refusal);
    expect_refused(WORDS("k", "--check", "1", "--accel", "soft", "-c", "2"),
                   "--check works with one vCPU only; use --cpus 1");
    expect_parsed(&config, WORDS("k", "--check", "3", "--accel", "soft,tier=translator"));
    assert_int_equal(config.check_every, 3);
    config_finish(&config);
}

static void quiet_is_not_verbose(void **state)
{
    (void)state;
    expect_refused(WORDS("k", "-q", "-v"),
                   "--quiet and --verbose exclude each other; leave one out");
}

static void compiles_the_boot_mark(void **state)
{
    (void)state;
    expect_refused(
        WORDS("k", "--boot-mark", "(login"),
        "--boot-mark: '(login' is not a regular expression: Unmatched ( or \\(");
}

static void checks_names(void **state)
{
    static const char *const bad[] = {"", ".", "..", ".hidden", "a/b", "a b", "\303\244"};
    struct vm_config config;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        char sentence[160];

        (void)snprintf(
            sentence, sizeof(sentence),
            "--name: '%s' is no name; use 1 to 64 letters, digits, '-', '_' and "
            "'.', not beginning with '.'",
            bad[i]);
        expect_refused(WORDS("k", "--name", bad[i]), sentence);
    }
    expect_parsed(&config, WORDS("k", "--name", "A-z_0.9"));
    assert_string_equal(config.name, "A-z_0.9");
    config_finish(&config);
}

/* A configuration that no parser made, as an API may fill it. */
static void checks_ranges_of_a_filled_struct(void **state)
{
    struct error err = ERROR_NONE;
    struct vm_config config;

    (void)state;
    expect_parsed(&config, WORDS("k"));
    config.cpu_count = 300;
    assert_int_equal(config_validate(&config, &err), -EINVAL);
    assert_string_equal(err.text, "--cpus: 300 is out of range; allowed is 1 to 255");
    err = ERROR_NONE;
    config.cpu_count = 1;
    config.memory_bytes = 4 * MIB + 1;
    assert_int_equal(config_validate(&config, &err), -EINVAL);
    assert_string_equal(err.text, "--memory: 4194305 bytes is not a multiple of 4 KiB");
    config_finish(&config);
}

static void builds_the_command_line(void **state)
{
    static const struct {
        const char *words[8];
        const char *cmdline;
        const char *own; /* without husk's default words */
    } cases[] = {
        {{"k", NULL}, "console=ttyS0", ""},
        {{"k", "-a", "ro", NULL}, "console=ttyS0 ro", "ro"},
        {{"k", "--console", "virtio", "-a", "ro", NULL}, "console=hvc0 ro", "ro"},
        {{"k", "--console", "none", NULL}, "", ""},
        {{"k", "--console", "none", "-a", "ro", NULL}, "ro", "ro"},
        {{"k", "--cmdline", "quiet", NULL}, "quiet", "quiet"},
        {{"k", "--cmdline", "quiet", "-a", "ro", "--", "x", NULL},
         "quiet ro x",
         "quiet ro x"},
        {{"k", "--cmdline", "", NULL}, "", ""},
        {{"k", "--cmdline=", "--", "x", NULL}, "x", "x"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct vm_config config;
        char *cmdline;

        expect_parsed(&config, cases[i].words);
        cmdline = config_cmdline(&config);
        assert_non_null(cmdline);
        assert_string_equal(cmdline, cases[i].cmdline);
        assert_string_equal(cmdline + config_cmdline_default_bytes(&config),
                            cases[i].own);
        free(cmdline);
        config_finish(&config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_something_to_boot),
        cmocka_unit_test(huge_pages_hold_no_maps),
        cmocka_unit_test(deterministic_is_one_software_cpu),
        cmocka_unit_test(the_lockstep_checker_wants_translated_code_of_one_vcpu),
        cmocka_unit_test(quiet_is_not_verbose),
        cmocka_unit_test(compiles_the_boot_mark),
        cmocka_unit_test(checks_names),
        cmocka_unit_test(checks_ranges_of_a_filled_struct),
        cmocka_unit_test(builds_the_command_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
