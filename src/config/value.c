/* SPDX-License-Identifier: Apache-2.0 */
/* One value: from its text into the field of struct vm_config, and checked there. */
#include "config/schema_private.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/check.h"

/* What a letter behind a number multiplies it by. */
struct unit {
    const char *suffix;
    uint64_t factor;
};

static const struct unit size_units[] = {
    {"", MIB},  {"k", KIB},   {"kib", KIB},      {"m", MIB},          {"mib", MIB},
    {"g", GIB}, {"gib", GIB}, {"t", 1024 * GIB}, {"tib", 1024 * GIB}, {NULL, 0},
};
static const struct unit time_units[] = {
    {"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {NULL, 0},
};

struct config_quoted config_quote(const char *text, size_t length)
{
    static const char more[] = "...";
    struct config_quoted quoted;
    size_t room = sizeof(quoted.text) - 1;
    size_t used = length <= room ? length : room;

    memcpy(quoted.text, text, used);
    quoted.text[used] = '\0';
    if (length > room)
        memcpy(quoted.text + room - strlen(more), more, sizeof(more));
    for (size_t i = 0; i < used; i++)
        if (iscntrl((unsigned char)quoted.text[i]))
            quoted.text[i] = '?';
    return quoted;
}

struct config_quoted config_quote_string(const char *text)
{
    return config_quote(text, strlen(text));
}

void config_join_choices(const char *const *choices, char *text, size_t capacity)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; choices[i] != NULL && used < capacity; i++) {
        const char *glue = i == 0 ? "" : choices[i + 1] == NULL ? " or " : ", ";

        used += (size_t)snprintf(text + used, capacity - used, "%s%s", glue, choices[i]);
    }
}

/* ---- numbers ---- */

/* The digits at the start of `text`, decimal or, after "0x", hexadecimal. -EINVAL without
 * a digit, -ERANGE beyond 64 bits. */
static int parse_digits(const char *text, uint64_t *value, const char **rest)
{
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hexadecimal ? text + 2 : text;
    char *end;

    if (hexadecimal ? !isxdigit((unsigned char)*digits)
                    : !isdigit((unsigned char)*digits))
        return -EINVAL;
    errno = 0;
    *value = strtoull(text, &end, hexadecimal ? 16 : 10);
    *rest = end;
    return -errno;
}

static int parse_with_unit(const char *text, const struct unit *units, uint64_t *value)
{
    uint64_t number = 0;
    const char *suffix = "";
    int result = parse_digits(text, &number, &suffix);

    if (result == -EINVAL)
        return result;
    for (; units->suffix != NULL; units++) {
        if (strcasecmp(suffix, units->suffix) != 0)
            continue;
        if (result == 0 && __builtin_mul_overflow(number, units->factor, value))
            result = -ERANGE;
        return result;
    }
    return -EINVAL;
}

/* Words the outcome of a parser; `expected` completes "'x' is not ...". */
static int explain_number(int result, const char *text, const char *expected,
                          struct error *err)
{
    if (result == -ERANGE)
        return error_set(err, EINVAL, "'%s' is too large",
                         config_quote_string(text).text);
    if (result != 0)
        return error_set(err, EINVAL, "'%s' is not %s", config_quote_string(text).text,
                         expected);
    return 0;
}

int config_parse_size(const char *text, uint64_t *size_bytes, struct error *err)
{
    return explain_number(parse_with_unit(text, size_units, size_bytes), text,
                          "a size; write MiB, or a number with K, M, G or T behind it, "
                          "such as 512 or 2G",
                          err);
}

static int parse_duration(const char *text, uint64_t *seconds, struct error *err)
{
    return explain_number(parse_with_unit(text, time_units, seconds), text,
                          "a time; write seconds, or a number with s, m or h behind it, "
                          "such as 90 or 2m",
                          err);
}

static int parse_number(const char *text, const struct config_setting *setting,
                        uint64_t *value, struct error *err)
{
    char expected[80];
    const char *rest = "";
    int result = parse_digits(text, value, &rest);

    if (*rest != '\0')
        result = -EINVAL;
    (void)snprintf(expected, sizeof(expected),
                   "a whole number; allowed is %" PRIu64 " to %" PRIu64, setting->minimum,
                   setting->maximum);
    return explain_number(result, text, expected, err);
}

static void format_number(enum config_kind kind, uint64_t value, char *text,
                          size_t capacity)
{
    static const struct unit units[] = {
        {"TiB", 1024 * GIB}, {"GiB", GIB}, {"MiB", MIB}, {"KiB", KIB}, {"bytes", 1},
    };
    const struct unit *unit = units;

    if (kind != CONFIG_SIZE) {
        (void)snprintf(text, capacity, "%" PRIu64 "%s", value,
                       kind == CONFIG_DURATION ? " s" : "");
        return;
    }
    while (value % unit->factor != 0 || (value == 0 && unit->factor != 1))
        unit++;
    (void)snprintf(text, capacity, "%" PRIu64 " %s", value / unit->factor, unit->suffix);
}

static int check_number(const struct config_setting *setting, uint64_t value,
                        struct error *err)
{
    char shown[40], low[40], high[40], multiple[40];

    format_number(setting->kind, value, shown, sizeof(shown));
    format_number(setting->kind, setting->minimum, low, sizeof(low));
    format_number(setting->kind, setting->maximum, high, sizeof(high));
    format_number(setting->kind, setting->multiple_of, multiple, sizeof(multiple));
    if (value < setting->minimum || value > setting->maximum)
        return error_set(err, EINVAL, "%s is out of range; allowed is %s to %s", shown,
                         low, high);
    if (setting->multiple_of != 0 && value % setting->multiple_of != 0)
        return error_set(err, EINVAL, "%s is not a multiple of %s", shown, multiple);
    return 0;
}

/* ---- words ---- */

static int parse_flag(const char *text, bool *value, struct error *err)
{
    static const char *const yes[] = {"yes", "true", "on", "1"};
    static const char *const no[] = {"no", "false", "off", "0"};

    for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
        if (strcmp(text, yes[i]) != 0 && strcmp(text, no[i]) != 0)
            continue;
        *value = strcmp(text, yes[i]) == 0;
        return 0;
    }
    return error_set(err, EINVAL, "'%s' is neither yes nor no",
                     config_quote_string(text).text);
}

static int find_choice(const struct config_setting *setting, const char *text,
                       unsigned int *position, struct error *err)
{
    char list[160];

    for (*position = 0; setting->choices[*position] != NULL; (*position)++)
        if (strcmp(setting->choices[*position], text) == 0)
            return 0;
    config_join_choices(setting->choices, list, sizeof(list));
    return error_set(err, EINVAL, "'%s' is unknown; choose %s",
                     config_quote_string(text).text, list);
}

static int set_string(char **field, const char *text, struct error *err)
{
    char *copy = strdup(text);

    if (copy == NULL)
        return error_set_errno(err, ENOMEM, "cannot keep the value");
    free(*field);
    *field = copy;
    return 0;
}

static int add_words(char **field, const char *text, struct error *err)
{
    char *joined;

    if (*field == NULL || **field == '\0')
        return set_string(field, text, err);
    if (asprintf(&joined, "%s %s", *field, text) < 0)
        return error_set_errno(err, ENOMEM, "cannot keep the value");
    free(*field);
    *field = joined;
    return 0;
}

static void clear_list(char **strings, size_t *count)
{
    while (*count > 0) {
        (*count)--;
        free(strings[*count]);
        strings[*count] = NULL;
    }
}

static int add_to_list(char **strings, size_t *count, uint64_t maximum, const char *text,
                       struct error *err)
{
    int result;

    if (*count == maximum)
        return error_set(err, EINVAL, "more than %" PRIu64 " are given", maximum);
    result = set_string(&strings[*count], text, err);
    if (result == 0)
        (*count)++;
    return result;
}

/* ---- settings ---- */

static void *field_of(struct vm_config *config, size_t offset)
{
    return (char *)config + offset;
}

static const void *const_field_of(const struct vm_config *config, size_t offset)
{
    return (const char *)config + offset;
}

static int apply_count(const struct config_setting *setting, uint64_t *field,
                       const char *text, enum config_mention mention, struct error *err)
{
    uint64_t number = 0;
    int result = parse_number(text, setting, &number, err);

    if (result != 0)
        return result;
    *field = mention == CONFIG_FIRST_MENTION
                 ? number
                 : min_u64(*field + min_u64(number, setting->maximum), setting->maximum);
    return 0;
}

static int store(struct vm_config *config, const struct config_setting *setting,
                 const char *text, enum config_mention mention, struct error *err)
{
    void *field = field_of(config, setting->offset);
    unsigned int position = 0;

    switch (setting->kind) {
    case CONFIG_FLAG:
        return parse_flag(text, field, err);
    case CONFIG_COUNT:
        return apply_count(setting, field, text, mention, err);
    case CONFIG_NUMBER:
        return parse_number(text, setting, field, err);
    case CONFIG_SIZE:
        return config_parse_size(text, field, err);
    case CONFIG_DURATION:
        return parse_duration(text, field, err);
    case CONFIG_ORDINAL:
        if (find_choice(setting, text, &position, err) == 0)
            *(unsigned int *)field = position;
        return err->code;
    case CONFIG_WORDS:
        if (mention == CONFIG_FURTHER_MENTION)
            return add_words(field, text, err);
        return set_string(field, text, err);
    case CONFIG_CHOICE:
    case CONFIG_STRING:
        return set_string(field, text, err);
    case CONFIG_LIST:
        if (mention == CONFIG_FIRST_MENTION)
            clear_list(field, field_of(config, setting->count_offset));
        return add_to_list(field, field_of(config, setting->count_offset),
                           setting->maximum, text, err);
    case CONFIG_FILES:
        if (mention == CONFIG_FIRST_MENTION)
            config_files_clear(field, field_of(config, setting->count_offset));
        return config_files_add(field, field_of(config, setting->count_offset), setting,
                                text, err);
    case CONFIG_FILE:
        return 0;
    }
    return 0;
}

int config_setting_apply(struct vm_config *config, const struct config_setting *setting,
                         const char *text, enum config_mention mention, struct error *err)
{
    int result = store(config, setting, text, mention, err);

    return result != 0 ? result : config_setting_check(config, setting, err);
}

static int check_strings(const struct config_setting *setting, char *const *strings,
                         size_t count, struct error *err)
{
    int result = 0;

    if (setting->check == NULL)
        return 0;
    for (size_t i = 0; i < count && result == 0; i++)
        if (strings[i] != NULL)
            result = setting->check(strings[i], err);
    return result;
}

int config_setting_check(const struct vm_config *config,
                         const struct config_setting *setting, struct error *err)
{
    const void *field = const_field_of(config, setting->offset);
    const size_t *count = const_field_of(config, setting->count_offset);
    char *const *string = field;
    unsigned int position;

    switch (setting->kind) {
    case CONFIG_COUNT:
    case CONFIG_NUMBER:
    case CONFIG_SIZE:
    case CONFIG_DURATION:
        return check_number(setting, *(const uint64_t *)field, err);
    case CONFIG_CHOICE:
        return find_choice(setting, *string != NULL ? *string : "", &position, err);
    case CONFIG_STRING:
    case CONFIG_WORDS:
        return check_strings(setting, string, 1, err);
    case CONFIG_LIST:
        return check_strings(setting, string, *count, err);
    case CONFIG_FLAG:
    case CONFIG_ORDINAL:
    case CONFIG_FILES: /* checked when it was added */
    case CONFIG_FILE:
        return 0;
    }
    return 0;
}

void config_setting_free(struct vm_config *config, const struct config_setting *setting)
{
    char **string = field_of(config, setting->offset);

    if (setting->kind == CONFIG_LIST) {
        clear_list(string, field_of(config, setting->count_offset));
    } else if (setting->kind == CONFIG_FILES) {
        config_files_clear(field_of(config, setting->offset),
                           field_of(config, setting->count_offset));
    } else if (setting->kind == CONFIG_CHOICE || setting->kind == CONFIG_STRING ||
               setting->kind == CONFIG_WORDS) {
        free(*string);
        *string = NULL;
    }
}
