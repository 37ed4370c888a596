/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a command line, one argument a line. --config is read but not followed. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "config/schema_private.h"

#define MAX_ARGUMENTS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Cuts `text` at its line ends. */
static int split_lines(char *text, char **argv)
{
    int argc = 0;
    char *rest = text;

    while (rest != NULL && argc < MAX_ARGUMENTS)
        argv[argc++] = strsep(&rest, "\n");
    return argc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const extra[] = {"json", NULL};
    struct error err = ERROR_NONE;
    struct config_arguments arguments;
    struct vm_config config;
    char *argv[MAX_ARGUMENTS];
    char *text = strndup((const char *)data, size);
    int result;

    CHECK(text != NULL);
    config_init(&config);
    result =
        config_arguments_read(&arguments, split_lines(text, argv), argv, extra, &err);
    if (result == 0)
        result = config_arguments_apply(&config, &arguments, &err);
    if (result == 0)
        result = config_validate(&config, &err);
    if (result == 0)
        free(config_cmdline(&config));
    CHECK((result == 0) == (err.text[0] == '\0'));
    config_arguments_finish(&arguments);
    config_finish(&config);
    free(text);
    return 0;
}
