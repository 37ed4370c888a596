/* SPDX-License-Identifier: Apache-2.0 */
/* What the API says about a VM, as JSON. */
#include "api/documents_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"

#define SCHEMA_VERSION 1

/* What the kernel accounts to this process, guest memory included (proc(5)). */
struct process_memory {
    uint64_t rss_bytes;
    uint64_t pss_bytes; /* shared pages counted in parts */
    uint64_t private_bytes;
};

json_t *document_text(const char *text)
{
    json_t *string = json_string(text);
    char *ascii;

    if (string != NULL)
        return string;
    ascii = strdup(text);
    if (ascii == NULL)
        return NULL;
    for (char *at = ascii; *at != '\0'; at++)
        if ((*at & 0x80) != 0)
            *at = '?';
    string = json_string(ascii);
    free(ascii);
    return string;
}

static json_t *text_or_null(const char *text)
{
    return text == NULL ? json_null() : document_text(text);
}

static json_t *count(uint64_t value)
{
    return json_integer((json_int_t)min_u64(value, INT64_MAX));
}

/* `objects` that could not be made are NULL; their parent then is NULL too. */
static int set(json_t *parent, const char *key, json_t *value)
{
    return json_object_set_new(parent, key, value);
}

static const char *boot_file_path(const struct vm_config *config)
{
    return config->kernel != NULL ? config->kernel : config->firmware;
}

static uint64_t uptime_ms(void)
{
    return (clock_monotonic_ns() - clock_start_ns()) / NS_PER_MS;
}

json_t *document_identity(const struct api_machine *machine)
{
    const struct vm_config *config = machine->config;
    struct vm_counters counters;

    vm_counters(machine->vm, &counters);
    return json_pack("{s:i, s:o, s:s, s:I, s:s, s:o, s:o, s:s, s:o, s:o}", "schema",
                     SCHEMA_VERSION, "name",
                     document_text(instance_name(machine->instance)), "state",
                     vm_state_name(vm_state(machine->vm)), "pid", (json_int_t)getpid(),
                     "accel", counters.accel, "uptime_ms", count(uptime_ms()), "kernel",
                     text_or_null(boot_file_path(config)), "protocol",
                     boot_protocol_name(vm_plan(machine->vm)->protocol), "memory_bytes",
                     count(config->memory_bytes), "vcpus", count(config->cpu_count));
}

static json_t *counters_object(const struct vm *vm)
{
    struct vm_counters counters;

    vm_counters(vm, &counters);
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "retired_instructions",
        counters.counts_instructions ? count(counters.retired_instructions) : json_null(),
        "port_exits", count(counters.port_exits), "mmio_exits",
        count(counters.mmio_exits), "kicks", count(counters.kicks), "resets",
        count(counters.resets), "console_bytes_out", count(counters.console_bytes_out),
        "console_bytes_in", count(counters.console_bytes_in), "fw_cfg_port_bytes",
        count(counters.fw_cfg_port_bytes), "fw_cfg_dma_bytes",
        count(counters.fw_cfg_dma_bytes), "fw_cfg_dma_operations",
        count(counters.fw_cfg_dma_operations));
}

static json_t *plan_bytes_object(const struct boot_bytes *bytes)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "mapped", count(bytes->mapped), "copied",
                     count(bytes->copied), "zeroed", count(bytes->zeroed), "generated",
                     count(bytes->generated));
}

static json_t *stages_object(const struct stages *stages)
{
    static const char *const names[STAGE_COUNT] = {
        [STAGE_CONFIG] = "config",
        [STAGE_PLAN] = "plan",
        [STAGE_MEMORY] = "memory",
        [STAGE_INIT_END] = "init_end",
        [STAGE_START_KERNEL] = "start_kernel",
        [STAGE_START_USER] = "start_user",
        [STAGE_END] = "end",
    };
    json_t *object = json_object();

    for (enum stage stage = 0; stage < STAGE_COUNT; stage++) {
        double reached_ms = stages_ms(stages, stage);
        json_t *value = reached_ms < 0 ? json_null() : json_real(reached_ms);

        if (set(object, names[stage], value) < 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* Adds the number of a line "KEY:   123 kB" to *size_bytes. Other lines add nothing. */
static void add_line(const char *line, const char *key, uint64_t *size_bytes)
{
    size_t length = strlen(key);

    if (strncmp(line, key, length) == 0 && line[length] == ':')
        *size_bytes += strtoull(line + length + 1, NULL, 10) * KIB;
}

static bool read_process_memory(struct process_memory *memory)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    char line[256];

    *memory = (struct process_memory){.rss_bytes = 0};
    if (file == NULL)
        return false;
    while (fgets(line, sizeof(line), file) != NULL) {
        add_line(line, "Rss", &memory->rss_bytes);
        add_line(line, "Pss", &memory->pss_bytes);
        add_line(line, "Private_Clean", &memory->private_bytes);
        add_line(line, "Private_Dirty", &memory->private_bytes);
    }
    (void)fclose(file);
    return true;
}

static json_t *process_object(void)
{
    struct process_memory memory;

    if (!read_process_memory(&memory))
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "rss_bytes", count(memory.rss_bytes), "pss_bytes",
                     count(memory.pss_bytes), "private_bytes",
                     count(memory.private_bytes));
}

json_t *document_statistics(const struct api_machine *machine)
{
    json_t *document = document_identity(machine);

    if (set(document, "counters", counters_object(machine->vm)) == 0 &&
        set(document, "plan_bytes", plan_bytes_object(&vm_plan(machine->vm)->bytes)) ==
            0 &&
        set(document, "stages_ms", stages_object(vm_stages(machine->vm))) == 0 &&
        set(document, "process", process_object()) == 0)
        return document;
    json_decref(document);
    return NULL;
}

json_t *document_info(const struct vm_config *config)
{
    return json_pack("{s:i, s:I, s:I, s:o, s:o, s:o}", "schema", SCHEMA_VERSION, "pid",
                     (json_int_t)getpid(), "started", (json_int_t)time(NULL), "kernel",
                     text_or_null(boot_file_path(config)), "memory_bytes",
                     count(config->memory_bytes), "vcpus", count(config->cpu_count));
}
