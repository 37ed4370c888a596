/* SPDX-License-Identifier: Apache-2.0 */
/* Whether settings are well-formed each, and agree with each other. */
#include "config/schema_private.h"

#include <errno.h>
#include <regex.h>
#include <string.h>

#include "base/bytes.h"

/* A name is a folder under /run and appears in `husk list`. */
#define NAME_MAXIMUM 64
#define NAME_CHARACTERS                                                                  \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* Huge pages of x86-64 (Intel SDM volume 3, 4.3). */
#define HUGE_PAGE_BYTES (2 * MIB)

int config_check_path(const char *text, struct error *err)
{
    if (*text == '\0')
        return error_set(err, EINVAL, "the file name is empty");
    return 0;
}

int config_check_name(const char *text, struct error *err)
{
    size_t length = strlen(text);

    if (length == 0 || length > NAME_MAXIMUM || text[0] == '.' ||
        strspn(text, NAME_CHARACTERS) != length)
        return error_set(
            err, EINVAL,
            "'%s' is no name; use 1 to %d letters, digits, '-', '_' and '.', "
            "not beginning with '.'",
            config_quote_string(text).text, NAME_MAXIMUM);
    return 0;
}

int config_check_regex(const char *text, struct error *err)
{
    char reason[128];
    regex_t regex;
    int result = regcomp(&regex, text, REG_EXTENDED | REG_NOSUB);

    if (result == 0) {
        regfree(&regex);
        return 0;
    }
    (void)regerror(result, &regex, reason, sizeof(reason));
    return error_set(err, EINVAL, "'%s' is not a regular expression: %s",
                     config_quote_string(text).text, reason);
}

static int check_image(const struct vm_config *config, struct error *err)
{
    bool firmware_protocol =
        config->protocol != NULL && strcmp(config->protocol, "firmware") == 0;

    if (config->kernel == NULL && config->firmware == NULL)
        return error_set(err, EINVAL,
                         "no kernel is given; name one as in 'husk run vmlinuz', or use "
                         "--firmware");
    if (firmware_protocol && config->firmware == NULL)
        return error_set(err, EINVAL, "--protocol firmware needs --firmware");
    if (config->kernel == NULL && config->initrd_count > 0)
        return error_set(err, EINVAL, "--initrd needs a kernel, and --firmware is none");
    return 0;
}

static int check_huge_pages(const struct vm_config *config, struct error *err)
{
    if (!config->huge_pages)
        return 0;
    if (config->memory_bytes % HUGE_PAGE_BYTES != 0)
        return error_set(err, EINVAL,
                         "--huge-pages needs --memory to be a multiple of 2 MiB");
    if (strcmp(config->images, "map") == 0)
        return error_set(err, EINVAL,
                         "--huge-pages cannot hold mapped files; leave out --images map");
    return 0;
}

static int check_pmems(const struct vm_config *config, struct error *err)
{
    const unsigned both = CONFIG_PMEM_READ_ONLY | CONFIG_PMEM_EPHEMERAL;

    for (size_t i = 0; i < config->pmem_count; i++)
        if ((config->pmems[i].words & both) == both)
            return error_set(err, EINVAL,
                             "--pmem %s: ro and ephemeral exclude each other; leave one "
                             "out",
                             config_quote_string(config->pmems[i].path).text);
    return 0;
}

/* Time is counted by the one processor that husk has made itself. */
static int check_deterministic(const struct vm_config *config, struct error *err)
{
    if (!config->deterministic)
        return 0;
    if (strcmp(config->accel, "soft,tier=translator") == 0)
        return error_set(
            err, EINVAL,
            "--deterministic counts instructions, which translated code does "
            "not; leave out tier=translator");
    if (strcmp(config->accel, "auto") != 0 && strncmp(config->accel, "soft", 4) != 0)
        return error_set(err, EINVAL,
                         "--deterministic needs the software CPU; use --accel soft");
    if (config->cpu_count > 1)
        return error_set(err, EINVAL,
                         "--deterministic works with one vCPU only; use --cpus 1");
    if (config->disk_count > 0)
        return error_set(err, EINVAL,
                         "--deterministic cannot repeat when a disk answers; leave out "
                         "--disk");
    if (config->pmem_count > 0)
        return error_set(err, EINVAL,
                         "--deterministic cannot repeat when a flush is done; leave out "
                         "--pmem");
    if (strcmp(config->console, "virtio") == 0)
        return error_set(
            err, EINVAL,
            "--deterministic cannot repeat when a console of virtio answers; "
            "use --console serial");
    return 0;
}

/* The shadow must be alone with the memory that both read. */
static int check_lockstep(const struct vm_config *config, struct error *err)
{
    if (config->check_every == 0)
        return 0;
    if (strncmp(config->accel, "soft", 4) != 0 ||
        strcmp(config->accel, "soft,tier=interpreter") == 0 || config->deterministic)
        return error_set(err, EINVAL,
                         "--check compares translated code; use --accel soft, without "
                         "--deterministic");
    if (config->cpu_count > 1)
        return error_set(err, EINVAL, "--check works with one vCPU only; use --cpus 1");
    return 0;
}

int config_validate(const struct vm_config *config, struct error *err)
{
    int result = 0;

    for (const struct config_setting *row = config_settings; row->flag != NULL; row++)
        if (config_setting_check(config, row, err) != 0)
            return error_prefix(err, "--%s", row->flag);
    result = check_image(config, err);
    if (result == 0)
        result = check_huge_pages(config, err);
    if (result == 0)
        result = check_pmems(config, err);
    if (result == 0)
        result = check_deterministic(config, err);
    if (result == 0)
        result = check_lockstep(config, err);
    if (result == 0 && config->quiet && config->verbosity > 0)
        result = error_set(err, EINVAL,
                           "--quiet and --verbose exclude each other; leave one out");
    return result;
}
