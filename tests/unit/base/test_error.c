/* SPDX-License-Identifier: Apache-2.0 */
/* Error sentences: first setter, prefixes, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/error.h"

static void keeps_the_first_sentence(void **state)
{
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(error_set(&err, ENOENT, "first %d", 1), -ENOENT);
    assert_int_equal(error_set(&err, EPERM, "second"), -ENOENT);
    assert_int_equal(error_set_errno(&err, EPERM, "third"), -ENOENT);
    assert_int_equal(err.code, -ENOENT);
    assert_string_equal(err.text, "first 1");
}

static void takes_errno_of_either_sign(void **state)
{
    struct error positive = ERROR_NONE;
    struct error negative = ERROR_NONE;

    (void)state;
    assert_int_equal(error_set_errno(&positive, EACCES, "cannot open"), -EACCES);
    assert_int_equal(error_set_errno(&negative, -EACCES, "cannot open"), -EACCES);
    assert_string_equal(positive.text, "cannot open: Permission denied");
    assert_string_equal(negative.text, "cannot open: Permission denied");
}

static void is_an_error_even_without_a_code(void **state)
{
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(error_set(&err, 0, "no code"), -EIO);
    assert_int_equal(err.code, -EIO);
}

static void callers_put_what_they_know_in_front(void **state)
{
    struct error err = ERROR_NONE;

    (void)state;
    (void)error_set(&err, -EACCES, "cannot open");
    assert_int_equal(error_prefix(&err, "disk %s", "a.img"), -EACCES);
    assert_int_equal(error_prefix(&err, "guest"), -EACCES);
    assert_string_equal(err.text, "guest: disk a.img: cannot open");
}

static void prefix_may_quote_the_sentence_itself(void **state)
{
    struct error err = ERROR_NONE;

    (void)state;
    (void)error_set(&err, -EIO, "inner");
    (void)error_prefix(&err, "about '%s'", err.text);
    assert_string_equal(err.text, "about 'inner': inner");
}

static void cuts_what_is_too_long(void **state)
{
    struct error err = ERROR_NONE;
    char tail[ERROR_TEXT_BYTES + 100];

    (void)state;
    memset(tail, 'x', sizeof(tail) - 1);
    tail[sizeof(tail) - 1] = '\0';
    (void)error_set_errno(&err, EIO, "%s", tail);
    assert_int_equal(strlen(err.text), ERROR_TEXT_BYTES - 1);
    (void)error_prefix(&err, "front");
    assert_int_equal(strlen(err.text), ERROR_TEXT_BYTES - 1);
    assert_memory_equal(err.text, "front: xxx", 10);
    (void)error_prefix(&err, "%s", tail);
    assert_int_equal(strlen(err.text), ERROR_TEXT_BYTES - 1);
    assert_int_equal(err.text[0], 'x');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_first_sentence),
        cmocka_unit_test(takes_errno_of_either_sign),
        cmocka_unit_test(is_an_error_even_without_a_code),
        cmocka_unit_test(callers_put_what_they_know_in_front),
        cmocka_unit_test(prefix_may_quote_the_sentence_itself),
        cmocka_unit_test(cuts_what_is_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
