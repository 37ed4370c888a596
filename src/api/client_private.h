/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/1.1 answers the client understands; apart from it for the tests. */
#ifndef HUSK_API_CLIENT_PRIVATE_H
#define HUSK_API_CLIENT_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* More than this, header and body together, is no answer of husk's. */
#define RESPONSE_LIMIT_BYTES ((size_t)1 << 20)

struct response {
    int status;       /* 100 to 599 */
    const char *body; /* into the parsed bytes */
    size_t body_bytes;
};

/* Parses what has come so far; `ended` if there will be no more. 1: complete. 0: more is
 * needed. Negative: it never will be an answer. */
int response_parse(const char *bytes, size_t size, bool ended, struct response *response,
                   struct error *err) MUST_CHECK;

#endif
