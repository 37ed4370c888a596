/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of a disk: FILE[,OPTION]..., taken apart.
 *
 * A comma in a name is written twice. Besides husk's own options there are those of
 * QEMU's -drive, as far as they mean something here.
 */
#include "config/schema_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* Queues that a virtio device of husk can have; the virtio layer has the same number. */
#define MAX_QUEUES 16

static const char *const engines[] = {"auto", "sync", "threads", "mmap", "uring", NULL};

static const char *const policies[] = {
    [CONFIG_DISK_REPORT] = "report",
    [CONFIG_DISK_STOP] = "stop",
    [CONFIG_DISK_STOP_IF_FULL] = "enospc-stop",
    [CONFIG_DISK_STOP_IF_FULL + 1] = NULL,
};

const char *config_disk_policy_name(enum config_disk_policy policy)
{
    return policies[policy];
}

/* ---- values of options ---- */

static int refuse_value(const char *option, const char *value, const char *const *choices,
                        struct error *err)
{
    char list[128];

    config_join_choices(choices, list, sizeof(list));
    return error_set(err, EINVAL, "%s '%s' is unknown; choose %s", option,
                     config_quote_string(value).text, list);
}

static int set_path(struct config_disk *disk, const char *value, struct error *err)
{
    if (disk->path[0] != '\0')
        return error_set(err, EINVAL, "has two files, '%s' and '%s'",
                         config_quote_string(disk->path).text,
                         config_quote_string(value).text);
    if (value[0] == '\0')
        return error_set(err, EINVAL, "the file name is empty");
    if (strlen(value) >= sizeof(disk->path))
        return error_set(err, EINVAL, "the file name is too long");
    (void)strcpy(disk->path, value); /* NOLINT: measured above */
    return 0;
}

static int set_engine(struct config_disk *disk, const char *value, struct error *err)
{
    for (size_t i = 0; engines[i] != NULL; i++)
        if (strcmp(engines[i], value) == 0) {
            disk->engine = engines[i];
            return 0;
        }
    return refuse_value("engine", value, engines, err);
}

static int set_format(struct config_disk *disk, const char *value, struct error *err)
{
    (void)disk;
    if (strcmp(value, "raw") == 0)
        return 0;
    return error_set(err, EINVAL,
                     "format '%s' is not supported, only raw is; make a raw disk of it "
                     "first, as with 'qemu-img convert -O raw'",
                     config_quote_string(value).text);
}

static int set_policy(enum config_disk_policy *policy, const char *option,
                      const char *value, const char *const *words, struct error *err)
{
    for (size_t i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], value) == 0) {
            *policy = (enum config_disk_policy)i;
            return 0;
        }
    return refuse_value(option, value, words, err);
}

static int set_write_policy(struct config_disk *disk, const char *value,
                            struct error *err)
{
    if (strcmp(value, "enospc") == 0) /* QEMU's word */
        value = policies[CONFIG_DISK_STOP_IF_FULL];
    return set_policy(&disk->on_write_error, "werror", value, policies, err);
}

/* A read needs no room. */
static int set_read_policy(struct config_disk *disk, const char *value, struct error *err)
{
    const char *const words[] = {policies[CONFIG_DISK_REPORT], policies[CONFIG_DISK_STOP],
                                 NULL};

    return set_policy(&disk->on_read_error, "rerror", value, words, err);
}

static int set_serial(struct config_disk *disk, const char *value, struct error *err)
{
    if (strlen(value) >= sizeof(disk->serial))
        return error_set(err, EINVAL, "serial '%s' is longer than %zu characters",
                         config_quote_string(value).text, sizeof(disk->serial) - 1);
    for (const char *at = value; *at != '\0'; at++)
        if (!isgraph((unsigned char)*at))
            return error_set(err, EINVAL,
                             "serial '%s' has blanks or characters outside of ASCII",
                             config_quote_string(value).text);
    (void)strcpy(disk->serial, value); /* NOLINT: measured above */
    return 0;
}

static int set_queues(struct config_disk *disk, const char *value, struct error *err)
{
    char *end;
    unsigned long count = strtoul(value, &end, 10);

    if (!isdigit((unsigned char)value[0]) || *end != '\0' || count < 1 ||
        count > MAX_QUEUES)
        return error_set(err, EINVAL, "queues '%s' is no number from 1 to %d",
                         config_quote_string(value).text, MAX_QUEUES);
    disk->queue_count = (unsigned)count;
    return 0;
}

static int set_flag(bool *flag, const char *option, const char *value, struct error *err)
{
    static const char *const words[] = {"on", "off", NULL};

    if (strcmp(value, words[0]) != 0 && strcmp(value, words[1]) != 0)
        return refuse_value(option, value, words, err);
    *flag = strcmp(value, words[0]) == 0;
    return 0;
}

static int set_read_only(struct config_disk *disk, const char *value, struct error *err)
{
    return set_flag(&disk->read_only, "ro", value, err);
}

static int set_ephemeral(struct config_disk *disk, const char *value, struct error *err)
{
    return set_flag(&disk->ephemeral, "ephemeral", value, err);
}

static int set_direct(struct config_disk *disk, const char *value, struct error *err)
{
    return set_flag(&disk->direct, "direct", value, err);
}

/* QEMU's cache modes, of which two are husk's. */
static int set_cache(struct config_disk *disk, const char *value, struct error *err)
{
    static const char *const words[] = {"writeback", "none", NULL};

    disk->direct = strcmp(value, words[1]) == 0;
    if (disk->direct || strcmp(value, words[0]) == 0)
        return 0;
    return refuse_value("cache", value, words, err);
}

static int set_aio(struct config_disk *disk, const char *value, struct error *err)
{
    static const char *const words[] = {"threads", "io_uring", NULL};

    if (strcmp(value, words[0]) != 0 && strcmp(value, words[1]) != 0)
        return refuse_value("aio", value, words, err);
    return set_engine(disk, strcmp(value, words[0]) == 0 ? "threads" : "uring", err);
}

static int set_interface(struct config_disk *disk, const char *value, struct error *err)
{
    static const char *const words[] = {"virtio", "none", NULL};

    (void)disk;
    if (strcmp(value, words[0]) == 0 || strcmp(value, words[1]) == 0)
        return 0;
    return refuse_value("if", value, words, err);
}

static int set_media(struct config_disk *disk, const char *value, struct error *err)
{
    static const char *const words[] = {"disk", NULL};

    (void)disk;
    return strcmp(value, words[0]) == 0 ? 0 : refuse_value("media", value, words, err);
}

static int set_nothing(struct config_disk *disk, const char *value, struct error *err)
{
    (void)disk;
    (void)value;
    (void)err;
    return 0;
}

/* ---- options ---- */

struct option {
    const char *name;
    bool is_flag; /* may stand alone, and then means "on" */
    int (*set)(struct config_disk *disk, const char *value, struct error *err);
};
static const struct option options[] = {
    {.name = "ro", .is_flag = true, .set = set_read_only},
    {.name = "ephemeral", .is_flag = true, .set = set_ephemeral},
    {.name = "direct", .is_flag = true, .set = set_direct},
    {.name = "engine", .set = set_engine},
    {.name = "format", .set = set_format},
    {.name = "werror", .set = set_write_policy},
    {.name = "rerror", .set = set_read_policy},
    {.name = "serial", .set = set_serial},
    {.name = "queues", .set = set_queues},
    {.name = "file", .set = set_path},
    /* of QEMU's -drive */
    {.name = "readonly", .is_flag = true, .set = set_read_only},
    {.name = "snapshot", .is_flag = true, .set = set_ephemeral},
    {.name = "cache", .set = set_cache},
    {.name = "aio", .set = set_aio},
    {.name = "if", .set = set_interface},
    {.name = "media", .set = set_media},
    {.name = "id", .set = set_nothing},
    {.name = "index", .set = set_nothing},
};

static const struct option *find_option(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        if (strlen(options[i].name) == length &&
            memcmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

static int refuse_option(const char *name, struct error *err)
{
    const char *names[ARRAY_SIZE(options) + 1] = {NULL};
    const char *nearest;

    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        names[i] = options[i].name;
    nearest = config_nearest(name, names);
    if (nearest != NULL)
        return error_set(err, EINVAL, "'%s' is no option of a disk; did you mean '%s'?",
                         config_quote_string(name).text, nearest);
    return error_set(err, EINVAL,
                     "'%s' is no option of a disk; a comma in a name is written twice",
                     config_quote_string(name).text);
}

/* One part between commas. The first one that is no option is the file. */
static int apply_part(struct config_disk *disk, char *part, bool is_first,
                      struct error *err)
{
    char *equals_sign = strchr(part, '=');
    size_t length = equals_sign != NULL ? (size_t)(equals_sign - part) : strlen(part);
    const struct option *option = find_option(part, length);

    if (is_first && (option == NULL || equals_sign == NULL))
        return set_path(disk, part, err);
    if (option == NULL) {
        part[length] = '\0';
        return refuse_option(part, err);
    }
    if (equals_sign == NULL && !option->is_flag)
        return error_set(err, EINVAL, "%s needs a value: %s=...", option->name,
                         option->name);
    return option->set(disk, equals_sign != NULL ? equals_sign + 1 : "on", err);
}

/* Takes the text up to the next single comma off *rest, in place. */
static char *next_part(char **rest)
{
    char *part = *rest;
    char *to = part;
    char *from = part;

    while (*from != '\0' && (*from != ',' || from[1] == ',')) {
        if (*from == ',')
            from++;
        *to++ = *from++;
    }
    *rest = *from == '\0' ? NULL : from + 1;
    *to = '\0';
    return part;
}

static int check_agreement(const struct config_disk *disk, struct error *err)
{
    bool maps = strcmp(disk->engine, "mmap") == 0;

    if (disk->path[0] == '\0')
        return error_set(err, EINVAL, "names no file");
    if (disk->ephemeral && strcmp(disk->engine, "auto") != 0 && !maps)
        return error_set(err, EINVAL,
                         "an ephemeral disk needs the engine mmap; leave out engine=%s",
                         disk->engine);
    if (disk->direct && (disk->ephemeral || maps))
        return error_set(err, EINVAL,
                         "direct and %s exclude each other: a map is the page cache",
                         disk->ephemeral ? "ephemeral" : "the engine mmap");
    return 0;
}

int config_disk_parse(const char *text, struct config_disk *disk, struct error *err)
{
    char *copy = strdup(text);
    char *rest = copy;
    int result = 0;

    *disk = (struct config_disk){
        .engine = engines[0],
        .on_read_error = CONFIG_DISK_REPORT,
        .on_write_error = CONFIG_DISK_STOP_IF_FULL,
    };
    if (copy == NULL)
        return error_set_errno(err, ENOMEM, "cannot keep the value");
    while (result == 0 && rest != NULL) {
        bool is_first = rest == copy;

        result = apply_part(disk, next_part(&rest), is_first, err);
    }
    free(copy);
    return result != 0 ? result : check_agreement(disk, err);
}

int config_check_disk(const char *text, struct error *err)
{
    struct config_disk disk;

    return config_disk_parse(text, &disk, err);
}
