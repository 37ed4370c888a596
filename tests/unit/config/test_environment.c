/* SPDX-License-Identifier: Apache-2.0 */
/* HUSK_* variables. */
#include "parse.h"

#include "config/schema_private.h"

static void expect_variable_refused(const char *name, const char *value,
                                    const char *sentence)
{
    assert_int_equal(setenv(name, value, 1), 0);
    expect_refused(WORDS("k"), sentence);
    assert_int_equal(unsetenv(name), 0);
}

static void reads_a_variable_for_each_setting(void **state)
{
    struct vm_config config;

    (void)state;
    assert_int_equal(setenv("HUSK_KERNEL", "vmlinux", 1), 0);
    assert_int_equal(setenv("HUSK_MEMORY", "1G", 1), 0);
    assert_int_equal(setenv("HUSK_NO_CACHE", "1", 1), 0);
    assert_int_equal(setenv("HUSK_BOOT_TIMER", "json", 1), 0);
    assert_int_equal(setenv("HUSK_VERBOSE", "2", 1), 0);
    assert_int_equal(setenv("HUSK_INITRD", "a", 1), 0);
    assert_int_equal(setenv("HUSK_ACCEL", "", 1), 0);
    expect_parsed(&config, (const char *const[]){NULL});
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++) {
        char name[CONFIG_VARIABLE_BYTES];

        config_variable_name(row, name);
        assert_int_equal(unsetenv(name), 0);
    }
    assert_string_equal(config.kernel, "vmlinux");
    assert_int_equal(config.memory_bytes, GIB);
    assert_true(config.no_cache);
    assert_int_equal(config.boot_timer, BOOT_TIMER_JSON);
    assert_int_equal(config.verbosity, 2);
    assert_int_equal(config.initrd_count, 1);
    assert_string_equal(config.initrds[0], "a");
    assert_string_equal(config.accel, "auto");
    config_finish(&config);
}

static void flags_count_more_than_variables(void **state)
{
    struct vm_config config;

    (void)state;
    assert_int_equal(setenv("HUSK_VERBOSE", "2", 1), 0);
    assert_int_equal(setenv("HUSK_APPEND", "variable", 1), 0);
    expect_parsed(&config, WORDS("k", "-v", "-a", "flag"));
    assert_int_equal(unsetenv("HUSK_VERBOSE"), 0);
    assert_int_equal(unsetenv("HUSK_APPEND"), 0);
    assert_int_equal(config.verbosity, 1);
    assert_string_equal(config.append, "flag");
    config_finish(&config);
}

static void names_the_variable(void **state)
{
    (void)state;
    expect_variable_refused(
        "HUSK_MEMORY", "lots",
        "environment HUSK_MEMORY: 'lots' is not a size; write MiB, or "
        "a number with K, M, G or T behind it, such as 512 or 2G");
    expect_variable_refused("HUSK_NO_REBOOT", "2",
                            "environment HUSK_NO_REBOOT: '2' is neither yes nor no");
    expect_variable_refused(
        "HUSK_CPUS", "0",
        "environment HUSK_CPUS: 0 is out of range; allowed is 1 to 255");
}

static void names_the_file_of_a_variable(void **state)
{
    struct error err = ERROR_NONE;
    struct vm_config config;

    (void)state;
    assert_int_equal(setenv("HUSK_CONFIG", "/nonexistent/husk.json", 1), 0);
    assert_int_equal(parse_words(&config, WORDS("k"), &err), -ENOENT);
    assert_int_equal(unsetenv("HUSK_CONFIG"), 0);
    config_finish(&config);
    assert_string_equal(err.text,
                        "/nonexistent/husk.json: cannot open: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_variable_for_each_setting),
        cmocka_unit_test(flags_count_more_than_variables),
        cmocka_unit_test(names_the_variable),
        cmocka_unit_test(names_the_file_of_a_variable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
