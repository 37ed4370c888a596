/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of children; see arguments_private.h. */
#include "bench/arguments_private.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

static const struct {
    const char *husk;
    const char *peer;
} accelerators[] = {{"soft", "tcg"}, {"kvm", "kvm"}};

void bench_arguments_append(struct bench_arguments *arguments, const char *const *words)
{
    for (; *words != NULL; words++) {
        CHECK(arguments->count + 1 < BENCH_MAX_ARGUMENTS);
        arguments->words[arguments->count++] = *words;
    }
    arguments->words[arguments->count] = NULL;
}

const char *bench_peer_accel(const char *husk_accel)
{
    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++)
        if (strcmp(accelerators[i].husk, husk_accel) == 0)
            return accelerators[i].peer;
    return husk_accel;
}

const char *bench_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}
