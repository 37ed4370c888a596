/* SPDX-License-Identifier: Apache-2.0 */
/* Which command a command line means, and what is printed where. The commands that do
 * something are replaced by ones that only note their arguments; argv[1] is the source of
 * husk(1). */
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
#include <unistd.h>

#include "cli/cli.h"

static char *manual;

/* ---- the commands ---- */

static char called[256]; /* "plan: --json vmlinux" */

static int note(const char *name, int argc, char **argv, struct error *err)
{
    size_t used = (size_t)snprintf(called, sizeof(called), "%s:", name);

    for (int i = 0; i < argc && used < sizeof(called); i++)
        used += (size_t)snprintf(called + used, sizeof(called) - used, " %s", argv[i]);
    if (argc > 0 && strcmp(argv[0], "fail") == 0) {
        (void)error_set(err, EIO, "it failed");
        return EXIT_HOST_FAILURE;
    }
    return EXIT_POWER_OFF;
}

#define NOTING_COMMAND(name)                                                             \
    int cli_##name(int argc, char **argv, struct error *err)                             \
    {                                                                                    \
        return note(#name, argc, argv, err);                                             \
    }
NOTING_COMMAND(run)
NOTING_COMMAND(plan)
NOTING_COMMAND(inspect)
NOTING_COMMAND(cache)
NOTING_COMMAND(doctor)
NOTING_COMMAND(list)
NOTING_COMMAND(stat)
NOTING_COMMAND(stop)
NOTING_COMMAND(kill)
NOTING_COMMAND(pause)
NOTING_COMMAND(resume)
NOTING_COMMAND(resize)
NOTING_COMMAND(balloon)
NOTING_COMMAND(console)
NOTING_COMMAND(bench)

/* ---- running husk ---- */

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static char output[16384]; /* standard output and standard error of the last husk() */
static char complaint[2048];

static void read_back(FILE *file, char *text, size_t capacity)
{
    size_t size_bytes;

    rewind(file);
    size_bytes = fread(text, 1, capacity - 1, file);
    text[size_bytes] = '\0';
    assert_int_equal(fclose(file), 0);
}

/* Runs cli_main with standard output on `output_fd`, returns its exit code. */
static int husk_into(int output_fd, const char *const *words)
{
    FILE *errors = tmpfile();
    int old_output = dup(STDOUT_FILENO);
    int old_errors = dup(STDERR_FILENO);
    char *argv[16];
    int argc = 0;
    int code;

    assert_non_null(errors);
    argv[argc++] = strdup("husk");
    for (; *words != NULL; words++)
        argv[argc++] = strdup(*words);
    argv[argc] = NULL;
    called[0] = '\0';
    (void)fflush(stdout);
    assert_int_equal(dup2(output_fd, STDOUT_FILENO), STDOUT_FILENO);
    assert_int_equal(dup2(fileno(errors), STDERR_FILENO), STDERR_FILENO);
    code = cli_main(argc, argv);
    assert_int_equal(dup2(old_output, STDOUT_FILENO), STDOUT_FILENO);
    assert_int_equal(dup2(old_errors, STDERR_FILENO), STDERR_FILENO);
    clearerr(stdout);
    (void)close(old_output);
    (void)close(old_errors);
    while (argc > 0)
        free(argv[--argc]);
    read_back(errors, complaint, sizeof(complaint));
    return code;
}

static int husk(const char *const *words)
{
    FILE *file = tmpfile();
    int code;

    assert_non_null(file);
    code = husk_into(fileno(file), words);
    read_back(file, output, sizeof(output));
    return code;
}

static void expect_called(const char *const *words, const char *call)
{
    assert_int_equal(husk(words), 0);
    assert_string_equal(called, call);
    assert_string_equal(complaint, "");
}

static void expect_refused(const char *const *words, const char *line)
{
    assert_int_equal(husk(words), EXIT_USAGE);
    assert_string_equal(complaint, line);
    assert_string_equal(output, "");
    assert_string_equal(called, "");
}

/* ---- tests ---- */

static void calls_the_named_command(void **state)
{
    (void)state;
    expect_called(WORDS("plan", "--json", "vmlinux"), "plan: --json vmlinux");
    expect_called(WORDS("list"), "list:");
    expect_called(WORDS("stop", "web"), "stop: web");
    expect_called(WORDS("run", "-k", "vmlinux", "--", "--help"),
                  "run: -k vmlinux -- --help");
}

static void options_and_images_mean_run(void **state)
{
    char path[] = "husk-image-XXXXXX";
    char expected[64];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    expect_called(WORDS("--kernel", "vmlinux"), "run: --kernel vmlinux");
    expect_called(WORDS("-m", "64"), "run: -m 64");
    expect_called(WORDS("./vmlinux", "--", "quiet"), "run: ./vmlinux -- quiet");
    expect_called(WORDS("/missing/vmlinux"), "run: /missing/vmlinux");
    (void)snprintf(expected, sizeof(expected), "run: %s -v", path);
    expect_called(WORDS(path, "-v"), expected);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(close(fd), 0);
}

static void names_the_nearest_command(void **state)
{
    (void)state;
    expect_refused(WORDS("rnu", "vmlinux"),
                   "husk: unknown command 'rnu', and no file has "
                   "that name; did you mean 'run'?\n");
    expect_refused(WORDS("vmlinux-missing"),
                   "husk: unknown command 'vmlinux-missing', and no file has that name; "
                   "'husk help' lists the commands\n");
    expect_refused(WORDS("help", "plam"),
                   "husk: unknown command 'plam'; did you mean 'plan'?\n");
}

static void refuses_to_do_nothing(void **state)
{
    (void)state;
    expect_refused((const char *const[]){NULL},
                   "husk: nothing to do; name a kernel image or a command ('husk help' "
                   "lists the commands)\n");
}

static void prints_the_error_of_a_command(void **state)
{
    (void)state;
    assert_int_equal(husk(WORDS("inspect", "fail")), EXIT_HOST_FAILURE);
    assert_string_equal(complaint, "husk: it failed\n");
    assert_string_equal(output, "");
}

static void help_lists_each_command(void **state)
{
    (void)state;
    assert_int_equal(husk(WORDS("help")), 0);
    for (const struct cli_command *row = cli_commands; row->name != NULL; row++) {
        char line[128];

        (void)snprintf(line, sizeof(line), "\n  %-10s  %s\n", row->name, row->summary);
        assert_non_null(strstr(output, line));
    }
    assert_int_equal(husk(WORDS("--help")), 0);
    assert_non_null(strstr(output, "Usage: husk [OPTIONS] [IMAGE] [-- GUEST ARGS]\n"));
    assert_int_equal(husk(WORDS("-h")), 0);
    assert_non_null(strstr(output, "Usage: husk [OPTIONS] [IMAGE] [-- GUEST ARGS]\n"));
}

static void help_describes_one_command(void **state)
{
    static const char run_help[] = "Usage: husk run [OPTIONS] [IMAGE] [-- GUEST ARGS]\n"
                                   "\n"
                                   "boot a kernel and attach the console\n"
                                   "\n"
                                   "On the console, Ctrl-A x ends the guest and Ctrl-A h "
                                   "lists the other keys.\n"
                                   "An option without a value may be followed by =yes or "
                                   "=no.\n"
                                   "\n"
                                   "Boot:\n"
                                   "  -k, --kernel FILE ";

    (void)state;
    assert_int_equal(husk(WORDS("help", "run")), 0);
    assert_memory_equal(output, run_help, strlen(run_help));
    assert_int_equal(husk(WORDS("run", "vmlinux", "--help")), 0);
    assert_memory_equal(output, run_help, strlen(run_help));
    assert_string_equal(called, "");
    assert_int_equal(husk(WORDS("kill", "-h")), 0);
    assert_string_equal(output,
                        "Usage: husk kill [NAME]\n"
                        "\n"
                        "end an instance at once, without asking its guest\n"
                        "\n"
                        "NAME may be left out if exactly one instance is running; "
                        "'husk list' shows them.\n");
    assert_int_equal(husk(WORDS("version", "--help")), 0);
    assert_string_equal(output, "Usage: husk version\n\nprint the version\n");
    expect_refused(WORDS("help", "run", "plan"),
                   "husk: help takes one command; 'plan' is too much\n");
}

static void prints_the_version(void **state)
{
    (void)state;
    assert_int_equal(husk(WORDS("version")), 0);
    assert_string_equal(output, "husk " HUSK_VERSION "\n");
    assert_int_equal(husk(WORDS("--version")), 0);
    assert_string_equal(output, "husk " HUSK_VERSION "\n");
    expect_refused(WORDS("version", "2"),
                   "husk: version takes no argument; '2' is too much\n");
}

static void completion_knows_commands_and_options(void **state)
{
    (void)state;
    assert_int_equal(husk(WORDS("completion", "words")), 0);
    assert_non_null(strstr(output, "plan\tshow what a boot would do; start nothing\n"));
    assert_non_null(strstr(output, "\n--cpus\tvirtual processors\n"));
    assert_non_null(strstr(output, "\n--json\t"));
    expect_refused(WORDS("completion"),
                   "husk: completion needs one shell: bash, zsh or fish\n");
    expect_refused(WORDS("completion", "tcsh"),
                   "husk: no completion for 'tcsh'; choose bash, zsh or fish\n");
}

/* Each script asks the installed husk, so that it cannot grow stale. */
static void completion_scripts_ask_husk(void **state)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};

    (void)state;
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        assert_int_equal(husk(WORDS("completion", shells[i])), 0);
        assert_non_null(strstr(output, "husk completion words"));
    }
}

static void closed_pipe_ends_the_command_silently(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(husk_into(ends[1], WORDS("help", "run")),
                     EXIT_SIGNAL_BASE + SIGPIPE);
    assert_string_equal(complaint, "");
    assert_int_equal(close(ends[1]), 0);
}

static void full_disk_is_an_error(void **state)
{
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(husk_into(fd, WORDS("version")), EXIT_HOST_FAILURE);
    assert_string_equal(complaint,
                        "husk: cannot write the output: No space left on device\n");
    assert_int_equal(close(fd), 0);
}

/* "*stop* _NAME_" at the start of a line of the section COMMANDS. */
static void manual_describes_each_command(void **state)
{
    const char *section = strstr(manual, "\n# COMMANDS\n");
    const char *end = strstr(manual, "\n# OPTIONS\n");

    (void)state;
    assert_non_null(section);
    assert_non_null(end);
    for (const struct cli_command *row = cli_commands; row->name != NULL; row++) {
        char heading[32];
        const char *at;

        (void)snprintf(heading, sizeof(heading), "\n*%s*", row->name);
        at = strstr(section, heading);
        if (at == NULL || at > end)
            fail_msg("husk(1) does not describe '%s'", row->name);
    }
}

static void manual_describes_each_exit_code(void **state)
{
    static const int codes[] = {
        EXIT_POWER_OFF,      EXIT_HOST_FAILURE, EXIT_USAGE,     EXIT_GUEST_CRASHED,
        EXIT_GUEST_REBOOTED, EXIT_STOPPED,      EXIT_TIMED_OUT,
    };
    const char *section = strstr(manual, "\n# EXIT STATUS\n");

    (void)state;
    assert_non_null(section);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        char heading[16];

        (void)snprintf(heading, sizeof(heading), "\n*%d*\n", codes[i]);
        if (strstr(section, heading) == NULL)
            fail_msg("husk(1) does not describe exit code %d", codes[i]);
    }
}

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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_the_named_command),
        cmocka_unit_test(options_and_images_mean_run),
        cmocka_unit_test(names_the_nearest_command),
        cmocka_unit_test(refuses_to_do_nothing),
        cmocka_unit_test(prints_the_error_of_a_command),
        cmocka_unit_test(help_lists_each_command),
        cmocka_unit_test(help_describes_one_command),
        cmocka_unit_test(prints_the_version),
        cmocka_unit_test(completion_knows_commands_and_options),
        cmocka_unit_test(completion_scripts_ask_husk),
        cmocka_unit_test(closed_pipe_ends_the_command_silently),
        cmocka_unit_test(full_disk_is_an_error),
        cmocka_unit_test(manual_describes_each_command),
        cmocka_unit_test(manual_describes_each_exit_code),
    };
    int failed;

    if (argc != 2)
        return 2;
    manual = read_text(argv[1]);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(manual);
    return failed;
}
