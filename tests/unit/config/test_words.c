/* SPDX-License-Identifier: Apache-2.0 */
/* What other folders use of config/: sizes, and the nearest word. */
#include "parse.h"

static void reads_sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t size_bytes;
    } cases[] = {
        {"512", 512 * MIB}, {"2G", 2 * GIB},
        {"64M", 64 * MIB},  {"131072K", 128 * MIB},
        {"1T", 1024 * GIB}, {"2g", 2 * GIB},
        {"2GiB", 2 * GIB},  {"0", 0},
        {"0x10", 16 * MIB}, {"16777215T", 16777215ULL << 40},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = ERROR_NONE;
        uint64_t size_bytes = 1;

        assert_int_equal(config_parse_size(cases[i].text, &size_bytes, &err), 0);
        assert_int_equal(size_bytes, cases[i].size_bytes);
    }
}

static void refuses_what_is_no_size(void **state)
{
    static const char *const bad[] = {"",     "G",   "-1", "+1",  " 1", "1 G",
                                      "1.5G", "1GB", "0x", "1KK", "1B"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct error err = ERROR_NONE;
        char sentence[160];
        uint64_t size_bytes;

        (void)snprintf(
            sentence, sizeof(sentence),
            "'%s' is not a size; write MiB, or a number with K, M, G or T behind "
            "it, such as 512 or 2G",
            bad[i]);
        assert_int_equal(config_parse_size(bad[i], &size_bytes, &err), -EINVAL);
        assert_string_equal(err.text, sentence);
    }
}

static void refuses_sizes_beyond_64_bits(void **state)
{
    static const char *const bad[] = {"16777216T", "18446744073709551615M",
                                      "99999999999999999999K"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct error err = ERROR_NONE;
        char sentence[64];
        uint64_t size_bytes;

        (void)snprintf(sentence, sizeof(sentence), "'%s' is too large", bad[i]);
        assert_int_equal(config_parse_size(bad[i], &size_bytes, &err), -EINVAL);
        assert_string_equal(err.text, sentence);
    }
}

static void finds_the_nearest_word(void **state)
{
    static const char *const words[] = {"run",   "resume",  "plan",
                                        "pause", "inspect", NULL};

    (void)state;
    assert_string_equal(config_nearest("rnu", words), "run");       /* swapped */
    assert_string_equal(config_nearest("pln", words), "plan");      /* too few */
    assert_string_equal(config_nearest("paused", words), "pause");  /* too many */
    assert_string_equal(config_nearest("resune", words), "resume"); /* wrong */
    assert_string_equal(config_nearest("insp", words), "inspect");  /* its beginning */
    assert_null(config_nearest("boot", words));
    assert_null(config_nearest("", words));
    assert_null(config_nearest(
        "ru-and-much-more-that-is-longer-than-any-name-we-have-at-all", words));
    assert_null(config_nearest("x", (const char *const[]){NULL}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_sizes),
        cmocka_unit_test(refuses_what_is_no_size),
        cmocka_unit_test(refuses_sizes_beyond_64_bits),
        cmocka_unit_test(finds_the_nearest_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
