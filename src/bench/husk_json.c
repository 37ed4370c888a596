/* SPDX-License-Identifier: Apache-2.0 */
/* Asking husk; see husk_json_private.h. */
#include "bench/husk_json_private.h"

#include <string.h>

#include "bench/process_private.h"

/* For an answer of a husk that runs. */
#define STAT_TIMEOUT_MS UINT64_C(5000)

json_t *husk_json_timer(const char *errors)
{
    const char *start = strstr(errors, "{\"schema\":");

    return start == NULL ? NULL : json_loads(start, JSON_DISABLE_EOF_CHECK, NULL);
}

json_t *husk_json_stat(const struct bench_options *options, const char *name)
{
    const char *const words[] = {options->husk, "stat", "--json", name, NULL};
    const struct bench_command command = {.arguments = words,
                                          .line = "\n",
                                          .timeout_ms = STAT_TIMEOUT_MS,
                                          .end_timeout_ms = STAT_TIMEOUT_MS,
                                          .interrupt_fd = -1};
    struct bench_process process;
    struct error ignored = ERROR_NONE;

    if (bench_process_run(&command, &process, &ignored) < 0)
        return NULL;
    return json_loads(process.output.bytes, 0, NULL);
}
