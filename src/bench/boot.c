/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk bench boot: how long a stock kernel takes from process start to its first program,
 * and what of a processor, in husk and in a peer: as vmlinux by PVH, and as vmlinuz with
 * the unpacked kernel in husk's cache or not; with the kernel's pages mapped or copied;
 * and with its root file system in an initrd or on persistent memory.
 *
 * Nothing in the guest is made for it: the marks are what a monitor or its guest says to
 * whoever watches (boot_run_private.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "bench/benches_private.h"
#include "bench/boot_roots_private.h"
#include "bench/boot_run_private.h"
#include "bench/directory_private.h"
#include "bench/files_private.h"

/* Its init says this and waits, as do those of the roots. */
#define INITRAMFS_FILE "cpu-programs.cpio"
#define USER_LINE "husk-bench ready"

/* Notices and worse, from the first line on: some fifteen lines. */
#define KERNEL_ARGUMENTS "console=ttyS0 earlyprintk=ttyS0,115200 loglevel=6 panic=-1"
#define MEMORY_MIB "512"

#define RUN_TIMEOUT_MS 120000

/* ---- what is started ---- */

enum setup {
    SETUP_UNPACKED,
    SETUP_COLD_CACHE,
    SETUP_WARM_CACHE,
    SETUP_INITRD_ROOT,
    SETUP_PMEM_ROOT,
    SETUP_COUNT
};

static const char *const setup_names[SETUP_COUNT] = {
    [SETUP_UNPACKED] = "vmlinux",
    [SETUP_COLD_CACHE] = "vmlinuz, cold cache",
    [SETUP_WARM_CACHE] = "vmlinuz, warm cache",
    [SETUP_INITRD_ROOT] = "64 MiB root, initrd",
    [SETUP_PMEM_ROOT] = "64 MiB root, pmem",
};

/* By which QEMU tells when the machine begins to run, and how it tells. */
static const char *const trace_options[] = {"-trace", "vm_state_notify", NULL};
#define TRACE_LINE "vm_state_notify running 1"

static const char *const map_options[] = {"--boot-timer=json", "--images", "map", NULL};
static const char *const copy_options[] = {"--boot-timer=json", "--images", "copy", NULL};

static const struct bench_way ways[] = {
    {"map", NULL, map_options},
    {"copy", NULL, copy_options},
    {"q35", "q35", trace_options},
    /* With ACPI its TCG offers this kernel nothing to calibrate the TSC by; traced, it
     * stops before the first line of a vmlinux (QEMU 7.2). */
    {"microvm", "microvm,acpi=off", NULL},
};

static const struct bench_measure measures[BOOT_MARK_COUNT] = {
    [BOOT_INIT_END] = {"init_end", "ms"},
    [BOOT_START_KERNEL] = {"start_kernel", "ms"},
    [BOOT_START_USER] = {"start_user", "ms"},
    [BOOT_PROCESSOR] = {"processor time", "ms"},
    [BOOT_USS] = {"USS", "MiB"},
};

static const struct bench_grid grid = {
    .sets = setup_names,
    .set_count = SETUP_COUNT,
    .ways = ways,
    .way_count = ARRAY_SIZE(ways),
    .measures = measures,
    .measure_count = BOOT_MARK_COUNT,
};

struct boot {
    const struct bench_options *options;
    char *kernel; /* paths; owned */
    char *initramfs;
    char *directory;
    char *warm_cache; /* as a word of the environment */
    char *cold_cache;
    char *unpacked_kernel; /* in the warm cache */
    struct boot_roots roots;
    struct error no_roots; /* why there are none */
};

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
    (void)!boot_roots_find(&boot->roots, &boot->no_roots);
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
    boot_roots_free(&boot->roots);
}

/* ---- one run ---- */

static bool has_root(size_t set)
{
    return set == SETUP_INITRD_ROOT || set == SETUP_PMEM_ROOT;
}

static int choose_arguments(const struct boot *boot, const struct bench_cell *cell,
                            struct bench_arguments *arguments, struct error *err)
{
    struct bench_arguments options = {.count = 0};
    struct bench_machine machine = {
        .memory_mib = MEMORY_MIB,
        .kernel = cell->set == SETUP_UNPACKED ? boot->unpacked_kernel : boot->kernel,
        .initramfs = boot->initramfs,
        .cmdline = KERNEL_ARGUMENTS};
    const char *cache =
        cell->set == SETUP_COLD_CACHE ? boot->cold_cache : boot->warm_cache;

    bench_grid_choose(cell, boot->options, &machine);
    if (has_root(cell->set) && boot->no_roots.code != 0)
        return error_set(err, boot->no_roots.code, "%s", boot->no_roots.text);
    if (has_root(cell->set) &&
        boot_roots_choose(&boot->roots, cell->set == SETUP_PMEM_ROOT, &machine, &options,
                          err) < 0)
        return err->code;
    bench_arguments_append(arguments, (const char *[]){cache, NULL});
    bench_arguments_append_machine(arguments, &machine);
    return 0;
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
    const struct bench_cell cell = bench_grid_cell(&grid, boot->options, index);
    struct bench_arguments arguments = {.count = 0};
    const struct boot_command command = {
        .arguments = arguments.words,
        .line = USER_LINE,
        .running = cell.way->options == trace_options ? TRACE_LINE : NULL,
        .has_timer = cell.way->type == NULL,
        .timeout_ms = RUN_TIMEOUT_MS,
        .interrupt_fd = boot->options->interrupt_fd};
    int status;

    if (choose_arguments(boot, &cell, &arguments, err) < 0)
        return err->code;
    status = boot_run(&command, values, err);
    if (cell.set == SETUP_COLD_CACHE)
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
    if (make_files(&boot, err) == 0 &&
        bench_grid_init(&grid, options, report, &subjects, err) == 0)
        bench_subjects_rounds(&subjects, run_subject, &boot);
    bench_subjects_finish(&subjects);
    remove_files(&boot);
    return err->code;
}
