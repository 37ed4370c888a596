/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside as a JSON string; see json_text.h. */
#include "cli/json_text.h"

#include <stdlib.h>
#include <string.h>

json_t *cli_json_text(const char *text)
{
    json_t *value;
    char *copy;

    if (text == NULL)
        text = "";
    value = json_string(text);
    if (value != NULL)
        return value;
    copy = strdup(text);
    for (char *at = copy; at != NULL && *at != '\0'; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    value = copy == NULL ? NULL : json_string(copy);
    free(copy);
    return value;
}
