/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk bench boot: how long a stock kernel takes from process start to its first program,
 * and what of a processor, in husk and in a peer: as vmlinux by PVH, and as vmlinuz with
 * the unpacked kernel in husk's cache or not; with the kernel's pages mapped or copied.
 *
 * Nothing in the guest is made for it: the marks are what a monitor or its guest says to
 * whoever watches (boot_run_private.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "bench/arguments_private.h"
#include "bench/benches_private.h"
#include "bench/boot_run_private.h"
#include "bench/directory_private.h"
#include "bench/files_private.h"
#include "bench/subjects_private.h"

/* Its init says this, and waits. */
#define INITRAMFS_FILE "cpu-programs.cpio"
#define USER_LINE "husk-bench ready\n"

/* Notices and worse, from the first line on: some fifteen lines. */
#define KERNEL_ARGUMENTS "console=ttyS0 earlyprintk=ttyS0,115200 loglevel=6 panic=-1"
#define MEMORY_MIB "512"

#define RUN_TIMEOUT_MS 120000

/* ---- what is started ---- */

enum cache { CACHE_NONE, CACHE_COLD, CACHE_WARM };

static const struct setup {
    const char *name;
    bool is_unpacked; /* vmlinux */
    enum cache cache;
} setups[] = {
    {"vmlinux", true, CACHE_NONE},
    {"vmlinuz, cold cache", false, CACHE_COLD},
    {"vmlinuz, warm cache", false, CACHE_WARM},
};

static const struct way {
    const char *name;
    bool is_peer;
    const char *argument; /* of --images, or of the peer's -M */
    bool is_traced;       /* QEMU tells when the machine begins to run */
} ways[] = {
    {"map", false, "map", false},
    {"copy", false, "copy", false},
    {"q35", true, "q35", true},
    /* With ACPI its TCG offers this kernel nothing to calibrate the TSC by; traced, it
     * stops before the first line of a vmlinux (QEMU 7.2). */
    {"microvm", true, "microvm,acpi=off", false},
};

static const char *const mark_names[BOOT_MARK_COUNT] = {
    [BOOT_INIT_END] = "init_end",
    [BOOT_START_KERNEL] = "start_kernel",
    [BOOT_START_USER] = "start_user",
    [BOOT_PROCESSOR] = "processor time",
};

struct subject {
    const struct setup *setup;
    const struct way *way;
    const char *accel; /* husk's */
};

#define MAX_SUBJECTS (BENCH_MAX_ACCELS * ARRAY_SIZE(setups) * ARRAY_SIZE(ways))

struct boot {
    const struct bench_options *options;
    struct subject subjects[MAX_SUBJECTS];
    size_t subject_count;
    char *kernel; /* paths; owned */
    char *initramfs;
    char *directory;
    char *warm_cache; /* as a word of the environment */
    char *cold_cache;
    char *unpacked_kernel; /* in the warm cache */
};

static void add_subjects(struct boot *boot)
{
    const struct bench_options *options = boot->options;

    for (size_t i = 0; i < options->accel_count; i++)
        for (size_t j = 0; j < ARRAY_SIZE(setups); j++)
            for (size_t k = 0; k < ARRAY_SIZE(ways); k++)
                if (!ways[k].is_peer || options->peer != NULL)
                    boot->subjects[boot->subject_count++] =
                        (struct subject){&setups[j], &ways[k], options->accels[i]};
}

static int add_row(const struct boot *boot, struct bench_subjects *subjects, size_t index,
                   enum boot_mark mark, struct error *err)
{
    const struct subject *subject = &boot->subjects[index];
    bool is_peer = subject->way->is_peer;
    const struct bench_row row = {
        .set = subject->setup->name,
        .group = mark_names[mark],
        .program = is_peer ? bench_file_name(boot->options->peer) : "husk",
        .way = subject->way->name,
        .accel = is_peer ? bench_peer_accel(subject->accel) : subject->accel,
        .beside = subject->accel,
        .is_peer = is_peer,
        .unit = "ms"};

    return bench_subjects_add(subjects, index, mark, &row, err);
}

/* The rows of one mark of one setup come together. */
static int add_rows(const struct boot *boot, struct bench_subjects *subjects,
                    struct error *err)
{
    size_t ways_each = boot->options->peer == NULL ? 2 : ARRAY_SIZE(ways);

    for (size_t first = 0; first < boot->subject_count; first += ways_each)
        for (int mark = 0; mark < BOOT_MARK_COUNT; mark++)
            for (size_t i = 0; i < ways_each; i++)
                if (add_row(boot, subjects, first + i, (enum boot_mark)mark, err) < 0)
                    return err->code;
    return 0;
}

/* ---- the files ---- */

static int name_directories(struct boot *boot, struct error *err)
{
    boot->directory = bench_directory_make(err);
    if (boot->directory == NULL)
        return err->code;
    if (asprintf(&boot->warm_cache, "HUSK_CACHE_DIR=%s/warm", boot->directory) < 0)
        boot->warm_cache = NULL;
    if (asprintf(&boot->cold_cache, "HUSK_CACHE_DIR=%s/cold", boot->directory) < 0)
        boot->cold_cache = NULL;
    if (boot->warm_cache == NULL || boot->cold_cache == NULL)
        return error_set(err, ENOMEM, "out of memory for file names");
    return 0;
}

static int make_files(struct boot *boot, struct error *err)
{
    boot->initramfs = bench_find_guest(INITRAMFS_FILE, err);
    if (boot->initramfs != NULL)
        boot->kernel = bench_find_kernel(boot->options->kernel, "amd64", err);
    if (boot->kernel == NULL || name_directories(boot, err) < 0)
        return err->code;
    boot->unpacked_kernel =
        bench_unpack_kernel(boot->options, boot->warm_cache, boot->kernel, err);
    return err->code;
}

static void remove_files(struct boot *boot)
{
    bench_directory_remove(boot->directory);
    free(boot->kernel);
    free(boot->initramfs);
    free(boot->warm_cache);
    free(boot->cold_cache);
    free(boot->unpacked_kernel);
}

/* ---- one run ---- */

static const char *kernel_of(const struct boot *boot, const struct setup *setup)
{
    return setup->is_unpacked ? boot->unpacked_kernel : boot->kernel;
}

/* The word of its environment that goes in front of husk. */
static const char *cache_of(const struct boot *boot, const struct setup *setup)
{
    return setup->cache == CACHE_COLD ? boot->cold_cache : boot->warm_cache;
}

static void choose_arguments(const struct boot *boot, const struct subject *subject,
                             struct bench_arguments *arguments)
{
    const struct way *way = subject->way;
    const char *const husk_options[] = {"--boot-timer=json", "--images", way->argument,
                                        NULL};
    static const char *const traced_options[] = {"-trace", "vm_state_notify", NULL};
    struct bench_machine machine = {.program = boot->options->husk,
                                    .accel = subject->accel,
                                    .memory_mib = MEMORY_MIB,
                                    .kernel = kernel_of(boot, subject->setup),
                                    .initramfs = boot->initramfs,
                                    .cmdline = KERNEL_ARGUMENTS,
                                    .options = husk_options};

    if (way->is_peer) {
        machine.program = boot->options->peer;
        machine.type = way->argument;
        machine.accel = bench_peer_accel(subject->accel);
        machine.options = way->is_traced ? traced_options : NULL;
    } else {
        bench_arguments_append(arguments,
                               (const char *[]){cache_of(boot, subject->setup), NULL});
    }
    bench_arguments_append_machine(arguments, &machine);
}

/* What a run with a cold cache has put there. */
static void empty_cold_cache(const struct boot *boot)
{
    const char *path = strchr(boot->cold_cache, '=') + 1;

    bench_directory_remove(strdup(path));
}

static int run_subject(void *context, size_t index, double *values, struct error *err)
{
    const struct boot *boot = context;
    const struct subject *subject = &boot->subjects[index];
    struct bench_arguments arguments = {.count = 0};
    const struct boot_command command = {
        .arguments = arguments.words,
        .line = USER_LINE,
        /* How QEMU's tracer tells that the virtual machine begins to run. */
        .running = subject->way->is_traced ? "vm_state_notify running 1" : NULL,
        .has_timer = !subject->way->is_peer,
        .timeout_ms = RUN_TIMEOUT_MS,
        .interrupt_fd = boot->options->interrupt_fd};
    int status;

    choose_arguments(boot, subject, &arguments);
    status = boot_run(&command, values, err);
    if (subject->setup->cache == CACHE_COLD)
        empty_cold_cache(boot);
    return status;
}

int bench_boot(const struct bench_options *options, struct bench_report *report,
               struct error *err)
{
    struct boot boot = {.options = options};
    struct bench_subjects subjects = {.rows = NULL};

    *report = (struct bench_report){
        .bench = "boot",
        .measure = "from process start, in ms",
        .runs = options->runs,
    };
    add_subjects(&boot);
    if (make_files(&boot, err) == 0 &&
        bench_subjects_init(&subjects, options, report, boot.subject_count,
                            BOOT_MARK_COUNT, err) == 0 &&
        add_rows(&boot, &subjects, err) == 0)
        bench_subjects_rounds(&subjects, run_subject, &boot);
    bench_subjects_finish(&subjects);
    remove_files(&boot);
    return err->code;
}
