/* SPDX-License-Identifier: Apache-2.0 */
/* Joins configuration, boot plan, memory, accelerator and devices into a machine. */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fd.h"
#include "base/log.h"
#include "vm/vm_private.h"
#include "x86/layout.h"

/* ---- the configuration's words -------------------------------------------------------
 */

/* The schema's choices of --protocol are the names boot/ has. */
static enum boot_protocol protocol_from_name(const char *name)
{
    enum boot_protocol protocol = BOOT_AUTO;

    while (protocol <= BOOT_FIRMWARE && strcmp(name, boot_protocol_name(protocol)) != 0)
        protocol++;
    CHECK(protocol <= BOOT_FIRMWARE);
    return protocol;
}

static enum input_policy policy_from_name(const char *name)
{
    if (strcmp(name, "map") == 0)
        return INPUT_POLICY_MAP;
    if (strcmp(name, "copy") == 0)
        return INPUT_POLICY_COPY;
    return INPUT_POLICY_AUTO;
}

static enum boot_pmem_mode pmem_mode(const struct config_file *file)
{
    if ((file->words & CONFIG_PMEM_READ_ONLY) != 0)
        return BOOT_PMEM_READ_ONLY;
    return (file->words & CONFIG_PMEM_EPHEMERAL) != 0 ? BOOT_PMEM_EPHEMERAL
                                                      : BOOT_PMEM_SHARED;
}

int vm_boot_options(const struct vm_config *config, const char *cmdline,
                    struct boot_options *options, struct error *err)
{
    if (cmdline == NULL)
        return error_set(err, -ENOMEM, "out of memory for the command line");
    *options = (struct boot_options){
        .kernel_path = config->kernel,
        .firmware_path = config->firmware,
        .initrd_count = config->initrd_count,
        .cmdline = cmdline,
        .cmdline_default_bytes = config_cmdline_default_bytes(config),
        .protocol = protocol_from_name(config->protocol),
        .images = policy_from_name(config->images),
        .huge_pages = config->huge_pages,
        .memory_bytes = config->memory_bytes,
        .cpu_count = (uint32_t)config->cpu_count,
        .hpet = config->hpet,
        .cache = {.disabled = config->no_cache},
    };
    for (size_t i = 0; i < config->initrd_count; i++)
        options->initrd_paths[i] = config->initrds[i];
    options->pmem_count = config->pmem_count;
    for (size_t i = 0; i < config->pmem_count; i++)
        options->pmems[i] = (struct boot_pmem_option){
            .path = config->pmems[i].path, .mode = pmem_mode(&config->pmems[i])};
    return 0;
}

/* ---- what devices call ------------------------------------------------
 */

static void request(void *context, enum machine_request what)
{
    vm_ask(context, what == MACHINE_RESET ? VM_REQUEST_RESET : VM_REQUEST_POWER_OFF);
}

static void debug_exit(void *context, uint32_t value)
{
    struct vm *vm = context;

    atomic_store(&vm->debug_exit_value, value);
    vm_ask(vm, VM_REQUEST_DEBUG_EXIT);
}

/* Signal context. */
static void note_loss(void *context)
{
    struct vm *vm = context;
    const uint64_t one = 1;

    if (write(vm->loss_fd, &one, sizeof(one)) < 0)
        return; /* an eventfd that is already signalled tells the same */
}

/* ---- processors
 * ------------------------------------------------------------------------ */

/* All processors run code the same way. */
bool vm_counts_instructions(const struct vm *vm)
{
    const struct accel_vcpu *first = vm->vcpus[0].accel_vcpu;

    return vm->accel->vcpu_instructions != NULL && first != NULL &&
           vm->accel->vcpu_instructions(first) != ACCEL_NOT_COUNTED;
}

/* Of the processors that there are. */
static uint64_t retired_instructions(const struct vm *vm)
{
    uint64_t sum = 0;

    if (!vm_counts_instructions(vm))
        return 0;
    for (uint32_t i = 0; i < vm->vcpu_count; i++)
        if (vm->vcpus[i].accel_vcpu != NULL)
            sum += vm->accel->vcpu_instructions(vm->vcpus[i].accel_vcpu);
    return sum;
}

uint64_t vm_code_bytes(const struct vm *vm)
{
    if (vm->accel->code_bytes == NULL || vm->accel_vm == NULL)
        return 0;
    return vm->accel->code_bytes(vm->accel_vm);
}

void vm_drop_processors(struct vm *vm)
{
    vm_disconnect_interrupts(vm);
    vm->retired_before += retired_instructions(vm);
    for (uint32_t i = 0; i < vm->vcpu_count; i++) {
        if (vm->vcpus[i].accel_vcpu != NULL)
            vm->accel->vcpu_destroy(vm->vcpus[i].accel_vcpu);
        vm->vcpus[i].accel_vcpu = NULL;
    }
    if (vm->accel_vm != NULL)
        vm->accel->vm_destroy(vm->accel_vm);
    vm->accel_vm = NULL;
    vm_forget_routes(vm);
}

/* The setting's words behind "soft". */
static enum accel_tier accel_tier(const struct vm_config *config)
{
    const char *tier = strstr(config->accel, ",tier=");

    if (tier == NULL || strcmp(tier, ",tier=auto") == 0)
        return ACCEL_TIER_AUTO;
    return strcmp(tier, ",tier=translator") == 0 ? ACCEL_TIER_TRANSLATOR
                                                 : ACCEL_TIER_INTERPRETER;
}

int vm_make_processors(struct vm *vm, struct error *err)
{
    const struct accel_vm_options options = {.cpu_count = vm->vcpu_count,
                                             .tier = accel_tier(vm->config),
                                             .check_every =
                                                 (uint32_t)vm->config->check_every,
                                             .machine = &vm->machine};

    if (vm->accel->vm_create(&options, vm->memory, &vm->accel_vm, err) < 0)
        return err->code;
    for (uint32_t i = 0; i < vm->vcpu_count; i++)
        if (vm->accel->vcpu_create(vm->accel_vm, i, &vm->vcpus[i].accel_vcpu, err) < 0)
            return err->code;
    vm_connect_interrupts(vm);
    return vm->accel->set_state(vm->vcpus[0].accel_vcpu, &vm->plan->entry, err);
}

/* ---- assembly, in order
 * ---------------------------------------------------------------- */

static void report_fallbacks(const struct boot_plan *plan)
{
    if (!log_enabled(LOG_INFO))
        return;
    for (size_t i = 0; i < plan->note_count; i++)
        log_info("%s", plan->notes[i]);
    for (size_t i = 0; i < plan->range_count; i++) {
        const struct boot_range *range = &plan->ranges[i];

        if (range->kind == BOOT_COPY)
            log_info("%s: %lu bytes copied, not mapped: %s", range->what,
                     (unsigned long)range->size_bytes, range->reason);
    }
}

static int make_plan(struct vm *vm, struct error *err)
{
    vm->cmdline = config_cmdline(vm->config);
    if (vm_boot_options(vm->config, vm->cmdline, &vm->boot_options, err) < 0)
        return err->code;
    if (boot_inputs_open(&vm->inputs, &vm->boot_options, err) < 0)
        return err->code;
    vm->has_inputs = true;
    if (boot_plan_build(&vm->inputs, &vm->boot_options, &vm->plan, err) < 0)
        return err->code;
    report_fallbacks(vm->plan);
    stages_mark(&vm->stages, STAGE_PLAN);
    return 0;
}

static int make_memory(struct vm *vm, struct error *err)
{
    const struct memory_options options = {
        .file_span_count = vm->plan->pmem_count,
        .huge_pages = vm->config->huge_pages,
        .mergeable = vm->config->ksm,
        .prefault = vm->config->prefault,
    };

    if (memory_create(vm->plan->spans, vm->plan->span_count, &options, &vm->memory, err) <
        0)
        return err->code;
    memory_on_loss(vm->memory, note_loss, vm);
    if (boot_map_pmems(vm->plan, vm->memory, err) < 0 ||
        boot_load(vm->plan, vm->memory, err) < 0 ||
        memory_apply_advice(vm->memory, err) < 0)
        return err->code;
    stages_mark(&vm->stages, STAGE_MEMORY);
    return 0;
}

/* Only husk's own processor can tell time by its instructions. */
static const char *accel_name(const struct vm_config *config)
{
    if (config->deterministic || strncmp(config->accel, "soft,", 5) == 0)
        return "soft";
    return config->accel;
}

static int make_accelerator(struct vm *vm, struct error *err)
{
    char reason[256];

    if (accel_choose(accel_name(vm->config), &vm->accel, reason, sizeof(reason), err) < 0)
        return err->code;
    if (vm->config->deterministic)
        (void)snprintf(reason, sizeof(reason), "--deterministic needs it");
    log_info("accelerator %s: %s", vm->accel->name, reason);
    vm->vcpu_count = (uint32_t)vm->config->cpu_count;
    vm->vcpus = calloc(vm->vcpu_count, sizeof(vm->vcpus[0]));
    if (vm->vcpus == NULL)
        return error_set(err, -ENOMEM, "out of memory for %u vCPUs", vm->vcpu_count);
    for (uint32_t i = 0; i < vm->vcpu_count; i++) {
        vm->vcpus[i].vm = vm;
        vm->vcpus[i].index = i;
    }
    if (vm_make_interrupts(vm, err) < 0)
        return err->code;
    return vm_make_processors(vm, err);
}

static uint16_t debug_exit_port(const struct vm_config *config)
{
    if (config->debug_exit_port == 0 && config->test_device)
        return LAYOUT_PORT_TEST_EXIT;
    return (uint16_t)config->debug_exit_port;
}

static uint64_t memory_end(const struct boot_plan *plan)
{
    const struct memory_span *last = &plan->spans[plan->span_count - 1];

    return last->gpa + last->size_bytes;
}

static int make_devices(struct vm *vm, struct error *err)
{
    const struct vm_config *config = vm->config;
    const struct byte_sink sink = vm_console_sink(vm);
    const struct chipset_options options = {
        .clock = vm->clock,
        .memory_bytes = config->memory_bytes,
        .memory_end = memory_end(vm->plan),
        .firmware = vm->plan->protocol == BOOT_FIRMWARE,
        .serial = strcmp(config->console, "serial") == 0,
        .console = sink,
        .debug_console = config->debug_console ? sink : (struct byte_sink){.write = NULL},
        .debug_exit_port = debug_exit_port(config),
        .test_device = config->test_device,
        .hpet = config->hpet,
        .set_irq = vm_set_irq,
        .replace_timer = vm->irqchip != NULL ? vm_replace_timer : NULL,
        .send_message = vm_send_message,
        .attach_doorbell = vm->accel->ioeventfd != NULL ? vm_attach_doorbell : NULL,
        .detach_doorbell = vm->accel->ioeventfd != NULL ? vm_detach_doorbell : NULL,
        .irq_context = vm,
        .requests = {.request = request, .debug_exit = debug_exit, .context = vm},
    };

    if (chipset_create(&options, &vm->ports, &vm->mmio, &vm->chipset, err) < 0)
        return err->code;
    return vm_make_console(vm, err);
}

static int make_events(struct vm *vm, struct error *err)
{
    struct event_base *base = loop_event_base(vm->loop);

    if (loop_post_init(&vm->post, vm->loop, vm_handle_requests, vm, err) < 0)
        return err->code;
    vm->loss_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (vm->loss_fd < 0)
        return error_set_errno(err, errno, "cannot create an eventfd");
    vm->loss_event =
        event_new(base, vm->loss_fd, EV_READ | EV_PERSIST, vm_handle_loss, vm);
    vm->timeout = evtimer_new(base, vm_handle_timeout, vm);
    if (vm->loss_event == NULL || vm->timeout == NULL ||
        event_add(vm->loss_event, NULL) < 0)
        return error_set(err, -ENOMEM, "out of memory for the main loop");
    return 0;
}

int vm_create(const struct vm_config *config, struct loop *loop, struct console *console,
              void (*ended)(void *context), void *context, struct vm **vm,
              struct error *err)
{
    struct vm *created = calloc(1, sizeof(*created));

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for the machine");
    created->config = config;
    created->loop = loop;
    created->console = console;
    created->ended = ended;
    created->ended_context = context;
    created->loss_fd = -1;
    CHECK(pthread_mutex_init(&created->lock, NULL) == 0);
    CHECK(pthread_cond_init(&created->changed, NULL) == 0);
    bus_init(&created->ports, "port");
    bus_init(&created->mmio, "MMIO");
    vm_make_clock(created);
    stages_mark(&created->stages, STAGE_CONFIG);
    if (make_events(created, err) < 0 || make_plan(created, err) < 0 ||
        make_memory(created, err) < 0 || vm_make_reclaim(created, err) < 0 ||
        make_accelerator(created, err) < 0 || make_devices(created, err) < 0 ||
        vm_make_pci_devices(created, err) < 0 || vm_make_fw_cfg(created, err) < 0) {
        vm_destroy(created);
        return err->code;
    }
    *vm = created;
    return 0;
}

void vm_destroy(struct vm *vm)
{
    if (vm == NULL)
        return;
    if (vm->vcpus != NULL)
        vm_end_threads(vm);
    if (vm->chipset != NULL)
        vm_drop_console(vm);
    vm_drop_pci_devices(vm);
    chipset_destroy(vm->chipset);
    fw_cfg_destroy(vm->fw_cfg);
    if (vm->vcpus != NULL)
        vm_drop_processors(vm);
    irqchip_destroy(vm->irqchip);
    vm_close_routes(vm);
    free(vm->vcpus);
    if (!vm->has_left_disks)
        memory_destroy(vm->memory);
    boot_plan_destroy(vm->plan);
    if (vm->has_inputs)
        boot_inputs_close(&vm->inputs);
    vm_drop_reclaim(vm);
    if (vm->timeout != NULL)
        event_free(vm->timeout);
    if (vm->loss_event != NULL)
        event_free(vm->loss_event);
    fd_close(&vm->loss_fd);
    if (vm->post.event != NULL)
        loop_post_finish(&vm->post);
    free(vm->cmdline);
    CHECK(pthread_cond_destroy(&vm->changed) == 0);
    CHECK(pthread_mutex_destroy(&vm->lock) == 0);
    free(vm);
}

/* ---- what others look at
 * ---------------------------------------------------------------- */

const struct boot_plan *vm_plan(const struct vm *vm)
{
    return vm->plan;
}

struct stages *vm_stages(struct vm *vm)
{
    return &vm->stages;
}

void vm_counters(const struct vm *vm, struct vm_counters *counters)
{
    struct fw_cfg_counters fw_cfg;

    fw_cfg_counters(vm->fw_cfg, &fw_cfg);
    *counters = (struct vm_counters){
        .accel = vm->accel->name,
        .counts_instructions = vm_counts_instructions(vm),
        .retired_instructions = vm->retired_before + retired_instructions(vm),
        .ioeventfd_notifications = vm_ioeventfd_notifications(vm),
        .irqfd_interrupts = atomic_load(&vm->irqfd_interrupts),
        .resets = vm->resets,
        .idle_looks = vm->reclaim.looks,
        .idle_zero_bytes = vm->reclaim.zero_bytes,
        .idle_common_bytes = vm->reclaim.common_bytes,
        .fw_cfg_port_bytes = fw_cfg.port_bytes,
        .fw_cfg_dma_bytes = fw_cfg.dma_bytes,
        .fw_cfg_dma_operations = fw_cfg.dma_operations,
    };
    if (vm->accel->translations != NULL && vm->accel_vm != NULL)
        counters->translates =
            vm->accel->translations(vm->accel_vm, &counters->translations);
    vm_console_counters(vm, counters);
    for (uint32_t i = 0; i < vm->vcpu_count; i++) {
        const struct vcpu *vcpu = &vm->vcpus[i];

        counters->port_exits += atomic_load(&vcpu->port_exits);
        counters->mmio_exits += atomic_load(&vcpu->mmio_exits);
        counters->kicks += atomic_load(&vcpu->kicks);
    }
}
