/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a configuration file. What is refused is refused in words. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "config/schema_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_NONE;
    struct vm_config config;
    int result;

    config_init(&config);
    result = config_file_parse(&config, (const char *)data, size, &err);
    if (result == 0)
        result = config_validate(&config, &err);
    if (result == 0)
        free(config_cmdline(&config));
    CHECK((result == 0) == (err.text[0] == '\0'));
    config_finish(&config);
    return 0;
}
