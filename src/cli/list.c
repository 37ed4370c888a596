/* SPDX-License-Identifier: Apache-2.0 */
/* husk list and husk stat: what runs, and what it has done. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/cli.h"
#include "cli/control_private.h"

#define SCHEMA_VERSION 1
#define CELL_BYTES 320

/* ---- asking ---- */

static json_t *ask(const struct instance_info *instance, const char *path,
                   struct error *err)
{
    char *answer;
    json_t *document;

    if (api_request(instance, "GET", path, NULL, &answer, err) < 0)
        return NULL;
    document = json_loads(answer, 0, NULL);
    free(answer);
    if (json_is_object(document))
        return document;
    json_decref(document);
    error_set(err, EPROTO, "instance %s: its answer is no JSON object", instance->name);
    return NULL;
}

/* What is known of an instance that does not answer: what it wrote down at its start. */
static json_t *read_info(const struct instance_info *instance)
{
    char path[sizeof(instance->directory) + sizeof("/info.json")];
    json_t *document;

    (void)snprintf(path, sizeof(path), "%s/info.json", instance->directory);
    document = json_load_file(path, 0, NULL);
    if (!json_is_object(document)) {
        json_decref(document);
        document = json_object();
    }
    (void)json_object_set_new(document, "name", json_string(instance->name));
    (void)json_object_set_new(document, "pid", json_integer(instance->pid));
    (void)json_object_set_new(document, "state", json_string("no answer"));
    return document;
}

static void add_instance(void *context, const struct instance_info *instance)
{
    json_t *documents = context;
    struct error ignored = ERROR_NONE; /* shown as a state */
    json_t *document = ask(instance, "/", &ignored);

    if (document == NULL)
        document = read_info(instance);
    (void)json_object_del(document, "schema"); /* the whole list has one */
    (void)json_array_append_new(documents, document);
}

/* ---- the table of husk list ---- */

static void format_text(const json_t *value, char *cell, size_t size)
{
    const char *text = json_string_value(value);

    (void)snprintf(cell, size, "%s", text == NULL ? "-" : text);
    /* A file name may hold what a terminal obeys. */
    for (char *at = cell; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
}

static void format_count(const json_t *value, char *cell, size_t size)
{
    if (json_is_integer(value))
        (void)snprintf(cell, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        (void)snprintf(cell, size, "-");
}

static void format_duration(const json_t *value, char *cell, size_t size)
{
    json_int_t seconds = json_integer_value(value) / 1000;

    if (!json_is_integer(value))
        (void)snprintf(cell, size, "-");
    else if (seconds < 60)
        (void)snprintf(cell, size, "%" JSON_INTEGER_FORMAT "s", seconds);
    else if (seconds < 3600)
        (void)snprintf(cell, size, "%" JSON_INTEGER_FORMAT "m%02ds", seconds / 60,
                       (int)(seconds % 60));
    else if (seconds < 86400)
        (void)snprintf(cell, size, "%" JSON_INTEGER_FORMAT "h%02dm", seconds / 3600,
                       (int)(seconds / 60 % 60));
    else
        (void)snprintf(cell, size, "%" JSON_INTEGER_FORMAT "d%02dh", seconds / 86400,
                       (int)(seconds / 3600 % 24));
}

/* As --memory would be given. */
static void format_memory(const json_t *value, char *cell, size_t size)
{
    uint64_t size_bytes = (uint64_t)json_integer_value(value);

    if (!json_is_integer(value))
        (void)snprintf(cell, size, "-");
    else if (is_aligned(size_bytes, GIB))
        (void)snprintf(cell, size, "%" PRIu64 "G", size_bytes / GIB);
    else if (is_aligned(size_bytes, MIB))
        (void)snprintf(cell, size, "%" PRIu64 "M", size_bytes / MIB);
    else
        (void)snprintf(cell, size, "%" PRIu64 "K", size_bytes / KIB);
}

struct column {
    const char *title;
    const char *key;
    void (*format)(const json_t *value, char *cell, size_t size);
};

static const struct column columns[] = {
    {"NAME", "name", format_text},
    {"STATE", "state", format_text},
    {"PID", "pid", format_count},
    {"UPTIME", "uptime_ms", format_duration},
    {"MEMORY", "memory_bytes", format_memory},
    {"CPUS", "vcpus", format_count},
    {"KERNEL", "kernel", format_text},
};

static size_t column_width(const struct column *column, const json_t *documents)
{
    size_t width = strlen(column->title);
    char cell[CELL_BYTES];
    json_t *document;
    size_t i;

    json_array_foreach(documents, i, document)
    {
        column->format(json_object_get(document, column->key), cell, sizeof(cell));
        width = max_u64(width, strlen(cell));
    }
    return width;
}

/* The last column is not padded. */
static void print_cell(size_t column, size_t width, const char *cell)
{
    if (column + 1 == ARRAY_SIZE(columns))
        (void)printf("%s\n", cell);
    else
        (void)printf("%-*s  ", (int)width, cell);
}

/* The header is always there, so that scripts can count on it. */
static void print_table(const json_t *documents)
{
    size_t widths[ARRAY_SIZE(columns)];
    char cell[CELL_BYTES];
    json_t *document;
    size_t i;

    for (size_t column = 0; column < ARRAY_SIZE(columns); column++) {
        widths[column] = column_width(&columns[column], documents);
        print_cell(column, widths[column], columns[column].title);
    }
    json_array_foreach(documents, i, document)
    {
        for (size_t column = 0; column < ARRAY_SIZE(columns); column++) {
            columns[column].format(json_object_get(document, columns[column].key), cell,
                                   sizeof(cell));
            print_cell(column, widths[column], cell);
        }
    }
}

/* That it arrived is checked for all commands at once, in commands.c. */
static void print_json(const json_t *document)
{
    (void)json_dumpf(document, stdout, JSON_INDENT(2));
    (void)putchar('\n');
}

static void print_json_list(json_t *documents)
{
    json_t *document =
        json_pack("{s:i, s:O}", "schema", SCHEMA_VERSION, "instances", documents);

    print_json(document);
    json_decref(document);
}

int cli_list(int argc, char **argv, struct error *err)
{
    struct control_request request;
    int code = control_begin(CONTROL_JSON, argc, argv, &request, err);
    json_t *documents;

    if (code != 0)
        return code;
    documents = json_array();
    if (instance_list(add_instance, documents, err) < 0)
        code = EXIT_HOST_FAILURE;
    else if (request.json)
        print_json_list(documents);
    else
        print_table(documents);
    json_decref(documents);
    return code;
}

/* ---- husk stat ---- */

#define STAT_KEY_WIDTH 28

static void print_value(const char *name, const json_t *value)
{
    char cell[CELL_BYTES];

    if (json_is_real(value))
        (void)snprintf(cell, sizeof(cell), "%.3f", json_real_value(value));
    else if (json_is_boolean(value))
        (void)snprintf(cell, sizeof(cell), "%s", json_is_true(value) ? "yes" : "no");
    else if (json_is_integer(value))
        format_count(value, cell, sizeof(cell));
    else
        format_text(value, cell, sizeof(cell));
    (void)printf("%-*s %s\n", STAT_KEY_WIDTH, name, cell);
}

/* One line a value, under the names that --json gives them; what is in an array has its
 * number in its name. Documents are a few levels deep. */
static void print_values(const char *group, json_t *value)
{
    char name[64];
    const char *key;
    json_t *member;
    size_t index;

    if (json_is_object(value)) {
        json_object_foreach(value, key, member)
        {
            (void)snprintf(name, sizeof(name), "%s%s%s", group,
                           group[0] == '\0' ? "" : ".", key);
            print_values(name, member);
        }
    } else if (json_is_array(value)) {
        json_array_foreach(value, index, member)
        {
            (void)snprintf(name, sizeof(name), "%s.%zu", group, index);
            print_values(name, member);
        }
    } else {
        print_value(group, value);
    }
}

int cli_stat(int argc, char **argv, struct error *err)
{
    struct control_request request;
    int code = control_begin(CONTROL_NAME | CONTROL_JSON, argc, argv, &request, err);
    json_t *document;

    if (code != 0)
        return code;
    document = ask(&request.instance, "/stat", err);
    if (document == NULL)
        return EXIT_HOST_FAILURE;
    if (request.json) {
        print_json(document);
    } else {
        (void)json_object_del(document, "schema");
        print_values("", document);
    }
    json_decref(document);
    return EXIT_SUCCESS;
}
