/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the commands that talk to running instances, and which one is meant.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/cli.h"
#include "cli/control_private.h"
#include "config/config.h"

/* A day; more is a typing error. */
#define MAX_STOP_SECONDS 86400

struct flag {
    const char *spelling;
    enum control_option option;
};

static const struct flag flags[] = {
    {"--json", CONTROL_JSON},
    {"--timeout", CONTROL_TIMEOUT},
    {"--no-input", CONTROL_NO_INPUT},
};

/* `length` bytes of `word` are the option, without a value behind '='. */
static const struct flag *find_flag(unsigned options, const char *word, size_t length)
{
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
        if ((flags[i].option & options) != 0 && strlen(flags[i].spelling) == length &&
            memcmp(flags[i].spelling, word, length) == 0)
            return &flags[i];
    return NULL;
}

static int refuse_option(unsigned options, const char *word, struct error *err)
{
    const char *candidates[ARRAY_SIZE(flags) + 2] = {"--help"};
    const char *nearest;
    size_t count = 1;

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
        if ((flags[i].option & options) != 0)
            candidates[count++] = flags[i].spelling;
    nearest = config_nearest(word, candidates);
    if (nearest != NULL)
        return error_set(err, EINVAL, "unknown option '%s'; did you mean '%s'?", word,
                         nearest);
    return error_set(err, EINVAL, "unknown option '%s'; --help lists the options", word);
}

static int parse_seconds(const char *text, uint64_t *seconds, struct error *err)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
        value > MAX_STOP_SECONDS)
        return error_set(err, EINVAL, "--timeout '%s': must be 0 to %d seconds", text,
                         MAX_STOP_SECONDS);
    *seconds = value;
    return 0;
}

/* Handles argv[*at]; moves *at on if it takes the next one too. */
static int parse_option(unsigned options, int argc, char **argv, int *at,
                        struct control_request *request, struct error *err)
{
    const char *word = argv[*at];
    const char *value = strchr(word, '=');
    size_t length = value == NULL ? strlen(word) : (size_t)(value - word);
    const struct flag *flag = find_flag(options, word, length);

    if (flag == NULL)
        return refuse_option(options, word, err);
    if (flag->option == CONTROL_TIMEOUT) {
        if (value == NULL && *at + 1 == argc)
            return error_set(err, EINVAL, "--timeout needs a value: --timeout SECONDS");
        return parse_seconds(value == NULL ? argv[++*at] : value + 1,
                             &request->timeout_seconds, err);
    }
    if (value != NULL)
        return error_set(err, EINVAL, "%s takes no value", flag->spelling);
    if (flag->option == CONTROL_JSON)
        request->json = true;
    else
        request->no_input = true;
    return 0;
}

/* Arguments that are no options. */
struct words {
    const char *items[2];
    size_t count;
    size_t limit;
};

static int take_word(struct words *words, const char *word, struct error *err)
{
    if (words->limit == 0)
        return error_set(err, EINVAL, "unexpected argument '%s'", word);
    if (words->count == words->limit)
        return error_set(err, EINVAL, "one instance at a time: '%s' is one too many",
                         word);
    words->items[words->count++] = word;
    return 0;
}

static int parse(unsigned options, int argc, char **argv, struct words *words,
                 struct control_request *request, struct error *err)
{
    bool options_ended = false;

    for (int i = 0; i < argc; i++) {
        if (!options_ended && strcmp(argv[i], "--") == 0) {
            options_ended = true;
        } else if (!options_ended && argv[i][0] == '-') {
            if (parse_option(options, argc, argv, &i, request, err) < 0)
                return err->code;
        } else if (take_word(words, argv[i], err) < 0) {
            return err->code;
        }
    }
    return 0;
}

/* The last word is a size. */
static int parse_size(struct words *words, uint64_t *size_bytes, struct error *err)
{
    const char *word;

    if (words->count == 0)
        return error_set(err, EINVAL, "no size is given; write MiB, such as 64");
    word = words->items[--words->count];
    if (config_parse_size(word, size_bytes, err) < 0)
        return err->code;
    if (*size_bytes % MIB != 0)
        return error_set(err, EINVAL, "'%s': must be whole MiB", word);
    return 0;
}

/* ---- which instance ---- */

struct only {
    struct instance_info *instance;
    size_t count;
    char names[512]; /* "a, b, c"; enough to choose from */
};

static void visit_only(void *context, const struct instance_info *info)
{
    struct only *only = context;
    size_t used = strlen(only->names);

    *only->instance = *info;
    (void)snprintf(only->names + used, sizeof(only->names) - used, "%s%s",
                   only->count == 0 ? "" : ", ", info->name);
    only->count++;
}

static int find_only(struct instance_info *instance, struct error *err)
{
    struct only only = {.instance = instance};

    if (instance_list(visit_only, &only, err) < 0)
        return err->code;
    if (only.count == 0)
        return error_set(err, ENOENT, "no instance is running");
    if (only.count > 1)
        return error_set(err, EINVAL, "%zu instances are running, name one of them: %s",
                         only.count, only.names);
    return 0;
}

int control_begin(unsigned options, int argc, char **argv,
                  struct control_request *request, struct error *err)
{
    struct words words = {.limit = ((options & CONTROL_NAME) != 0 ? 1u : 0u) +
                                   ((options & CONTROL_SIZE) != 0 ? 1u : 0u)};
    int status;

    *request = (struct control_request){.timeout_seconds = DEFAULT_STOP_SECONDS};
    status = parse(options, argc, argv, &words, request, err);
    if (status == 0 && (options & CONTROL_SIZE) != 0)
        status = parse_size(&words, &request->size_bytes, err);
    if (status == 0 && (options & CONTROL_NAME) != 0)
        status = words.count == 0
                     ? find_only(&request->instance, err)
                     : instance_find(words.items[0], &request->instance, err);
    if (status == 0)
        return 0;
    return status == -EINVAL ? EXIT_USAGE : EXIT_HOST_FAILURE;
}
