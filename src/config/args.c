/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line. Reading it and carrying it out are two steps, because --config may
 * stand anywhere in it and yet counts less than every flag.
 *
 *   --flag VALUE  --flag=VALUE  -x VALUE  -vv  IMAGE  -- GUEST ARGS
 *
 * A value is not glued to a letter (-m512): with the single-dash names that users of QEMU
 * know, a mistyped "-kernal" would be -k with the value "ernal".
 */
#include "config/schema_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* What one spelling means. */
struct option {
    bool known;
    const struct config_setting *setting; /* NULL: without effect, or one of `extra` */
    const struct config_alias *alias;     /* NULL: the setting's own name */
    uint32_t extra_bit;
};

/* One command line being read. */
struct reader {
    struct config_arguments *arguments;
    char *const *argv;
    size_t argc;
    size_t next;
    const char *const *extra;
};

static bool equals(const char *name, size_t length, const char *other)
{
    return strlen(other) == length && memcmp(name, other, length) == 0;
}

static const struct config_setting *find_letter(char letter)
{
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++)
        if (row->letter != 0 && row->letter == letter)
            return row;
    return NULL;
}

static struct option find_option(const char *name, size_t length,
                                 const char *const *extra)
{
    bool long_name = length > 2 && name[0] == '-' && name[1] == '-';
    struct option option = {0};

    if (long_name)
        option.setting = config_setting_find(name + 2, length - 2);
    else if (length == 2)
        option.setting = find_letter(name[1]);
    if (option.setting != NULL) {
        option.known = true;
        return option;
    }
    for (const struct config_alias *row = config_aliases; row->spelling != NULL; row++) {
        if (!equals(name, length, row->spelling))
            continue;
        option.known = true;
        option.alias = row;
        if (row->flag != NULL)
            option.setting = config_setting_find(row->flag, strlen(row->flag));
        return option;
    }
    for (uint32_t bit = 1; extra != NULL && *extra != NULL; extra++, bit <<= 1) {
        if (!long_name || !equals(name + 2, length - 2, *extra))
            continue;
        option.known = true;
        option.extra_bit = bit;
    }
    return option;
}

/* ---- messages ---- */

/* All long spellings, for a search of the nearest; points into `names` and the tables. */
struct spellings {
    char names[CONFIG_MAX_SETTINGS][32];
    const char *list[2 * CONFIG_MAX_SETTINGS + 1];
    size_t count;
};

static void add_flag_spelling(struct spellings *spellings, size_t row, const char *flag)
{
    CHECK(row < CONFIG_MAX_SETTINGS);
    (void)snprintf(spellings->names[row], sizeof(spellings->names[row]), "--%s", flag);
    spellings->list[spellings->count++] = spellings->names[row];
}

static void collect_spellings(struct spellings *spellings, const char *const *extra)
{
    size_t row = 0;

    spellings->count = 0;
    for (size_t i = 0; config_settings[i].flag != NULL; i++)
        add_flag_spelling(spellings, row++, config_settings[i].flag);
    for (size_t i = 0; extra != NULL && extra[i] != NULL; i++)
        add_flag_spelling(spellings, row++, extra[i]);
    add_flag_spelling(spellings, row++, "help"); /* the commands know it */
    for (size_t i = 0; config_aliases[i].spelling != NULL; i++)
        spellings->list[spellings->count++] = config_aliases[i].spelling;
    spellings->list[spellings->count] = NULL;
}

static int refuse_unknown(const char *name, size_t length, const char *const *extra,
                          struct error *err)
{
    struct config_quoted quoted = config_quote(name, length);
    const struct config_setting *setting = find_letter(name[1]);
    struct spellings spellings;
    const char *nearest;

    collect_spellings(&spellings, extra);
    nearest = config_nearest(quoted.text, spellings.list);
    if (nearest != NULL)
        return error_set(err, EINVAL, "unknown option '%s'; did you mean '%s'?",
                         quoted.text, nearest);
    if (setting != NULL && setting->bare == NULL)
        return error_set(err, EINVAL, "unknown option '%s'; did you mean '-%c %s'?",
                         quoted.text, setting->letter, quoted.text + 2);
    return error_set(err, EINVAL, "unknown option '%s'; --help lists the options",
                     quoted.text);
}

/* ---- reading ---- */

static void add_argument(struct config_arguments *arguments,
                         const struct config_setting *setting, const char *spelling,
                         size_t spelling_length, const char *value)
{
    arguments->items[arguments->count++] = (struct config_argument){
        .setting = setting,
        .spelling = spelling,
        .spelling_length = spelling_length,
        .value = value,
    };
}

/* Finds the value of an option: behind '=', the next word, or what the flag alone says.
 */
static int take_value(struct reader *reader, const struct option *option,
                      const char *spelling, size_t length, const char **value,
                      struct error *err)
{
    const struct config_alias *alias = option->alias;
    bool needs_value = option->setting->bare == NULL;

    if (alias != NULL && alias->value != NULL)
        needs_value = alias->argument != NULL;
    if (*value == NULL && needs_value) {
        if (reader->next == reader->argc)
            return error_set(err, EINVAL, "%.*s needs a value: %.*s %s", (int)length,
                             spelling, (int)length, spelling,
                             alias != NULL && alias->argument != NULL
                                 ? alias->argument
                                 : option->setting->placeholder);
        *value = reader->argv[reader->next++];
    }
    if (alias == NULL || alias->value == NULL) {
        if (*value == NULL)
            *value = option->setting->bare;
        return 0;
    }
    if (*value != NULL && alias->argument == NULL)
        return error_set(err, EINVAL, "%s takes no value", alias->spelling);
    if (*value != NULL && strcmp(*value, alias->argument) != 0)
        return error_set(err, EINVAL, "%s takes only '%s' here; see --%s",
                         alias->spelling, alias->argument, alias->flag);
    *value = alias->value;
    return 0;
}

static int read_option(struct reader *reader, const char *word, struct error *err)
{
    const char *equals_sign = strchr(word, '=');
    size_t length = equals_sign != NULL ? (size_t)(equals_sign - word) : strlen(word);
    const char *value = equals_sign != NULL ? equals_sign + 1 : NULL;
    struct option option = find_option(word, length, reader->extra);
    int result;

    if (!option.known)
        return refuse_unknown(word, length, reader->extra, err);
    if (option.setting == NULL && value != NULL)
        return error_set(err, EINVAL, "%.*s takes no value", (int)length, word);
    reader->arguments->extra_seen |= option.extra_bit;
    if (option.setting == NULL)
        return 0;
    result = take_value(reader, &option, word, length, &value, err);
    if (result == 0)
        add_argument(reader->arguments, option.setting, word, length, value);
    return result;
}

/* "-vv": a letter that counts, several times. Each is one mention. */
static bool read_repeated_letter(struct reader *reader, const char *word)
{
    const struct config_setting *setting = find_letter(word[1]);
    size_t length = strlen(word);

    if (setting == NULL || setting->kind != CONFIG_COUNT)
        return false;
    for (size_t i = 2; i < length; i++)
        if (word[i] != setting->letter)
            return false;
    for (uint64_t i = 0; i < length - 1 && i < setting->maximum; i++)
        add_argument(reader->arguments, setting, word, length, setting->bare);
    return true;
}

static int read_image(struct config_arguments *arguments, const char *word,
                      struct error *err)
{
    if (arguments->image != NULL)
        return error_set(err, EINVAL,
                         "'%s' is a second image, after '%s'; arguments for the guest go "
                         "behind '--'",
                         config_quote_string(word).text,
                         config_quote_string(arguments->image).text);
    arguments->image = word;
    return 0;
}

/* IMAGE is the same setting as --kernel, so that both are one mention too many. */
static int add_image(struct config_arguments *arguments, struct error *err)
{
    static const char kernel[] = "kernel";
    const struct config_setting *setting = config_setting_find(kernel, strlen(kernel));

    if (arguments->image == NULL)
        return 0;
    for (size_t i = 0; i < arguments->count; i++)
        if (arguments->items[i].setting == setting)
            return error_set(
                err, EINVAL, "two kernels are given, '%s' with %.*s and the image '%s'",
                config_quote_string(arguments->items[i].value).text,
                (int)arguments->items[i].spelling_length, arguments->items[i].spelling,
                config_quote_string(arguments->image).text);
    add_argument(arguments, setting, "IMAGE", strlen("IMAGE"), arguments->image);
    return 0;
}

/* Room for the mentions of all words: a word is one, or as many as it has letters. */
static size_t count_mentions(size_t argc, char *const *argv)
{
    size_t count = 1; /* for IMAGE */

    for (size_t i = 0; i < argc; i++)
        count += 1 + (argv[i][0] == '-' && argv[i][1] != '-' ? strlen(argv[i]) : 0);
    return count;
}

int config_arguments_read(struct config_arguments *arguments, int argc, char *const *argv,
                          const char *const *extra, struct error *err)
{
    struct reader reader = {
        .arguments = arguments,
        .argv = argv,
        .argc = argc > 0 ? (size_t)argc : 0,
        .extra = extra,
    };
    int result = 0;

    *arguments = (struct config_arguments){0};
    arguments->items =
        calloc(count_mentions(reader.argc, argv), sizeof(*arguments->items));
    if (arguments->items == NULL)
        return error_set_errno(err, ENOMEM, "cannot read the command line");
    while (result == 0 && reader.next < reader.argc) {
        const char *word = argv[reader.next++];

        if (strcmp(word, "--") == 0) {
            arguments->guest = argv + reader.next;
            arguments->guest_count = reader.argc - reader.next;
            break;
        }
        if (word[0] != '-' || word[1] == '\0')
            result = read_image(arguments, word, err);
        else if (!read_repeated_letter(&reader, word))
            result = read_option(&reader, word, err);
    }
    return result != 0 ? result : add_image(arguments, err);
}

void config_arguments_finish(struct config_arguments *arguments)
{
    free(arguments->items);
    *arguments = (struct config_arguments){0};
}

const char *config_arguments_file(const struct config_arguments *arguments)
{
    const char *path = NULL;

    for (size_t i = 0; i < arguments->count; i++)
        if (arguments->items[i].setting->kind == CONFIG_FILE)
            path = arguments->items[i].value;
    return path;
}

/* ---- carrying out ---- */

static enum config_mention mention_of(const struct config_arguments *arguments,
                                      size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (arguments->items[i].setting == arguments->items[index].setting)
            return CONFIG_FURTHER_MENTION;
    return CONFIG_FIRST_MENTION;
}

int config_arguments_apply(struct vm_config *config,
                           const struct config_arguments *arguments, struct error *err)
{
    static const char append[] = "append";
    int result;

    for (size_t i = 0; i < arguments->count; i++) {
        const struct config_argument *item = &arguments->items[i];

        result = config_setting_apply(config, item->setting, item->value,
                                      mention_of(arguments, i), err);
        if (result != 0)
            return error_prefix(err, "%.*s", (int)item->spelling_length, item->spelling);
    }
    for (size_t i = 0; i < arguments->guest_count; i++) {
        result = config_setting_apply(config, config_setting_find(append, strlen(append)),
                                      arguments->guest[i], CONFIG_FURTHER_MENTION, err);
        if (result != 0)
            return error_prefix(err, "arguments behind '--'");
    }
    return 0;
}
