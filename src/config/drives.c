/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks as Firecracker's configuration files have them: an array of objects, each of
 * which says the same as one --disk. (Its API specification: Drive.)
 */
#include "config/file_private.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"

/* Of a drive_id, which may be longer than a serial. */
#define SERIAL_CHARACTERS 20

/* Longer than any --disk that says something. */
#define TEXT_BYTES 16384

struct drive {
    const char *path;
    const char *id;
    const char *partuuid;
    const char *engine; /* in husk's words */
    bool is_root;
    bool is_read_only;
};

/* ---- values ---- */

static int take_string(const json_t *value, const char **text, struct error *err)
{
    if (!json_is_string(value))
        return error_set(err, EINVAL, "must be a string, not %s",
                         config_json_type_name(value));
    *text = json_string_value(value);
    return 0;
}

static int take_flag(const json_t *value, bool *flag, struct error *err)
{
    if (!json_is_boolean(value))
        return error_set(err, EINVAL, "must be true or false, not %s",
                         config_json_type_name(value));
    *flag = json_is_true(value);
    return 0;
}

static int set_path(struct drive *drive, const json_t *value, struct error *err)
{
    return take_string(value, &drive->path, err);
}

static int set_id(struct drive *drive, const json_t *value, struct error *err)
{
    return take_string(value, &drive->id, err);
}

static int set_partuuid(struct drive *drive, const json_t *value, struct error *err)
{
    return take_string(value, &drive->partuuid, err);
}

static int set_root(struct drive *drive, const json_t *value, struct error *err)
{
    return take_flag(value, &drive->is_root, err);
}

static int set_read_only(struct drive *drive, const json_t *value, struct error *err)
{
    return take_flag(value, &drive->is_read_only, err);
}

/* One of two words. True in *second if it is the second. */
static int take_word(const json_t *value, const char *const words[3], bool *second,
                     struct error *err)
{
    const char *text = "";
    char list[64];

    if (take_string(value, &text, err) != 0)
        return err->code;
    *second = strcmp(text, words[1]) == 0;
    if (*second || strcmp(text, words[0]) == 0)
        return 0;
    config_join_choices(words, list, sizeof(list));
    return error_set(err, EINVAL, "'%s' is unknown; choose %s",
                     config_quote_string(text).text, list);
}

static int set_engine(struct drive *drive, const json_t *value, struct error *err)
{
    static const char *const words[] = {"Sync", "Async", NULL};
    bool is_async = false;

    if (take_word(value, words, &is_async, err) != 0)
        return err->code;
    drive->engine = is_async ? "uring" : "sync";
    return 0;
}

/* A flush of the guest reaches the disk with either. */
static int check_cache(struct drive *drive, const json_t *value, struct error *err)
{
    static const char *const words[] = {"Unsafe", "Writeback", NULL};
    bool ignored;

    (void)drive;
    return take_word(value, words, &ignored, err);
}

static int refuse(struct drive *drive, const json_t *value, struct error *err)
{
    (void)drive;
    if (json_is_object(value) && json_object_size(value) == 0)
        return 0;
    return error_set(err, EINVAL, "husk does not support this; leave it out");
}

static const struct drive_key {
    const char *name;
    int (*set)(struct drive *drive, const json_t *value, struct error *err);
} keys[] = {
    {"drive_id", set_id},         {"path_on_host", set_path},
    {"is_root_device", set_root}, {"is_read_only", set_read_only},
    {"partuuid", set_partuuid},   {"io_engine", set_engine},
    {"cache_type", check_cache},  {"rate_limiter", refuse},
    {"socket", refuse},
};
#define KEY_COUNT ARRAY_SIZE(keys)

static int refuse_key(const char *key, struct error *err)
{
    const char *names[KEY_COUNT + 1] = {NULL};
    const char *nearest;

    for (size_t i = 0; i < KEY_COUNT; i++)
        names[i] = keys[i].name;
    nearest = config_nearest(key, names);
    if (nearest != NULL)
        return error_set(err, EINVAL, "unknown key; did you mean '%s'?", nearest);
    return error_set(err, EINVAL, "unknown key; husk.json(5) lists the keys");
}

static int set_key(struct drive *drive, const char *key, const json_t *value,
                   struct error *err)
{
    if (json_is_null(value))
        return 0;
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (strcmp(keys[i].name, key) == 0)
            return keys[i].set(drive, value, err);
    return refuse_key(key, err);
}

static int read_drive(struct drive *drive, json_t *object, struct error *err)
{
    const char *key;
    json_t *value;

    *drive = (struct drive){.path = "", .id = "", .engine = "auto"};
    if (!json_is_object(object))
        return error_set(err, EINVAL, "must be an object, not %s",
                         config_json_type_name(object));
    json_object_foreach(object, key, value)
    {
        if (set_key(drive, key, value, err) != 0)
            return error_prefix(err, "%s", config_quote_string(key).text);
    }
    if (drive->path[0] == '\0')
        return error_set(err, EINVAL, "path_on_host is missing or empty");
    return 0;
}

/* ---- what --disk and --append would say ---- */

/* At most `limit` characters of `word`, commas twice. False: there is no room. */
static bool add_word(char *text, size_t size, const char *word, size_t limit)
{
    size_t used = strlen(text);

    for (size_t i = 0; i < limit && word[i] != '\0'; i++) {
        if (used + 2 >= size)
            return false;
        text[used++] = word[i];
        if (word[i] == ',')
            text[used++] = ',';
    }
    text[used] = '\0';
    return true;
}

static int apply_disk(struct vm_config *config, const struct drive *drive,
                      enum config_mention mention, struct error *err)
{
    static const char flag[] = "disk";
    char text[TEXT_BYTES];
    bool fits;

    (void)snprintf(text, sizeof(text),
                   "%sengine=%s,serial=", drive->is_read_only ? "ro=on," : "",
                   drive->engine);
    fits = add_word(text, sizeof(text), drive->id, SERIAL_CHARACTERS);
    (void)strcat(text, ",file="); /* NOLINT: of what stands before, there is a limit */
    fits = fits && add_word(text, sizeof(text), drive->path, SIZE_MAX);
    if (!fits)
        return error_set(err, EINVAL, "path_on_host is too long");
    return config_setting_apply(config, config_setting_find(flag, strlen(flag)), text,
                                mention, err);
}

/* The root device comes first, and so is the guest's first virtio disk. */
static int apply_root(struct vm_config *config, const struct drive *drive,
                      struct error *err)
{
    static const char flag[] = "append";
    char text[256];

    (void)snprintf(text, sizeof(text), "root=%s%s %s",
                   drive->partuuid != NULL ? "PARTUUID=" : "/dev/vda",
                   drive->partuuid != NULL ? drive->partuuid : "",
                   drive->is_read_only ? "ro" : "rw");
    return config_setting_apply(config, config_setting_find(flag, strlen(flag)), text,
                                CONFIG_FURTHER_MENTION, err);
}

static int apply_drive(struct vm_config *config, const struct drive *drive,
                       struct error *err)
{
    bool is_first = config->disk_count == 0;

    if (drive->is_root && !is_first)
        return error_set(err, EINVAL, "is a second root device");
    if (apply_disk(config, drive,
                   is_first ? CONFIG_FIRST_MENTION : CONFIG_FURTHER_MENTION, err) != 0)
        return err->code;
    return drive->is_root ? apply_root(config, drive, err) : 0;
}

/* Those that are the root device, or those that are not. */
static int apply_drives(struct vm_config *config, json_t *drives, bool root,
                        struct error *err)
{
    for (size_t i = 0; i < json_array_size(drives); i++) {
        struct drive drive;
        int result = read_drive(&drive, json_array_get(drives, i), err);

        if (result == 0 && drive.is_root == root)
            result = apply_drive(config, &drive, err);
        if (result != 0)
            return error_prefix(err, "drives[%zu]", i);
    }
    return 0;
}

int config_drives_apply(struct vm_config *config, json_t *drives, struct error *err)
{
    if (json_is_null(drives))
        return 0;
    if (!json_is_array(drives))
        return error_set(err, EINVAL, "drives: must be an array, not %s",
                         config_json_type_name(drives));
    if (apply_drives(config, drives, true, err) != 0)
        return err->code;
    return apply_drives(config, drives, false, err);
}
