/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: one function a command, called from the table in commands.c. */
#ifndef HUSK_CLI_CLI_H
#define HUSK_CLI_CLI_H

#include <stdbool.h>

#include "base/error.h"

/* Exit codes (docs/husk.1.scd). */
enum exit_code {
    EXIT_POWER_OFF = 0,
    EXIT_HOST_FAILURE = 1,
    EXIT_USAGE = 2,
    EXIT_GUEST_CRASHED = 3,
    EXIT_GUEST_REBOOTED = 4,
    EXIT_STOPPED = 5,
    EXIT_TIMED_OUT = 124,
    EXIT_SIGNAL_BASE = 128,
};

/* Each gets argv behind the command's name, prints results on stdout, returns an exit
 * code. On failure it has filled *err and main prints it. */
typedef int cli_function(int argc, char **argv, struct error *err);

cli_function cli_run, cli_plan, cli_inspect, cli_cache, cli_doctor, cli_list, cli_stat,
    cli_stop, cli_kill, cli_pause, cli_resume, cli_resize, cli_balloon, cli_console,
    cli_help, cli_version, cli_completion, cli_bench;

struct cli_command {
    const char *name;
    const char *arguments; /* "[OPTIONS] [IMAGE] [-- GUEST ARGS]" */
    const char *summary;   /* one line, for the list of commands */
    const char *details; /* sentences for its help, with their line breaks; NULL: none */
    cli_function *function;
    bool takes_settings; /* the options of config/: listed in its help */
};

/* All of them, NULL-terminated (commands.c). */
extern const struct cli_command cli_commands[];

/* Runs argv[1], or for an option or path "run". Prints the error. Returns the exit code.
 */
int cli_main(int argc, char **argv);

#endif
