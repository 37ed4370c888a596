/* SPDX-License-Identifier: Apache-2.0 */
/* Between `husk inspect` (inspect.c) and what it says of Multiboot headers. */
#ifndef HUSK_CLI_INSPECT_PRIVATE_H
#define HUSK_CLI_INSPECT_PRIVATE_H

#include <jansson.h>

#include "image/image.h"

/* One line: a name, and what follows in the format. */
#define INSPECT_FIELD "  %-14s "

void inspect_print_multiboot(const struct image *image);

/* null where there is no header */
json_t *inspect_json_multiboot1(const struct image *image);
json_t *inspect_json_multiboot2(const struct image *image);

#endif
