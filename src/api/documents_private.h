/* SPDX-License-Identifier: Apache-2.0 */
/* What the API says about a VM, as JSON. On the loop's thread. */
#ifndef HUSK_API_DOCUMENTS_PRIVATE_H
#define HUSK_API_DOCUMENTS_PRIVATE_H

#include <jansson.h>

#include "api/api.h"

/* A running VM as the API sees it; all borrowed. */
struct api_machine {
    struct vm *vm;
    const struct vm_config *config;
    const struct instance *instance;
};

/* All three return a new reference, NULL if out of memory. */
json_t *document_identity(const struct api_machine *machine);   /* GET / */
json_t *document_statistics(const struct api_machine *machine); /* GET /stat */
json_t *document_info(const struct vm_config *config);          /* info.json */

/* A JSON string of any bytes: those that are no UTF-8 (paths may have some) become '?'.
 */
json_t *document_text(const char *text);

#endif
