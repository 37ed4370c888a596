/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, and which of them a command line means. */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "config/config.h"

#define MACHINE_ARGUMENTS "[OPTIONS] [IMAGE] [-- GUEST ARGS]"

#define JSON_DETAILS "With --json the answer is one JSON document.\n"
#define NAME_DETAILS                                                                     \
    "NAME may be left out if exactly one instance is running; 'husk list' shows them.\n"

const struct cli_command cli_commands[] = {
    {.name = "run",
     .arguments = MACHINE_ARGUMENTS,
     .summary = "boot a kernel and attach the console",
     .details =
         "On the console, Ctrl-A x ends the guest and Ctrl-A h lists the other keys.\n"
         "An option without a value may be followed by =yes or =no.\n",
     .function = cli_run,
     .takes_settings = true},
    {.name = "plan",
     .arguments = "[--json] " MACHINE_ARGUMENTS,
     .summary = "show what a boot would do; start nothing",
     .details = JSON_DETAILS,
     .function = cli_plan,
     .takes_settings = true},
    {.name = "inspect",
     .arguments = "[--json] IMAGE",
     .summary = "show what a kernel file says about itself",
     .details = JSON_DETAILS,
     .function = cli_inspect},
    {.name = "cache",
     .arguments = "[--json] list | clear",
     .summary = "show or remove the kernels unpacked for later starts",
     .details = JSON_DETAILS,
     .function = cli_cache},
    {.name = "doctor",
     .arguments = "[--json]",
     .summary = "show what this host offers husk, and how fast",
     .details = "Exit status 1 means that no accelerator works.\n" JSON_DETAILS,
     .function = cli_doctor},
    {.name = "list",
     .arguments = "[--json]",
     .summary = "list the running instances",
     .details = JSON_DETAILS,
     .function = cli_list},
    {.name = "stat",
     .arguments = "[--json] [NAME]",
     .summary = "show the state and the counters of an instance",
     .details = NAME_DETAILS JSON_DETAILS,
     .function = cli_stat},
    {.name = "stop",
     .arguments = "[--timeout SECONDS] [NAME]",
     .summary = "press the power button of an instance and wait for its end",
     .details = "A guest that does not listen, or not within the time (5 s), is "
                "stopped.\n" NAME_DETAILS,
     .function = cli_stop},
    {.name = "kill",
     .arguments = "[NAME]",
     .summary = "end an instance at once, without asking its guest",
     .details = NAME_DETAILS,
     .function = cli_kill},
    {.name = "pause",
     .arguments = "[NAME]",
     .summary = "let an instance execute nothing until it is resumed",
     .details = NAME_DETAILS,
     .function = cli_pause},
    {.name = "resume",
     .arguments = "[NAME]",
     .summary = "let a paused instance go on",
     .details = NAME_DETAILS,
     .function = cli_resume},
    {.name = "resize",
     .arguments = "[NAME]",
     .summary = "tell an instance the new sizes of its disks' files",
     .details = NAME_DETAILS,
     .function = cli_resize},
    {.name = "balloon",
     .arguments = "[NAME] SIZE",
     .summary = "ask a guest to do without so much of its memory",
     .details = "SIZE is in MiB, or with M, G or T behind the number; 0 gives all of it "
                "back.\n" NAME_DETAILS,
     .function = cli_balloon},
    {.name = "console",
     .arguments = "[--no-input] [NAME]",
     .summary = "attach to the console of an instance",
     .details =
         "Shows the last 1 MiB of output and what follows, and passes input to the\n"
         "guest unless --no-input says otherwise. On a terminal Ctrl-A x detaches and\n"
         "Ctrl-A h lists the other keys; the end of input does not "
         "detach.\n" NAME_DETAILS,
     .function = cli_console},
    {.name = "bench",
     .arguments = "NAME [--peer PROGRAM] [--runs NUMBER] [--accel LIST] [--only TEXT]\n"
                  "                  [--kernel FILE] [--programs LIST] [--tier LIST] "
                  "[--time WHICH]\n"
                  "                  [--engine LIST] [--size SIZE] [--guest DIRECTORY]\n"
                  "                  [--svg FILE] [--json]",
     .summary = "measure husk, beside another monitor if one is named",
     .details =
         "NAME is multiboot: time from process start to the first line of Multiboot\n"
         "kernels that are placed, or fetched by firmware; cpu: how long programs\n"
         "(--programs) take in a guest, and natively; boot: time from process start to\n"
         "a stock kernel's (--kernel) first program; or disk: fio and bonnie++ in a\n"
         "guest (--guest) with each of husk's disk engines (--engine), and natively.\n"
         "--peer names a QEMU (qemu-system-x86_64) that is run in turn with husk; "
         "--runs\n"
         "says how often, --accel on which of husk's accelerators, --only that a row's\n"
         "name must have TEXT in it. --svg draws a bar chart.\n"
         "Ctrl-C ends the measurement and shows what there is.\n" JSON_DETAILS,
     .function = cli_bench},
    {.name = "completion",
     .arguments = "bash | zsh | fish | words",
     .summary = "print a completion script for a shell",
     .details =
         "The scripts call 'husk completion words', which prints each word and its\n"
         "meaning.\n",
     .function = cli_completion},
    {.name = "version",
     .arguments = "",
     .summary = "print the version",
     .function = cli_version},
    {.name = "help",
     .arguments = "[COMMAND]",
     .summary = "describe husk, or one command",
     .function = cli_help},
    {.name = NULL},
};

/* Room for the names, a "--" word or two, and the end. */
#define MAX_NAMES 32

static const struct cli_command *find_command(const char *name)
{
    for (const struct cli_command *row = cli_commands; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* `hint` says why else the word could not be used; "" for nothing. */
static int refuse_unknown(const char *name, const char *hint, struct error *err)
{
    const char *names[MAX_NAMES];
    const char *nearest;
    size_t count = 0;

    for (const struct cli_command *row = cli_commands; row->name != NULL; row++)
        if (count + 1 < MAX_NAMES)
            names[count++] = row->name;
    names[count] = NULL;
    nearest = config_nearest(name, names);
    if (nearest != NULL)
        (void)error_set(err, EINVAL, "unknown command '%s'%s; did you mean '%s'?", name,
                        hint, nearest);
    else
        (void)error_set(err, EINVAL,
                        "unknown command '%s'%s; 'husk help' lists the commands", name,
                        hint);
    return EXIT_USAGE;
}

/* ---- help and version ---- */

static void print_overview(FILE *stream)
{
    (void)fprintf(stream,
                  "husk boots a kernel in a virtual machine.\n\n"
                  "Usage: husk %s\n"
                  "       husk COMMAND [ARGUMENTS]\n\n"
                  "Commands:\n",
                  MACHINE_ARGUMENTS);
    for (const struct cli_command *row = cli_commands; row->name != NULL; row++)
        (void)fprintf(stream, "  %-10s  %s\n", row->name, row->summary);
    (void)fprintf(stream,
                  "\n'husk help COMMAND' or 'husk COMMAND --help' describes a command; "
                  "husk(1) is the manual.\n");
}

static void print_command(FILE *stream, const struct cli_command *command)
{
    (void)fprintf(stream, "Usage: husk %s%s%s\n\n%s\n", command->name,
                  command->arguments[0] != '\0' ? " " : "", command->arguments,
                  command->summary);
    if (command->details != NULL)
        (void)fprintf(stream, "\n%s", command->details);
    if (!command->takes_settings)
        return;
    (void)fputc('\n', stream);
    config_print_help(stream);
}

int cli_help(int argc, char **argv, struct error *err)
{
    const struct cli_command *command;

    if (argc == 0) {
        print_overview(stdout);
        return 0;
    }
    if (argc > 1) {
        (void)error_set(err, EINVAL, "help takes one command; '%s' is too much", argv[1]);
        return EXIT_USAGE;
    }
    command = find_command(argv[0]);
    if (command == NULL)
        return refuse_unknown(argv[0], "", err);
    print_command(stdout, command);
    return 0;
}

int cli_version(int argc, char **argv, struct error *err)
{
    if (argc > 0) {
        (void)error_set(err, EINVAL, "version takes no argument; '%s' is too much",
                        argv[0]);
        return EXIT_USAGE;
    }
    (void)printf("husk " HUSK_VERSION "\n");
    return 0;
}

/* ---- dispatch ---- */

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int call(const struct cli_command *command, int argc, char **argv,
                struct error *err)
{
    if (asks_for_help(argc, argv)) {
        print_command(stdout, command);
        return 0;
    }
    return command->function(argc, argv, err);
}

/* Arguments behind the program's name. */
static int dispatch(int argc, char **argv, struct error *err)
{
    const struct cli_command *command;
    const char *word;

    if (argc < 1) {
        (void)error_set(err, EINVAL,
                        "nothing to do; name a kernel image or a command ('husk help' "
                        "lists the commands)");
        return EXIT_USAGE;
    }
    word = argv[0];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return cli_help(argc - 1, argv + 1, err);
    if (strcmp(word, "--version") == 0)
        return cli_version(argc - 1, argv + 1, err);
    command = find_command(word);
    if (command != NULL)
        return call(command, argc - 1, argv + 1, err);
    if (word[0] == '-' || strchr(word, '/') != NULL || access(word, F_OK) == 0)
        return call(find_command("run"), argc, argv, err);
    return refuse_unknown(word, ", and no file has that name", err);
}

/* True if standard output is a pipe or socket that nobody reads any more. */
static bool reader_is_gone(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

/* Results that did not reach standard output are a failure; a reader that has gone away
 * (`| head`) ends the command as SIGPIPE would, without a word. */
static int finish_output(int code, struct error *err)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (reader_is_gone())
        return code != 0 ? code : EXIT_SIGNAL_BASE + SIGPIPE;
    (void)error_set_errno(err, errno, "cannot write the output");
    return code != 0 ? code : EXIT_HOST_FAILURE;
}

int cli_main(int argc, char **argv)
{
    struct error err = ERROR_NONE;
    int code;

    fd_guard_standard();
    /* A closed socket or pipe, or a file at its limit (ulimit -f), is an error of that
     * one write, not the end of a guest. */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    code = dispatch(argc - 1, argv + 1, &err);
    code = finish_output(code, &err);
    if (err.code != 0)
        log_error("%s", err.text);
    return code;
}
