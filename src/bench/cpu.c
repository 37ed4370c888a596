/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk bench cpu: how fast programs run in a guest of husk's and in one of a peer's,
 * beside how fast the same programs run on the host.
 *
 * The host and all guests are started once and then take turns, program by program, so
 * that what else the machine does meets all alike. They are asked for programs by name on
 * their standard input or serial port (bench/programs/main.c), and tell how long each
 * took by their own clock, which is compared with the host's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "bench/arguments_private.h"
#include "bench/benches_private.h"
#include "bench/files_private.h"
#include "bench/process_private.h"
#include "bench/report_private.h"
#include "bench/session_private.h"

#define PROGRAMS_FILE "cpu-programs"
#define INITRAMFS_FILE "cpu-programs.cpio"

/* A kernel that panics says so and ends; nothing else of it is of interest. */
#define KERNEL_ARGUMENTS "console=ttyS0 loglevel=1 panic=-1"
#define MEMORY_MIB "512"

/* Until a guest is ready, and for one program: only a fault takes so long. */
#define READY_TIMEOUT_MS 120000
#define PROGRAM_TIMEOUT_MS 120000
#define LIST_TIMEOUT_MS 10000

/* What a guest's clock may differ by from the host's: that is no measurement, but shows
 * a clock that goes wrong. Lines may be late on a busy host. */
#define CLOCK_TOLERANCE_MS 150.0
#define CLOCK_TOLERANCE_RATIO 0.25

#define MAX_PROGRAMS 64

#define MS_PER_SECOND 1e3

/* Who runs programs: the host, husk, or the peer. */
struct runner {
    const char *program;
    const char *way;
    const char *accel;
    const char *beside;
    bool is_peer;
    bool is_host;
    unsigned together; /* processes at once, each on a processor of its own */
    char processors[16];
    char way_together[48];
    char accel_option[64]; /* husk's */
    struct bench_session session;
    char failure[ERROR_TEXT_BYTES]; /* why it cannot be started; "": it can */
};

/* One for the host and one for the peer beside each accelerator of husk's; once more
 * with several processes at once. */
#define MAX_RUNNERS (2 * BENCH_MAX_ACCELS * (BENCH_MAX_TIERS + 2))

struct program {
    const char *name; /* in the report's texts */
    const char *set;
    uint64_t checksum;
    bool has_checksum; /* the host has told it */
};

struct cpu {
    const struct bench_options *options;
    struct bench_report *report;
    char *kernel; /* paths; owned */
    char *executable;
    char *initramfs;
    struct program programs[MAX_PROGRAMS];
    size_t program_count;
    struct runner runners[MAX_RUNNERS];
    size_t runner_count;
    struct turn {
        struct runner *runner;
        struct program *program;
    } * turns; /* one a row; owned */
};

/* ---- the programs ---- */

static struct program *find_program(struct cpu *cpu, const char *name)
{
    for (size_t i = 0; i < cpu->program_count; i++)
        if (strcmp(cpu->programs[i].name, name) == 0)
            return &cpu->programs[i];
    return NULL;
}

/* `text` is lines of "NAME SET"; it is cut into them. */
static void read_list(struct cpu *cpu, char *text)
{
    char *position = NULL;

    for (char *line = strtok_r(text, "\n", &position);
         line != NULL && cpu->program_count < MAX_PROGRAMS;
         line = strtok_r(NULL, "\n", &position)) {
        char *set = strchr(line, ' ');

        if (set == NULL || strcmp(line, "husk-bench end") == 0)
            continue;
        *set++ = '\0';
        cpu->programs[cpu->program_count++] = (struct program){.name = line, .set = set};
    }
}

/* Asks the programs' executable which there are. */
static int list_programs(struct cpu *cpu, struct error *err)
{
    const char *const arguments[] = {cpu->executable, "--list", NULL};
    const struct bench_command command = {.arguments = arguments,
                                          .line = "husk-bench end\n",
                                          .timeout_ms = LIST_TIMEOUT_MS,
                                          .end_timeout_ms = LIST_TIMEOUT_MS,
                                          .interrupt_fd = cpu->options->interrupt_fd};
    struct bench_process process;

    if (bench_process_run(&command, &process, err) < 0)
        return error_prefix(err, "%s", cpu->executable);
    cpu->report->texts = strdup(process.output.bytes);
    if (cpu->report->texts == NULL)
        return error_set(err, ENOMEM, "out of memory for the programs' names");
    read_list(cpu, cpu->report->texts);
    return 0;
}

static int refuse_program(const struct cpu *cpu, const char *name, struct error *err)
{
    char names[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < cpu->program_count && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                 i == 0 ? "" : ", ", cpu->programs[i].name);
    return error_set(err, ENOENT, "--programs: there is no program '%s'; there is: %s",
                     name, names);
}

/* Whether it is among those of --programs. */
static bool is_chosen(const struct program *program, const char *list)
{
    size_t length = strlen(program->name);

    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',' ? 1 : 0;
        if (strncmp(at, program->name, length) == 0 &&
            (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return list == NULL;
}

static int check_chosen(struct cpu *cpu, struct error *err)
{
    const char *list = cpu->options->programs;
    char *copy = list == NULL ? NULL : strdup(list);
    char *position = NULL;

    if (list != NULL && copy == NULL)
        return error_set(err, ENOMEM, "out of memory for the programs' names");
    for (char *name = copy == NULL ? NULL : strtok_r(copy, ",", &position); name != NULL;
         name = strtok_r(NULL, ",", &position))
        if (find_program(cpu, name) == NULL && refuse_program(cpu, name, err) < 0)
            break;
    free(copy);
    return err->code;
}

/* ---- who runs them ---- */

static void add_runner(struct cpu *cpu, const struct runner *runner)
{
    struct runner *added = &cpu->runners[cpu->runner_count++];

    *added = *runner;
    added->together = 1;
    if (cpu->options->together == 0)
        return;
    added = &cpu->runners[cpu->runner_count++];
    *added = *runner;
    added->together = cpu->options->together;
    (void)snprintf(added->processors, sizeof(added->processors), "%u", added->together);
    (void)snprintf(added->way_together, sizeof(added->way_together), "%s%s%u at once",
                   runner->way, runner->way[0] == '\0' ? "" : " ", added->together);
}

static const char *way_of(const struct runner *runner)
{
    return runner->together > 1 ? runner->way_together : runner->way;
}

static void add_husk_runner(struct cpu *cpu, const char *accel, const char *tier)
{
    struct runner runner = {.program = "husk",
                            .way = tier == NULL ? "" : tier,
                            .accel = accel,
                            .beside = accel};

    (void)snprintf(runner.accel_option, sizeof(runner.accel_option), "%s%s%s", accel,
                   tier == NULL ? "" : ",tier=", tier == NULL ? "" : tier);
    add_runner(cpu, &runner);
}

static void add_runners(struct cpu *cpu)
{
    const struct bench_options *options = cpu->options;

    for (size_t i = 0; i < options->accel_count; i++) {
        const char *accel = options->accels[i];

        add_runner(cpu, &(struct runner){.program = "host",
                                         .way = "native",
                                         .accel = "none",
                                         .beside = accel,
                                         .is_peer = true,
                                         .is_host = true});
        for (size_t j = 0; j < options->tier_count; j++)
            add_husk_runner(cpu, accel, options->tiers[j]);
        if (options->tier_count == 0)
            add_husk_runner(cpu, accel, NULL);
        if (options->peer != NULL)
            add_runner(cpu, &(struct runner){.program = bench_file_name(options->peer),
                                             .way = "q35",
                                             .accel = bench_peer_accel(accel),
                                             .beside = accel,
                                             .is_peer = true});
    }
}

static void choose_arguments(const struct cpu *cpu, const struct runner *runner,
                             struct bench_arguments *arguments)
{
    const struct bench_machine machine = {
        .program = runner->is_peer ? cpu->options->peer : cpu->options->husk,
        .type = runner->is_peer ? runner->way : NULL,
        .accel = runner->is_peer ? runner->accel : runner->accel_option,
        .memory_mib = MEMORY_MIB,
        .processors = runner->together > 1 ? runner->processors : NULL,
        .kernel = cpu->kernel,
        .initramfs = cpu->initramfs,
        .cmdline = KERNEL_ARGUMENTS};

    if (runner->is_host)
        bench_arguments_append(arguments, (const char *[]){cpu->executable, NULL});
    else
        bench_arguments_append_machine(arguments, &machine);
}

/* What has not started once is not tried again. */
static int start_runner(const struct cpu *cpu, struct runner *runner, struct error *err)
{
    struct bench_arguments arguments = {.count = 0};
    char rest[BENCH_LINE_BYTES];

    if (runner->failure[0] != '\0')
        return error_set(err, EIO, "%s", runner->failure);
    choose_arguments(cpu, runner, &arguments);
    if (bench_session_open(&runner->session, arguments.words, cpu->options->interrupt_fd,
                           err) < 0 ||
        bench_session_expect(&runner->session, "husk-bench ready", READY_TIMEOUT_MS, rest,
                             err) < 0)
        (void)snprintf(runner->failure, sizeof(runner->failure), "%s", err->text);
    return err->code;
}

/* ---- one run ---- */

struct answer {
    uint64_t guest_ns;
    uint64_t host_ns; /* from line to line */
    uint64_t checksum;
    double processor_seconds; /* what it has taken of the host's processors */
};

/* "NANOSECONDS CHECKSUM PROCESSOR_NANOSECONDS", or "failed: REASON". The last number is
 * that of the guest's processor; it counts if the host is the guest. */
static int read_answer(const char *text, struct answer *answer, struct error *err)
{
    const char *rest = text;
    char *end;

    answer->guest_ns = strtoull(rest, &end, 10);
    if (end == rest || *end != ' ')
        return error_set(err, EIO, "%s", text);
    rest = end + 1;
    answer->checksum = strtoull(rest, &end, 16);
    if (end == rest || *end != ' ')
        return error_set(err, EIO, "%s", text);
    rest = end + 1;
    answer->processor_seconds = (double)strtoull(rest, &end, 10) / (double)NS_PER_SECOND;
    if (end == rest || *end != '\0')
        return error_set(err, EIO, "%s", text);
    return 0;
}

static int ask(struct runner *runner, const struct program *program,
               struct answer *answer, struct error *err)
{
    struct bench_session *session = &runner->session;
    char start[BENCH_LINE_BYTES];
    char line[BENCH_LINE_BYTES];
    double start_seconds;
    uint64_t start_ns;

    (void)snprintf(start, sizeof(start), "%s%s%s\n", program->name,
                   runner->together > 1 ? " " : "", runner->processors);
    bench_session_say(session, start);
    (void)snprintf(start, sizeof(start), "husk-bench %s ", program->name);
    if (bench_session_expect(session, start, PROGRAM_TIMEOUT_MS, line, err) < 0)
        return err->code;
    if (strcmp(line, "starts") != 0)
        return read_answer(line, answer, err);
    start_ns = bench_session_line_ns(session);
    start_seconds = bench_child_processor_seconds(&session->child);
    if (bench_session_expect(session, start, PROGRAM_TIMEOUT_MS, line, err) < 0 ||
        read_answer(line, answer, err) < 0)
        return err->code;
    answer->host_ns = bench_session_line_ns(session) - start_ns;
    if (!runner->is_host)
        answer->processor_seconds =
            bench_child_processor_seconds(&session->child) - start_seconds;
    return 0;
}

/* What a wrong program, or a wrong clock, tells is no result. */
static int check_answer(const struct runner *runner, struct program *program,
                        const struct answer *answer, struct error *err)
{
    double guest_ms = (double)answer->guest_ns / (double)NS_PER_MS;
    double host_ms = (double)answer->host_ns / (double)NS_PER_MS;
    double difference_ms = guest_ms > host_ms ? guest_ms - host_ms : host_ms - guest_ms;

    if (!program->has_checksum && runner->is_host) {
        program->checksum = answer->checksum;
        program->has_checksum = true;
    }
    if (program->has_checksum && answer->checksum != program->checksum)
        return error_set(err, EIO, "computed %016" PRIx64 ", natively it is %016" PRIx64,
                         answer->checksum, program->checksum);
    if (difference_ms > CLOCK_TOLERANCE_MS + CLOCK_TOLERANCE_RATIO * host_ms)
        return error_set(err, EIO, "took %.1f ms by its own clock, %.1f ms by the host's",
                         guest_ms, host_ms);
    return 0;
}

static int measure_row(void *context, size_t index, double *value, struct error *err)
{
    struct cpu *cpu = context;
    struct runner *runner = cpu->turns[index].runner;
    struct program *program = cpu->turns[index].program;
    struct answer answer = {.guest_ns = 0};

    if (!runner->session.is_open && start_runner(cpu, runner, err) < 0)
        return err->code;
    if (ask(runner, program, &answer, err) < 0 ||
        check_answer(runner, program, &answer, err) < 0)
        return err->code;
    *value = cpu->options->processor_time ? answer.processor_seconds * MS_PER_SECOND
                                          : (double)answer.guest_ns / (double)NS_PER_MS;
    *value /= (double)runner->together;
    return 0;
}

/* ---- the rows ---- */

static int add_row(struct cpu *cpu, struct program *program, struct runner *runner,
                   struct error *err)
{
    const struct bench_row row = {.set = program->set,
                                  .group = program->name,
                                  .program = runner->program,
                                  .way = way_of(runner),
                                  .accel = runner->accel,
                                  .beside = runner->beside,
                                  .is_peer = runner->is_peer,
                                  .unit = "ms"};
    struct turn *turns;

    if (!bench_row_is_wanted(cpu->options, &row))
        return 0;
    turns = reallocarray(cpu->turns, cpu->report->row_count + 1, sizeof(*turns));
    if (turns == NULL)
        return error_set(err, ENOMEM, "out of memory for the rows");
    cpu->turns = turns;
    turns[cpu->report->row_count] = (struct turn){runner, program};
    return bench_report_add(cpu->report, &row, err);
}

static int add_rows(struct cpu *cpu, struct error *err)
{
    for (size_t i = 0; i < cpu->program_count; i++) {
        if (!is_chosen(&cpu->programs[i], cpu->options->programs))
            continue;
        for (size_t j = 0; j < cpu->runner_count; j++)
            if (add_row(cpu, &cpu->programs[i], &cpu->runners[j], err) < 0)
                return err->code;
    }
    return 0;
}

static int find_files(struct cpu *cpu, struct error *err)
{
    cpu->executable = bench_find_guest(PROGRAMS_FILE, err);
    if (cpu->executable != NULL)
        cpu->initramfs = bench_find_guest(INITRAMFS_FILE, err);
    if (cpu->initramfs != NULL)
        cpu->kernel = bench_find_kernel(cpu->options->kernel, "cloud-amd64", err);
    return err->code;
}

int bench_cpu(const struct bench_options *options, struct bench_report *report,
              struct error *err)
{
    struct cpu cpu = {.options = options, .report = report};

    *report = (struct bench_report){
        .bench = "cpu",
        .measure = options->processor_time
                       ? "time of the host's processors that programs take, in ms"
                       : "time that programs take, in ms",
        .runs = options->runs,
        .has_means = true,
    };
    if (find_files(&cpu, err) == 0 && list_programs(&cpu, err) == 0 &&
        check_chosen(&cpu, err) == 0) {
        add_runners(&cpu);
        if (add_rows(&cpu, err) == 0)
            bench_rounds(options, report, measure_row, &cpu);
    }
    for (size_t i = 0; i < cpu.runner_count; i++)
        bench_session_close(&cpu.runners[i].session);
    free(cpu.turns);
    free(cpu.kernel);
    free(cpu.executable);
    free(cpu.initramfs);
    return err->code;
}
