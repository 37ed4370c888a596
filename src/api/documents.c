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

static json_t *counters_object(const struct vm_counters *counters)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "retired_instructions",
        counters->counts_instructions ? count(counters->retired_instructions)
                                      : json_null(),
        "port_exits", count(counters->port_exits), "mmio_exits",
        count(counters->mmio_exits), "kicks", count(counters->kicks),
        "ioeventfd_notifications", count(counters->ioeventfd_notifications),
        "irqfd_interrupts", count(counters->irqfd_interrupts), "resets",
        count(counters->resets), "idle_looks", count(counters->idle_looks),
        "idle_zero_bytes", count(counters->idle_zero_bytes), "idle_common_bytes",
        count(counters->idle_common_bytes), "console_bytes_out",
        count(counters->console_bytes_out), "console_bytes_in",
        count(counters->console_bytes_in), "fw_cfg_port_bytes",
        count(counters->fw_cfg_port_bytes), "fw_cfg_dma_bytes",
        count(counters->fw_cfg_dma_bytes), "fw_cfg_dma_operations",
        count(counters->fw_cfg_dma_operations));
}

/* Null where code is not translated. */
static json_t *translator_object(const struct vm_counters *counters)
{
    const struct accel_translations *translations = &counters->translations;

    if (!counters->translates)
        return json_null();
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "blocks", count(translations->blocks),
        "instructions", count(translations->instructions), "code_bytes",
        count(translations->code_bytes), "translate_ns", count(translations->nanoseconds),
        "evictions", count(translations->evictions), "tlb_fills",
        count(translations->tlb_fills), "interpreted", count(translations->interpreted),
        "lookups", count(translations->lookups));
}

static json_t *disk_object(const struct vm *vm, size_t index)
{
    static const char *const names[DISK_OPERATIONS] = {
        [DISK_READ] = "reads",
        [DISK_WRITE] = "writes",
        [DISK_FLUSH] = "flushes",
        [DISK_DISCARD] = "discards",
        [DISK_WRITE_ZEROES] = "write_zeroes",
    };
    struct vm_disk_status status;
    json_t *object;

    vm_disk_status(vm, index, &status);
    object = json_pack("{s:o, s:o, s:b, s:s, s:o, s:i, s:i, s:i}", "path",
                       document_text(status.path), "size_bytes", count(status.size_bytes),
                       "read_only", status.read_only, "engine", status.engine,
                       "engine_reason", document_text(status.engine_reason), "queues",
                       status.queues, "in_flight", status.in_flight, "held", status.held);
    for (int i = 0; i < DISK_OPERATIONS; i++) {
        json_t *counters = json_pack(
            "{s:o, s:o, s:o}", "requests", count(status.counters.requests[i]), "bytes",
            count(status.counters.bytes[i]), "errors", count(status.counters.errors[i]));

        if (set(object, names[i], counters) < 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *disks_array(const struct vm *vm)
{
    json_t *array = json_array();

    for (size_t i = 0; i < vm_disk_count(vm); i++)
        if (json_array_append_new(array, disk_object(vm, i)) < 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

/* By the number of each. */
static json_t *guest_memory_object(const struct virtio_balloon_status *status)
{
    static const char *const names[VIRTIO_BALLOON_STATISTICS] = {
        [VIRTIO_BALLOON_SWAP_IN_BYTES] = "swap_in_bytes",
        [VIRTIO_BALLOON_SWAP_OUT_BYTES] = "swap_out_bytes",
        [VIRTIO_BALLOON_MAJOR_FAULTS] = "major_faults",
        [VIRTIO_BALLOON_MINOR_FAULTS] = "minor_faults",
        [VIRTIO_BALLOON_FREE_BYTES] = "free_bytes",
        [VIRTIO_BALLOON_TOTAL_BYTES] = "total_bytes",
        [VIRTIO_BALLOON_AVAILABLE_BYTES] = "available_bytes",
        [VIRTIO_BALLOON_CACHE_BYTES] = "cache_bytes",
        [VIRTIO_BALLOON_HUGE_PAGE_ALLOCATIONS] = "huge_page_allocations",
        [VIRTIO_BALLOON_HUGE_PAGE_FAILURES] = "huge_page_failures",
    };
    json_t *object = json_object();

    for (unsigned i = 0; i < VIRTIO_BALLOON_STATISTICS; i++) {
        bool known = (status->statistics_known >> i & 1) != 0;

        if (set(object, names[i], known ? count(status->statistics[i]) : json_null()) <
            0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* null: the guest has none. */
static json_t *balloon_object(struct vm *vm)
{
    struct virtio_balloon_status status;

    if (!vm_balloon_status(vm, &status))
        return json_null();
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "target_bytes", count(status.target_bytes),
        "actual_bytes", count(status.actual_bytes), "inflated_bytes",
        count(status.inflated_bytes), "reported_bytes", count(status.reported_bytes),
        "kept_bytes", count(status.kept_bytes), "poisoned_bytes",
        count(status.poisoned_bytes), "guest", guest_memory_object(&status));
}

/* Why the VM has paused itself; null if it has not. */
static json_t *pause_reason(const struct vm *vm)
{
    const char *reason = vm_pause_reason(vm);

    return reason[0] == '\0' ? json_null() : document_text(reason);
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

static json_t *usage_object(struct vm_usage usage)
{
    return json_pack("{s:o, s:o, s:o}", "rss_bytes", count(usage.rss_bytes), "pss_bytes",
                     count(usage.pss_bytes), "private_bytes", count(usage.private_bytes));
}

/* All of it, and each kind. */
static json_t *process_object(const struct vm *vm)
{
    struct vm_usage usage[VM_USAGE_KINDS];
    struct vm_usage total = {.rss_bytes = 0};
    struct error err = ERROR_NONE;
    json_t *object;
    json_t *kinds;

    if (vm_memory_usage(vm, usage, &err) < 0)
        return json_null();
    kinds = json_object();
    for (enum vm_usage_kind kind = 0; kind < VM_USAGE_KINDS; kind++) {
        total.rss_bytes += usage[kind].rss_bytes;
        total.pss_bytes += usage[kind].pss_bytes;
        total.private_bytes += usage[kind].private_bytes;
        if (set(kinds, vm_usage_kind_name(kind), usage_object(usage[kind])) < 0) {
            json_decref(kinds);
            return NULL;
        }
    }
    object = usage_object(total);
    if (set(object, "kinds", kinds) < 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *document_statistics(const struct api_machine *machine)
{
    json_t *document = document_identity(machine);
    struct vm_counters counters;

    vm_counters(machine->vm, &counters);
    if (set(document, "pause_reason", pause_reason(machine->vm)) == 0 &&
        set(document, "counters", counters_object(&counters)) == 0 &&
        set(document, "translator", translator_object(&counters)) == 0 &&
        set(document, "disks", disks_array(machine->vm)) == 0 &&
        set(document, "balloon", balloon_object(machine->vm)) == 0 &&
        set(document, "plan_bytes", plan_bytes_object(&vm_plan(machine->vm)->bytes)) ==
            0 &&
        set(document, "stages_ms", stages_object(vm_stages(machine->vm))) == 0 &&
        set(document, "process", process_object(machine->vm)) == 0)
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
