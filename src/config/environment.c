/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from the environment: HUSK_MEMORY=1G says the same as --memory 1G. */
#include "config/schema_private.h"

#include <stdlib.h>

#include "base/check.h"

void config_variable_name(const struct config_setting *setting,
                          char name[CONFIG_VARIABLE_BYTES])
{
    int length = snprintf(name, CONFIG_VARIABLE_BYTES, "HUSK_%s", setting->flag);

    CHECK(length > 0 && length < CONFIG_VARIABLE_BYTES);
    for (size_t i = 0; name[i] != '\0'; i++) {
        if (name[i] == '-')
            name[i] = '_';
        else if (name[i] >= 'a' && name[i] <= 'z')
            name[i] = (char)(name[i] - 'a' + 'A');
    }
}

int config_environment_apply(struct vm_config *config, struct error *err)
{
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++) {
        char name[CONFIG_VARIABLE_BYTES];
        const char *text;

        config_variable_name(row, name);
        text = getenv(name);
        if (text == NULL || *text == '\0') /* empty is how a script says "not set" */
            continue;
        if (config_setting_apply(config, row, text, CONFIG_FIRST_MENTION, err) != 0)
            return error_prefix(err, "environment %s", name);
    }
    return 0;
}
