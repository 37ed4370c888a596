/* SPDX-License-Identifier: Apache-2.0 */
/* The accelerator "soft": VMs and vCPUs on husk's own software processor. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "accel/accels_private.h"
#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/check_private.h"
#include "accel/soft/translator/translator_private.h"
#include "base/check.h"
#include "base/log.h"

struct accel_vm {
    struct soft_vm soft;
};

struct accel_vcpu {
    struct soft_cpu cpu;
};

static int soft_probe(struct error *err)
{
    (void)err;
    return 0; /* needs nothing of the host */
}

/* ---- VM
 * -------------------------------------------------------------------------------------
 */

uint8_t *soft_vm_page(const struct soft_vm *vm, uint64_t gpa)
{
    for (size_t i = 0; i < vm->region_count; i++)
        if (gpa - vm->regions[i].gpa < vm->regions[i].size_bytes)
            return vm->memory_base + align_down(gpa, X86_PAGE_BYTES);
    return NULL;
}

static void on_device_write(void *context, uint64_t gpa, uint64_t size_bytes)
{
    struct soft_vm *vm = context;

    if (vm->check_every != 0)
        (void)atomic_fetch_add(&vm->device_writes, 1);
    code_pages_written_by_device(vm, gpa, size_bytes);
}

static void soft_vm_destroy(struct accel_vm *vm)
{
    memory_on_write(vm->soft.memory, NULL, NULL);
    code_pages_finish(&vm->soft.code_pages);
    free(vm->soft.cpus);
    free(vm);
}

static int soft_vm_create(const struct accel_vm_options *options, struct memory *memory,
                          struct accel_vm **vm, struct error *err)
{
    struct accel_vm *created = calloc(1, sizeof(*created));
    const struct memory_region *regions = memory_regions(memory);
    size_t count = memory_region_count(memory);

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for the software CPU");
    CHECK(count > 0);
    created->soft = (struct soft_vm){
        .memory = memory,
        .machine = options->machine,
        .cpu_count = options->cpu_count,
        .tier = options->tier,
        .check_every = options->check_every,
        .cpus = calloc(options->cpu_count, sizeof(struct soft_cpu *)),
        .memory_base = (uint8_t *)regions[0].hva - regions[0].gpa,
        .region_count = count,
        .regions = regions,
    };
    if (created->soft.cpus == NULL) {
        error_set(err, -ENOMEM, "out of memory for %u vCPUs", options->cpu_count);
        goto fail;
    }
    if (code_pages_init(&created->soft.code_pages,
                        regions[count - 1].gpa + regions[count - 1].size_bytes, err) < 0)
        goto fail;
    memory_on_write(memory, on_device_write, &created->soft);
    *vm = created;
    return 0;

fail:
    soft_vm_destroy(created);
    return err->code;
}

/* ---- vCPUs
 * ---------------------------------------------------------------------------------- */

/* The last vCPU takes it along: a VM that is reset forgets all code. */
static void drop_translator(struct soft_vm *vm)
{
    for (uint32_t i = 0; i < vm->cpu_count; i++)
        if (vm->cpus[i] != NULL)
            return;
    if (vm->translator != NULL)
        translator_release(vm, vm->translator);
    translator_destroy(vm->translator);
    vm->translator = NULL;
}

static void soft_vcpu_destroy(struct accel_vcpu *vcpu)
{
    struct soft_cpu *cpu = &vcpu->cpu;

    if (cpu->blocks != NULL)
        block_cache_empty(cpu->vm, cpu->blocks);
    cpu->vm->cpus[cpu->index] = NULL;
    block_cache_destroy(cpu->blocks);
    lockstep_destroy(cpu->lockstep);
    drop_translator(cpu->vm);
    soft_msrs_destroy(cpu);
    (void)munmap(vcpu, sizeof(*vcpu));
}

/* The VM's, made with its first vCPU. Translated code does not count its instructions,
 * which a deterministic VM lives by. */
static int make_translator(struct soft_vm *vm, struct error *err)
{
    struct error why = ERROR_NONE;

    if (vm->translator != NULL || vm->tier == ACCEL_TIER_INTERPRETER ||
        vm->machine->clock != NULL)
        return 0;
    if (translator_create(&vm->translator, TRANSLATOR_CODE_BYTES, &why) == 0)
        return 0;
    if (vm->tier == ACCEL_TIER_TRANSLATOR || vm->check_every != 0)
        return error_set(err, why.code, "soft: %s; use --accel soft,tier=interpreter",
                         why.text);
    log_info("soft: %s; all code is interpreted", why.text);
    return 0;
}

static int use_translator(struct soft_cpu *cpu, struct error *err)
{
    if (make_translator(cpu->vm, err) < 0)
        return err->code;
    cpu->translator = cpu->vm->translator;
    if (cpu->translator == NULL || cpu->vm->check_every == 0)
        return 0;
    return lockstep_create(cpu, cpu->vm->check_every, &cpu->lockstep, err);
}

static int soft_vcpu_create(struct accel_vm *vm, uint32_t index, struct accel_vcpu **vcpu,
                            struct error *err)
{
    /* Zero, aligned, and most of its tables never touched. */
    struct accel_vcpu *created = mmap(NULL, sizeof(*created), PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct soft_cpu *cpu;

    if (created == MAP_FAILED)
        return error_set(err, -ENOMEM, "out of memory for vCPU %u", index);
    cpu = &created->cpu;
    cpu->vm = &vm->soft;
    cpu->index = index;
    cpu->irq = vm->soft.machine->irq_source(vm->soft.machine->context, index);
    vm->soft.cpus[index] = cpu;
    soft_clock_start(cpu);
    soft_mmu_init(cpu);
    if (block_cache_create(&cpu->blocks, err) < 0 || soft_msrs_create(cpu, err) < 0) {
        soft_vcpu_destroy(created);
        return err->code;
    }
    if (use_translator(cpu, err) < 0) {
        soft_vcpu_destroy(created);
        return err->code;
    }
    soft_cpu_power_on(cpu);
    *vcpu = created;
    return 0;
}

static int soft_get_state(struct accel_vcpu *vcpu, struct cpu_state *state,
                          struct error *err)
{
    const struct soft_cpu *cpu = &vcpu->cpu;

    (void)err;
    *state = (struct cpu_state){
        .rip = cpu->rip,
        .rflags = soft_flags_get(cpu),
        .gdt = cpu->gdt,
        .idt = cpu->idt,
        .cr0 = cpu->cr0,
        .cr2 = cpu->cr2,
        .cr3 = cpu->cr3,
        .cr4 = cpu->cr4,
        .efer = cpu->efer,
    };
    memcpy(state->registers, cpu->r, sizeof(state->registers));
    memcpy(state->segments, cpu->segments, sizeof(state->segments));
    return 0;
}

static int soft_set_state(struct accel_vcpu *vcpu, const struct cpu_state *state,
                          struct error *err)
{
    struct soft_cpu *cpu = &vcpu->cpu;

    (void)err;
    memcpy(cpu->r, state->registers, sizeof(state->registers));
    memcpy(cpu->segments, state->segments, sizeof(cpu->segments));
    cpu->rip = state->rip;
    cpu->gdt = state->gdt;
    cpu->idt = state->idt;
    cpu->cr0 = state->cr0;
    cpu->cr2 = state->cr2;
    cpu->cr3 = state->cr3;
    cpu->cr4 = state->cr4;
    cpu->efer = state->efer;
    cpu->cpl = cpu->segments[X86_SS].dpl;
    soft_flags_set(cpu, state->rflags);
    soft_cpu_update_mode(cpu);
    soft_tlb_flush_all(cpu);
    return 0;
}

static void soft_vcpu_run(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    soft_cpu_run(&vcpu->cpu, exit);
}

static void soft_vcpu_kick(struct accel_vcpu *vcpu)
{
    soft_cpu_attend(&vcpu->cpu, ATTENTION_KICK);
}

static void soft_vcpu_event(struct accel_vcpu *vcpu, enum irq_event event, uint8_t vector)
{
    static const enum soft_attention bits[] = {
        [IRQ_EVENT_INTERRUPT] = ATTENTION_INTERRUPT,
        [IRQ_EVENT_NMI] = ATTENTION_NMI,
        [IRQ_EVENT_INIT] = ATTENTION_INIT,
        [IRQ_EVENT_STARTUP] = ATTENTION_STARTUP,
    };

    if (event == IRQ_EVENT_STARTUP)
        atomic_store(&vcpu->cpu.startup_vector, vector);
    if (event == IRQ_EVENT_NMI)
        (void)atomic_fetch_add(&vcpu->cpu.nmis_waiting, 1);
    soft_cpu_attend(&vcpu->cpu, bits[event]);
}

static uint64_t soft_vcpu_ns_until_tsc(const struct accel_vcpu *vcpu, uint64_t tsc)
{
    return soft_ns_until_tsc(&vcpu->cpu, tsc);
}

static uint64_t soft_code_bytes(const struct accel_vm *vm)
{
    uint64_t bytes = translator_bytes(vm->soft.translator);

    for (uint32_t i = 0; i < vm->soft.cpu_count; i++)
        if (vm->soft.cpus[i] != NULL)
            bytes += block_cache_bytes(vm->soft.cpus[i]->blocks);
    return bytes;
}

static void soft_forget_code(struct accel_vm *vm)
{
    for (uint32_t i = 0; i < vm->soft.cpu_count; i++)
        if (vm->soft.cpus[i] != NULL)
            block_cache_release(&vm->soft, vm->soft.cpus[i]->blocks);
    translator_release(&vm->soft, vm->soft.translator);
}

static bool soft_translations(const struct accel_vm *vm,
                              struct accel_translations *translations)
{
    if (vm->soft.translator == NULL)
        return false;
    translator_read_counters(&vm->soft, translations);
    return true;
}

/* Translated code does not count. */
static uint64_t soft_vcpu_instructions(const struct accel_vcpu *vcpu)
{
    if (vcpu->cpu.translator != NULL)
        return ACCEL_NOT_COUNTED;
    return atomic_load_explicit(&vcpu->cpu.retired_seen, memory_order_relaxed);
}

const struct accel_ops accel_soft = {
    .name = "soft",
    .probe = soft_probe,
    .vm_create = soft_vm_create,
    .vm_destroy = soft_vm_destroy,
    .vcpu_create = soft_vcpu_create,
    .vcpu_destroy = soft_vcpu_destroy,
    .get_state = soft_get_state,
    .set_state = soft_set_state,
    .vcpu_run = soft_vcpu_run,
    .vcpu_kick = soft_vcpu_kick,
    .vcpu_event = soft_vcpu_event,
    .vcpu_ns_until_tsc = soft_vcpu_ns_until_tsc,
    .vcpu_instructions = soft_vcpu_instructions,
    .code_bytes = soft_code_bytes,
    .translations = soft_translations,
    .forget_code = soft_forget_code,
};
