/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of vm/ that api/ calls; see fake_vm.h. */
#include "fake_vm.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fd.h"

const char *vm_state_name(enum vm_state state)
{
    static const char *const names[] = {
        [VM_CREATED] = "created",
        [VM_RUNNING] = "running",
        [VM_PAUSED] = "paused",
        [VM_ENDED] = "ended",
    };

    return names[state];
}

void vm_pause(struct vm *vm)
{
    vm->pauses++;
    vm->state = VM_PAUSED;
}

void vm_resume(struct vm *vm)
{
    vm->resumes++;
    vm->state = VM_RUNNING;
}

bool vm_power_button(struct vm *vm)
{
    vm->presses++;
    return !vm->ignores_power_button;
}

void vm_stop(struct vm *vm, enum vm_end end)
{
    vm->end = end;
    vm->state = VM_ENDED;
    atomic_fetch_add(&vm->stops, 1);
    if (vm->ends_loop != NULL)
        loop_stop(vm->ends_loop);
}

void vm_dump(struct vm *vm)
{
    vm->dumps++;
}

void vm_console_resize(struct vm *vm, uint16_t columns, uint16_t rows)
{
    vm->columns = columns;
    vm->rows = rows;
}

void vm_update_disks(struct vm *vm)
{
    vm->disk_updates++;
}

int vm_set_balloon(struct vm *vm, uint64_t target_bytes, struct error *err)
{
    if (vm->balloon_refusal != 0)
        return error_set(err, vm->balloon_refusal, "the fake does not want to");
    vm->balloon.target_bytes = target_bytes;
    return 0;
}

bool vm_balloon_status(struct vm *vm, struct virtio_balloon_status *status)
{
    *status = vm->balloon;
    return vm->has_balloon;
}

const char *vm_pause_reason(const struct vm *vm)
{
    return vm->pause_reason != NULL ? vm->pause_reason : "";
}

size_t vm_disk_count(const struct vm *vm)
{
    return vm->disk_count;
}

void vm_disk_status(const struct vm *vm, size_t index, struct vm_disk_status *status)
{
    *status = vm->disks[index];
}

enum vm_state vm_state(const struct vm *vm)
{
    return vm->state;
}

const struct boot_plan *vm_plan(const struct vm *vm)
{
    return &vm->plan;
}

struct stages *vm_stages(struct vm *vm)
{
    return &vm->stages;
}

int vm_memory_usage(const struct vm *vm, struct vm_usage usage[VM_USAGE_KINDS],
                    struct error *err)
{
    (void)vm;
    (void)err;
    for (uint64_t kind = 0; kind < VM_USAGE_KINDS; kind++)
        usage[kind] =
            (struct vm_usage){1000 * (kind + 1), 100 * (kind + 1), 10 * (kind + 1)};
    return 0;
}

const char *vm_usage_kind_name(enum vm_usage_kind kind)
{
    static const char *const names[VM_USAGE_KINDS] = {
        "guest_ram", "kernel_file", "initrd",  "common_pages",
        "pmem",      "code",        "program", "monitor"};

    return names[kind];
}

void vm_counters(const struct vm *vm, struct vm_counters *counters)
{
    *counters = vm->counters;
}

const char *boot_protocol_name(enum boot_protocol protocol)
{
    CHECK(protocol == BOOT_PVH);
    return "pvh";
}

double stages_ms(const struct stages *stages, enum stage stage)
{
    uint64_t at_ns = atomic_load(&stages->at_ns[stage]);

    return at_ns == 0 ? -1 : (double)at_ns / 1e6;
}

int console_attach(struct console *console, int fd, size_t backlog_bytes,
                   struct error *err)
{
    CHECK(backlog_bytes == CONSOLE_RING_BYTES);
    if (console->refuses_readers) {
        fd_close(&fd);
        return error_set(err, -EMFILE, "console: too many readers");
    }
    CHECK(fd_write_all(fd, console->backlog, strlen(console->backlog)) == 0);
    fd_close(&fd); /* its output ends here; input goes on */
    return 0;
}

size_t console_input(struct console *console, const uint8_t *bytes, size_t size)
{
    size_t used = atomic_load(&console->input_used);
    size_t taken = (size_t)min_u64(size, atomic_load(&console->room));

    CHECK(taken <= FAKE_INPUT_BYTES - used);
    memcpy(console->input + used, bytes, taken);
    if (taken < size)
        atomic_fetch_add(&console->refusals, 1);
    atomic_fetch_sub(&console->room, taken);
    atomic_store(&console->input_used, used + taken);
    return taken;
}
