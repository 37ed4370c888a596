/* SPDX-License-Identifier: Apache-2.0 */
/* husk cache list|clear: the kernels that were unpacked for later starts. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "cli/cli.h"
#include "image/image.h"

#define JSON_SCHEMA 1

struct listing {
    json_t *json; /* array, or NULL: print lines */
    size_t count;
    uint64_t total_bytes;
};

static void print_size(uint64_t size_bytes)
{
    (void)printf("%8.1f MiB", (double)size_bytes / (double)MIB);
}

static void print_time(int64_t seconds)
{
    time_t time = seconds;
    char text[32] = "?";
    struct tm local;

    if (localtime_r(&time, &local) != NULL)
        (void)strftime(text, sizeof(text), "%F %T", &local);
    (void)printf("%s", text);
}

static void add_entry(void *context, const struct image_cache_entry *entry)
{
    struct listing *listing = context;

    listing->count++;
    listing->total_bytes += entry->size_bytes;
    if (listing->json != NULL) {
        (void)json_array_append_new(
            listing->json, json_pack("{s:s, s:I, s:I}", "name", entry->name, "size_bytes",
                                     (json_int_t)entry->size_bytes, "used_seconds",
                                     (json_int_t)entry->used_seconds));
        return;
    }
    print_size(entry->size_bytes);
    (void)printf("  ");
    print_time(entry->used_seconds);
    (void)printf("  %s\n", entry->name);
}

/* Prints `document` (taken over; NULL if it could not be built) on one line. */
static int print_json(json_t *document, struct error *err)
{
    int status = document == NULL ? -1 : json_dumpf(document, stdout, 0);

    json_decref(document);
    if (status < 0) {
        (void)error_set(err, EIO,
                        "cannot print JSON (out of memory, or a path that is "
                        "not UTF-8)");
        return EXIT_HOST_FAILURE;
    }
    (void)printf("\n");
    return EXIT_SUCCESS;
}

static int list(const char *directory, bool as_json, struct error *err)
{
    const struct image_cache_options options = {.directory = directory};
    struct listing listing = {.json = as_json ? json_array() : NULL};

    if (image_cache_list(&options, add_entry, &listing, err) < 0) {
        json_decref(listing.json);
        return EXIT_HOST_FAILURE;
    }
    if (as_json)
        return print_json(json_pack("{s:i, s:s, s:o, s:I}", "schema", JSON_SCHEMA,
                                    "directory", directory, "entries", listing.json,
                                    "total_bytes", (json_int_t)listing.total_bytes),
                          err);
    print_size(listing.total_bytes);
    (void)printf("  in %zu unpacked kernel%s in %s\n", listing.count,
                 listing.count == 1 ? "" : "s", directory);
    return EXIT_SUCCESS;
}

static int clear(const char *directory, bool as_json, struct error *err)
{
    const struct image_cache_options options = {.directory = directory};
    size_t removed;

    if (image_cache_clear(&options, &removed, err) < 0)
        return EXIT_HOST_FAILURE;
    if (as_json)
        return print_json(json_pack("{s:i, s:s, s:I}", "schema", JSON_SCHEMA, "directory",
                                    directory, "removed", (json_int_t)removed),
                          err);
    (void)printf("%zu unpacked kernel%s removed from %s\n", removed,
                 removed == 1 ? "" : "s", directory);
    return EXIT_SUCCESS;
}

typedef int cache_action(const char *directory, bool as_json, struct error *err);

static const struct {
    const char *name;
    cache_action *run;
} actions[] = {{"list", list}, {"clear", clear}};

static cache_action *find_action(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (strcmp(name, actions[i].name) == 0)
            return actions[i].run;
    return NULL;
}

int cli_cache(int argc, char **argv, struct error *err)
{
    const struct image_cache_options options = {0};
    cache_action *action = NULL;
    bool as_json = false;
    char directory[4096];

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            as_json = true;
            continue;
        }
        if (action != NULL || find_action(argv[i]) == NULL) {
            (void)error_set(err, EINVAL,
                            "cache takes list or clear, and --json; '%s' is too much",
                            argv[i]);
            return EXIT_USAGE;
        }
        action = find_action(argv[i]);
    }
    if (action == NULL) {
        (void)error_set(err, EINVAL, "cache needs a word more: list or clear");
        return EXIT_USAGE;
    }
    if (image_cache_directory(&options, directory, sizeof(directory), err) < 0)
        return EXIT_HOST_FAILURE;
    return action(directory, as_json, err);
}
