/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion for shells. The scripts know no words; they ask `husk completion words`, so
 * that they fit whichever husk is installed.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"

static const char bash_script[] =
    "_husk()\n"
    "{\n"
    "    local current=${COMP_WORDS[COMP_CWORD]}\n"
    "\n"
    "    COMPREPLY=()\n"
    "    if [[ $COMP_CWORD -eq 1 || $current == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(\n"
    "            compgen -W \"$(husk completion words | cut -f1)\" -- \"$current\")\n"
    "    fi\n"
    "}\n"
    "complete -o default -F _husk husk\n";

static const char zsh_script[] =
    "#compdef husk\n"
    "_husk()\n"
    "{\n"
    "    local -a words_and_help\n"
    "\n"
    "    if [[ $CURRENT -eq 2 || $PREFIX == -* ]]; then\n"
    "        words_and_help=(${(f)\"$(husk completion words |\n"
    "            sed 's/:/\\\\:/g; s/\\t/:/')\"})\n"
    "        _describe 'command or option' words_and_help\n"
    "    fi\n"
    "    _files\n"
    "}\n"
    "compdef _husk husk\n";

static const char fish_script[] =
    "complete -c husk -n '__fish_use_subcommand' -a '(husk completion words)'\n"
    "complete -c husk -n 'string match -q -- \"-*\" (commandline -ct)' \\\n"
    "    -a '(husk completion words)'\n";

static void print_words(void)
{
    for (const struct cli_command *row = cli_commands; row->name != NULL; row++)
        (void)printf("%s\t%s\n", row->name, row->summary);
    config_print_completions(stdout);
    (void)printf("--json\tprint one JSON document\n"
                 "--help\tdescribe the command\n");
}

int cli_completion(int argc, char **argv, struct error *err)
{
    static const struct {
        const char *shell;
        const char *script;
    } scripts[] = {
        {"bash", bash_script},
        {"zsh", zsh_script},
        {"fish", fish_script},
    };

    if (argc != 1) {
        (void)error_set(err, EINVAL, "completion needs one shell: bash, zsh or fish");
        return EXIT_USAGE;
    }
    if (strcmp(argv[0], "words") == 0) {
        print_words();
        return 0;
    }
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        if (strcmp(argv[0], scripts[i].shell) != 0)
            continue;
        (void)fputs(scripts[i].script, stdout);
        return 0;
    }
    (void)error_set(err, EINVAL, "no completion for '%s'; choose bash, zsh or fish",
                    argv[0]);
    return EXIT_USAGE;
}
