/* SPDX-License-Identifier: Apache-2.0 */
/* A software processor for tests; see fixture.h. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/translator/translator_private.h"
#include "silent_apic.h"

#define RAM_BYTES (16 * MIB)
#define FIXTURE_CODE_BYTES (1u << 20)

static int acknowledge(void *context)
{
    struct soft_fixture *fixture = context;
    int vector = fixture->pending_vector;

    fixture->pending_vector = -1;
    return vector;
}

static void port(void *context, uint32_t cpu_index, uint16_t number, unsigned size,
                 bool write, void *data)
{
    struct soft_fixture *fixture = context;

    (void)cpu_index;
    fixture->port = number;
    if (write) {
        fixture->port_value = 0;
        memcpy(&fixture->port_value, data, size);
    } else {
        memcpy(data, &fixture->port_value, size);
    }
}

static void mmio(void *context, uint32_t cpu_index, uint64_t gpa, unsigned size,
                 bool write, void *data)
{
    struct soft_fixture *fixture = context;

    (void)cpu_index;
    fixture->mmio_gpa = gpa;
    fixture->mmio_size = size;
    if (write)
        memcpy(&fixture->mmio_value, data, size);
    else
        memcpy(data, &fixture->mmio_answer, size);
}

static const struct irq_source *irq_source(void *context, uint32_t cpu_index)
{
    struct soft_fixture *fixture = context;

    (void)cpu_index;
    return &fixture->irq;
}

static void set_up_vm(struct soft_fixture *fixture)
{
    const struct memory_span span = {.gpa = 0, .size_bytes = RAM_BYTES};
    const struct memory_options options = {.prefault = false};
    struct error err = ERROR_NONE;

    assert_int_equal(memory_create(&span, 1, &options, &fixture->memory, &err), 0);
    fixture->machine = (struct accel_machine){
        .context = fixture, .port = port, .mmio = mmio, .irq_source = irq_source};
    fixture->irq = silent_apic(fixture);
    fixture->irq.acknowledge = acknowledge;
    fixture->cpus[0] = &fixture->cpu;
    fixture->vm.memory = fixture->memory;
    fixture->vm.machine = &fixture->machine;
    fixture->vm.cpu_count = 1;
    fixture->vm.cpus = fixture->cpus;
    fixture->vm.regions = memory_regions(fixture->memory);
    fixture->vm.region_count = 1;
    fixture->vm.memory_base = fixture->vm.regions[0].hva;
    assert_int_equal(code_pages_init(&fixture->vm.code_pages, RAM_BYTES, &err), 0);
}

void soft_fixture_translate(struct soft_fixture *fixture, uint32_t code_bytes)
{
    struct error err = ERROR_NONE;

    translator_release(&fixture->vm, fixture->vm.translator);
    translator_destroy(fixture->vm.translator);
    fixture->vm.translator = NULL;
    assert_int_equal(translator_create(&fixture->vm.translator, code_bytes, &err), 0);
    fixture->cpu.translator = fixture->vm.translator;
}

int soft_fixture_setup(void **state)
{
    size_t size = (sizeof(struct soft_fixture) + 63) / 64 * 64;
    struct soft_fixture *fixture = aligned_alloc(64, size);
    struct error err = ERROR_NONE;

    assert_non_null(fixture);
    memset(fixture, 0, size);
    fixture->pending_vector = -1;
    set_up_vm(fixture);
    fixture->cpu.vm = &fixture->vm;
    fixture->cpu.irq = &fixture->irq;
    assert_int_equal(block_cache_create(&fixture->cpu.blocks, &err), 0);
    soft_mmu_init(&fixture->cpu);
    assert_int_equal(soft_msrs_create(&fixture->cpu, &err), 0);
    /* meson.build runs the suites on both tiers. */
    if (getenv("HUSK_TEST_TRANSLATOR") != NULL)
        soft_fixture_translate(fixture, FIXTURE_CODE_BYTES);
    soft_cpu_power_on(&fixture->cpu);
    *state = fixture;
    return 0;
}

int soft_fixture_teardown(void **state)
{
    struct soft_fixture *fixture = *state;

    block_cache_destroy(fixture->cpu.blocks);
    translator_destroy(fixture->vm.translator);
    soft_msrs_destroy(&fixture->cpu);
    code_pages_finish(&fixture->vm.code_pages);
    memory_destroy(fixture->memory);
    free(fixture);
    return 0;
}

void soft_fixture_write(struct soft_fixture *fixture, uint64_t gpa, const void *bytes,
                        size_t size)
{
    assert_int_equal(memory_write(fixture->memory, gpa, bytes, size), 0);
}

void soft_fixture_read(struct soft_fixture *fixture, uint64_t gpa, void *bytes,
                       size_t size)
{
    assert_int_equal(memory_read(fixture->memory, gpa, bytes, size), 0);
}
