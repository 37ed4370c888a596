/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration file: JSON as Firecracker reads it, as far as husk has the thing, and
 * a section "husk" with the long flags as keys.
 *
 * A key that is not known is an error, for a misspelt setting that is silently left out
 * is worse than a start that fails. Settings that are null count as absent.
 */
#include "config/file_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"

#define OWN_SECTION "husk"
#define DRIVES_SECTION "drives"

/* What Firecracker's files may hold besides (its API specification). Left empty it says
 * nothing that husk would have to do. */
static const char *const unsupported[] = {
    "balloon",
    "cpu-config",
    "entropy",
    "memory-hotplug",
    "metrics",
    "mmds-config",
    "network-interfaces",
    "pmem",
    "vsock",
    "logger.log_path",
    "logger.module",
    "logger.show_level",
    "logger.show_log_origin",
    "machine-config.cpu_template",
    "machine-config.smt",
    "machine-config.track_dirty_pages",
    NULL,
};

/* ---- types ---- */

const char *config_json_type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",
        [JSON_STRING] = "a string",  [JSON_INTEGER] = "a whole number",
        [JSON_REAL] = "a fraction",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };

    return names[json_typeof(value)];
}

/* What a kind of setting takes, for people; strings and whole numbers as such below. */
static const char *const expectations[] = {
    [CONFIG_FLAG] = "true or false",
    [CONFIG_COUNT] = "a whole number",
    [CONFIG_NUMBER] = "a whole number",
    [CONFIG_SIZE] = "a whole number of MiB, or a string such as \"2G\"",
    [CONFIG_DURATION] = "a whole number of seconds, or a string such as \"2m\"",
    [CONFIG_CHOICE] = "a string",
    [CONFIG_ORDINAL] = "a string",
    [CONFIG_STRING] = "a string",
    [CONFIG_WORDS] = "a string",
    [CONFIG_LIST] = "a string, or an array of strings",
    [CONFIG_FILES] = "a string, or an array of strings",
    [CONFIG_FILE] = "absent", /* find_key knows no such key */
};

static bool takes_type(enum config_kind kind, const json_t *value)
{
    switch (kind) {
    case CONFIG_FLAG:
        return json_is_boolean(value);
    case CONFIG_COUNT:
    case CONFIG_NUMBER:
        return json_is_integer(value);
    case CONFIG_SIZE:
    case CONFIG_DURATION:
        return json_is_integer(value) || json_is_string(value);
    case CONFIG_CHOICE:
    case CONFIG_ORDINAL:
    case CONFIG_STRING:
    case CONFIG_WORDS:
    case CONFIG_LIST:
    case CONFIG_FILES:
        return json_is_string(value);
    case CONFIG_FILE:
        return false;
    }
    return false;
}

static int refuse_type(const char *expected, const json_t *value, struct error *err)
{
    return error_set(err, EINVAL, "must be %s, not %s", expected,
                     config_json_type_name(value));
}

/* ---- values ---- */

static int apply_scalar(struct vm_config *config, const struct config_setting *setting,
                        const json_t *value, enum config_mention mention,
                        struct error *err)
{
    char number[24];
    const char *text = number;

    if (!takes_type(setting->kind, value))
        return refuse_type(expectations[setting->kind], value, err);
    if (json_is_string(value))
        text = json_string_value(value);
    else if (json_is_boolean(value))
        text = json_is_true(value) ? "yes" : "no";
    else
        (void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
                       json_integer_value(value));
    return config_setting_apply(config, setting, text, mention, err);
}

/* Errors name the element, so that here the path goes in front. */
static int apply_list(struct vm_config *config, const struct config_setting *setting,
                      const char *path, const json_t *array, struct error *err)
{
    for (size_t index = 0; index < json_array_size(array); index++) {
        const json_t *value = json_array_get(array, index);
        enum config_mention mention =
            index == 0 ? CONFIG_FIRST_MENTION : CONFIG_FURTHER_MENTION;
        int result = json_is_string(value)
                         ? apply_scalar(config, setting, value, mention, err)
                         : refuse_type("a string", value, err);

        if (result != 0)
            return error_prefix(err, "%s[%zu]", path, index);
    }
    return 0;
}

/* A value in Firecracker's words. */
static int apply_word(struct vm_config *config, const struct config_setting *setting,
                      const json_t *value, struct error *err)
{
    const char *known[16];
    char list[160];
    size_t count = 0;

    if (!json_is_string(value))
        return refuse_type("a string", value, err);
    for (const struct config_word *row = setting->file_words; row->word != NULL; row++) {
        if (strcmp(row->word, json_string_value(value)) == 0)
            return config_setting_apply(config, setting, row->value, CONFIG_FIRST_MENTION,
                                        err);
        CHECK(count + 1 < sizeof(known) / sizeof(known[0]));
        known[count++] = row->word;
    }
    known[count] = NULL;
    config_join_choices(known, list, sizeof(list));
    return error_set(err, EINVAL, "'%s' is unknown; choose %s",
                     config_quote_string(json_string_value(value)).text, list);
}

/* ---- keys ---- */

/* What stands behind "section." in `path`; NULL if it is of another section. */
static const char *key_in_section(const char *path, const char *section)
{
    size_t length = strlen(section);

    if (path == NULL || strncmp(path, section, length) != 0 || path[length] != '.')
        return NULL;
    return path + length + 1;
}

/* The name that `setting` has in `section`; NULL if none. */
static const char *key_of(const struct config_setting *setting, const char *section)
{
    if (strcmp(section, OWN_SECTION) != 0)
        return key_in_section(setting->file_key, section);
    return setting->kind == CONFIG_FILE ? NULL : setting->flag;
}

static const struct config_setting *find_key(const char *section, const char *key)
{
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++) {
        const char *name = key_of(row, section);

        if (name != NULL && strcmp(name, key) == 0)
            return row;
    }
    return NULL;
}

static bool section_exists(const char *section)
{
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++)
        if (key_of(row, section) != NULL)
            return true;
    return false;
}

static bool is_unsupported(const char *path)
{
    for (size_t i = 0; unsupported[i] != NULL; i++)
        if (strcmp(unsupported[i], path) == 0)
            return true;
    return false;
}

static bool says_nothing(const json_t *value)
{
    return json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* A path that is neither a section nor a setting. `nearest` may be NULL. */
static int refuse_key(const char *path, const json_t *value, const char *nearest,
                      struct error *err)
{
    if (is_unsupported(path) && says_nothing(value))
        return 0;
    if (is_unsupported(path))
        return error_set(err, EINVAL, "husk does not support this; leave it out");
    if (nearest != NULL)
        return error_set(err, EINVAL, "unknown key; did you mean '%s'?", nearest);
    return error_set(err, EINVAL, "unknown key; husk.json(5) lists the keys");
}

static const char *nearest_key(const char *section, const char *key)
{
    const char *names[CONFIG_MAX_SETTINGS + 1];
    size_t count = 0;

    for (const struct config_setting *row = config_settings; row->flag != NULL; row++)
        if (key_of(row, section) != NULL && count < CONFIG_MAX_SETTINGS)
            names[count++] = key_of(row, section);
    names[count] = NULL;
    return config_nearest(key, names);
}

static const char *nearest_section(const char *section)
{
    static const char *const names[] = {
        "boot-source",  "machine-config", "serial", "logger",
        DRIVES_SECTION, OWN_SECTION,      NULL,
    };

    return config_nearest(section, names);
}

static int apply_value(struct vm_config *config, const struct config_setting *setting,
                       bool own_section, const json_t *value, struct error *err)
{
    if (json_is_null(value))
        return 0;
    if (setting->file_words != NULL && !own_section)
        return apply_word(config, setting, value, err);
    return apply_scalar(config, setting, value, CONFIG_FIRST_MENTION, err);
}

static int apply_key(struct vm_config *config, const char *section, const char *key,
                     const json_t *value, struct error *err)
{
    const struct config_setting *setting = find_key(section, key);
    bool own_section = strcmp(section, OWN_SECTION) == 0;
    char path[96]; /* only a known section comes here, so nothing of it is cut */
    int result;

    (void)snprintf(path, sizeof(path), "%.24s.%s", section,
                   config_quote_string(key).text);
    if (setting != NULL && json_is_array(value) &&
        (setting->kind == CONFIG_LIST || setting->kind == CONFIG_FILES))
        return apply_list(config, setting, path, value, err);
    if (setting == NULL)
        result = refuse_key(path, value, nearest_key(section, key), err);
    else
        result = apply_value(config, setting, own_section, value, err);
    return result != 0 ? error_prefix(err, "%s", path) : 0;
}

static int apply_section(struct vm_config *config, const char *section, json_t *object,
                         struct error *err)
{
    int result = 0;
    const char *key;
    json_t *value;

    if (!section_exists(section))
        result = refuse_key(section, object, nearest_section(section), err);
    else if (!json_is_object(object) && !json_is_null(object))
        result = refuse_type("an object", object, err);
    if (result != 0)
        return error_prefix(err, "%s", config_quote_string(section).text);
    /* What was accepted without being an object of settings has no keys to visit. */
    json_object_foreach(object, key, value)
    {
        result = apply_key(config, section, key, value, err);
        if (result != 0)
            break;
    }
    return result;
}

/* Drives add to the command line, so they come after what says its start; and husk's own
 * section last, so that its words win wherever they stand. */
static int apply_document(struct vm_config *config, json_t *document, struct error *err)
{
    json_t *own = json_object_get(document, OWN_SECTION);
    json_t *drives = json_object_get(document, DRIVES_SECTION);
    int result = 0;
    const char *section;
    json_t *object;

    json_object_foreach(document, section, object)
    {
        if (object != own && object != drives)
            result = apply_section(config, section, object, err);
        if (result != 0)
            return result;
    }
    if (drives != NULL && config_drives_apply(config, drives, err) != 0)
        return err->code;
    return own != NULL ? apply_section(config, OWN_SECTION, own, err) : 0;
}

int config_file_parse(struct vm_config *config, const char *text, size_t size_bytes,
                      struct error *err)
{
    json_error_t reason;
    json_t *document = json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES, &reason);
    int result;

    if (document == NULL)
        return error_set(err, EINVAL, "line %d, column %d: %s", reason.line,
                         reason.column, config_quote_string(reason.text).text);
    result = json_is_object(document) ? apply_document(config, document, err)
                                      : refuse_type("an object", document, err);
    json_decref(document);
    return result;
}

/* ---- bytes ---- */

/* Reads until the end, which pipes show only then. */
static int read_all(int fd, char *buffer, size_t capacity, size_t *size_bytes,
                    struct error *err)
{
    *size_bytes = 0;
    while (*size_bytes < capacity) {
        ssize_t count = read(fd, buffer + *size_bytes, capacity - *size_bytes);

        if (count == 0)
            return 0;
        if (count < 0 && errno != EINTR)
            return error_set_errno(err, errno, "cannot read");
        if (count > 0)
            *size_bytes += (size_t)count;
    }
    return error_set(err, EFBIG, "larger than 1 MiB, so hardly a configuration file");
}

static int load(struct vm_config *config, const char *path, struct error *err)
{
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    size_t size_bytes = 0;
    char *text;
    int result;

    if (fd < 0)
        return error_set_errno(err, errno, "cannot open");
    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode))
        return error_set(err, EISDIR, "is a directory, not a configuration file");
    text = malloc(CONFIG_FILE_LIMIT_BYTES);
    if (text == NULL)
        return error_set_errno(err, ENOMEM, "cannot read");
    result = read_all(fd, text, CONFIG_FILE_LIMIT_BYTES, &size_bytes, err);
    if (result == 0 && size_bytes == 0)
        result = error_set(err, EINVAL, "is empty; write {} for no settings");
    if (result == 0)
        result = config_file_parse(config, text, size_bytes, err);
    free(text);
    return result;
}

int config_file_load(struct vm_config *config, const char *path, struct error *err)
{
    if (load(config, path, err) != 0)
        return error_prefix(err, "%s", path);
    return 0;
}
