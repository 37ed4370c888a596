/* SPDX-License-Identifier: Apache-2.0 */
/* What those share who read the configuration file's JSON. */
#ifndef HUSK_CONFIG_FILE_PRIVATE_H
#define HUSK_CONFIG_FILE_PRIVATE_H

#include <jansson.h>

#include "config/schema_private.h"

/* "a string", for messages. */
const char *config_json_type_name(const json_t *value);

/* drives.c: the section of that name. Sentences begin with the place in the file. */
int config_drives_apply(struct vm_config *config, json_t *drives,
                        struct error *err) MUST_CHECK;

#endif
