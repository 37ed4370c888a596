/* SPDX-License-Identifier: Apache-2.0 */
/* Files with words behind them: "FILE[,WORD]...". A file whose name has a comma can be
 * had by a link. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/schema_private.h"

/* One word between commas, as a bit. 0: it is none of `choices`. */
static unsigned find_word(const char *const *choices, const char *word, size_t length)
{
    for (unsigned i = 0; choices[i] != NULL; i++)
        if (strlen(choices[i]) == length && memcmp(choices[i], word, length) == 0)
            return 1u << i;
    return 0;
}

static int parse_words(const char *text, const char *const *choices, unsigned *words,
                       struct error *err)
{
    char list[160];

    while (*text == ',') {
        const char *word = text + 1;
        size_t length = strcspn(word, ",");
        unsigned bit = find_word(choices, word, length);

        config_join_choices(choices, list, sizeof(list));
        if (bit == 0)
            return error_set(err, EINVAL,
                             "'%s' behind the file name is unknown; choose %s",
                             config_quote(word, length).text, list);
        *words |= bit;
        text = word + length;
    }
    return 0;
}

/* Copies the name in front of `text`, and says where it ends there. NULL: out of memory.
 */
static char *copy_path(const char *text, const char **end)
{
    char *path = malloc(strlen(text) + 1);
    size_t used = 0;

    for (; path != NULL && *text != '\0'; text++) {
        if (text[0] == ',' && text[1] != ',')
            break;
        if (text[0] == ',')
            text++;
        path[used++] = *text;
    }
    if (path != NULL)
        path[used] = '\0';
    *end = text;
    return path;
}

int config_files_add(struct config_file *files, size_t *count,
                     const struct config_setting *setting, const char *text,
                     struct error *err)
{
    struct config_file file = {.words = 0};
    const char *words = "";

    if (*count == setting->maximum)
        return error_set(err, EINVAL, "more than %zu are given", *count);
    file.path = copy_path(text, &words);
    if (file.path == NULL)
        return error_set_errno(err, ENOMEM, "cannot keep the value");
    if (file.path[0] == '\0')
        error_set(err, EINVAL, "the file name is empty");
    else
        (void)parse_words(words, setting->choices, &file.words, err);
    if (err->code != 0) {
        free(file.path);
        return err->code;
    }
    files[(*count)++] = file;
    return 0;
}

void config_files_clear(struct config_file *files, size_t *count)
{
    while (*count > 0)
        free(files[--*count].path);
}
