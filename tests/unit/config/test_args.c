/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: forms of options, spellings, and one exact sentence a mistake. */
#include "parse.h"

static void starts_from_the_defaults(void **state)
{
    struct vm_config config;

    (void)state;
    expect_parsed(&config, WORDS("vmlinux"));
    assert_string_equal(config.kernel, "vmlinux");
    assert_null(config.firmware);
    assert_string_equal(config.protocol, "auto");
    assert_int_equal(config.initrd_count, 0);
    assert_null(config.append);
    assert_null(config.cmdline);
    assert_int_equal(config.memory_bytes, 256 * MIB);
    assert_int_equal(config.cpu_count, 1);
    assert_string_equal(config.accel, "auto");
    assert_string_equal(config.images, "auto");
    assert_string_equal(config.console, "serial");
    assert_int_equal(config.timeout_seconds, 0);
    assert_false(config.no_reboot);
    assert_int_equal(config.boot_timer, BOOT_TIMER_OFF);
    assert_int_equal(config.debug_exit_port, 0);
    assert_false(config.test_device);
    assert_false(config.hpet);
    assert_int_equal(config.verbosity, 0);
    config_finish(&config);
}

static void takes_values_in_every_form(void **state)
{
    struct vm_config config;

    (void)state;
    expect_parsed(&config, WORDS("--memory", "2G", "--cpus=4", "-k", "vmlinux", "-a=a=b",
                                 "--append=c=d"));
    assert_int_equal(config.memory_bytes, 2 * GIB);
    assert_int_equal(config.cpu_count, 4);
    assert_string_equal(config.kernel, "vmlinux");
    assert_string_equal(config.append, "a=b c=d");
    config_finish(&config);
}

static void reads_each_setting(void **state)
{
    struct vm_config config;

    (void)state;
    expect_parsed(&config,
                  WORDS("-k", "vmlinux", "--protocol", "pvh", "--cmdline=quiet",
                        "--images", "copy", "--transfer", "port", "--no-cache", "-m",
                        "1536", "-c", "255", "--accel=kvm", "--hpet", "--ksm",
                        "--prefault", "--console", "none", "--log", "out.txt",
                        "--debug-console", "--debug-exit", "0xf4", "--test-device",
                        "--name", "web-1.a_b", "--timeout", "90", "--no-reboot",
                        "--boot-timer=json", "--boot-mark", "^login:", "--dry-run"));
    assert_string_equal(config.protocol, "pvh");
    assert_string_equal(config.cmdline, "quiet");
    assert_string_equal(config.images, "copy");
    assert_string_equal(config.transfer, "port");
    assert_true(config.no_cache);
    assert_int_equal(config.memory_bytes, 1536 * MIB);
    assert_int_equal(config.cpu_count, 255);
    assert_string_equal(config.accel, "kvm");
    assert_true(config.hpet);
    assert_true(config.ksm);
    assert_true(config.prefault);
    assert_false(config.huge_pages);
    assert_string_equal(config.console, "none");
    assert_string_equal(config.log_path, "out.txt");
    assert_true(config.debug_console);
    assert_int_equal(config.debug_exit_port, 0xf4);
    assert_true(config.test_device);
    assert_string_equal(config.name, "web-1.a_b");
    assert_int_equal(config.timeout_seconds, 90);
    assert_true(config.no_reboot);
    assert_int_equal(config.boot_timer, BOOT_TIMER_JSON);
    assert_string_equal(config.boot_mark, "^login:");
    assert_true(config.dry_run);
    config_finish(&config);
}

static void takes_the_spellings_of_other_monitors(void **state)
{
    struct vm_config config;

    (void)state;
    expect_parsed(&config, WORDS("-kernel", "bzImage", "-initrd", "a.img", "-append",
                                 "ro", "-smp", "2", "-m", "64", "-enable-kvm",
                                 "-nographic", "-serial", "stdio", "-no-reboot"));
    assert_string_equal(config.kernel, "bzImage");
    assert_string_equal(config.initrds[0], "a.img");
    assert_string_equal(config.append, "ro");
    assert_int_equal(config.cpu_count, 2);
    assert_int_equal(config.memory_bytes, 64 * MIB);
    assert_string_equal(config.accel, "kvm");
    assert_string_equal(config.console, "serial");
    assert_true(config.no_reboot);
    config_finish(&config);

    expect_parsed(&config,
                  WORDS("-bios", "rom.bin", "--mem=32", "-accel", "kvm", "-p", "a"));
    assert_string_equal(config.firmware, "rom.bin");
    assert_int_equal(config.memory_bytes, 32 * MIB);
    assert_string_equal(config.accel, "kvm");
    assert_string_equal(config.append, "a");
    config_finish(&config);

    expect_parsed(&config, WORDS("k", "--params", "a b"));
    assert_string_equal(config.append, "a b");
    config_finish(&config);
}

static void last_mention_of_a_scalar_counts(void **state)
{
    struct vm_config config;

    (void)state;
    expect_parsed(&config,
                  WORDS("k", "-m", "64", "--memory", "128", "--ksm", "--ksm=no"));
    assert_int_equal(config.memory_bytes, 128 * MIB);
    assert_false(config.ksm);
    config_finish(&config);
}

static void keeps_initrds_in_order(void **state)
{
    struct vm_config config;

    (void)state;
    expect_parsed(&config, WORDS("k", "-i", "one", "--initrd=two", "-initrd", "three"));
    assert_int_equal(config.initrd_count, 3);
    assert_string_equal(config.initrds[0], "one");
    assert_string_equal(config.initrds[1], "two");
    assert_string_equal(config.initrds[2], "three");
    config_finish(&config);
}

static void refuses_a_seventeenth_initrd(void **state)
{
    const char *words[2 * (CONFIG_MAX_INITRDS + 1) + 2] = {"k"};

    (void)state;
    for (size_t i = 0; i <= CONFIG_MAX_INITRDS; i++) {
        words[2 * i + 1] = "-i";
        words[2 * i + 2] = "a";
    }
    expect_refused(words, "-i: more than 16 are given");
}

static void joins_appended_text_and_guest_arguments(void **state)
{
    struct vm_config config;

    (void)state;
    expect_parsed(&config, WORDS("-a", "one two", "k", "--append=three", "--", "four",
                                 "--memory", "-k"));
    assert_string_equal(config.append, "one two three four --memory -k");
    assert_int_equal(config.memory_bytes, 256 * MIB);
    config_finish(&config);

    expect_parsed(&config, WORDS("k", "--"));
    assert_null(config.append);
    config_finish(&config);
}

static void takes_a_value_that_looks_like_an_option(void **state)
{
    struct vm_config config;

    (void)state;
    expect_parsed(&config, WORDS("k", "-a", "-v"));
    assert_string_equal(config.append, "-v");
    assert_int_equal(config.verbosity, 0);
    config_finish(&config);
}

static void counts_verbosity(void **state)
{
    static const struct {
        const char *words[4];
        uint64_t verbosity;
    } cases[] = {
        {{"k", "-v", NULL}, 1},          {{"k", "-vv", NULL}, 2},
        {{"k", "-v", "-v", NULL}, 2},    {{"k", "-vvvvv", NULL}, 2},
        {{"k", "--verbose=2", NULL}, 2}, {{"k", "-vv", "-v", NULL}, 2},
        {{"k", "--verbose", NULL}, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct vm_config config;

        expect_parsed(&config, cases[i].words);
        assert_int_equal(config.verbosity, cases[i].verbosity);
        config_finish(&config);
    }
}

static void boot_timer_takes_a_form_only_behind_an_equals_sign(void **state)
{
    struct vm_config config;

    (void)state;
    expect_parsed(&config, WORDS("--boot-timer", "json"));
    assert_int_equal(config.boot_timer, BOOT_TIMER_TABLE);
    assert_string_equal(config.kernel, "json");
    config_finish(&config);
    expect_parsed(&config, WORDS("k", "--boot-timer=off"));
    assert_int_equal(config.boot_timer, BOOT_TIMER_OFF);
    config_finish(&config);
    expect_refused(WORDS("k", "--boot-timer=xml"),
                   "--boot-timer: 'xml' is unknown; choose off, table or json");
}

static void reads_times(void **state)
{
    static const struct {
        const char *text;
        uint64_t seconds;
    } cases[] = {{"0", 0}, {"90", 90}, {"90s", 90}, {"2m", 120}, {"1h", 3600}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct vm_config config;

        expect_parsed(&config, WORDS("k", "--timeout", cases[i].text));
        assert_int_equal(config.timeout_seconds, cases[i].seconds);
        config_finish(&config);
    }
    expect_refused(
        WORDS("k", "--timeout", "5d"),
        "--timeout: '5d' is not a time; write seconds, or a number with s, m or "
        "h behind it, such as 90 or 2m");
    expect_refused(WORDS("k", "--timeout=9000h"),
                   "--timeout: 32400000 s is out of range; "
                   "allowed is 0 s to 31536000 s");
}

static void names_the_nearest_option(void **state)
{
    (void)state;
    expect_refused(WORDS("--memroy", "512"),
                   "unknown option '--memroy'; did you mean '--memory'?");
    expect_refused(WORDS("--cpu=2"), "unknown option '--cpu'; did you mean '--cpus'?");
    expect_refused(WORDS("--tmeout"),
                   "unknown option '--tmeout'; did you mean '--timeout'?");
    expect_refused(WORDS("-kernal", "k"),
                   "unknown option '-kernal'; did you mean '-kernel'?");
    expect_refused(WORDS("--halp"), "unknown option '--halp'; did you mean '--help'?");
    expect_refused(WORDS("-memory", "1"),
                   "unknown option '-memory'; did you mean '--memory'?");
}

static void has_no_abbreviations(void **state)
{
    (void)state;
    expect_refused(WORDS("--init", "a"),
                   "unknown option '--init'; did you mean '--initrd'?");
}

static void says_how_to_write_a_glued_value(void **state)
{
    (void)state;
    expect_refused(WORDS("-m512"), "unknown option '-m512'; did you mean '-m 512'?");
    expect_refused(
        WORDS("-ipath/to/initrd"),
        "unknown option '-ipath/to/initrd'; did you mean '-i path/to/initrd'?");
}

static void refuses_options_of_other_monitors_it_does_not_have(void **state)
{
    (void)state;
    expect_refused(WORDS("-z"), "unknown option '-z'; --help lists the options");
    expect_refused(WORDS("--tap-interface"),
                   "unknown option '--tap-interface'; --help lists the options");
}

static void says_which_value_is_missing(void **state)
{
    (void)state;
    expect_refused(WORDS("k", "--memory"), "--memory needs a value: --memory SIZE");
    expect_refused(WORDS("k", "-m"), "-m needs a value: -m SIZE");
    expect_refused(WORDS("k", "-append"), "-append needs a value: -append TEXT");
    expect_refused(WORDS("k", "-serial"), "-serial needs a value: -serial stdio");
}

static void refuses_bad_numbers(void **state)
{
    (void)state;
    expect_refused(WORDS("k", "-c", "two"),
                   "-c: 'two' is not a whole number; allowed is 1 to 255");
    expect_refused(WORDS("k", "-c", "-1"),
                   "-c: '-1' is not a whole number; allowed is 1 to 255");
    expect_refused(WORDS("k", "-c", ""),
                   "-c: '' is not a whole number; allowed is 1 to 255");
    expect_refused(WORDS("k", "-c", "2x"),
                   "-c: '2x' is not a whole number; allowed is 1 to 255");
    expect_refused(WORDS("k", "--debug-exit", "0x0xf4"),
                   "--debug-exit: '0x0xf4' is not a whole number; allowed is 0 to 65535");
    expect_refused(WORDS("k", "--cpus=99999999999999999999"),
                   "--cpus: '99999999999999999999' is too large");
}

static void names_the_range_of_a_number(void **state)
{
    (void)state;
    expect_refused(WORDS("k", "-smp", "0"),
                   "-smp: 0 is out of range; allowed is 1 to 255");
    expect_refused(WORDS("k", "--cpus=256"),
                   "--cpus: 256 is out of range; allowed is 1 to 255");
    expect_refused(WORDS("k", "--debug-exit=0x10000"),
                   "--debug-exit: 65536 is out of range; allowed is 0 to 65535");
}

static void refuses_bad_memory_sizes(void **state)
{
    (void)state;
    expect_refused(WORDS("k", "-m", "lots"),
                   "-m: 'lots' is not a size; write MiB, or a number with K, M, G or T "
                   "behind it, such as 512 or 2G");
    expect_refused(WORDS("k", "-m", "1"),
                   "-m: 1 MiB is out of range; allowed is 2 MiB to 1 TiB");
    expect_refused(WORDS("k", "-m", "0"),
                   "-m: 0 bytes is out of range; allowed is 2 MiB to 1 TiB");
    expect_refused(WORDS("k", "-m", "1025G"),
                   "-m: 1025 GiB is out of range; allowed is 2 MiB to 1 TiB");
    expect_refused(WORDS("k", "-m", "2050K"), "-m: 2050 KiB is not a multiple of 4 KiB");
}

static void lists_the_choices(void **state)
{
    (void)state;
    expect_refused(WORDS("k", "--accel", "kmv"),
                   "--accel: 'kmv' is unknown; choose auto, kvm, soft, "
                   "soft,tier=auto, soft,tier=interpreter or soft,tier=translator");
    expect_refused(WORDS("k", "--images="),
                   "--images: '' is unknown; choose auto, map or copy");
    expect_refused(WORDS("k", "-serial", "pty"),
                   "-serial takes only 'stdio' here; see --console");
}

static void refuses_bad_flags(void **state)
{
    (void)state;
    expect_refused(WORDS("k", "--ksm=maybe"), "--ksm: 'maybe' is neither yes nor no");
    expect_refused(WORDS("k", "-enable-kvm=yes"), "-enable-kvm takes no value");
    expect_refused(WORDS("k", "-nographic=yes"), "-nographic takes no value");
}

static void refuses_a_second_image(void **state)
{
    (void)state;
    expect_refused(
        WORDS("vmlinux", "quiet"),
        "'quiet' is a second image, after 'vmlinux'; arguments for the guest go "
        "behind '--'");
    expect_refused(WORDS("-kernel", "a", "b"),
                   "two kernels are given, 'a' with -kernel and the image 'b'");
}

static void shows_hostile_words_harmlessly(void **state)
{
    (void)state;
    expect_refused(WORDS("k", "-c", "a\nb\033[31m"),
                   "-c: 'a?b?[31m' is not a whole number; allowed is 1 to 255");
    expect_refused(
        WORDS("k", "--name",
              "0123456789012345678901234567890123456789"
              "0123456789012345678901234567890123456789"),
        "--name: '012345678901234567890123456789012345678901234567890123456789..."
        "' is no name; use 1 to 64 letters, digits, '-', '_' and '.', not "
        "beginning with '.'");
}

static void reports_the_flags_of_a_command(void **state)
{
    static const char *const extra[] = {"json", "all", NULL};
    char kernel[] = "k", json[] = "--json", all[] = "--all", value[] = "--json=1";
    char typo[] = "--jsn";
    struct error err = ERROR_NONE;
    struct vm_config config;
    uint32_t seen = 77;

    (void)state;
    config_init(&config);
    assert_int_equal(
        config_parse(&config, 2, (char *[]){kernel, all, NULL}, extra, &seen, &err), 0);
    assert_int_equal(seen, 2);
    assert_int_equal(
        config_parse(&config, 3, (char *[]){json, kernel, all, NULL}, extra, &seen, &err),
        0);
    assert_int_equal(seen, 3);
    assert_int_equal(
        config_parse(&config, 1, (char *[]){kernel, NULL}, extra, &seen, &err), 0);
    assert_int_equal(seen, 0);
    assert_int_equal(
        config_parse(&config, 1, (char *[]){value, NULL}, extra, &seen, &err), -EINVAL);
    assert_string_equal(err.text, "--json takes no value");
    err = ERROR_NONE;
    assert_int_equal(config_parse(&config, 1, (char *[]){typo, NULL}, extra, &seen, &err),
                     -EINVAL);
    assert_string_equal(err.text, "unknown option '--jsn'; did you mean '--json'?");
    config_finish(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_from_the_defaults),
        cmocka_unit_test(takes_values_in_every_form),
        cmocka_unit_test(reads_each_setting),
        cmocka_unit_test(takes_the_spellings_of_other_monitors),
        cmocka_unit_test(last_mention_of_a_scalar_counts),
        cmocka_unit_test(keeps_initrds_in_order),
        cmocka_unit_test(refuses_a_seventeenth_initrd),
        cmocka_unit_test(joins_appended_text_and_guest_arguments),
        cmocka_unit_test(takes_a_value_that_looks_like_an_option),
        cmocka_unit_test(counts_verbosity),
        cmocka_unit_test(boot_timer_takes_a_form_only_behind_an_equals_sign),
        cmocka_unit_test(reads_times),
        cmocka_unit_test(names_the_nearest_option),
        cmocka_unit_test(has_no_abbreviations),
        cmocka_unit_test(says_how_to_write_a_glued_value),
        cmocka_unit_test(refuses_options_of_other_monitors_it_does_not_have),
        cmocka_unit_test(says_which_value_is_missing),
        cmocka_unit_test(refuses_bad_numbers),
        cmocka_unit_test(names_the_range_of_a_number),
        cmocka_unit_test(refuses_bad_memory_sizes),
        cmocka_unit_test(lists_the_choices),
        cmocka_unit_test(refuses_bad_flags),
        cmocka_unit_test(refuses_a_second_image),
        cmocka_unit_test(shows_hostile_words_harmlessly),
        cmocka_unit_test(reports_the_flags_of_a_command),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
