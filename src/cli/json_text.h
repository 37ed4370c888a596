/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside, such as paths, as a JSON string. */
#ifndef HUSK_CLI_JSON_TEXT_H
#define HUSK_CLI_JSON_TEXT_H

#include <jansson.h>

/* JSON is UTF-8 and paths need not be: other bytes become '?'. NULL is "". NULL if out of
 * memory. */
json_t *cli_json_text(const char *text);

#endif
