/* SPDX-License-Identifier: Apache-2.0 */
/* Instance directories: names, locks, what dead processes leave, hostile bases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/instances_private.h"
#include "base/bytes.h"
#include "base/fd.h"

static char runtime[32];
static char base[sizeof(runtime) + sizeof("/husk")];

static int set_up(void **state)
{
    (void)state;
    memcpy(runtime, "/tmp/husk-test-XXXXXX", sizeof("/tmp/husk-test-XXXXXX"));
    assert_non_null(mkdtemp(runtime));
    (void)snprintf(base, sizeof(base), "%s/husk", runtime);
    return setenv("XDG_RUNTIME_DIR", runtime, 1);
}

/* Fails if a test has left something behind. */
static int tear_down(void **state)
{
    (void)state;
    assert_true(rmdir(base) == 0 || errno == ENOENT);
    return rmdir(runtime);
}

static struct instance *create(const char *name)
{
    struct instance *instance = NULL;
    struct error err = ERROR_NONE;
    int status = instance_create(name, &instance, &err);

    assert_string_equal(err.text, "");
    assert_int_equal(status, 0);
    return instance;
}

static void assert_create_fails(const char *name, int code, const char *text)
{
    struct instance *instance = NULL;
    struct error err = ERROR_NONE;

    assert_int_equal(instance_create(name, &instance, &err), code);
    assert_string_equal(err.text, text);
    assert_null(instance);
}

static bool exists(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", base, name);
    return access(path, F_OK) == 0;
}

static void leave_file(const char *name)
{
    char path[128];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", base, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static void leave_directory(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", base, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void remove_file(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", base, name);
    assert_int_equal(remove(path), 0);
}

/* ---- a process that holds a name ---- */

/* Starts a process that creates instance `name` and then waits to be killed. */
static pid_t start_holder(const char *name)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct instance *instance;
        struct error err = ERROR_NONE;

        if (instance_create(name, &instance, &err) < 0 || write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(close(ready[1]), 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(close(ready[0]), 0);
    return pid;
}

static void kill_holder(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- lists ---- */

struct names {
    char text[256]; /* each with a blank behind it */
};

static void add_name(void *context, const struct instance_info *info)
{
    struct names *names = context;
    size_t used = strlen(names->text);

    assert_int_equal(info->pid, getpid());
    (void)snprintf(names->text + used, sizeof(names->text) - used, "%s ", info->name);
}

static void assert_list(const char *expected)
{
    struct names names = {.text = ""};
    struct error err = ERROR_NONE;

    assert_int_equal(instance_list(add_name, &names, &err), 0);
    assert_string_equal(names.text, expected);
}

static void assert_find_fails(const char *name, int code, const char *text)
{
    struct instance_info info;
    struct error err = ERROR_NONE;

    assert_int_equal(instance_find(name, &info, &err), code);
    assert_string_equal(err.text, text);
}

/* ---- names ---- */

static void refuses_names_outside_the_rules(void **state)
{
    static const char too_long[] =
        "0123456789012345678901234567890123456789012345678901234567890123x";

    (void)state;
    assert_create_fails("", -EINVAL, "an instance name must not be empty");
    assert_create_fails(too_long, -EINVAL,
                        "an instance name has at most 64 characters, this one 65");
    assert_create_fails("../x", -EINVAL,
                        "an instance name consists of A-Z a-z 0-9 . _ -, character 3 of "
                        "this one is another");
    assert_create_fails("a b", -EINVAL,
                        "an instance name consists of A-Z a-z 0-9 . _ -, character 2 of "
                        "this one is another");
    assert_create_fails("n\303\244me", -EINVAL,
                        "an instance name consists of A-Z a-z 0-9 . _ -, character 2 of "
                        "this one is another");
    assert_create_fails("..", -EINVAL, "instance name \"..\" starts with a dot");
    assert_create_fails(".hidden", -EINVAL,
                        "instance name \".hidden\" starts with a dot");
    assert_find_fails("a/b", -EINVAL,
                      "an instance name consists of A-Z a-z 0-9 . _ -, character 2 of "
                      "this one is another");
}

static void takes_names_at_the_edge_of_the_rules(void **state)
{
    static const char *const names[] = {
        "a", "-", "_", "A.b-c_9",
        "0123456789012345678901234567890123456789012345678901234567890123"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct instance *instance = create(names[i]);

        assert_string_equal(instance_name(instance), names[i]);
        instance_destroy(instance);
    }
}

static void makes_a_name_of_the_pid_and_counts_on(void **state)
{
    char first[32];
    char second[32];
    struct instance *a = create(NULL);
    struct instance *b = create(NULL);

    (void)state;
    (void)snprintf(first, sizeof(first), "husk-%ld", (long)getpid());
    (void)snprintf(second, sizeof(second), "husk-%ld-2", (long)getpid());
    assert_string_equal(instance_name(a), first);
    assert_string_equal(instance_name(b), second);
    instance_destroy(a);
    instance_destroy(b);
}

/* ---- the directory's life ---- */

static void creates_a_private_directory_and_removes_it(void **state)
{
    struct instance *instance = create("web");
    struct error err = ERROR_NONE;
    struct stat status;
    char directory[64];

    (void)state;
    (void)snprintf(directory, sizeof(directory), "%s/web", base);
    assert_string_equal(instance_directory(instance), directory);
    assert_int_equal(stat(base, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(stat(directory, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(instance_write_info(instance, "{}", &err), 0);
    assert_true(exists("web/info.json"));
    assert_false(exists("web/info.json.tmp"));
    leave_file("web/api.sock");
    leave_file("web/console.sock");
    instance_destroy(instance);
    assert_false(exists("web"));
}

static void destroys_nothing(void **state)
{
    (void)state;
    instance_destroy(NULL);
}

static void refuses_a_name_in_use_and_names_the_holder(void **state)
{
    pid_t holder = start_holder("web");
    char text[160];

    (void)state;
    (void)snprintf(text, sizeof(text),
                   "instance name \"web\" is in use by process %ld: choose another "
                   "--name, or end that one with: husk stop web",
                   (long)holder);
    assert_create_fails("web", -EADDRINUSE, text);
    kill_holder(holder);
    instance_destroy(create("web"));
}

static void a_killed_process_leaves_its_name_free(void **state)
{
    pid_t holder = start_holder("web");
    struct instance_info info;
    struct error err = ERROR_NONE;
    char directory[64];
    struct instance *instance;

    (void)state;
    (void)snprintf(directory, sizeof(directory), "%s/web", base);
    assert_int_equal(instance_find("web", &info, &err), 0);
    assert_int_equal(info.pid, holder);
    assert_string_equal(info.name, "web");
    assert_string_equal(info.directory, directory);
    leave_file("web/api.sock");
    kill_holder(holder);
    assert_true(exists("web/api.sock"));

    instance = create("web");
    assert_false(exists("web/api.sock"));
    assert_list("web ");
    instance_destroy(instance);
}

static void listing_removes_what_the_dead_left(void **state)
{
    pid_t holder = start_holder("dead");
    struct instance *zebra = create("zebra");
    struct instance *ape = create("ape");

    (void)state;
    leave_file("dead/console.sock");
    leave_file("dead/info.json");
    kill_holder(holder);
    leave_directory("empty");
    assert_list("ape zebra ");
    assert_false(exists("dead"));
    assert_false(exists("empty"));
    instance_destroy(ape);
    instance_destroy(zebra);
}

static void foreign_files_in_a_dead_directory_stay(void **state)
{
    pid_t holder = start_holder("dead");

    (void)state;
    leave_file("dead/notes.txt");
    kill_holder(holder);
    assert_list("");
    assert_true(exists("dead/notes.txt"));
    assert_false(exists("dead/lock"));
    remove_file("dead/notes.txt");
    remove_file("dead");
}

static void an_instance_whose_directory_was_replaced_leaves_the_new_one(void **state)
{
    struct instance *first = create("web");
    struct instance *second;

    (void)state;
    remove_file("web/lock");
    remove_file("web");
    second = create("web");
    instance_destroy(first);
    assert_true(exists("web/lock"));
    assert_list("web ");
    instance_destroy(second);
}

static void without_a_base_directory_nothing_runs(void **state)
{
    (void)state;
    assert_list("");
    assert_find_fails("web", -ENOENT,
                      "no running instance is named \"web\"; see: husk list");
    assert_int_equal(access(base, F_OK), -1);
}

static void finding_suggests_the_nearest_name(void **state)
{
    struct instance *instance = create("webserver");

    (void)state;
    assert_find_fails("webservr", -ENOENT,
                      "no running instance is named \"webservr\"; did you mean "
                      "\"webserver\"?");
    assert_find_fails("database", -ENOENT,
                      "no running instance is named \"database\"; see: husk list");
    instance_destroy(instance);
}

/* ---- hostile and odd bases ---- */

static void refuses_a_base_that_is_a_link(void **state)
{
    char text[160];

    (void)state;
    (void)snprintf(text, sizeof(text), "%s is no directory: remove it", base);
    assert_int_equal(symlink("/tmp", base), 0);
    assert_create_fails("web", -ENOTDIR, text);
    assert_int_equal(unlink(base), 0);
}

static void refuses_a_base_that_is_a_file(void **state)
{
    char text[160];
    int fd = open(base, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    (void)state;
    (void)snprintf(text, sizeof(text), "%s is no directory: remove it", base);
    assert_int_equal(close(fd), 0);
    assert_create_fails("web", -ENOTDIR, text);
    assert_find_fails("web", -ENOTDIR, text);
    assert_int_equal(unlink(base), 0);
}

static void refuses_a_base_that_is_open_to_others(void **state)
{
    char text[160];

    (void)state;
    (void)snprintf(text, sizeof(text), "%s is open to others (mode 1777): chmod 700 it",
                   base);
    assert_int_equal(mkdir(base, 0700), 0);
    assert_int_equal(chmod(base, 01777), 0);
    assert_create_fails("web", -EPERM, text);
    assert_false(exists("web"));
}

static void refuses_a_base_of_another_user(void **state)
{
    char text[200];

    (void)state;
    if (geteuid() != 0) {
        print_message("needs root to make a directory of another user\n");
        skip();
    }
    (void)snprintf(text, sizeof(text),
                   "%s belongs to user 12345, not to 0 who runs husk: set "
                   "XDG_RUNTIME_DIR to a directory of your own",
                   base);
    assert_int_equal(mkdir(base, 0700), 0);
    assert_int_equal(chown(base, 12345, 0), 0);
    assert_create_fails("web", -EPERM, text);
    assert_false(exists("web"));
}

static void refuses_paths_too_long_for_a_socket(void **state)
{
    char longest[128];
    char longest_base[160];
    char text[400];
    struct instance *instance;
    size_t length;

    (void)state;
    /* "RUNTIME/ppp/husk/x/console.sock" of 107 bytes is the longest that fits. */
    length = 107 - strlen(runtime) - strlen("//husk/x/console.sock");
    (void)snprintf(longest, sizeof(longest), "%s/%0*d", runtime, (int)length, 0);
    assert_int_equal(mkdir(longest, 0700), 0);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", longest, 1), 0);
    instance = create("x");
    instance_destroy(instance);
    (void)snprintf(text, sizeof(text),
                   "%s/husk/xy/console.sock is too long for a socket's path (108 bytes, "
                   "at most 107): set XDG_RUNTIME_DIR to a shorter path, or choose a "
                   "shorter --name",
                   longest);
    assert_create_fails("xy", -ENAMETOOLONG, text);
    (void)snprintf(longest_base, sizeof(longest_base), "%s/husk", longest);
    assert_int_equal(rmdir(longest_base), 0);
    assert_int_equal(rmdir(longest), 0);
}

static void refuses_a_runtime_directory_beyond_all_bounds(void **state)
{
    char endless[600];

    (void)state;
    memset(endless, 'x', sizeof(endless) - 1);
    endless[0] = '/';
    endless[sizeof(endless) - 1] = '\0';
    assert_int_equal(setenv("XDG_RUNTIME_DIR", endless, 1), 0);
    assert_create_fails("web", -ENAMETOOLONG,
                        "XDG_RUNTIME_DIR is too long for a socket's path: set it to a "
                        "shorter one");
}

/* ---- many at once ---- */

#define CONTENDERS 3
#define ROUNDS 40

/* Takes and leaves the name over and over; 0 if it was never shared with anybody. */
static int contend(int marker_directory)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct instance *instance;
        struct error err = ERROR_NONE;
        int status;
        int marker;

        do {
            err = ERROR_NONE;
            status = instance_create("prize", &instance, &err);
        } while (status == -EADDRINUSE);
        if (status < 0)
            return 2;
        marker = openat(marker_directory, "held", O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (marker < 0)
            return 3;
        (void)close(marker);
        if (unlinkat(marker_directory, "held", 0) < 0)
            return 4;
        instance_destroy(instance);
    }
    return 0;
}

static void look_on(void *context, const struct instance_info *info)
{
    (void)context;
    (void)info;
}

static void a_name_has_one_holder_whatever_others_do(void **state)
{
    int markers = open(runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pid_t contenders[CONTENDERS];
    pid_t onlooker;

    (void)state;
    assert_true(markers >= 0);
    for (size_t i = 0; i < CONTENDERS; i++) {
        contenders[i] = fork();
        assert_true(contenders[i] >= 0);
        if (contenders[i] == 0)
            _exit(contend(markers));
    }
    onlooker = fork(); /* it looks, and removes what seems dead */
    assert_true(onlooker >= 0);
    if (onlooker == 0)
        for (;;) {
            struct error err = ERROR_NONE;

            if (instance_list(look_on, NULL, &err) < 0)
                _exit(1);
        }
    for (size_t i = 0; i < CONTENDERS; i++) {
        int status;

        assert_int_equal(waitpid(contenders[i], &status, 0), contenders[i]);
        assert_int_equal(status, 0);
    }
    kill_holder(onlooker);
    assert_list("");
    assert_int_equal(close(markers), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(refuses_names_outside_the_rules),
        TEST(takes_names_at_the_edge_of_the_rules),
        TEST(makes_a_name_of_the_pid_and_counts_on),
        TEST(creates_a_private_directory_and_removes_it),
        TEST(destroys_nothing),
        TEST(refuses_a_name_in_use_and_names_the_holder),
        TEST(a_killed_process_leaves_its_name_free),
        TEST(listing_removes_what_the_dead_left),
        TEST(foreign_files_in_a_dead_directory_stay),
        TEST(an_instance_whose_directory_was_replaced_leaves_the_new_one),
        TEST(without_a_base_directory_nothing_runs),
        TEST(finding_suggests_the_nearest_name),
        TEST(refuses_a_base_that_is_a_link),
        TEST(refuses_a_base_that_is_a_file),
        TEST(refuses_a_base_that_is_open_to_others),
        TEST(refuses_a_base_of_another_user),
        TEST(refuses_paths_too_long_for_a_socket),
        TEST(refuses_a_runtime_directory_beyond_all_bounds),
        TEST(a_name_has_one_holder_whatever_others_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
