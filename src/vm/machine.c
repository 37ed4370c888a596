/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What surrounds the processors where the accelerator leaves that to husk: it accesses
 * the buses by calls instead of exits, and the interrupt controllers are devices.
 */
#include "base/log.h"
#include "vm/vm_private.h"

/* ---- accesses: vCPU threads
 * ----------------------------------------------------------------- */

/* What the access has asked of the loop (a reset, say) must come before the guest's next
 * instruction. */
static void hold_if_asked(struct vcpu *vcpu)
{
    struct vm *vm = vcpu->vm;

    if (atomic_load(&vm->requests) != 0)
        vm->accel->vcpu_kick(vcpu->accel_vcpu);
}

static void access_port(void *context, uint32_t cpu_index, uint16_t port, unsigned size,
                        bool write, void *data)
{
    struct vm *vm = context;
    struct vcpu *vcpu = &vm->vcpus[cpu_index];

    atomic_fetch_add_explicit(&vcpu->port_exits, 1, memory_order_relaxed);
    vm_serve(&vm->ports, port, size, write, data);
    hold_if_asked(vcpu);
}

static void read_port_string(void *context, uint32_t cpu_index, uint16_t port,
                             unsigned size, uint32_t count, void *data)
{
    struct vm *vm = context;
    struct vcpu *vcpu = &vm->vcpus[cpu_index];

    atomic_fetch_add_explicit(&vcpu->port_exits, 1, memory_order_relaxed);
    bus_read_string(&vm->ports, port, size, count, data);
    hold_if_asked(vcpu);
}

static void access_mmio(void *context, uint32_t cpu_index, uint64_t gpa, unsigned size,
                        bool write, void *data)
{
    struct vm *vm = context;
    struct vcpu *vcpu = &vm->vcpus[cpu_index];

    atomic_fetch_add_explicit(&vcpu->mmio_exits, 1, memory_order_relaxed);
    vm_serve(&vm->mmio, gpa, size, write, data);
    hold_if_asked(vcpu);
}

static const struct irq_source *irq_source(void *context, uint32_t cpu_index)
{
    struct vm *vm = context;

    return irqchip_source(vm->irqchip, cpu_index);
}

/* The boot mark, if there is one, says better when user space is up. */
static void user_mode(void *context)
{
    struct vm *vm = context;

    if (vm->config->boot_mark == NULL)
        stages_mark(&vm->stages, STAGE_START_USER);
}

/* ---- interrupts: any thread
 * ----------------------------------------------------------------- */

static void tell_processor(void *context, uint32_t cpu_index, enum irq_event event,
                           uint8_t vector)
{
    struct vm *vm = context;

    vm->accel->vcpu_event(vm->vcpus[cpu_index].accel_vcpu, event, vector);
}

static uint64_t ns_until_tsc(void *context, uint32_t cpu_index, uint64_t tsc)
{
    struct vm *vm = context;

    return vm->accel->vcpu_ns_until_tsc(vm->vcpus[cpu_index].accel_vcpu, tsc);
}

void vm_set_irq(void *context, uint32_t line, bool level)
{
    static struct log_gate gate;
    struct vm *vm = context;
    struct error err = ERROR_NONE;

    if (vm->irqchip != NULL)
        irqchip_set_line(vm->irqchip, line, level);
    else if (vm->accel->set_line(vm->accel_vm, line, level, &err) < 0 &&
             log_gate_open(&gate))
        log_warn("interrupt line %u: %s", line, err.text);
}

void vm_send_message(void *context, unsigned sender, uint64_t address, uint32_t data)
{
    static struct log_gate gate;
    struct vm *vm = context;
    struct error err = ERROR_NONE;

    if (vm->irqchip != NULL)
        irqchip_signal_msi(vm->irqchip, address, data);
    else if (!vm_send_by_eventfd(vm, sender, address, data) &&
             vm->accel->signal_msi(vm->accel_vm, address, data, &err) < 0 &&
             log_gate_open(&gate))
        log_warn("interrupt message to %#lx: %s", (unsigned long)address, err.text);
}

void vm_replace_timer(void *context, bool replaced)
{
    struct vm *vm = context;

    irqchip_replace_timer(vm->irqchip, replaced);
}

/* ---- life: the loop's thread
 * ----------------------------------------------------------------- */

void vm_make_clock(struct vm *vm)
{
    host_clock_init(&vm->host_clock, vm->loop);
    virtual_clock_init(&vm->virtual_clock);
    vm->clock =
        vm->config->deterministic ? &vm->virtual_clock.clock : &vm->host_clock.clock;
}

int vm_make_interrupts(struct vm *vm, struct error *err)
{
    const struct irqchip_options options = {
        .cpu_count = vm->vcpu_count,
        .clock = vm->clock,
    };

    if (vm->accel->vcpu_event == NULL)
        return 0;
    vm->machine = (struct accel_machine){
        .context = vm,
        .port = access_port,
        .port_read_string = read_port_string,
        .mmio = access_mmio,
        .irq_source = irq_source,
        .clock = vm->config->deterministic ? &vm->virtual_clock : NULL,
        .user_mode = user_mode,
    };
    return irqchip_create(&options, &vm->ports, &vm->mmio, &vm->irqchip, err);
}

void vm_connect_interrupts(struct vm *vm)
{
    const struct irqchip_processors processors = {
        .event = tell_processor,
        .ns_until_tsc = ns_until_tsc,
        .context = vm,
    };

    if (vm->irqchip != NULL)
        irqchip_connect(vm->irqchip, &processors);
}

void vm_disconnect_interrupts(struct vm *vm)
{
    if (vm->irqchip != NULL)
        irqchip_connect(vm->irqchip, NULL);
}

void vm_reset_interrupts(struct vm *vm)
{
    if (vm->irqchip != NULL)
        irqchip_reset(vm->irqchip);
}
