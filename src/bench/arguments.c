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

/* How husk and QEMU are told the same. */
enum option {
    OPTION_ACCEL,
    OPTION_MEMORY,
    OPTION_PROCESSORS,
    OPTION_KERNEL,
    OPTION_INITRAMFS,
    OPTION_CMDLINE,
    OPTION_COUNT
};

static const char *const husk_options[OPTION_COUNT] = {
    [OPTION_ACCEL] = "--accel",      [OPTION_MEMORY] = "--memory",
    [OPTION_PROCESSORS] = "--cpus",  [OPTION_KERNEL] = "--kernel",
    [OPTION_INITRAMFS] = "--initrd", [OPTION_CMDLINE] = "--cmdline",
};

static const char *const peer_options[OPTION_COUNT] = {
    [OPTION_ACCEL] = "-accel",      [OPTION_MEMORY] = "-m",
    [OPTION_PROCESSORS] = "-smp",   [OPTION_KERNEL] = "-kernel",
    [OPTION_INITRAMFS] = "-initrd", [OPTION_CMDLINE] = "-append",
};

static void append_values(struct bench_arguments *arguments,
                          const struct bench_machine *machine,
                          const char *const options[OPTION_COUNT])
{
    const char *const values[OPTION_COUNT] = {
        [OPTION_ACCEL] = machine->accel,           [OPTION_MEMORY] = machine->memory_mib,
        [OPTION_PROCESSORS] = machine->processors, [OPTION_KERNEL] = machine->kernel,
        [OPTION_INITRAMFS] = machine->initramfs,   [OPTION_CMDLINE] = machine->cmdline,
    };

    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (values[i] != NULL)
            bench_arguments_append(arguments,
                                   (const char *[]){options[i], values[i], NULL});
    if (machine->options != NULL)
        bench_arguments_append(arguments, machine->options);
}

void bench_arguments_append_machine(struct bench_arguments *arguments,
                                    const struct bench_machine *machine)
{
    if (machine->type == NULL) {
        bench_arguments_append(arguments,
                               (const char *[]){machine->program, "run", NULL});
        append_values(arguments, machine, husk_options);
        bench_arguments_append(arguments, (const char *[]){"--no-reboot", NULL});
        return;
    }
    bench_arguments_append(arguments,
                           (const char *[]){machine->program, "-M", machine->type, NULL});
    append_values(arguments, machine, peer_options);
    bench_arguments_append(
        arguments, (const char *[]){"-display", "none", "-serial", "stdio", "-nodefaults",
                                    "-no-user-config", "-no-reboot", NULL});
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
