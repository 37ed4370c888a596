/* SPDX-License-Identifier: Apache-2.0 */
/* husk plan: what `husk run` with the same options would put into guest memory, from
 * where, and why. Starts nothing. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "boot/boot.h"
#include "cli/cli.h"
#include "cli/json_text.h"
#include "cli/plan_private.h"
#include "config/config.h"
#include "vm/vm.h"

#define JSON_SCHEMA 1

struct plan_report {
    const struct boot_options *options;
    const struct boot_inputs *inputs;
    const struct boot_plan *plan;
    struct plan_disks disks;
};

/* ---- words for numbers ---- */

static const char *const kind_names[] = {
    [BOOT_MAP] = "map",
    [BOOT_COPY] = "copy",
    [BOOT_ZERO] = "zero",
    [BOOT_GENERATED] = "generated",
};

static const char *e820_name(uint32_t type)
{
    return type == BOOT_E820_RAM ? "ram" : "reserved";
}

static const char *mode_name(const struct cpu_state *entry)
{
    if (entry->segments[X86_CS].long_mode)
        return "64-bit";
    return entry->cr0 & X86_CR0_PE ? "32-bit" : "real";
}

static uint64_t entry_address(const struct boot_plan *plan)
{
    return plan->entry.segments[X86_CS].base + plan->entry.rip;
}

/* ---- what became of a file ---- */

struct file_report {
    const char *mode; /* "map", "copy", "unpack", "fw_cfg" */
    char reason[640]; /* "" for a file that is simply mapped */
};

static const struct boot_range *first_range(const struct boot_plan *plan, size_t file,
                                            enum boot_range_kind kind)
{
    for (size_t i = 0; i < plan->range_count; i++)
        if (plan->ranges[i].file == file && plan->ranges[i].kind == kind)
            return &plan->ranges[i];
    return NULL;
}

static void report_unpacked(const struct boot_inputs *inputs, struct file_report *report)
{
    const char *codec = image_codec_name(inputs->image.payload.codec);

    report->mode = "unpack";
    if (inputs->cache_reason[0] == '\0')
        (void)snprintf(report->reason, sizeof(report->reason), "%s payload, %s", codec,
                       image_cache_outcome_text(inputs->cache_outcome));
    else
        (void)snprintf(report->reason, sizeof(report->reason), "%s payload, %s: %s",
                       codec, image_cache_outcome_text(inputs->cache_outcome),
                       inputs->cache_reason);
}

static void report_file(const struct plan_report *report, size_t file,
                        struct file_report *result)
{
    const struct boot_plan *plan = report->plan;
    const struct boot_range *copy = first_range(plan, file, BOOT_COPY);
    const char *reason = plan->files[file].input->reason;
    const char *copy_reason = "";

    if (first_range(plan, file, BOOT_MAP) != NULL) {
        result->mode = "map";
    } else if (copy != NULL) {
        result->mode = "copy";
        /* Of a file that is not mapped at all both reasons are the same. */
        if (strcmp(copy->reason, reason) != 0)
            copy_reason = copy->reason;
    } else if (plan->protocol == BOOT_FIRMWARE) {
        result->mode = "fw_cfg";
    } else {
        report_unpacked(report->inputs, result);
        return;
    }
    (void)snprintf(result->reason, sizeof(result->reason), "%s%s%s", reason,
                   reason[0] == '\0' || copy_reason[0] == '\0' ? "" : "; ", copy_reason);
}

/* ---- text ---- */

void plan_print_foreign(const char *before, const char *text, const char *behind)
{
    printf("%s", before);
    for (; *text != '\0'; text++)
        (void)putchar(iscntrl((unsigned char)*text) ? '?' : *text);
    printf("%s", behind);
}

static void print_machine(const struct plan_report *report)
{
    const struct boot_plan *plan = report->plan;

    printf("protocol  %s: %s\n", boot_protocol_name(plan->protocol),
           plan->protocol_reason);
    printf("entry     0x%" PRIx64 " in %s mode\n", entry_address(plan),
           mode_name(&plan->entry));
    printf("cpus      %" PRIu32 "\n", report->options->cpu_count);
    printf("memory    %" PRIu64 " MiB\n", report->options->memory_bytes / MIB);
    if (plan->cmdline != NULL)
        plan_print_foreign("cmdline   ", plan->cmdline, "\n");
    for (size_t i = 0; i < plan->note_count; i++)
        printf("note      %s\n", plan->notes[i]);
}

static void print_files(const struct plan_report *report)
{
    printf("\nfiles\n");
    for (size_t i = 0; i < report->plan->file_count; i++) {
        const struct boot_file *file = &report->plan->files[i];
        struct file_report result;

        report_file(report, i, &result);
        plan_print_foreign("  ", file->name, ": ");
        printf("%" PRIu64 " bytes, %s", file->input->size_bytes, result.mode);
        plan_print_foreign(result.reason[0] == '\0' ? "" : ": ", result.reason, "\n");
        if (file->string != NULL)
            plan_print_foreign("    string: ", file->string, "\n");
    }
}

static void print_memory_map(const struct boot_plan *plan)
{
    printf("\nmemory map (e820)\n");
    for (size_t i = 0; i < plan->e820_count; i++) {
        const struct boot_e820 *entry = &plan->e820[i];

        printf("  0x%010" PRIx64 " to 0x%010" PRIx64 "  %s\n", entry->gpa,
               entry->gpa + entry->size_bytes - 1, e820_name(entry->type));
    }
}

static void print_pmems(const struct boot_plan *plan)
{
    if (plan->pmem_count > 0)
        printf("\npersistent memory\n");
    for (size_t i = 0; i < plan->pmem_count; i++) {
        const struct boot_pmem *pmem = &plan->pmems[i];

        printf("  0x%010" PRIx64 " to 0x%010" PRIx64 "  map, %s", pmem->gpa,
               pmem->gpa + pmem->size_bytes - 1, boot_pmem_mode_name(pmem->input->mode));
        plan_print_foreign(": ", pmem->input->path, ", ");
        printf("%" PRIu64 " bytes\n", pmem->input->size_bytes);
    }
}

static void print_range(const struct boot_plan *plan, const struct boot_range *range)
{
    printf("  0x%010" PRIx64 " %10" PRIu64 "  %-9s  %s", range->gpa, range->size_bytes,
           kind_names[range->kind], range->what);
    if (range->kind == BOOT_MAP || range->kind == BOOT_COPY)
        printf(", offset 0x%" PRIx64 " of %s", range->file_offset,
               boot_file_role_name(plan->files[range->file].role));
    if (range->reason != NULL)
        printf(" (%s)", range->reason);
    printf("\n");
}

static void print_text(const struct plan_report *report)
{
    const struct boot_plan *plan = report->plan;

    print_machine(report);
    print_files(report);
    plan_print_disks(&report->disks);
    print_memory_map(plan);
    print_pmems(plan);
    printf("\nranges\n  %-12s %10s  %-9s  %s\n", "address", "bytes", "kind", "what");
    for (size_t i = 0; i < plan->range_count; i++)
        print_range(plan, &plan->ranges[i]);
    plan_print_fw_cfg(plan);
    printf("\nmapped %" PRIu64 ", copied %" PRIu64 ", zeroed %" PRIu64
           ", generated %" PRIu64 " bytes\n",
           plan->bytes.mapped, plan->bytes.copied, plan->bytes.zeroed,
           plan->bytes.generated);
}

/* ---- JSON ---- */

static json_t *json_number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *json_file(const struct plan_report *report, size_t index)
{
    const struct boot_file *file = &report->plan->files[index];
    struct file_report result;

    report_file(report, index, &result);
    return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o}", "role",
                     boot_file_role_name(file->role), "path",
                     cli_json_text(file->input->path), "size_bytes",
                     json_number(file->input->size_bytes), "mode", result.mode, "reason",
                     cli_json_text(result.reason), "string",
                     file->string == NULL ? json_null() : cli_json_text(file->string));
}

static json_t *json_e820(const struct boot_e820 *entry)
{
    return json_pack("{s:o, s:o, s:s}", "gpa", json_number(entry->gpa), "size_bytes",
                     json_number(entry->size_bytes), "type", e820_name(entry->type));
}

static json_t *json_range(const struct boot_plan *plan, const struct boot_range *range)
{
    bool is_file = range->kind == BOOT_MAP || range->kind == BOOT_COPY;
    const char *source = is_file ? plan->files[range->file].input->path : NULL;

    if (range->kind == BOOT_GENERATED)
        source = "husk";
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:s, s:o}", "gpa",
                     json_number(range->gpa), "size_bytes",
                     json_number(range->size_bytes), "kind", kind_names[range->kind],
                     "source", cli_json_text(source), "source_offset",
                     is_file ? json_number(range->file_offset) : json_null(), "what",
                     range->what, "reason", cli_json_text(range->reason));
}

static json_t *json_pmem(const struct boot_pmem *pmem)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:s}", "gpa", json_number(pmem->gpa),
                     "size_bytes", json_number(pmem->size_bytes), "path",
                     cli_json_text(pmem->input->path), "file_bytes",
                     json_number(pmem->input->size_bytes), "mode",
                     boot_pmem_mode_name(pmem->input->mode));
}

static json_t *json_bytes(const struct boot_bytes *bytes)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "mapped", json_number(bytes->mapped),
                     "copied", json_number(bytes->copied), "zeroed",
                     json_number(bytes->zeroed), "generated",
                     json_number(bytes->generated));
}

static json_t *json_plan(const struct plan_report *report)
{
    const struct boot_plan *plan = report->plan;
    json_t *files = json_array();
    json_t *e820 = json_array();
    json_t *ranges = json_array();
    json_t *pmems = json_array();
    json_t *notes = json_array();

    for (size_t i = 0; i < plan->file_count; i++)
        (void)json_array_append_new(files, json_file(report, i));
    for (size_t i = 0; i < plan->e820_count; i++)
        (void)json_array_append_new(e820, json_e820(&plan->e820[i]));
    for (size_t i = 0; i < plan->range_count; i++)
        (void)json_array_append_new(ranges, json_range(plan, &plan->ranges[i]));
    for (size_t i = 0; i < plan->pmem_count; i++)
        (void)json_array_append_new(pmems, json_pmem(&plan->pmems[i]));
    for (size_t i = 0; i < plan->note_count; i++)
        (void)json_array_append_new(notes, cli_json_text(plan->notes[i]));
    return json_pack(
        "{s:i, s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o}",
        "schema", JSON_SCHEMA, "protocol", boot_protocol_name(plan->protocol),
        "protocol_reason", plan->protocol_reason, "entry",
        json_number(entry_address(plan)), "entry_mode", mode_name(&plan->entry),
        "cpu_count", json_number(report->options->cpu_count), "memory_bytes",
        json_number(report->options->memory_bytes), "cmdline",
        plan->cmdline != NULL ? cli_json_text(plan->cmdline) : json_null(), "notes",
        notes, "files", files, "disks", plan_json_disks(&report->disks), "e820", e820,
        "pmem", pmems, "ranges", ranges, "fw_cfg", plan_json_fw_cfg(plan), "bytes",
        json_bytes(&plan->bytes));
}

static int print_json(const struct plan_report *report, struct error *err)
{
    json_t *document = json_plan(report);
    int status = 0;

    if (document == NULL)
        return error_set(err, -ENOMEM, "out of memory for the JSON document");
    if (json_dumpf(document, stdout, JSON_INDENT(2)) < 0 || putchar('\n') == EOF)
        status = error_set_errno(err, errno, "cannot write to standard output");
    json_decref(document);
    return status;
}

/* ---- the command ---- */

static int print_plan(const struct vm_config *config, const struct boot_options *options,
                      bool as_json, struct error *err)
{
    struct plan_report report = {.options = options};
    struct boot_inputs inputs;
    struct boot_plan *plan = NULL;
    int status;

    if (boot_inputs_open(&inputs, options, err) < 0)
        return err->code;
    status = boot_plan_build(&inputs, options, &plan, err);
    if (status == 0)
        status = plan_look_at_disks(config, &report.disks, err);
    if (status == 0) {
        report.inputs = &inputs;
        report.plan = plan;
        if (as_json)
            status = print_json(&report, err);
        else
            print_text(&report);
    }
    if (status == 0 && fflush(stdout) != 0)
        status = error_set_errno(err, errno, "cannot write to standard output");
    boot_plan_destroy(plan);
    boot_inputs_close(&inputs);
    return status;
}

int cli_plan(int argc, char **argv, struct error *err)
{
    static const char *const extra[] = {"json", NULL};
    struct vm_config config;
    struct boot_options options;
    uint32_t extra_seen = 0;
    char *cmdline = NULL;
    int code = EXIT_USAGE;

    config_init(&config);
    if (config_parse(&config, argc, argv, extra, &extra_seen, err) == 0) {
        cmdline = config_cmdline(&config);
        code = vm_boot_options(&config, cmdline, &options, err) < 0 ||
                       print_plan(&config, &options, extra_seen != 0, err) < 0
                   ? EXIT_HOST_FAILURE
                   : EXIT_POWER_OFF;
    }
    free(cmdline);
    config_finish(&config);
    return code;
}
