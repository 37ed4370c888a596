/* SPDX-License-Identifier: Apache-2.0 */
/* The option list for people and for shells. */
#include "config/config.h"

#include <string.h>

#include "config/schema_private.h"

/* Sentences stand in a column of their own, on a terminal of the usual width. */
#define HELP_COLUMN 26
#define HELP_WIDTH 80

static void describe_value(const struct config_setting *setting, char *text,
                           size_t capacity)
{
    text[0] = '\0';
    if (setting->placeholder == NULL)
        return;
    (void)snprintf(text, capacity, setting->bare != NULL ? "[=%s]" : " %s",
                   setting->placeholder);
}

static int print_names(FILE *stream, const struct config_setting *setting)
{
    char letter[] = "    ";
    char value[32];

    if (setting->letter != 0)
        (void)snprintf(letter, sizeof(letter), "-%c, ", setting->letter);
    describe_value(setting, value, sizeof(value));
    return fprintf(stream, "  %s--%s%s", letter, setting->flag, value);
}

/* Prints `text` from HELP_COLUMN on, broken at blanks; `column` is where the line is. */
static void print_wrapped(FILE *stream, const char *text, int column)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " ");

        if (column >= HELP_COLUMN &&
            (column == HELP_COLUMN || column + 1 + (int)length <= HELP_WIDTH)) {
            column += fprintf(stream, "%s%.*s", column == HELP_COLUMN ? "" : " ",
                              (int)length, text);
            text += length + strspn(text + length, " ");
            continue;
        }
        if (column >= HELP_COLUMN)
            column = fprintf(stream, "\n") - 1;
        column += fprintf(stream, "%*s", HELP_COLUMN - column, "");
    }
    (void)fprintf(stream, "\n");
}

static void print_setting(FILE *stream, const struct config_setting *setting)
{
    char choices[160] = "";
    char text[400];
    int column = print_names(stream, setting);

    if (setting->choices != NULL)
        config_join_choices(setting->choices, choices, sizeof(choices));
    (void)snprintf(text, sizeof(text), "%s%s%s%s%s%s", setting->help,
                   choices[0] != '\0' ? ": " : "", choices,
                   setting->default_text != NULL ? " [" : "",
                   setting->default_text != NULL ? setting->default_text : "",
                   setting->default_text != NULL ? "]" : "");
    if (column >= HELP_COLUMN)
        column = fprintf(stream, "\n") - 1;
    print_wrapped(stream, text, column);
}

void config_print_help(FILE *stream)
{
    for (enum config_group group = 0; group < CONFIG_GROUP_COUNT; group++) {
        (void)fprintf(stream, "%s%s:\n", group == 0 ? "" : "\n",
                      config_group_names[group]);
        for (const struct config_setting *row = config_settings; row->flag != NULL; row++)
            if (row->group == group)
                print_setting(stream, row);
    }
}

void config_print_completions(FILE *stream)
{
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++)
        (void)fprintf(stream, "--%s\t%s\n", row->flag, row->help);
}
