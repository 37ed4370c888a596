/* SPDX-License-Identifier: Apache-2.0 */
/* husk bench NAME: measures husk, beside another monitor if one is named. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "accel/accel.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "config/config.h"

struct request {
    const struct bench *bench;
    struct bench_options options;
    char *accels; /* owned; options.accels point into it */
    char *tiers;  /* the same of options.tiers */
    char *engines;
    const char *svg_path;
    FILE *svg; /* open from the start: a measurement takes minutes */
    bool json;
    unsigned given; /* bits, by the index in `options` */
};

/* ---- arguments ---- */

static int set_peer(struct request *request, const char *value, struct error *err)
{
    (void)err;
    request->options.peer = value;
    return 0;
}

static int set_only(struct request *request, const char *value, struct error *err)
{
    (void)err;
    request->options.only = value;
    return 0;
}

static int set_svg(struct request *request, const char *value, struct error *err)
{
    (void)err;
    request->svg_path = value;
    return 0;
}

static int set_runs(struct request *request, const char *value, struct error *err)
{
    char *end;
    unsigned long runs;

    errno = 0;
    runs = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || runs == 0 ||
        runs > BENCH_MAX_RUNS)
        return error_set(err, EINVAL, "--runs '%s': must be 1 to %d", value,
                         BENCH_MAX_RUNS);
    request->options.runs = runs;
    return 0;
}

static int check_accel(const char *name, struct error *err)
{
    for (size_t i = 0; accels[i] != NULL; i++)
        if (strcmp(accels[i]->name, name) == 0)
            return 0;
    return error_set(err, EINVAL,
                     "--accel: there is no accelerator '%s'; husk doctor "
                     "names those that there are",
                     name);
}

/* Cuts `value` at its commas into `words`. *copy, which they point into, is replaced. */
static int split(const char *spelling, const char *value, char **copy, const char **words,
                 size_t room, size_t *count, struct error *err)
{
    char *position = NULL;

    free(*copy);
    *count = 0;
    *copy = strdup(value);
    if (*copy == NULL)
        return error_set(err, ENOMEM, "out of memory for the arguments");
    for (char *word = strtok_r(*copy, ",", &position); word != NULL;
         word = strtok_r(NULL, ",", &position)) {
        if (*count == room)
            return error_set(err, EINVAL, "%s '%s': more than %zu names", spelling, value,
                             room);
        words[(*count)++] = word;
    }
    if (*count == 0)
        return error_set(err, EINVAL, "%s '%s': has no names", spelling, value);
    return 0;
}

static int set_accels(struct request *request, const char *value, struct error *err)
{
    struct bench_options *options = &request->options;

    if (split("--accel", value, &request->accels, options->accels, BENCH_MAX_ACCELS,
              &options->accel_count, err) < 0)
        return err->code;
    for (size_t i = 0; i < options->accel_count; i++)
        if (check_accel(options->accels[i], err) < 0)
            return err->code;
    return 0;
}

static int set_tiers(struct request *request, const char *value, struct error *err)
{
    struct bench_options *options = &request->options;

    return split("--tier", value, &request->tiers, options->tiers, BENCH_MAX_TIERS,
                 &options->tier_count, err);
}

static int set_kernel(struct request *request, const char *value, struct error *err)
{
    (void)err;
    request->options.kernel = value;
    return 0;
}

static int set_guest(struct request *request, const char *value, struct error *err)
{
    (void)err;
    request->options.guest = value;
    return 0;
}

static int set_engines(struct request *request, const char *value, struct error *err)
{
    struct bench_options *options = &request->options;

    return split("--engine", value, &request->engines, options->engines,
                 BENCH_MAX_ENGINES, &options->engine_count, err);
}

static int set_instances(struct request *request, const char *value, struct error *err)
{
    struct bench_options *options = &request->options;
    const char *rest = value;

    options->instance_count = 0;
    do {
        char *end;
        unsigned long instances = strtoul(rest, &end, 10);
        bool is_number =
            rest[0] >= '0' && rest[0] <= '9' && (*end == ',' || *end == '\0');

        if (!is_number || instances == 0 || instances > BENCH_MAX_INSTANCES)
            return error_set(err, EINVAL,
                             "--instances '%s': must be numbers from 1 to %d, by commas",
                             value, BENCH_MAX_INSTANCES);
        if (options->instance_count == BENCH_MAX_INSTANCE_COUNTS)
            return error_set(err, EINVAL, "--instances '%s': more than %d numbers", value,
                             BENCH_MAX_INSTANCE_COUNTS);
        options->instances[options->instance_count++] = instances;
        rest = *end == ',' ? end + 1 : NULL;
    } while (rest != NULL);
    return 0;
}

static int set_size(struct request *request, const char *value, struct error *err)
{
    uint64_t size_bytes;

    if (config_parse_size(value, &size_bytes, err) < 0)
        return error_prefix(err, "--size");
    if (size_bytes < BENCH_MIN_SIZE_BYTES || size_bytes > BENCH_MAX_SIZE_BYTES)
        return error_set(err, EINVAL, "--size '%s': must be 16M to 64G", value);
    request->options.size_bytes = size_bytes;
    return 0;
}

static int set_programs(struct request *request, const char *value, struct error *err)
{
    (void)err;
    request->options.programs = value;
    return 0;
}

static int set_together(struct request *request, const char *value, struct error *err)
{
    char *end;
    unsigned long together = strtoul(value, &end, 10);

    if (value[0] < '0' || value[0] > '9' || *end != '\0' || together < 2 ||
        together > BENCH_MAX_TOGETHER)
        return error_set(err, EINVAL, "--together '%s': must be 2 to %d", value,
                         BENCH_MAX_TOGETHER);
    request->options.together = (unsigned)together;
    return 0;
}

static int set_time(struct request *request, const char *value, struct error *err)
{
    request->options.processor_time = strcmp(value, "processor") == 0;
    if (request->options.processor_time || strcmp(value, "clock") == 0)
        return 0;
    return error_set(err, EINVAL, "--time '%s': must be clock or processor", value);
}

static const struct option {
    const char *spelling;
    const char *value; /* what it is called; NULL: it takes none, and is --json */
    bool is_special;   /* only benches that name it take it */
    int (*set)(struct request *request, const char *value, struct error *err);
} options[] = {
    {.spelling = "--peer", .value = "PROGRAM", .set = set_peer},
    {.spelling = "--runs", .value = "NUMBER", .set = set_runs},
    {.spelling = "--accel", .value = "LIST", .set = set_accels},
    {.spelling = "--only", .value = "TEXT", .set = set_only},
    {.spelling = "--svg", .value = "FILE", .set = set_svg},
    {.spelling = "--kernel", .value = "FILE", .is_special = true, .set = set_kernel},
    {.spelling = "--programs", .value = "LIST", .is_special = true, .set = set_programs},
    {.spelling = "--tier", .value = "LIST", .is_special = true, .set = set_tiers},
    {.spelling = "--time", .value = "WHICH", .is_special = true, .set = set_time},
    {.spelling = "--together",
     .value = "NUMBER",
     .is_special = true,
     .set = set_together},
    {.spelling = "--engine", .value = "LIST", .is_special = true, .set = set_engines},
    {.spelling = "--instances",
     .value = "LIST",
     .is_special = true,
     .set = set_instances},
    {.spelling = "--size", .value = "SIZE", .is_special = true, .set = set_size},
    {.spelling = "--guest", .value = "DIRECTORY", .is_special = true, .set = set_guest},
    {.spelling = "--json"},
};

static const struct option *find_option(const char *word, size_t length)
{
    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        if (strlen(options[i].spelling) == length &&
            memcmp(options[i].spelling, word, length) == 0)
            return &options[i];
    return NULL;
}

static int refuse_option(const char *word, struct error *err)
{
    const char *candidates[ARRAY_SIZE(options) + 1];
    const char *nearest;

    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        candidates[i] = options[i].spelling;
    candidates[ARRAY_SIZE(options)] = NULL;
    nearest = config_nearest(word, candidates);
    if (nearest != NULL)
        return error_set(err, EINVAL, "unknown option '%s'; did you mean '%s'?", word,
                         nearest);
    return error_set(err, EINVAL, "unknown option '%s'; --help lists the options", word);
}

/* Handles argv[*at]; moves *at on if it takes the next one too. */
static int parse_option(int argc, char **argv, int *at, struct request *request,
                        struct error *err)
{
    const char *word = argv[*at];
    const char *value = strchr(word, '=');
    size_t length = value == NULL ? strlen(word) : (size_t)(value - word);
    const struct option *option = find_option(word, length);

    if (option == NULL)
        return refuse_option(word, err);
    request->given |= 1u << (option - options);
    if (option->value == NULL) {
        request->json = true;
        return value == NULL
                   ? 0
                   : error_set(err, EINVAL, "%s takes no value", option->spelling);
    }
    if (value == NULL && *at + 1 == argc)
        return error_set(err, EINVAL, "%s needs a value: %s %s", option->spelling,
                         option->spelling, option->value);
    return option->set(request, value == NULL ? argv[++*at] : value + 1, err);
}

/* The names of all benches, "a, b". */
static const char *bench_names(char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (const struct bench *row = benches; row->name != NULL && used < size; row++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used == 0 ? "" : ", ",
                                 row->name);
    return text;
}

static int choose_bench(struct request *request, const char *name, struct error *err)
{
    char names[128];

    if (request->bench != NULL)
        return error_set(err, EINVAL, "one bench at a time: '%s' is one too many", name);
    request->bench = bench_find(name);
    if (request->bench == NULL)
        return error_set(err, EINVAL, "unknown bench '%s'; there is: %s", name,
                         bench_names(names, sizeof(names)));
    return 0;
}

static bool takes_option(const struct bench *bench, const char *spelling)
{
    for (size_t i = 0; bench->options != NULL && bench->options[i] != NULL; i++)
        if (strcmp(bench->options[i], spelling) == 0)
            return true;
    return false;
}

static int check_options(const struct request *request, struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        if (options[i].is_special && (request->given & 1u << i) != 0 &&
            !takes_option(request->bench, options[i].spelling))
            return error_set(err, EINVAL, "bench %s takes no %s", request->bench->name,
                             options[i].spelling);
    return 0;
}

/* The bench to run; NULL: the arguments are wrong. */
static const struct bench *parse(int argc, char **argv, struct request *request,
                                 struct error *err)
{
    char names[128];

    for (int i = 0; i < argc; i++) {
        int status = argv[i][0] == '-' ? parse_option(argc, argv, &i, request, err)
                                       : choose_bench(request, argv[i], err);

        if (status < 0)
            return NULL;
    }
    if (request->bench == NULL) {
        (void)error_set(err, EINVAL, "bench needs a name: %s",
                        bench_names(names, sizeof(names)));
        return NULL;
    }
    if (request->options.runs == 0)
        request->options.runs = request->bench->runs;
    if (check_options(request, err) < 0 ||
        (request->options.accel_count == 0 &&
         set_accels(request, request->bench->accels, err) < 0))
        return NULL;
    return request->bench;
}

/* ---- while it measures ---- */

/* One line, written over and over. */
static void show_progress(void *context, size_t done, size_t total, const char *name)
{
    (void)context;
    (void)fprintf(stderr, "\r\033[K%zu/%zu %s", done + 1, total, name);
    (void)fflush(stderr);
}

static void clear_progress(const struct bench_options *bench_options)
{
    if (bench_options->progress == NULL)
        return;
    (void)fputs("\r\033[K", stderr);
    (void)fflush(stderr);
}

/* The signals that end a bench arrive as bytes of a descriptor, which what waits for a
 * child can watch. */
static int watch_signals(int *fd, struct error *err)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t watched;

    (void)sigemptyset(&watched);
    for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
        (void)sigaddset(&watched, ending[i]);
    if (sigprocmask(SIG_BLOCK, &watched, NULL) == 0)
        *fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (*fd < 0)
        return error_set_errno(err, errno, "cannot watch signals");
    return 0;
}

/* The number of the signal that has come, or 0. */
static int arrived_signal(int fd)
{
    struct signalfd_siginfo info;

    return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

/* ---- results ---- */

static int open_svg(struct request *request, struct error *err)
{
    if (request->svg_path == NULL)
        return 0;
    request->svg = fopen(request->svg_path, "we");
    if (request->svg == NULL)
        return error_set_errno(err, errno, "--svg %s: cannot create it",
                               request->svg_path);
    return 0;
}

static int write_svg(struct request *request, const struct bench_report *report,
                     struct error *err)
{
    FILE *stream = request->svg;

    request->svg = NULL;
    bench_print_svg(report, stream);
    if (ferror(stream) | fclose(stream))
        return error_set_errno(err, errno, "--svg %s: cannot write it",
                               request->svg_path);
    return 0;
}

static int report_results(struct request *request, const struct bench_report *report,
                          struct error *err)
{
    if (!request->json)
        request->bench->print_table(report, stdout);
    else if (bench_print_json(report, stdout, err) < 0)
        return err->code;
    return request->svg == NULL ? 0 : write_svg(request, report, err);
}

static bool has_results(const struct bench_report *report)
{
    for (size_t i = 0; i < report->row_count; i++)
        if (report->rows[i].sample_count > 0)
            return true;
    return false;
}

static int exit_code(const struct bench_report *report, int signal_fd)
{
    if (report->interrupted)
        return EXIT_SIGNAL_BASE + arrived_signal(signal_fd);
    return has_results(report) ? EXIT_SUCCESS : EXIT_HOST_FAILURE;
}

static int run(const struct bench *bench, struct request *request, struct error *err)
{
    struct bench_report report = {.rows = NULL};
    CLEANUP_FD int signal_fd = -1;
    int code = EXIT_HOST_FAILURE;

    if (open_svg(request, err) < 0 || watch_signals(&signal_fd, err) < 0)
        return EXIT_HOST_FAILURE;
    request->options.interrupt_fd = signal_fd;
    request->options.progress = isatty(STDERR_FILENO) == 1 ? show_progress : NULL;
    (void)bench->run(&request->options, &report, err);
    clear_progress(&request->options);
    if (err->code == 0 && report.row_count == 0 && request->options.only != NULL &&
        !report.interrupted)
        (void)error_set(err, -ENOENT,
                        "--only '%s': nothing to be measured has this in its "
                        "name; without it, all names are shown",
                        request->options.only);
    if (err->code == 0 && report_results(request, &report, err) == 0)
        code = exit_code(&report, signal_fd);
    bench_report_finish(&report);
    return code;
}

int cli_bench(int argc, char **argv, struct error *err)
{
    struct request request = {.options = {.husk = "/proc/self/exe", .interrupt_fd = -1}};
    const struct bench *bench = parse(argc, argv, &request, err);
    int code = bench == NULL ? EXIT_USAGE : run(bench, &request, err);

    if (request.svg != NULL)
        (void)fclose(request.svg);
    free(request.accels);
    free(request.tiers);
    free(request.engines);
    return code;
}
