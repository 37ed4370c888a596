/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser of HTTP/1.1 answers (RFC 9112), as far as husk's own server gives them: a status
 * line, headers, and a body that ends with Content-Length or with the connection.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "api/client_private.h"

struct header {
    bool has_length;
    size_t length;
};

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* "HTTP/1.1 200 OK"; the reason phrase may be missing. */
static int parse_status_line(const char *line, size_t size, int *status)
{
    static const char version[] = "HTTP/1.";
    const size_t digits = sizeof(version) + 1; /* behind the minor version and a blank */

    if (size < digits + 3 || memcmp(line, version, sizeof(version) - 1) != 0 ||
        !is_digit(line[sizeof(version) - 1]) || line[digits - 1] != ' ')
        return -EPROTO;
    *status = 0;
    for (size_t i = digits; i < digits + 3; i++) {
        if (!is_digit(line[i]))
            return -EPROTO;
        *status = *status * 10 + (line[i] - '0');
    }
    if (size > digits + 3 && line[digits + 3] != ' ')
        return -EPROTO;
    return *status >= 100 && *status <= 599 ? 0 : -EPROTO;
}

static int parse_length(const char *text, size_t size, struct header *header)
{
    size_t length = 0;

    if (size == 0)
        return -EPROTO;
    for (size_t i = 0; i < size; i++) {
        if (!is_digit(text[i]))
            return -EPROTO;
        if (length <= RESPONSE_LIMIT_BYTES) /* more is refused, however much it is */
            length = length * 10 + (size_t)(text[i] - '0');
    }
    if (header->has_length && header->length != length)
        return -EPROTO;
    *header = (struct header){.has_length = true, .length = length};
    return 0;
}

static bool name_is(const char *line, size_t name_bytes, const char *name)
{
    return name_bytes == strlen(name) && strncasecmp(line, name, name_bytes) == 0;
}

static int parse_header_line(const char *line, size_t size, struct header *header)
{
    const char *colon = memchr(line, ':', size);
    const char *value;
    size_t value_bytes;

    if (colon == NULL || colon == line)
        return -EPROTO;
    value = colon + 1;
    value_bytes = size - (size_t)(value - line);
    while (value_bytes > 0 && (value[0] == ' ' || value[0] == '\t')) {
        value++;
        value_bytes--;
    }
    while (value_bytes > 0 &&
           (value[value_bytes - 1] == ' ' || value[value_bytes - 1] == '\t'))
        value_bytes--;
    if (name_is(line, (size_t)(colon - line), "Content-Length"))
        return parse_length(value, value_bytes, header);
    /* Never sent to a client that did not ask for it with "TE". */
    if (name_is(line, (size_t)(colon - line), "Transfer-Encoding"))
        return -EPROTO;
    return 0;
}

/* Parses the lines in [bytes, bytes + size), each ended by CR LF. */
static int parse_head(const char *bytes, size_t size, struct response *response,
                      struct header *header)
{
    bool first = true;
    const char *end;

    while ((end = memmem(bytes, size, "\r\n", 2)) != NULL) {
        size_t line_bytes = (size_t)(end - bytes);
        int status = first ? parse_status_line(bytes, line_bytes, &response->status)
                           : parse_header_line(bytes, line_bytes, header);

        if (status < 0)
            return status;
        first = false;
        bytes += line_bytes + 2;
        size -= line_bytes + 2;
    }
    return 0;
}

/* RFC 9112, 6.3: these never have a body, whatever their headers say. */
static bool is_bodyless(int status)
{
    return status < 200 || status == 204 || status == 304;
}

int response_parse(const char *bytes, size_t size, bool ended, struct response *response,
                   struct error *err)
{
    const char *end = memmem(bytes, size, "\r\n\r\n", 4);
    struct header header = {.has_length = false};
    size_t head_bytes;

    if (end == NULL && ended)
        return error_set(err, -EPROTO, "closed the connection before its answer ended");
    if (end == NULL && size >= RESPONSE_LIMIT_BYTES)
        return error_set(err, -EMSGSIZE, "gives an answer of more than %zu bytes",
                         RESPONSE_LIMIT_BYTES);
    if (end == NULL)
        return 0;
    head_bytes = (size_t)(end - bytes) + 4;
    if (parse_head(bytes, head_bytes - 2, response, &header) < 0)
        return error_set(err, -EPROTO, "gives an answer that is not HTTP/1.1");
    if (is_bodyless(response->status))
        header = (struct header){.has_length = true, .length = 0};
    response->body = bytes + head_bytes;
    response->body_bytes = size - head_bytes;
    if (size > RESPONSE_LIMIT_BYTES ||
        (header.has_length && header.length > RESPONSE_LIMIT_BYTES - head_bytes))
        return error_set(err, -EMSGSIZE, "gives an answer of more than %zu bytes",
                         RESPONSE_LIMIT_BYTES);
    if (!header.has_length)
        return ended ? 1 : 0;
    if (response->body_bytes >= header.length) {
        response->body_bytes = header.length;
        return 1;
    }
    if (ended)
        return error_set(err, -EPROTO, "closed the connection before its answer ended");
    return 0;
}
