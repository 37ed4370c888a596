/* SPDX-License-Identifier: Apache-2.0 */
/* The man pages, --help and the completion say what the table of settings says: argv[1]
 * and argv[2] are the sources of husk(1) and husk.json(5). */
#include "parse.h"

#include "config/schema_private.h"

static char *options_page;
static char *file_page;

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t capacity = 0;

    if (file == NULL || getdelim(&text, &capacity, '\0', file) < 0) {
        perror(path);
        exit(2);
    }
    (void)fclose(file);
    return text;
}

static bool has_line(const char *text, const char *line)
{
    size_t length = strlen(line);

    while (*text != '\0') {
        if (strncmp(text, line, length) == 0 && text[length] == '\n')
            return true;
        text += strcspn(text, "\n");
        text += *text == '\n' ? 1 : 0;
    }
    return false;
}

/* "*-m*, *--memory* _SIZE_" */
static void heading_of(const struct config_setting *setting, char *line, size_t capacity)
{
    char letter[16] = "";
    char value[32] = "";

    if (setting->letter != 0)
        (void)snprintf(letter, sizeof(letter), "*-%c*, ", setting->letter);
    if (setting->placeholder != NULL)
        (void)snprintf(value, sizeof(value), setting->bare != NULL ? "[=_%s_]" : " _%s_",
                       setting->placeholder);
    (void)snprintf(line, capacity, "%s*--%s*%s", letter, setting->flag, value);
}

static void manual_describes_each_setting(void **state)
{
    (void)state;
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++) {
        char line[96];

        heading_of(row, line, sizeof(line));
        if (!has_line(options_page, line))
            fail_msg("husk(1) has no line '%s'", line);
    }
}

/* The paragraph under a setting's heading. */
static void paragraph_of(const struct config_setting *setting, char *text,
                         size_t capacity)
{
    char line[96];
    const char *start, *end;

    heading_of(setting, line, sizeof(line));
    start = strstr(options_page, line);
    assert_non_null(start);
    end = strstr(start, "\n\n");
    assert_non_null(end);
    (void)snprintf(text, capacity, "%.*s", (int)(end - start), start);
}

static void manual_names_each_choice_and_default(void **state)
{
    (void)state;
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++) {
        char paragraph[1024];
        char word[48];

        paragraph_of(row, paragraph, sizeof(paragraph));
        for (size_t i = 0; row->choices != NULL && row->choices[i] != NULL; i++) {
            (void)snprintf(word, sizeof(word), "_%s_", row->choices[i]);
            if (strstr(paragraph, word) == NULL)
                fail_msg("husk(1), --%s: choice %s is missing", row->flag, word);
        }
        if (row->default_text != NULL && strstr(paragraph, row->default_text) == NULL)
            fail_msg("husk(1), --%s: default %s is missing", row->flag,
                     row->default_text);
    }
}

static void manual_describes_nothing_else(void **state)
{
    const char *start = strstr(options_page, "\n# OPTIONS\n");
    const char *end;

    (void)state;
    assert_non_null(start);
    end = strstr(start, "\n## Accepted besides\n");
    assert_non_null(end);
    for (const char *at = strstr(start, "\n*"); at != NULL && at < end;
         at = strstr(at + 1, "\n*")) {
        const char *flag = strstr(at, "*--") + 3;
        size_t length = strcspn(flag, "*");

        /* --help belongs to the commands. */
        if (length == 4 && strncmp(flag, "help", length) == 0)
            continue;
        if (flag < end && length > 0 && config_setting_find(flag, length) == NULL)
            fail_msg("husk(1) describes --%.*s, which does not exist", (int)length, flag);
    }
}

static void manual_lists_each_other_spelling(void **state)
{
    const char *section = strstr(options_page, "\n## Accepted besides\n");

    (void)state;
    assert_non_null(section);
    for (const struct config_alias *row = config_aliases; row->spelling != NULL; row++)
        if (strstr(section, row->spelling) == NULL)
            fail_msg("husk(1) does not list %s", row->spelling);
}

static void file_manual_describes_each_key(void **state)
{
    (void)state;
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++) {
        char line[96] = "*";
        size_t used = 1;

        if (row->file_key == NULL)
            continue;
        for (const char *letter = row->file_key; *letter != '\0'; letter++) {
            if (*letter == '_')
                line[used++] = '\\'; /* scdoc would underline */
            line[used++] = *letter;
        }
        line[used] = '*';
        if (!has_line(file_page, line))
            fail_msg("husk.json(5) has no line '%s'", line);
        for (const struct config_word *word = row->file_words;
             word != NULL && word->word != NULL; word++)
            if (strstr(file_page, word->word) == NULL)
                fail_msg("husk.json(5) does not list %s", word->word);
    }
}

/* ---- what husk prints itself ---- */

static char *print_to_text(void (*print)(FILE *stream))
{
    char *text = NULL;
    size_t size_bytes = 0;
    FILE *stream = open_memstream(&text, &size_bytes);

    assert_non_null(stream);
    print(stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void help_fits_the_terminal(void **state)
{
    char *text = print_to_text(config_print_help);

    (void)state;
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");

        if (length > 80 || (length > 0 && line[length - 1] == ' '))
            fail_msg("badly broken: '%.*s'", (int)length, line);
        line += length + 1;
    }
    free(text);
}

static void help_shows_names_choices_and_defaults(void **state)
{
    char *text = print_to_text(config_print_help);

    (void)state;
    assert_ptr_equal(strstr(text, "Boot:\n  -k, --kernel FILE       kernel to boot"),
                     text);
    assert_true(has_line(text,
                         "      --protocol NAME     way into the kernel: auto, pvh, "
                         "linux64, linux32,"));
    assert_true(has_line(text,
                         "                          multiboot1, multiboot2 or firmware "
                         "[auto]"));
    assert_true(has_line(text, "  -c, --cpus NUMBER       virtual processors [1]"));
    assert_true(has_line(text,
                         "      --boot-timer[=FORM] tell on standard error when each "
                         "stage of the start"));
    assert_true(has_line(text, "\nControl:"));
    free(text);
}

static void completions_have_one_line_a_setting(void **state)
{
    char *text = print_to_text(config_print_completions);
    size_t lines = 0, settings = 0;

    (void)state;
    for (const char *letter = text; *letter != '\0'; letter++)
        lines += *letter == '\n' ? 1 : 0;
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++)
        settings++;
    assert_int_equal(lines, settings);
    assert_true(has_line(text, "--cpus\tvirtual processors"));
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manual_describes_each_setting),
        cmocka_unit_test(manual_names_each_choice_and_default),
        cmocka_unit_test(manual_describes_nothing_else),
        cmocka_unit_test(manual_lists_each_other_spelling),
        cmocka_unit_test(file_manual_describes_each_key),
        cmocka_unit_test(help_fits_the_terminal),
        cmocka_unit_test(help_shows_names_choices_and_defaults),
        cmocka_unit_test(completions_have_one_line_a_setting),
    };
    int failed;

    if (argc != 3)
        return 2;
    options_page = read_text(argv[1]);
    file_page = read_text(argv[2]);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(options_page);
    free(file_page);
    return failed;
}
