/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the API, apart from the HTTP around them. On the loop's thread. */
#ifndef HUSK_API_ROUTES_PRIVATE_H
#define HUSK_API_ROUTES_PRIVATE_H

#include <stddef.h>

#include "api/documents_private.h"

struct api_question {
    const char *method;
    const char *path;
    const char *body; /* not NUL-terminated */
    size_t body_bytes;
};

struct api_answer {
    int status;
    json_t *body;      /* NULL: none. Owned by the caller */
    const char *allow; /* 405: the methods that the path has; else NULL */
    bool stop;         /* the VM is to be stopped once the answer is out */
};

struct api_answer api_answer(const struct api_machine *machine,
                             const struct api_question *question);

#endif
