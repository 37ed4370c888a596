/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk bench multiboot: how long until a Multiboot kernel says its first line, when its
 * bytes are placed before the first instruction, and when firmware fetches them through
 * fw_cfg by DMA or byte by byte.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "bench/arguments_private.h"
#include "bench/benches_private.h"
#include "bench/directory_private.h"
#include "bench/guest_image_private.h"
#include "bench/husk_json_private.h"
#include "bench/process_private.h"
#include "bench/report_private.h"

/* A run that says nothing for so long is given up. SeaBIOS alone takes some twenty
 * seconds on a KVM that emulates. */
#define TIMEOUT_MS 60000

/* For what a program does behind the guest's end. */
#define END_TIMEOUT_MS 5000

#define MEMORY_MIB "256"

/* ---- what is booted ---- */

struct payload {
    const char *name;
    size_t kernel; /* index of `files` */
    size_t module; /* the same, or NO_MODULE */
};

static const struct {
    const char *name;
    size_t size_bytes;
    bool is_module;
} files[] = {
    {"kernel-195k", 195 * KIB, false},
    {"kernel-2m", 2 * MIB, false},
    {"kernel-8m", 8 * MIB, false},
    {"module-32m", 32 * MIB, true},
};

#define NO_MODULE SIZE_MAX

static const struct payload payloads[] = {
    {"195 KiB kernel", 0, NO_MODULE},
    {"2 MiB kernel", 1, NO_MODULE},
    {"8 MiB kernel", 2, NO_MODULE},
    {"195 KiB kernel, 32 MiB module", 0, 3},
};

/* ---- how it is booted ---- */

struct way {
    const char *name;
    const char *type;       /* the peer's -M; NULL: husk's way */
    const char *options[3]; /* NULL-terminated */
    bool needs_firmware;    /* --firmware and a file go with them */
};

static const struct way husk_ways[] = {
    {"placed", NULL, {"--protocol", "multiboot1"}, false},
    {"firmware dma", NULL, {"--transfer", "dma"}, true},
    {"firmware port", NULL, {"--transfer", "port"}, true},
};

/* From version 2.7 on, QEMU's machines copy a Multiboot kernel by DMA (fw_cfg's property
 * dma_enabled alone would leave the option ROM that asks for DMA, and hang). */
static const struct way peer_ways[] = {
    {"q35 dma", "q35", {NULL}, false},
    {"q35 port", "pc-q35-2.6", {NULL}, false},
    {"microvm", "microvm", {NULL}, false},
};

/* By which the guest ends its program. */
static const char *const husk_options[] = {"--debug-exit", "0xf4", "--boot-timer=json",
                                           NULL};
static const char *const peer_options[] = {
    "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04", NULL};

/* Debian's packages seabios and qemu-system-data. */
static const char *const firmware_files[] = {
    "/usr/share/seabios/bios-256k.bin",
    "/usr/share/qemu/bios-256k.bin",
};

/* ---- the rows ---- */

struct start {
    const struct way *way;
    const struct payload *payload;
};

struct multiboot {
    const struct bench_options *options;
    struct bench_report *report;
    char *directory; /* where the files are; owned */
    struct guest_image images[ARRAY_SIZE(files)];
    struct start *starts; /* one a row; owned */
};

static int add_row(struct multiboot *bench, const struct bench_row *row,
                   const struct start *start, struct error *err)
{
    struct start *starts;

    if (!bench_row_is_wanted(bench->options, row))
        return 0;
    starts = reallocarray(bench->starts, bench->report->row_count + 1, sizeof(*starts));
    if (starts == NULL)
        return error_set(err, ENOMEM, "out of memory for the rows");
    bench->starts = starts;
    starts[bench->report->row_count] = *start;
    return bench_report_add(bench->report, row, err);
}

/* Those of husk and of its peer that are compared with each other. */
static int add_rows(struct multiboot *bench, const struct payload *payload,
                    const char *accel, struct error *err)
{
    const char *peer = bench->options->peer;
    struct bench_row row = {.group = payload->name,
                            .program = "husk",
                            .accel = accel,
                            .beside = accel,
                            .unit = "ms"};

    for (size_t i = 0; i < ARRAY_SIZE(husk_ways); i++) {
        row.way = husk_ways[i].name;
        if (add_row(bench, &row, &(struct start){&husk_ways[i], payload}, err) < 0)
            return err->code;
    }
    if (peer == NULL)
        return 0;
    row.program = bench_file_name(peer);
    row.accel = bench_peer_accel(accel);
    row.is_peer = true;
    for (size_t i = 0; i < ARRAY_SIZE(peer_ways); i++) {
        row.way = peer_ways[i].name;
        if (add_row(bench, &row, &(struct start){&peer_ways[i], payload}, err) < 0)
            return err->code;
    }
    return 0;
}

static int add_all_rows(struct multiboot *bench, struct error *err)
{
    for (size_t i = 0; i < bench->options->accel_count; i++)
        for (size_t j = 0; j < ARRAY_SIZE(payloads); j++)
            if (add_rows(bench, &payloads[j], bench->options->accels[i], err) < 0)
                return err->code;
    return 0;
}

/* ---- the files ---- */

static int make_files(struct multiboot *bench, struct error *err)
{
    bench->directory = bench_directory_make(err);
    if (bench->directory == NULL)
        return err->code;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        int status =
            files[i].is_module
                ? guest_image_make_module(&bench->images[i], bench->directory,
                                          files[i].name, files[i].size_bytes, err)
                : guest_image_make_kernel(&bench->images[i], bench->directory,
                                          files[i].name, files[i].size_bytes, err);

        if (status < 0)
            return status;
    }
    return 0;
}

static void remove_files(struct multiboot *bench)
{
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        guest_image_remove(&bench->images[i]);
    if (bench->directory != NULL)
        (void)rmdir(bench->directory);
    free(bench->directory);
}

/* ---- one run ---- */

static const char *find_firmware(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(firmware_files); i++)
        if (access(firmware_files[i], R_OK) == 0)
            return firmware_files[i];
    return NULL;
}

/* The file that goes with --firmware; *firmware is NULL if the way needs none. */
static int choose_firmware(const struct way *way, const char **firmware,
                           struct error *err)
{
    *firmware = way->needs_firmware ? find_firmware() : NULL;
    if (way->needs_firmware && *firmware == NULL)
        return error_set(err, ENOENT, "no SeaBIOS here; Debian's package is seabios");
    return 0;
}

static int choose_arguments(const struct multiboot *bench, const struct bench_row *row,
                            const struct start *start, struct bench_arguments *arguments,
                            struct error *err)
{
    const struct payload *payload = start->payload;
    struct bench_arguments options = {.count = 0};
    const struct bench_machine machine = {
        .program = row->is_peer ? bench->options->peer : bench->options->husk,
        .type = start->way->type,
        .accel = row->accel,
        .memory_mib = MEMORY_MIB,
        .kernel = bench->images[payload->kernel].path,
        .initramfs =
            payload->module == NO_MODULE ? NULL : bench->images[payload->module].path,
        .options = options.words,
    };
    const char *firmware;

    if (choose_firmware(start->way, &firmware, err) < 0)
        return err->code;
    bench_arguments_append(&options, row->is_peer ? peer_options : husk_options);
    bench_arguments_append(&options, start->way->options);
    if (firmware != NULL)
        bench_arguments_append(&options, (const char *[]){"--firmware", firmware, NULL});
    bench_arguments_append_machine(arguments, &machine);
    return 0;
}

static uint64_t count_of(const json_t *counters, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(counters, key));
}

static void read_counters(const char *errors, struct bench_counters *counters)
{
    json_t *document = husk_json_timer(errors);
    const json_t *object = json_object_get(document, "counters");

    *counters = (struct bench_counters){
        .known = object != NULL,
        .port_exits = count_of(object, "port_exits"),
        .fw_cfg_port_bytes = count_of(object, "fw_cfg_port_bytes"),
        .fw_cfg_dma_bytes = count_of(object, "fw_cfg_dma_bytes"),
    };
    json_decref(document);
}

static int measure_row(void *context, size_t index, double *sample_ms, struct error *err)
{
    struct multiboot *bench = context;
    struct bench_row *row = &bench->report->rows[index];
    const struct start *start = &bench->starts[index];
    const struct payload *payload = start->payload;
    struct bench_arguments arguments = {.count = 0};
    char line[GUEST_IMAGE_LINE_BYTES];
    const struct bench_command command = {.arguments = arguments.words,
                                          .line = line,
                                          .timeout_ms = TIMEOUT_MS,
                                          .end_timeout_ms = END_TIMEOUT_MS,
                                          .interrupt_fd = bench->options->interrupt_fd};
    struct bench_process process;

    guest_image_line(
        &bench->images[payload->kernel],
        payload->module == NO_MODULE ? NULL : &bench->images[payload->module], line);
    if (choose_arguments(bench, row, start, &arguments, err) < 0 ||
        bench_process_run(&command, &process, err) < 0)
        return err->code;
    if (!row->is_peer)
        read_counters(process.errors.bytes, &row->counters);
    *sample_ms = (double)process.line_ns / (double)NS_PER_MS;
    return 0;
}

int bench_multiboot(const struct bench_options *options, struct bench_report *report,
                    struct error *err)
{
    struct multiboot bench = {.options = options, .report = report};

    *report = (struct bench_report){
        .bench = "multiboot",
        .measure = "time from process start to the guest's first line, in ms",
        .runs = options->runs,
    };
    if (make_files(&bench, err) == 0 && add_all_rows(&bench, err) == 0)
        bench_rounds(options, report, measure_row, &bench);
    remove_files(&bench);
    free(bench.starts);
    return err->code;
}
