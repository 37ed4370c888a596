/* SPDX-License-Identifier: Apache-2.0 */
/* The client's parser against canned answers: whole, in pieces, cut, too big, wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/client_private.h"
#include "base/bytes.h"

#define CUT "closed the connection before its answer ended"
#define WRONG "gives an answer that is not HTTP/1.1"
#define TOO_BIG "gives an answer of more than 1048576 bytes"

static void assert_body(const char *bytes, size_t size, bool ended, int status,
                        const char *body)
{
    struct response response = {.status = 0};
    struct error err = ERROR_NONE;

    assert_int_equal(response_parse(bytes, size, ended, &response, &err), 1);
    assert_int_equal(response.status, status);
    assert_int_equal(response.body_bytes, strlen(body));
    assert_memory_equal(response.body, body, strlen(body));
}

static void assert_refused(const char *bytes, size_t size, bool ended, int code,
                           const char *text)
{
    struct response response;
    struct error err = ERROR_NONE;

    assert_int_equal(response_parse(bytes, size, ended, &response, &err), code);
    assert_string_equal(err.text, text);
}

static const char with_length[] = "HTTP/1.1 200 OK\r\n"
                                  "Content-Type: application/json\r\n"
                                  "content-length:  3 \r\n"
                                  "\r\n"
                                  "{}\n";

static void takes_a_body_of_the_stated_length(void **state)
{
    (void)state;
    assert_body(with_length, sizeof(with_length) - 1, false, 200, "{}\n");
}

static void leaves_what_follows_the_body(void **state)
{
    static const char longer[] = "HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\n{}junk";

    (void)state;
    assert_body(longer, sizeof(longer) - 1, false, 400, "{}");
}

static void every_piece_of_an_answer_needs_more(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof(with_length) - 1; size++) {
        struct response response;
        struct error err = ERROR_NONE;
        char *piece = malloc(size + 1); /* of its own, so that overreads are seen */

        assert_non_null(piece);
        memcpy(piece, with_length, size);
        assert_int_equal(response_parse(piece, size, false, &response, &err), 0);
        assert_int_equal(err.code, 0);
        assert_refused(piece, size, true, -EPROTO, CUT);
        free(piece);
    }
}

static void without_a_length_the_end_of_the_connection_ends_the_body(void **state)
{
    static const char open_ended[] = "HTTP/1.0 200 OK\r\nServer: x\r\n\r\nall of it";
    struct response response;
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(
        response_parse(open_ended, sizeof(open_ended) - 1, false, &response, &err), 0);
    assert_body(open_ended, sizeof(open_ended) - 1, true, 200, "all of it");
}

static void an_answer_without_content_has_no_body(void **state)
{
    static const char no_content[] = "HTTP/1.1 204 No Content\r\n\r\n";
    static const char with_lie[] = "HTTP/1.1 204\r\nContent-Length: 9\r\n\r\n";

    (void)state;
    assert_body(no_content, sizeof(no_content) - 1, false, 204, "");
    assert_body(with_lie, sizeof(with_lie) - 1, false, 204, "");
}

static void refuses_what_is_not_http(void **state)
{
    static const char *const wrong[] = {
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.x 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "HTTP/1.1\r\n\r\n",
        "\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0x10\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_refused(wrong[i], strlen(wrong[i]), false, -EPROTO, WRONG);
}

static void a_length_said_twice_alike_counts_once(void **state)
{
    static const char twice[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}";

    (void)state;
    assert_body(twice, sizeof(twice) - 1, false, 200, "{}");
}

static void refuses_a_length_beyond_the_limit(void **state)
{
    static const char *const lengths[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
        assert_refused(lengths[i], strlen(lengths[i]), false, -EMSGSIZE, TOO_BIG);
}

static void refuses_headers_and_bodies_without_end(void **state)
{
    static const char head[] = "HTTP/1.1 200 OK\r\n\r\n";
    char *endless = malloc(RESPONSE_LIMIT_BYTES + 1);

    (void)state;
    assert_non_null(endless);
    memset(endless, 'x', RESPONSE_LIMIT_BYTES + 1);
    assert_refused(endless, RESPONSE_LIMIT_BYTES, false, -EMSGSIZE, TOO_BIG);
    memcpy(endless, head, sizeof(head) - 1);
    assert_refused(endless, RESPONSE_LIMIT_BYTES + 1, false, -EMSGSIZE, TOO_BIG);
    free(endless);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_a_body_of_the_stated_length),
        cmocka_unit_test(leaves_what_follows_the_body),
        cmocka_unit_test(every_piece_of_an_answer_needs_more),
        cmocka_unit_test(without_a_length_the_end_of_the_connection_ends_the_body),
        cmocka_unit_test(an_answer_without_content_has_no_body),
        cmocka_unit_test(refuses_what_is_not_http),
        cmocka_unit_test(a_length_said_twice_alike_counts_once),
        cmocka_unit_test(refuses_a_length_beyond_the_limit),
        cmocka_unit_test(refuses_headers_and_bodies_without_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
