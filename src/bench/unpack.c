/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking a kernel for those who start it unpacked; see files_private.h. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/files_private.h"
#include "bench/process_private.h"

#define UNPACK_TIMEOUT_MS 120000

/* The only kernel in the cache; NULL: there is none. */
static char *find_unpacked(const char *directory)
{
    char *pattern;
    char *found = NULL;
    glob_t matches = {.gl_pathc = 0};

    if (asprintf(&pattern, "%s/*.elf", directory) < 0)
        return NULL;
    if (glob(pattern, 0, NULL, &matches) == 0)
        found = strdup(matches.gl_pathv[0]);
    globfree(&matches);
    free(pattern);
    return found;
}

/* husk itself fills the cache, by a plan. */
char *bench_unpack_kernel(const struct bench_options *options, const char *cache,
                          const char *kernel, struct error *err)
{
    const char *const arguments[] = {cache, options->husk, "plan", kernel, NULL};
    const struct bench_command command = {.arguments = arguments,
                                          .line = "\n",
                                          .timeout_ms = UNPACK_TIMEOUT_MS,
                                          .end_timeout_ms = UNPACK_TIMEOUT_MS,
                                          .interrupt_fd = options->interrupt_fd};
    struct bench_process process;
    char *unpacked;

    if (bench_process_run(&command, &process, err) < 0) {
        (void)error_prefix(err, "unpacking %s", kernel);
        return NULL;
    }
    unpacked = find_unpacked(strchr(cache, '=') + 1);
    if (unpacked == NULL)
        (void)error_set(err, EINVAL,
                        "kernel %s: husk has put nothing of it into its cache; this "
                        "bench needs a vmlinuz that it can unpack",
                        kernel);
    return unpacked;
}
