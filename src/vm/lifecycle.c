/* SPDX-License-Identifier: Apache-2.0 */
/* A machine's life after assembly: start, pause, reset, end. The loop's thread. */
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "vm/vm_private.h"

static void end(struct vm *vm, enum vm_end reason)
{
    if (vm->state == VM_ENDED)
        return;
    if (vm->state != VM_CREATED)
        vm_order_park(vm);
    stages_mark(&vm->stages, STAGE_END);
    vm->state = VM_ENDED;
    vm->outcome.end = reason;
    vm->ended(vm->ended_context);
}

int vm_start(struct vm *vm, struct error *err)
{
    struct timeval timeout = {.tv_sec = (time_t)vm->config->timeout_seconds};

    CHECK(vm->state == VM_CREATED);
    if (vm->config->timeout_seconds > 0 && event_add(vm->timeout, &timeout) < 0)
        return error_set(err, -ENOMEM, "cannot set the timer of --timeout");
    if (vm_start_threads(vm, err) < 0)
        return err->code;
    vm->state = VM_RUNNING;
    vm_order_run(vm);
    vm_start_reclaim(vm);
    return 0;
}

void vm_pause(struct vm *vm)
{
    if (vm->state != VM_RUNNING)
        return;
    vm_order_park(vm);
    vm->state = VM_PAUSED;
}

void vm_resume(struct vm *vm)
{
    if (vm->state != VM_PAUSED)
        return;
    vm->state = VM_RUNNING;
    vm_retry_disks(vm);
    /* A request that came just before the pause is answered first. */
    if (atomic_load(&vm->requests) != 0)
        vm_handle_requests(vm);
    else
        vm_order_run(vm);
}

bool vm_power_button(struct vm *vm)
{
    return vm->state != VM_ENDED && chipset_power_button(vm->chipset);
}

void vm_stop(struct vm *vm, enum vm_end reason)
{
    end(vm, reason);
}

/* A reset is the same plan carried out again, on memory that is as fresh as at the start.
 */
static int power_cycle(struct vm *vm, struct error *err)
{
    vm_end_threads(vm);
    chipset_reset(vm->chipset); /* first: nobody accesses memory any more */
    vm_drop_processors(vm);
    vm_reset_interrupts(vm);
    if (memory_reset(vm->memory, err) < 0 || boot_load(vm->plan, vm->memory, err) < 0 ||
        vm_make_processors(vm, err) < 0)
        return error_prefix(err, "cannot reset the machine");
    fw_cfg_reset(vm->fw_cfg);
    vm->resets++;
    return vm_start_threads(vm, err);
}

static void reset(struct vm *vm)
{
    if (vm->config->no_reboot) {
        end(vm, VM_END_REBOOT);
        return;
    }
    if (!vm_stop_disks(vm)) { /* memory is theirs until what is in flight comes back */
        (void)atomic_fetch_or(&vm->requests, VM_REQUEST_RESET);
        return;
    }
    if (power_cycle(vm, &vm->outcome.failure) < 0) {
        end(vm, VM_END_FAILED);
        return;
    }
    vm_order_run(vm);
}

static void explain_loss(const struct memory_loss *loss, struct error *err)
{
    if (loss->is_truncated)
        error_set(
            err, -EIO,
            "%s: became shorter while the guest was using it (guest address 0x%" PRIx64
            "); the guest is stopped because its memory is lost; replace such files by "
            "rename instead of writing into them",
            loss->file, loss->gpa);
    else
        error_set(err, -EIO,
                  "%s: the host could not give the guest a page of it (guest address "
                  "0x%" PRIx64
                  "): its storage is full, or fails; the guest is stopped because its "
                  "memory is lost",
                  loss->file, loss->gpa);
}

static void fail(struct vm *vm)
{
    struct memory_loss loss;

    if (memory_lost(vm->memory, &loss))
        explain_loss(&loss, &vm->outcome.failure);
    else
        vm->outcome.failure = vm->failure; /* all vCPUs are parked */
    end(vm, VM_END_FAILED);
}

static void dump_state(uint32_t index, const struct cpu_state *state)
{
    static const char *const names[X86_REGISTER_COUNT] = {
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
        "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    static const char *const segment_names[X86_SEGMENT_COUNT] = {"es", "cs", "ss",  "ds",
                                                                 "fs", "gs", "ldt", "tr"};

    log_error("vCPU %u: rip %016" PRIx64 " rflags %08" PRIx64, index, state->rip,
              state->rflags);
    for (int i = 0; i < X86_REGISTER_COUNT; i += 4)
        log_error("  %-3s %016" PRIx64 "  %-3s %016" PRIx64 "  %-3s %016" PRIx64
                  "  %-3s %016" PRIx64,
                  names[i], state->registers[i], names[i + 1], state->registers[i + 1],
                  names[i + 2], state->registers[i + 2], names[i + 3],
                  state->registers[i + 3]);
    for (int i = 0; i < X86_SEGMENT_COUNT; i++) {
        const struct x86_segment *segment = &state->segments[i];

        log_error("  %-3s %04x base %016" PRIx64 " limit %08x type %x dpl %u%s%s%s",
                  segment_names[i], segment->selector, segment->base, segment->limit,
                  segment->type, segment->dpl, segment->present ? " present" : "",
                  segment->long_mode ? " 64-bit" : "", segment->db ? " 32-bit" : "");
    }
    log_error("  cr0 %08" PRIx64 " cr2 %016" PRIx64 " cr3 %016" PRIx64 " cr4 %08" PRIx64
              " efer %04" PRIx64,
              state->cr0, state->cr2, state->cr3, state->cr4, state->efer);
    log_error("  gdt %016" PRIx64 "+%04x idt %016" PRIx64 "+%04x", state->gdt.base,
              state->gdt.limit, state->idt.base, state->idt.limit);
}

/* All are parked. A reset that failed may have left some without a processor. */
static void dump_vcpus(struct vm *vm)
{
    for (uint32_t i = 0; i < vm->vcpu_count; i++) {
        struct error err = ERROR_NONE;
        struct cpu_state state;

        if (vm->vcpus[i].accel_vcpu == NULL)
            continue;
        if (vm->accel->get_state(vm->vcpus[i].accel_vcpu, &state, &err) < 0)
            log_error("vCPU %u: %s", i, err.text);
        else
            dump_state(i, &state);
        if (vm_counts_instructions(vm))
            log_error("  instructions %" PRIu64,
                      vm->accel->vcpu_instructions(vm->vcpus[i].accel_vcpu));
    }
}

/* Several may have come at once; the gravest counts. While paused, all wait for the
 * resume. */
void vm_handle_requests(void *context)
{
    struct vm *vm = context;
    unsigned requests;

    if (vm->state != VM_RUNNING || atomic_load(&vm->requests) == 0)
        return;
    /* Parked first: what comes until then belongs to this life of the guest, too. */
    vm_order_park(vm);
    requests = atomic_exchange(&vm->requests, 0);
    if ((requests & VM_REQUEST_FAILED) != 0) {
        fail(vm);
    } else if ((requests & VM_REQUEST_DEBUG_EXIT) != 0) {
        vm->outcome.debug_exit_value = atomic_load(&vm->debug_exit_value);
        end(vm, VM_END_DEBUG_EXIT);
    } else if ((requests & VM_REQUEST_CRASHED) != 0) {
        dump_vcpus(vm);
        end(vm, VM_END_CRASHED);
    } else if ((requests & VM_REQUEST_POWER_OFF) != 0) {
        end(vm, VM_END_POWER_OFF);
    } else {
        reset(vm);
    }
}

void vm_handle_loss(int fd, short what, void *context)
{
    struct vm *vm = context;
    uint64_t count;

    (void)what;
    if (read(fd, &count, sizeof(count)) != sizeof(count))
        return;
    fail(vm);
}

void vm_handle_timeout(int fd, short what, void *context)
{
    (void)fd;
    (void)what;
    end(context, VM_END_TIMEOUT);
}

void vm_dump(struct vm *vm)
{
    bool was_running = vm->state == VM_RUNNING;

    if (was_running)
        vm_order_park(vm);
    dump_vcpus(vm);
    if (was_running && atomic_load(&vm->requests) == 0)
        vm_order_run(vm);
}

enum vm_state vm_state(const struct vm *vm)
{
    return vm->state;
}

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

const struct vm_outcome *vm_outcome(const struct vm *vm)
{
    return &vm->outcome;
}
