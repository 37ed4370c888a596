/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that talk to running instances have in common. */
#ifndef HUSK_CLI_CONTROL_PRIVATE_H
#define HUSK_CLI_CONTROL_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "base/error.h"

/* What a command understands (--help is the same for all, see commands.c). */
enum control_option {
    CONTROL_NAME = 1,     /* the instance; may be left out if only one is running */
    CONTROL_JSON = 2,     /* --json */
    CONTROL_TIMEOUT = 4,  /* --timeout SECONDS */
    CONTROL_NO_INPUT = 8, /* --no-input */
    CONTROL_SIZE = 16,    /* whole MiB, behind the name */
};

struct control_request {
    struct instance_info instance; /* with CONTROL_NAME */
    bool json;
    bool no_input;
    uint64_t size_bytes;      /* with CONTROL_SIZE */
    uint64_t timeout_seconds; /* DEFAULT_STOP_SECONDS if not given */
};

/* How long a guest has to react to the power button, as in `husk run`. */
#define DEFAULT_STOP_SECONDS 5

/* Parses the arguments of a command that understands `options` (of enum control_option)
 * and finds the instance. Returns 0, or the command's exit code with *err filled. */
int control_begin(unsigned options, int argc, char **argv,
                  struct control_request *request, struct error *err);

#endif
