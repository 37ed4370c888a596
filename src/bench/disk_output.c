/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what fio and bonnie++ print for machines; see disk_output_private.h. */
#include "bench/disk_output_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static const struct {
    const char *name;
    double request_bytes;
    bool writes;
} jobs[DISK_JOB_COUNT] = {
    [DISK_JOB_SEQUENTIAL_READ] = {"sequential-read", MIB, false},
    [DISK_JOB_SEQUENTIAL_WRITE] = {"sequential-write", MIB, true},
    [DISK_JOB_RANDOM_READ_1] = {"random-read-1", 4 * KIB, false},
    [DISK_JOB_RANDOM_READ_32] = {"random-read-32", 4 * KIB, false},
    [DISK_JOB_RANDOM_WRITE_1] = {"random-write-1", 4 * KIB, true},
    [DISK_JOB_RANDOM_WRITE_32] = {"random-write-32", 4 * KIB, true},
    [DISK_JOB_FSYNC] = {"fsync", 4 * KIB, true},
};

/* ---- marks ---- */

static bool skip_word(const char **text, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(*text, word, length) != 0)
        return false;
    *text += length;
    return true;
}

enum disk_mark disk_parse_mark(const char *line, const char **name)
{
    *name = line;
    if (!skip_word(name, "husk-bench "))
        return DISK_MARK_NONE;
    if (skip_word(name, "begin "))
        return DISK_MARK_BEGIN;
    if (skip_word(name, "end "))
        return DISK_MARK_END;
    return strcmp(*name, "done") == 0 ? DISK_MARK_DONE : DISK_MARK_NONE;
}

const char *disk_job_name(enum disk_job job)
{
    return jobs[job].name;
}

enum disk_job disk_parse_job_name(const char *name)
{
    for (enum disk_job job = 0; job < DISK_JOB_COUNT; job++)
        if (strcmp(jobs[job].name, name) == 0)
            return job;
    return DISK_JOB_COUNT;
}

/* ---- fields ---- */

#define MAX_FIELDS 160
#define LINE_BYTES 4096

struct fields {
    char line[LINE_BYTES];
    const char *words[MAX_FIELDS];
    size_t count;
};

static bool split(const char *line, const char *separator, struct fields *fields)
{
    char *rest = fields->line;

    fields->count = 0;
    if (strlen(line) >= sizeof(fields->line))
        return false;
    strcpy(fields->line, line); /* NOLINT: the size is checked above */
    while (rest != NULL && fields->count < MAX_FIELDS)
        fields->words[fields->count++] = strsep(&rest, separator);
    return rest == NULL;
}

/* A number and what stands behind it; negative: it is none. */
static double number_of(const char *word, const char *unit)
{
    char *end;
    double value = strtod(word, &end);

    return end == word || strcmp(end, unit) != 0 ? -1 : value;
}

/* ---- fio ---- */

/* HOWTO of fio 3.33, "Terse output": counted from 0. A job has as many fields about reads
 * as about writes. */
enum {
    FIO_VERSION = 0,
    FIO_JOB = 2,
    FIO_ERROR = 4,
    FIO_READ_KIB = 5,
    FIO_READ_MS = 8,
    FIO_WRITES = 41, /* behind the field about reads */
    FIO_USER_PERCENT = 87,
    FIO_SYSTEM_PERCENT = 88,
    FIO_LEAST_FIELDS = 89,
};

bool disk_parse_fio(const char *line, enum disk_job *job,
                    struct disk_job_figures *figures)
{
    struct fields fields;
    size_t shift;
    double kib;
    double ms;
    double user_percent;
    double system_percent;

    if (!split(line, ";", &fields) || fields.count < FIO_LEAST_FIELDS ||
        strcmp(fields.words[FIO_VERSION], "3") != 0 ||
        strcmp(fields.words[FIO_ERROR], "0") != 0)
        return false;
    *job = disk_parse_job_name(fields.words[FIO_JOB]);
    if (*job == DISK_JOB_COUNT)
        return false;
    shift = jobs[*job].writes ? FIO_WRITES : 0;
    kib = number_of(fields.words[FIO_READ_KIB + shift], "");
    ms = number_of(fields.words[FIO_READ_MS + shift], "");
    user_percent = number_of(fields.words[FIO_USER_PERCENT], "%");
    system_percent = number_of(fields.words[FIO_SYSTEM_PERCENT], "%");
    if (kib <= 0 || ms <= 0 || user_percent < 0 || system_percent < 0)
        return false;
    *figures = (struct disk_job_figures){
        .known = true,
        .requests = kib * KIB / jobs[*job].request_bytes,
        .seconds = ms / 1000,
        .bytes = kib * KIB,
        .processor_seconds = ms / 1000 * (user_percent + system_percent) / 100,
    };
    return true;
}

/* ---- bonnie++ ---- */

/* bon_csv2html(1) of bonnie++ 2.00a, "FIELDS": counted from 0. */
static const struct {
    size_t rate;
    size_t latency;
} steps_fields[DISK_STEP_COUNT] = {
    [DISK_STEP_WRITE] = {11, 39},
    [DISK_STEP_REWRITE] = {13, 40},
    [DISK_STEP_READ] = {17, 42},
    [DISK_STEP_SEEK] = {19, 43},
};
#define BONNIE_FORMAT "1.98"
#define BONNIE_LEAST_FIELDS 44

/* "12us", "34ms" or "5s". */
static double time_us(const char *word)
{
    static const struct {
        const char *unit;
        double us;
    } units[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}};

    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        double value = number_of(word, units[i].unit);

        if (value >= 0)
            return value * units[i].us;
    }
    return -1;
}

bool disk_parse_bonnie(const char *line, struct disk_step_figures steps[DISK_STEP_COUNT])
{
    struct fields fields;

    if (!split(line, ",", &fields) || fields.count < BONNIE_LEAST_FIELDS ||
        strcmp(fields.words[0], BONNIE_FORMAT) != 0)
        return false;
    for (enum disk_step step = 0; step < DISK_STEP_COUNT; step++) {
        /* "+++++" if it was too short. */
        steps[step].rate = number_of(fields.words[steps_fields[step].rate], "");
        steps[step].latency_us = time_us(fields.words[steps_fields[step].latency]);
    }
    return true;
}
