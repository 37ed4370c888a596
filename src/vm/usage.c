/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process takes of the host's memory, and what for: /proc/self/smaps, each
 * mapping put down to what lies there. The loop's thread.
 *
 * Pages of a file that the guest has written to are its RAM, not the file's any more:
 * smaps counts them as anonymous.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/smaps.h"
#include "vm/vm_private.h"

static const char *const kind_names[VM_USAGE_KINDS] = {
    [VM_USAGE_RAM] = "guest_ram",   [VM_USAGE_KERNEL] = "kernel_file",
    [VM_USAGE_INITRD] = "initrd",   [VM_USAGE_COMMON] = "common_pages",
    [VM_USAGE_PMEM] = "pmem",       [VM_USAGE_CODE] = "code",
    [VM_USAGE_PROGRAM] = "program", [VM_USAGE_MONITOR] = "monitor",
};

const char *vm_usage_kind_name(enum vm_usage_kind kind)
{
    return kind_names[kind];
}

/* ---- what a mapping is for ---- */

static enum vm_usage_kind kind_of_file(enum boot_file_role role)
{
    static const enum vm_usage_kind kinds[] = {
        [BOOT_FILE_KERNEL] = VM_USAGE_KERNEL,   [BOOT_FILE_UNPACKED] = VM_USAGE_KERNEL,
        [BOOT_FILE_INITRD] = VM_USAGE_INITRD,   [BOOT_FILE_MODULE] = VM_USAGE_INITRD,
        [BOOT_FILE_FIRMWARE] = VM_USAGE_KERNEL,
    };

    return kinds[role];
}

static bool is_pmem(const struct boot_plan *plan, uint64_t gpa)
{
    for (size_t i = 0; i < plan->pmem_count; i++)
        if (gpa - plan->pmems[i].gpa < plan->pmems[i].size_bytes)
            return true;
    return false;
}

static enum vm_usage_kind kind_in_guest(const struct vm *vm, uint64_t gpa)
{
    const struct boot_plan *plan = vm->plan;

    if (memory_is_common(vm->memory, gpa))
        return VM_USAGE_COMMON;
    if (is_pmem(plan, gpa))
        return VM_USAGE_PMEM;
    for (size_t i = 0; i < plan->range_count; i++) {
        const struct boot_range *range = &plan->ranges[i];

        if (range->kind == BOOT_MAP && gpa - range->gpa < range->size_bytes)
            return kind_of_file(plan->files[range->file].role);
    }
    return VM_USAGE_RAM;
}

/* False: not guest memory. */
static bool find_gpa(const struct vm *vm, uintptr_t address, uint64_t *gpa)
{
    const struct memory_region *regions = memory_regions(vm->memory);

    for (size_t i = 0; i < memory_region_count(vm->memory); i++) {
        uintptr_t start = (uintptr_t)regions[i].hva;

        if (address >= start && address - start < regions[i].size_bytes) {
            *gpa = regions[i].gpa + (address - start);
            return true;
        }
    }
    return false;
}

static void add(struct vm_usage *to, struct vm_usage usage)
{
    to->rss_bytes += usage.rss_bytes;
    to->pss_bytes += usage.pss_bytes;
    to->private_bytes += usage.private_bytes;
}

static enum vm_usage_kind kind_of_own(const struct smaps_mapping *mapping)
{
    if (!mapping->has_file || mapping->is_memory_file)
        return VM_USAGE_MONITOR; /* until move_code */
    return VM_USAGE_PROGRAM;
}

struct reading {
    const struct vm *vm;
    struct vm_usage *usage; /* of each kind */
};

static void put_down(void *context, const struct smaps_mapping *mapping)
{
    const struct reading *reading = context;
    struct vm_usage *usage = reading->usage;
    uint64_t written = mapping->anonymous_bytes;
    struct vm_usage rest = {mapping->rss_bytes, mapping->pss_bytes,
                            mapping->private_bytes};
    uint64_t gpa;

    if (!find_gpa(reading->vm, (uintptr_t)mapping->start, &gpa)) {
        add(&usage[kind_of_own(mapping)], rest);
        return;
    }
    if (!mapping->has_file) {
        add(&usage[VM_USAGE_RAM], rest);
        return;
    }
    add(&usage[VM_USAGE_RAM], (struct vm_usage){written, written, written});
    rest.rss_bytes -= min_u64(written, rest.rss_bytes);
    rest.pss_bytes -= min_u64(written, rest.pss_bytes);
    rest.private_bytes -= min_u64(written, rest.private_bytes);
    add(&usage[kind_in_guest(reading->vm, gpa)], rest);
}

static void move_code(const struct vm *vm, struct vm_usage usage[VM_USAGE_KINDS])
{
    struct vm_usage *monitor = &usage[VM_USAGE_MONITOR];
    uint64_t code = vm_code_bytes(vm);

    code = min_u64(code, monitor->private_bytes);
    add(&usage[VM_USAGE_CODE], (struct vm_usage){code, code, code});
    monitor->rss_bytes -= code;
    monitor->pss_bytes -= min_u64(code, monitor->pss_bytes);
    monitor->private_bytes -= code;
}

int vm_memory_usage(const struct vm *vm, struct vm_usage usage[VM_USAGE_KINDS],
                    struct error *err)
{
    struct reading reading = {.vm = vm, .usage = usage};
    FILE *file = fopen("/proc/self/smaps", "re");

    if (file == NULL)
        return error_set_errno(err, errno, "cannot open /proc/self/smaps");
    memset(usage, 0, VM_USAGE_KINDS * sizeof(usage[0]));
    smaps_read(file, put_down, &reading);
    (void)fclose(file);
    move_code(vm, usage);
    return 0;
}
