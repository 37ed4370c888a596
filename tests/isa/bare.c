/* SPDX-License-Identifier: Apache-2.0 */
/* A processor and memory; see bare.h. */
#include "bare.h"

#include <string.h>

#include "base/check.h"
#include "silent_apic.h"

static void no_device(void *context, uint32_t cpu_index, uint64_t address, unsigned size,
                      bool write, void *data)
{
    (void)context;
    (void)cpu_index;
    (void)address;
    if (!write)
        memset(data, 0xff, size);
}

static void no_port(void *context, uint32_t cpu_index, uint16_t port, unsigned size,
                    bool write, void *data)
{
    no_device(context, cpu_index, port, size, write, data);
}

static const struct irq_source *the_irq_source(void *context, uint32_t cpu_index)
{
    (void)cpu_index;
    return &((struct bare *)context)->irq;
}

void bare_create(struct bare *bare, uint64_t memory_bytes)
{
    static const struct memory_options memory_options = {.prefault = true};
    const struct memory_span span = {0, memory_bytes};
    const struct accel_vm_options options = {
        .cpu_count = 1, .tier = ACCEL_TIER_TRANSLATOR, .machine = &bare->machine};
    struct error err = ERROR_NONE;

    bare->irq = silent_apic(bare);
    bare->machine = (struct accel_machine){.context = bare,
                                           .port = no_port,
                                           .mmio = no_device,
                                           .irq_source = the_irq_source};
    CHECK(memory_create(&span, 1, &memory_options, &bare->memory, &err) == 0);
    CHECK(memory_apply_advice(bare->memory, &err) == 0);
    CHECK(accel_soft.vm_create(&options, bare->memory, &bare->vm, &err) == 0);
    CHECK(accel_soft.vcpu_create(bare->vm, 0, &bare->vcpu, &err) == 0);
    bare->cpu = (struct soft_cpu *)(void *)bare->vcpu; /* its only member */
}

void bare_destroy(struct bare *bare)
{
    accel_soft.vcpu_destroy(bare->vcpu);
    accel_soft.vm_destroy(bare->vm);
    memory_destroy(bare->memory);
}

void bare_write64(struct bare *bare, uint64_t gpa, uint64_t value)
{
    CHECK(memory_write(bare->memory, gpa, &value, sizeof(value)) == 0);
}
