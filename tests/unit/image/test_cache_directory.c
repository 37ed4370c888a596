/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's directory: where it is, what it lists, what goes, what it remembers. */
#include "cache_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"

/* ---- limits, list, clear */

struct listed {
    struct image_cache_entry entries[8];
    size_t count;
};

static void note_entry(void *context, const struct image_cache_entry *entry)
{
    struct listed *listed = context;

    assert_in_range(listed->count, 0, ARRAY_SIZE(listed->entries) - 1);
    listed->entries[listed->count++] = *entry;
}

static struct listed list_all(const struct fixture *fixture)
{
    struct listed listed = {.count = 0};
    struct error err = ERROR_NONE;

    assert_int_equal(image_cache_list(&fixture->options, note_entry, &listed, &err), 0);
    return listed;
}

/* Fills the cache with kernel `seed`, last used at `used_seconds`; its name goes to
 * `name`. */
static void fill_as_of(struct fixture *fixture, uint32_t seed, time_t used_seconds,
                       char *name)
{
    const struct timespec times[2] = {{.tv_sec = used_seconds}, {.tv_sec = used_seconds}};

    pack_kernel(fixture, seed);
    open_expecting(fixture, IMAGE_CACHE_FILLED);
    assert_int_equal(utimensat(AT_FDCWD, sibling(fixture, ".seal"), times, 0), 0);
    (void)snprintf(name, 96, "%s", strrchr(fixture->result.path, '/') + 1);
}

static void lists_newest_first(void **state)
{
    struct fixture *fixture = *state;
    struct listed listed;
    char names[2][96];

    assert_int_equal(list_all(fixture).count, 0); /* no directory: an empty cache */
    fill_as_of(fixture, 1, 2000, names[0]);
    fill_as_of(fixture, 2, 1000, names[1]);
    listed = list_all(fixture);
    assert_int_equal(listed.count, 2);
    assert_string_equal(listed.entries[0].name, names[0]);
    assert_int_equal(listed.entries[0].used_seconds, 2000);
    assert_int_equal(listed.entries[0].size_bytes, KERNEL_BYTES);
    assert_string_equal(listed.entries[1].name, names[1]);
    assert_int_equal(listed.entries[1].used_seconds, 1000);
}

static void longest_unused_entry_goes_when_the_limit_is_passed(void **state)
{
    struct fixture *fixture = *state;
    struct listed listed;
    char names[3][96];

    fixture->options.limit_bytes = UINT64_C(2) * KERNEL_BYTES;
    fill_as_of(fixture, 1, 2000, names[0]);
    fill_as_of(fixture, 2, 1000, names[1]);
    fill_as_of(fixture, 3, 500, names[2]);
    listed = list_all(fixture);
    assert_int_equal(listed.count, 2);
    assert_string_equal(listed.entries[0].name, names[0]);
    assert_string_equal(listed.entries[1].name, names[2]); /* just filled: stays */
    assert_int_equal(count_names(fixture, ".seal"), 2);
}

static void kernel_larger_than_the_whole_cache_is_bypassed(void **state)
{
    struct fixture *fixture = *state;

    fixture->options.limit_bytes = KERNEL_BYTES - 1;
    open_expecting_reason(fixture, IMAGE_CACHE_BYPASSED,
                          "the unpacked kernel of 204800 bytes is larger than the whole "
                          "cache may be (204799)");
    assert_int_equal(count_names(fixture, ".elf"), 0);
}

static void clear_removes_what_is_ours_and_nothing_else(void **state)
{
    static const char *const foreign[] = {"notes.txt", "short.elf", "sources.old"};
    struct fixture *fixture = *state;
    struct error err = ERROR_NONE;
    size_t removed = 99;
    char path[4300];
    char name[96];

    assert_int_equal(image_cache_clear(&fixture->options, &removed, &err), 0);
    assert_int_equal(removed, 0); /* no directory */
    fill_as_of(fixture, 1, 1000, name);
    fill_as_of(fixture, 2, 1000, name);
    for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", fixture->directory, foreign[i]);
        write_file(path, "mine");
    }
    assert_int_equal(image_cache_clear(&fixture->options, &removed, &err), 0);
    assert_int_equal(removed, 2);
    assert_int_equal(count_names(fixture, ".seal"), 0);
    assert_int_equal(count_names(fixture, ".elf"), 1); /* short.elf */
    for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
        assert_int_equal(count_names(fixture, foreign[i]), 1);
    open_expecting(fixture, IMAGE_CACHE_FILLED);
}

/* ---- libraries of common pages */

/* Opens the library of `identity`, puts `pages` pages into it, and closes it. */
static void fill_library(const struct fixture *fixture, const char *identity,
                         uint64_t pages)
{
    struct image_cache_library library;
    struct error err = ERROR_NONE;
    char page[4096] = "common";

    assert_int_equal(image_cache_library_open(&fixture->options, identity,
                                              strlen(identity), &library, &err),
                     0);
    for (uint64_t i = 0; i < pages; i++)
        assert_int_equal(
            pwrite(library.pages_fd, page, sizeof(page), (off_t)(i * sizeof(page))),
            sizeof(page));
    image_cache_library_close(&library);
    assert_int_equal(library.pages_fd, -1);
}

static void a_library_is_found_again_by_what_it_is_for(void **state)
{
    struct fixture *fixture = *state;
    struct image_cache_library again;
    struct error err = ERROR_NONE;
    char held[6];

    fill_library(fixture, "one kernel", 1);
    fill_library(fixture, "another kernel", 0);
    assert_int_equal(count_names(fixture, ".pages"), 2);
    assert_int_equal(count_names(fixture, ".marks"), 2);
    assert_int_equal(
        image_cache_library_open(&fixture->options, "one kernel", 10, &again, &err), 0);
    assert_int_equal(fd_read_at(again.pages_fd, 0, held, sizeof(held)), 0);
    assert_memory_equal(held, "common", sizeof(held));
    assert_string_equal(strrchr(again.path, '.'), ".pages");
    image_cache_library_close(&again);
}

static void libraries_are_listed_limited_and_cleared_like_kernels(void **state)
{
    struct fixture *fixture = *state;
    struct error err = ERROR_NONE;
    size_t removed;
    char name[96];

    fill_as_of(fixture, 1, 1000, name);
    fill_library(fixture, "one kernel", 3);
    assert_int_equal(list_all(fixture).count, 2);
    assert_int_equal(list_all(fixture).entries[0].size_bytes, 3 * 4096);

    fixture->options.limit_bytes = UINT64_C(4) * 4096;
    fill_library(fixture, "one kernel", 4);
    assert_int_equal(list_all(fixture).count, 1);
    assert_int_equal(count_names(fixture, ".elf"), 0);

    assert_int_equal(image_cache_clear(&fixture->options, &removed, &err), 0);
    assert_int_equal(removed, 1);
    assert_int_equal(count_names(fixture, ".pages"), 0);
    assert_int_equal(count_names(fixture, ".marks"), 0);
}

static void without_a_cache_there_is_no_library(void **state)
{
    struct fixture *fixture = *state;
    struct image_cache_library library;
    struct error err = ERROR_NONE;

    fixture->options.disabled = true;
    assert_int_equal(
        image_cache_library_open(&fixture->options, "one kernel", 10, &library, &err),
        -ENOENT);
    assert_string_equal(err.text, "the cache is switched off");
}

/* ---- sources */

static struct cache_source identify(const char *path, const struct image_payload *payload)
{
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct source source = source_from_fd(fd, 4);
    struct cache_source identity;

    assert_true(cache_source_identify(&source, payload, &identity));
    return identity;
}

static void source_is_recalled_only_as_it_was(void **state)
{
    struct fixture *fixture = *state;
    struct cache_directory directory;
    struct error err = ERROR_NONE;
    struct cache_key key = {.digest = {1, 2, 3}};
    struct cache_key recalled;
    struct cache_source identity;
    struct cache_source changed;
    char path[128];

    assert_int_equal(cache_directory_open(&directory, &fixture->options, true, &err), 0);
    (void)snprintf(path, sizeof(path), "%s/vmlinuz", fixture->root);
    write_file(path, "abcd");
    identity = identify(path, &fixture->payload);
    assert_false(identity.settled); /* it has just been written */
    cache_source_remember(&directory, &identity, &key);
    assert_false(cache_source_recall(&directory, &identity, &recalled));

    identity.settled = true;
    cache_source_remember(&directory, &identity, &key);
    identity = identify(path, &fixture->payload);
    assert_true(cache_source_recall(&directory, &identity, &recalled));
    assert_memory_equal(recalled.digest, key.digest, sizeof(key.digest));
    assert_string_equal(recalled.hex,
                        "010203000000000000000000000000000000000000000000000000000000"
                        "0000");

    assert_int_equal(truncate(path, 5), 0);
    changed = identify(path, &fixture->payload);
    assert_memory_not_equal(changed.digest, identity.digest, sizeof(changed.digest));
    assert_false(cache_source_recall(&directory, &changed, &recalled));
    cache_directory_close(&directory);
}

static void sources_without_a_name_are_not_remembered(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP_FD int fd = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    struct source unnamed = source_from_fd(fd, 4);
    struct cache_source identity;

    assert_false(cache_source_identify(&fixture->source, &fixture->payload, &identity));
    assert_false(cache_source_identify(&unnamed, &fixture->payload, &identity));
}

/* ---- where it is */

static void directory_follows_option_environment_and_user(void **state)
{
    static const struct image_cache_options none = {0};
    struct fixture *fixture = *state;
    struct error err = ERROR_NONE;
    char path[256];

    assert_int_equal(setenv("HUSK_CACHE_DIR", "/x/cache", 1), 0);
    assert_int_equal(image_cache_directory(&fixture->options, path, sizeof(path), &err),
                     0);
    assert_string_equal(path, fixture->directory);
    assert_int_equal(image_cache_directory(&none, path, sizeof(path), &err), 0);
    assert_string_equal(path, "/x/cache");

    assert_int_equal(unsetenv("HUSK_CACHE_DIR"), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", "/y", 1), 0);
    assert_int_equal(setenv("HOME", "/home/z", 1), 0);
    assert_int_equal(image_cache_directory(&none, path, sizeof(path), &err), 0);
    assert_string_equal(path, geteuid() == 0 ? "/var/cache/husk" : "/y/husk");
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
    assert_int_equal(image_cache_directory(&none, path, sizeof(path), &err), 0);
    assert_string_equal(path, geteuid() == 0 ? "/var/cache/husk" : "/home/z/.cache/husk");

    assert_int_equal(image_cache_directory(&none, path, 5, &err), -ENAMETOOLONG);
    assert_string_equal(err.text, "the cache directory's path is too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lists_newest_first),
        TEST(longest_unused_entry_goes_when_the_limit_is_passed),
        TEST(kernel_larger_than_the_whole_cache_is_bypassed),
        TEST(clear_removes_what_is_ours_and_nothing_else),
        TEST(a_library_is_found_again_by_what_it_is_for),
        TEST(libraries_are_listed_limited_and_cleared_like_kernels),
        TEST(without_a_cache_there_is_no_library),
        TEST(source_is_recalled_only_as_it_was),
        TEST(sources_without_a_name_are_not_remembered),
        TEST(directory_follows_option_environment_and_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
