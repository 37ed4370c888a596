/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of unpacked kernels: hits, damage, and every way around it. */
#include "cache_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"

static void read_file(const char *path, char *text, size_t size)
{
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = read(fd, text, size - 1);

    assert_true(got >= 0);
    text[got] = '\0';
}

/* ---- hits */

static void fills_once_and_then_hits(void **state)
{
    struct fixture *fixture = *state;
    char first_path[4096];
    struct stat status;

    open_expecting_reason(fixture, IMAGE_CACHE_FILLED, "");
    (void)snprintf(first_path, sizeof(first_path), "%s", fixture->result.path);
    assert_int_equal(stat(first_path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0444);
    assert_int_equal(fcntl(fixture->result.fd, F_GETFL) & O_ACCMODE, O_RDONLY);

    open_expecting_reason(fixture, IMAGE_CACHE_HIT, "");
    assert_string_equal(fixture->result.path, first_path);
    assert_int_equal(count_names(fixture, ".elf"), 1);
    assert_int_equal(count_names(fixture, ".tmp"), 0);
}

static void directories_are_created_for_their_owner_only(void **state)
{
    struct fixture *fixture = *state;
    char parent[96];
    struct stat status;

    open_expecting(fixture, IMAGE_CACHE_FILLED);
    assert_int_equal(stat(fixture->directory, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    (void)snprintf(parent, sizeof(parent), "%s/a", fixture->root);
    assert_int_equal(stat(parent, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
}

static void payload_names_the_entry_and_not_the_file_around_it(void **state)
{
    struct fixture *fixture = *state;
    char first_path[4096];
    uint8_t shifted[sizeof(fixture->packed) + 512];

    open_expecting(fixture, IMAGE_CACHE_FILLED);
    (void)snprintf(first_path, sizeof(first_path), "%s", fixture->result.path);
    memset(shifted, 0xaa, 512);
    memcpy(shifted + 512, fixture->packed, fixture->payload.size_bytes);
    fixture->source = source_from_memory(shifted, sizeof(shifted));
    fixture->payload.offset = 512;
    open_expecting(fixture, IMAGE_CACHE_HIT);
    assert_string_equal(fixture->result.path, first_path);

    pack_kernel(fixture, 2);
    open_expecting(fixture, IMAGE_CACHE_FILLED);
    assert_string_not_equal(fixture->result.path, first_path);
}

static void hit_notes_the_use_without_touching_the_entry(void **state)
{
    struct fixture *fixture = *state;
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct stat before;
    struct stat after;
    struct stat seal;

    open_expecting(fixture, IMAGE_CACHE_FILLED);
    assert_int_equal(stat(fixture->result.path, &before), 0);
    assert_int_equal(utimensat(AT_FDCWD, sibling(fixture, ".seal"), long_ago, 0), 0);
    open_expecting(fixture, IMAGE_CACHE_HIT);
    assert_int_equal(stat(fixture->result.path, &after), 0);
    assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof(before.st_ctim));
    assert_int_equal(stat(sibling(fixture, ".seal"), &seal), 0);
    assert_true(seal.st_mtim.tv_sec > 1000000000);
}

static int start_at_once(struct fixture *fixture, int gate)
{
    struct error err = ERROR_NONE;
    char go;

    if (read(gate, &go, 1) != 0 || /* the end of the pipe is the shot */
        image_cache_open(&fixture->source, &fixture->payload, &fixture->options,
                         &fixture->result, &err) < 0 ||
        !content_is_right(fixture))
        return 99;
    return (int)fixture->result.outcome;
}

static void eight_starts_at_once_give_one_file(void **state)
{
    struct fixture *fixture = *state;
    size_t outcomes[IMAGE_CACHE_BYPASSED + 1] = {0};
    pid_t children[8];
    int gate[2];

    assert_int_equal(pipe(gate), 0);
    for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            fd_close(&gate[1]);
            _exit(start_at_once(fixture, gate[0]));
        }
    }
    fd_close(&gate[1]);
    fd_close(&gate[0]);
    for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
        int status;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_in_range(WEXITSTATUS(status), 0, IMAGE_CACHE_BYPASSED);
        outcomes[WEXITSTATUS(status)]++;
    }
    assert_int_equal(outcomes[IMAGE_CACHE_FILLED], 1);
    assert_int_equal(outcomes[IMAGE_CACHE_HIT], 7);
    assert_int_equal(count_names(fixture, ".elf"), 1);
    assert_int_equal(count_names(fixture, ".tmp"), 0);
}

/* ---- damage */

static void change_one_byte(const char *path)
{
    CLEANUP_FD int fd = -1;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1700000000}};

    assert_int_equal(chmod(path, 0644), 0);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "\xff\xfe", 2, 5000), 2);
    assert_int_equal(futimens(fd, times), 0);
    assert_int_equal(chmod(path, 0444), 0);
}

static void tampered_entry_is_rebuilt(void **state)
{
    struct fixture *fixture = *state;

    open_expecting(fixture, IMAGE_CACHE_FILLED);
    change_one_byte(fixture->result.path);
    open_expecting_reason(fixture, IMAGE_CACHE_REBUILT,
                          "the cached kernel was damaged: its content has changed");
    open_expecting(fixture, IMAGE_CACHE_HIT);
}

static void truncated_entry_is_rebuilt(void **state)
{
    struct fixture *fixture = *state;

    open_expecting(fixture, IMAGE_CACHE_FILLED);
    assert_int_equal(chmod(fixture->result.path, 0644), 0);
    assert_int_equal(truncate(fixture->result.path, 100), 0);
    open_expecting_reason(fixture, IMAGE_CACHE_REBUILT,
                          "the cached kernel was damaged: its content has changed");
    open_expecting(fixture, IMAGE_CACHE_HIT);
}

static void entry_without_a_whole_seal_is_rebuilt(void **state)
{
    static const char reason[] = "the cached kernel was damaged: it has no seal";
    struct fixture *fixture = *state;
    char seal[1024];

    open_expecting(fixture, IMAGE_CACHE_FILLED);
    assert_int_equal(unlink(sibling(fixture, ".seal")), 0);
    open_expecting_reason(fixture, IMAGE_CACHE_REBUILT, reason);

    read_file(sibling(fixture, ".seal"), seal, sizeof(seal));
    seal[strlen(seal) - 2] = '\0';
    write_file(sibling(fixture, ".seal"), seal);
    open_expecting_reason(fixture, IMAGE_CACHE_REBUILT, reason);

    write_file(sibling(fixture, ".seal"), "");
    open_expecting_reason(fixture, IMAGE_CACHE_REBUILT, reason);
    open_expecting(fixture, IMAGE_CACHE_HIT);
}

static void touched_entry_with_the_same_content_is_sealed_again(void **state)
{
    struct fixture *fixture = *state;
    char before[1024];
    char after[1024];

    open_expecting(fixture, IMAGE_CACHE_FILLED);
    read_file(sibling(fixture, ".seal"), before, sizeof(before));
    assert_int_equal(utimensat(AT_FDCWD, fixture->result.path, NULL, 0), 0);
    open_expecting_reason(fixture, IMAGE_CACHE_HIT, "");
    read_file(sibling(fixture, ".seal"), after, sizeof(after));
    assert_string_not_equal(before, after);
    assert_string_equal(strchr(before, '\n'), strchr(after, '\n')); /* same content */
    open_expecting(fixture, IMAGE_CACHE_HIT);
    read_file(sibling(fixture, ".seal"), before, sizeof(before));
    assert_string_equal(before, after);
}

/* After a crash of the host size and times may be right and the bytes not. */
static void entry_sealed_in_another_boot_is_read_before_it_is_trusted(void **state)
{
    struct fixture *fixture = *state;
    char seal[1024];
    char *boot;

    open_expecting(fixture, IMAGE_CACHE_FILLED);
    read_file(sibling(fixture, ".seal"), seal, sizeof(seal));
    boot = strstr(seal, "boot ");
    assert_non_null(boot);
    boot[5] = boot[5] == '0' ? '1' : '0';
    write_file(sibling(fixture, ".seal"), seal);
    open_expecting(fixture, IMAGE_CACHE_HIT);

    seal[strlen(seal) - 2] =
        seal[strlen(seal) - 2] == '0' ? '1' : '0'; /* of the digest */
    write_file(sibling(fixture, ".seal"), seal);
    open_expecting_reason(fixture, IMAGE_CACHE_REBUILT,
                          "the cached kernel was damaged: its content has changed");
}

static void entry_that_is_no_file_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    char elsewhere[128];

    open_expecting(fixture, IMAGE_CACHE_FILLED);
    (void)snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", fixture->root);
    write_file(elsewhere, "mine");
    assert_int_equal(unlink(fixture->result.path), 0);
    assert_int_equal(symlink(elsewhere, fixture->result.path), 0);
    open_expecting_reason(fixture, IMAGE_CACHE_REBUILT,
                          "the cached kernel was damaged: it cannot be opened");
    assert_int_equal(access(elsewhere, F_OK), 0);

    assert_int_equal(unlink(fixture->result.path), 0);
    assert_int_equal(mkfifo(fixture->result.path, 0444), 0);
    open_expecting_reason(fixture, IMAGE_CACHE_REBUILT,
                          "the cached kernel was damaged: it is no regular file");
}

static void leftovers_of_crashes_are_removed(void **state)
{
    struct fixture *fixture = *state;
    char path[4300];

    open_expecting(fixture, IMAGE_CACHE_FILLED);
    assert_int_equal(unlink(fixture->result.path), 0);
    write_file(sibling(fixture, ".tmp"), "half a kernel");
    (void)snprintf(path, sizeof(path), "%s/%064d.tmp", fixture->directory, 7);
    write_file(path, "half of another one");
    open_expecting(fixture, IMAGE_CACHE_FILLED);
    assert_int_equal(count_names(fixture, ".tmp"), 0);
}

/* ---- bad payloads */

static void damaged_payload_is_an_error_and_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct error err = ERROR_NONE;

    fixture->packed[fixture->payload.size_bytes - 8] ^= 1; /* gzip's CRC */
    assert_true(image_cache_open(&fixture->source, &fixture->payload, &fixture->options,
                                 &fixture->result, &err) < 0);
    assert_int_equal(fixture->result.fd, -1);
    assert_int_equal(strncmp(err.text, "gzip stream", 11), 0);
    assert_int_equal(count_names(fixture, ".elf"), 0);
    assert_int_equal(count_names(fixture, ".tmp"), 0);
}

static void payload_outside_the_file_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct error err = ERROR_NONE;

    fixture->source.size_bytes = 100;
    assert_int_equal(image_cache_open(&fixture->source, &fixture->payload,
                                      &fixture->options, &fixture->result, &err),
                     -ERANGE);
    assert_int_equal(strncmp(err.text, "ends at byte 100, but ", 22), 0);
}

/* ---- ways around */

static void no_cache_unpacks_into_a_sealed_memory_file(void **state)
{
    struct fixture *fixture = *state;

    fixture->options.disabled = true;
    open_expecting_reason(fixture, IMAGE_CACHE_BYPASSED, "--no-cache");
    assert_int_equal(pwrite(fixture->result.fd, "x", 1, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fixture->result.fd, 0), -1);
    assert_int_equal(access(fixture->directory, F_OK), -1);
}

static void directory_that_cannot_be_made_is_bypassed(void **state)
{
    struct fixture *fixture = *state;
    char path[96];
    char reason[256];

    (void)snprintf(path, sizeof(path), "%s/a", fixture->root);
    write_file(path, "in the way");
    (void)snprintf(reason, sizeof(reason), "cannot open %s: Not a directory",
                   fixture->directory);
    open_expecting_reason(fixture, IMAGE_CACHE_BYPASSED, reason);
}

static void directory_that_others_can_write_is_bypassed(void **state)
{
    struct fixture *fixture = *state;
    char reason[256];

    open_expecting(fixture, IMAGE_CACHE_FILLED);
    assert_int_equal(chmod(fixture->directory, 0770), 0);
    (void)snprintf(reason, sizeof(reason),
                   "%s can be written by others (mode 0770); use chmod go-w",
                   fixture->directory);
    open_expecting_reason(fixture, IMAGE_CACHE_BYPASSED, reason);
}

static void directory_of_somebody_else_is_bypassed(void **state)
{
    struct fixture *fixture = *state;
    char reason[256];

    if (geteuid() != 0) {
        print_message("skipped: only root can give a directory away\n");
        skip();
    }
    open_expecting(fixture, IMAGE_CACHE_FILLED);
    assert_int_equal(chown(fixture->directory, 4711, 0), 0);
    (void)snprintf(reason, sizeof(reason), "%s belongs to user 4711, not to user 0",
                   fixture->directory);
    open_expecting_reason(fixture, IMAGE_CACHE_BYPASSED, reason);
}

static void lock_held_for_too_long_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct cache_directory directory;
    const struct cache_key key = {.digest = {1}};
    const struct cache_key other_key = {.digest = {99}};
    CLEANUP_FD int first = -1;
    CLEANUP_FD int second = -1;
    struct error err = ERROR_NONE;

    assert_int_equal(cache_directory_open(&directory, &fixture->options, true, &err), 0);
    assert_int_equal(cache_lock(&directory, &key, 0, &first, &err), 0);
    assert_int_equal(cache_lock(&directory, &key, 0, &second, &err), -ETIMEDOUT);
    assert_string_equal(err.text,
                        "another process still unpacks the same kernel after 0 ms");
    err = ERROR_NONE;
    assert_int_equal(cache_lock(&directory, &other_key, 0, &second, &err), 0);
    cache_directory_close(&directory);
}

/* Runs `act` in a child that has a small file system of its own at the cache's directory.
 * Skips where that is not permitted. */
static void in_small_file_system(struct fixture *fixture, const char *options,
                                 void (*act)(struct fixture *fixture))
{
    enum { CHILD_FAILED = 1, NOT_PERMITTED = 2 };
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        if (unshare(CLONE_NEWNS) < 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("none", fixture->root, "tmpfs", 0, options) < 0)
            _exit(NOT_PERMITTED);
        act(fixture);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_PERMITTED) {
        print_message("skipped: no mount namespace (not root?)\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In the child there is no cmocka: what must hold ends it with 1 and a line. */
static void must(bool holds, const char *what, const struct fixture *fixture)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s: outcome %d, reason '%s'\n", what,
                  (int)fixture->result.outcome, fixture->result.reason);
    _exit(1);
}

static void open_in_child(struct fixture *fixture)
{
    struct error err = ERROR_NONE;

    must(image_cache_open(&fixture->source, &fixture->payload, &fixture->options,
                          &fixture->result, &err) == 0,
         "must open", fixture);
    must(content_is_right(fixture), "must have the right bytes", fixture);
}

static void fill_full_disk(struct fixture *fixture)
{
    char reason[256];

    (void)snprintf(reason, sizeof(reason), "cannot write to %s: No space left on device",
                   fixture->directory);
    open_in_child(fixture);
    must(fixture->result.outcome == IMAGE_CACHE_BYPASSED, "must bypass", fixture);
    must(strcmp(fixture->result.reason, reason) == 0, "must say why", fixture);
    must(count_names(fixture, ".tmp") == 0, "must clean up", fixture);

    fixture->payload.unpacked_bytes = 0; /* not known in advance: full in the middle */
    open_in_child(fixture);
    must(strcmp(fixture->result.reason, reason) == 0, "must say why", fixture);
    must(count_names(fixture, ".tmp") == 0, "must clean up", fixture);
}

static void full_disk_is_bypassed(void **state)
{
    in_small_file_system(*state, "size=64k,mode=0700", fill_full_disk);
}

static void use_read_only(struct fixture *fixture)
{
    char reason[256];

    open_in_child(fixture);
    must(fixture->result.outcome == IMAGE_CACHE_FILLED, "must fill", fixture);
    must(mount("none", fixture->root, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) == 0,
         "must remount", fixture);
    open_in_child(fixture);
    must(fixture->result.outcome == IMAGE_CACHE_HIT, "must still hit", fixture);

    pack_kernel(fixture, 2);
    open_in_child(fixture);
    (void)snprintf(reason, sizeof(reason), "cannot open %s/lock: Read-only file system",
                   fixture->directory);
    must(fixture->result.outcome == IMAGE_CACHE_BYPASSED, "must bypass", fixture);
    must(strcmp(fixture->result.reason, reason) == 0, "must say why", fixture);
}

static void read_only_cache_still_serves(void **state)
{
    in_small_file_system(*state, "size=4m,mode=0700", use_read_only);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fills_once_and_then_hits),
        TEST(directories_are_created_for_their_owner_only),
        TEST(payload_names_the_entry_and_not_the_file_around_it),
        TEST(hit_notes_the_use_without_touching_the_entry),
        TEST(eight_starts_at_once_give_one_file),
        TEST(tampered_entry_is_rebuilt),
        TEST(truncated_entry_is_rebuilt),
        TEST(entry_without_a_whole_seal_is_rebuilt),
        TEST(touched_entry_with_the_same_content_is_sealed_again),
        TEST(entry_sealed_in_another_boot_is_read_before_it_is_trusted),
        TEST(entry_that_is_no_file_is_replaced),
        TEST(leftovers_of_crashes_are_removed),
        TEST(damaged_payload_is_an_error_and_leaves_nothing),
        TEST(payload_outside_the_file_is_an_error),
        TEST(no_cache_unpacks_into_a_sealed_memory_file),
        TEST(directory_that_cannot_be_made_is_bypassed),
        TEST(directory_that_others_can_write_is_bypassed),
        TEST(directory_of_somebody_else_is_bypassed),
        TEST(lock_held_for_too_long_is_an_error),
        TEST(full_disk_is_bypassed),
        TEST(read_only_cache_still_serves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
