/* SPDX-License-Identifier: Apache-2.0 */
/* Files with words behind them: --pmem, as arguments and in the configuration file. */
#include "parse.h"

#include "config/schema_private.h"

static void words_stand_behind_commas(void **state)
{
    struct vm_config config;

    (void)state;
    expect_parsed(&config, WORDS("k", "--pmem", "a.img", "--pmem=b.img,ro", "--pmem",
                                 "c,,d,ephemeral"));
    assert_int_equal(config.pmem_count, 3);
    assert_string_equal(config.pmems[0].path, "a.img");
    assert_int_equal(config.pmems[0].words, 0);
    assert_string_equal(config.pmems[1].path, "b.img");
    assert_int_equal(config.pmems[1].words, CONFIG_PMEM_READ_ONLY);
    assert_string_equal(config.pmems[2].path, "c,d");
    assert_int_equal(config.pmems[2].words, CONFIG_PMEM_EPHEMERAL);
    config_finish(&config);
}

static void each_fault_has_its_sentence(void **state)
{
    (void)state;
    expect_refused(WORDS("k", "--pmem", ""), "--pmem: the file name is empty");
    expect_refused(WORDS("k", "--pmem", ",ro"), "--pmem: the file name is empty");
    expect_refused(
        WORDS("k", "--pmem", "a,rw"),
        "--pmem: 'rw' behind the file name is unknown; choose ro or ephemeral");
    expect_refused(WORDS("k", "--pmem", "a,ro,"),
                   "--pmem: '' behind the file name is unknown; choose ro or ephemeral");
    expect_refused(WORDS("k", "--pmem", "a,ro,ephemeral"),
                   "--pmem a: ro and ephemeral exclude each other; leave one out");
    expect_refused(
        WORDS("k", "--pmem", "a", "--deterministic"),
        "--deterministic cannot repeat when a flush is done; leave out --pmem");
}

static void there_may_be_eight(void **state)
{
    const char *words[2 * (CONFIG_MAX_PMEMS + 1) + 2] = {"k"};

    (void)state;
    for (size_t i = 0; i <= CONFIG_MAX_PMEMS; i++) {
        words[2 * i + 1] = "--pmem";
        words[2 * i + 2] = "a";
    }
    expect_refused(words, "--pmem: more than 8 are given");
}

static void file_has_a_string_or_an_array(void **state)
{
    static const char one[] = "{\"husk\": {\"pmem\": \"a,ro\"}}";
    static const char two[] = "{\"husk\": {\"pmem\": [\"a\", \"b,ephemeral\"]}}";
    struct error err = ERROR_NONE;
    struct vm_config config;

    (void)state;
    config_init(&config);
    assert_int_equal(config_file_parse(&config, one, strlen(one), &err), 0);
    assert_int_equal(config.pmem_count, 1);
    assert_int_equal(config.pmems[0].words, CONFIG_PMEM_READ_ONLY);
    assert_int_equal(config_file_parse(&config, two, strlen(two), &err), 0);
    assert_int_equal(config.pmem_count, 2);
    assert_string_equal(config.pmems[0].path, "a");
    assert_int_equal(config.pmems[0].words, 0);
    assert_string_equal(config.pmems[1].path, "b");
    assert_int_equal(config.pmems[1].words, CONFIG_PMEM_EPHEMERAL);
    config_finish(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_stand_behind_commas),
        cmocka_unit_test(each_fault_has_its_sentence),
        cmocka_unit_test(there_may_be_eight),
        cmocka_unit_test(file_has_a_string_or_an_array),
    };

    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
