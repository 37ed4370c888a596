/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a struct vm_config, and the order in which its sources are read. */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "config/schema_private.h"

void config_init(struct vm_config *config)
{
    memset(config, 0, sizeof(*config));
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++) {
        struct error err = ERROR_NONE;

        if (row->default_text != NULL)
            CHECK(config_setting_apply(config, row, row->default_text,
                                       CONFIG_FIRST_MENTION, &err) == 0);
    }
}

void config_finish(struct vm_config *config)
{
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++)
        config_setting_free(config, row);
}

static int apply_sources(struct vm_config *config,
                         const struct config_arguments *arguments, struct error *err)
{
    const char *variable = getenv("HUSK_CONFIG");
    const char *path = config_arguments_file(arguments);
    int result = 0;

    if (path == NULL && variable != NULL && *variable != '\0')
        path = variable;
    if (path != NULL && config_check_path(path, err) != 0)
        return error_prefix(err, "--config");
    if (path != NULL)
        result = config_file_load(config, path, err);
    if (result == 0)
        result = config_environment_apply(config, err);
    if (result == 0)
        result = config_arguments_apply(config, arguments, err);
    if (result == 0)
        result = config_validate(config, err);
    return result;
}

int config_parse(struct vm_config *config, int argc, char **argv,
                 const char *const *extra, uint32_t *extra_seen, struct error *err)
{
    struct config_arguments arguments;
    int result = config_arguments_read(&arguments, argc, argv, extra, err);

    if (extra_seen != NULL)
        *extra_seen = arguments.extra_seen;
    if (result == 0)
        result = apply_sources(config, &arguments, err);
    config_arguments_finish(&arguments);
    return result;
}

/* "" with no console, or with words of the user's own in its place. */
static const char *default_words(const struct vm_config *config)
{
    if (config->console == NULL || config->cmdline != NULL)
        return "";
    if (strcmp(config->console, "virtio") == 0)
        return CONFIG_DEFAULT_CMDLINE_VIRTIO;
    return strcmp(config->console, "serial") == 0 ? CONFIG_DEFAULT_CMDLINE : "";
}

size_t config_cmdline_default_bytes(const struct vm_config *config)
{
    size_t bytes = strlen(default_words(config));
    bool has_more = config->append != NULL && config->append[0] != '\0';

    return bytes + (bytes != 0 && has_more ? 1 : 0); /* the blank behind it */
}

char *config_cmdline(const struct vm_config *config)
{
    const char *start = config->cmdline != NULL ? config->cmdline : default_words(config);
    const char *rest = config->append != NULL ? config->append : "";
    char *line;

    if (asprintf(&line, "%s%s%s", start, *start != '\0' && *rest != '\0' ? " " : "",
                 rest) < 0)
        return NULL;
    return line;
}
