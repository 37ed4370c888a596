/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of config/ share: a configuration from words, or the error it gives. */
#ifndef HUSK_TESTS_CONFIG_PARSE_H
#define HUSK_TESTS_CONFIG_PARSE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "config/config.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* argv belongs to main(), so its words are not const; nothing writes to them. */
static inline int parse_words(struct vm_config *config, const char *const *words,
                              struct error *err)
{
    char *argv[64];
    int argc = 0;
    int result;

    config_init(config);
    for (; words[argc] != NULL; argc++)
        argv[argc] = strdup(words[argc]);
    argv[argc] = NULL;
    result = config_parse(config, argc, argv, NULL, NULL, err);
    while (argc > 0)
        free(argv[--argc]);
    return result;
}

/* The caller finishes *config. */
static inline void expect_parsed(struct vm_config *config, const char *const *words)
{
    struct error err = ERROR_NONE;

    int result = parse_words(config, words, &err);

    assert_string_equal(err.text, "");
    assert_int_equal(result, 0);
}

static inline void expect_refused(const char *const *words, const char *sentence)
{
    struct error err = ERROR_NONE;
    struct vm_config config;
    int result = parse_words(&config, words, &err);

    config_finish(&config);
    assert_string_equal(err.text, sentence);
    assert_int_equal(result, -EINVAL);
}

#endif
