/* SPDX-License-Identifier: Apache-2.0 */
/* What an accelerator finds that has no interrupt controllers and accesses the buses by
 * calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "vm/vm_private.h"
#include "x86/layout.h"

#define CPUS 2

struct accel_vcpu {
    unsigned kicks;
    unsigned events[4];
    uint8_t startup_vector;
};

static unsigned lines_set;

static void note_event(struct accel_vcpu *vcpu, enum irq_event event, uint8_t vector)
{
    vcpu->events[event]++;
    if (event == IRQ_EVENT_STARTUP)
        vcpu->startup_vector = vector;
}

static uint64_t one_second(const struct accel_vcpu *vcpu, uint64_t tsc)
{
    (void)vcpu;
    (void)tsc;
    return 1000000000;
}

static void note_kick(struct accel_vcpu *vcpu)
{
    vcpu->kicks++;
}

static int note_line(struct accel_vm *vm, uint32_t gsi, bool level, struct error *err)
{
    (void)vm;
    (void)err;
    assert_int_equal(gsi, 4);
    assert_true(level);
    lines_set++;
    return 0;
}

static const struct accel_ops without_controllers = {
    .name = "without",
    .vcpu_event = note_event,
    .vcpu_ns_until_tsc = one_second,
    .vcpu_kick = note_kick,
};
static const struct accel_ops with_controllers = {.name = "with", .set_line = note_line};

struct fixture {
    struct vm_config config;
    struct vm vm;
    struct vcpu vcpus[CPUS];
    struct accel_vcpu processors[CPUS];
};

static struct fixture the_fixture;

static int set_up_with(void **state, const struct accel_ops *accel, bool deterministic)
{
    struct fixture *fixture = &the_fixture;
    struct error err = ERROR_NONE;

    memset(fixture, 0, sizeof(*fixture));
    lines_set = 0;
    fixture->config.deterministic = deterministic;
    fixture->vm.config = &fixture->config;
    fixture->vm.accel = accel;
    fixture->vm.vcpus = fixture->vcpus;
    fixture->vm.vcpu_count = CPUS;
    for (uint32_t i = 0; i < CPUS; i++)
        fixture->vcpus[i] = (struct vcpu){
            .vm = &fixture->vm, .index = i, .accel_vcpu = &fixture->processors[i]};
    bus_init(&fixture->vm.ports, "port");
    bus_init(&fixture->vm.mmio, "MMIO");
    assert_int_equal(loop_create(&fixture->vm.loop, &err), 0);
    vm_make_clock(&fixture->vm);
    assert_int_equal(vm_make_interrupts(&fixture->vm, &err), 0);
    vm_connect_interrupts(&fixture->vm);
    *state = fixture;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, &without_controllers, false);
}

static int set_up_with_controllers(void **state)
{
    return set_up_with(state, &with_controllers, false);
}

static int set_up_deterministic(void **state)
{
    return set_up_with(state, &without_controllers, true);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    irqchip_destroy(fixture->vm.irqchip);
    loop_destroy(fixture->vm.loop);
    return 0;
}

static uint32_t access_port(struct fixture *fixture, uint32_t cpu, uint16_t port,
                            bool write, uint32_t value)
{
    const struct accel_machine *machine = &fixture->vm.machine;

    machine->port(machine->context, cpu, port, 1, write, &value);
    return value;
}

static void accelerator_with_controllers_gets_no_others(void **state)
{
    struct fixture *fixture = *state;

    assert_null(fixture->vm.irqchip);
    assert_int_equal(fixture->vm.ports.count, 0);
    assert_int_equal(fixture->vm.mmio.count, 0);
    vm_set_irq(&fixture->vm, 4, true);
    assert_int_equal(lines_set, 1);
    vm_disconnect_interrupts(&fixture->vm);
    vm_reset_interrupts(&fixture->vm);
}

static void time_is_the_hosts(void **state)
{
    struct fixture *fixture = *state;

    assert_null(fixture->vm.machine.clock);
    assert_ptr_equal(fixture->vm.clock, &fixture->vm.host_clock.clock);
}

static void devices_and_processor_of_a_deterministic_vm_have_one_clock(void **state)
{
    struct fixture *fixture = *state;
    struct virtual_clock *clock = fixture->vm.machine.clock;

    assert_ptr_equal(clock, &fixture->vm.virtual_clock);
    assert_ptr_equal(fixture->vm.clock, &clock->clock);
    (void)access_port(fixture, 0, 0x43, true, 0x30); /* 8254: one shot of 1193 */
    (void)access_port(fixture, 0, 0x40, true, 0xa9);
    (void)access_port(fixture, 0, 0x40, true, 0x04);
    assert_int_equal(virtual_clock_deadline_ns(clock), 999848);
}

static void accesses_reach_the_buses_and_are_counted(void **state)
{
    struct fixture *fixture = *state;
    const struct accel_machine *machine = &fixture->vm.machine;
    uint32_t value = 1;

    (void)access_port(fixture, 1, 0x21, true, 0x5a);
    assert_int_equal(access_port(fixture, 1, 0x21, false, 0) & 0xff, 0x5a);
    assert_int_equal(access_port(fixture, 0, 0x300, false, 0) & 0xff, 0xff);
    machine->mmio(machine->context, 0, LAYOUT_IOAPIC, 4, true, &value);
    machine->mmio(machine->context, 0, LAYOUT_IOAPIC + 0x10, 4, false, &value);
    assert_int_equal(value, 0x00170011);
    assert_int_equal(fixture->vcpus[0].port_exits, 1);
    assert_int_equal(fixture->vcpus[1].port_exits, 2);
    assert_int_equal(fixture->vcpus[0].mmio_exits, 2);
    assert_int_equal(fixture->processors[0].kicks + fixture->processors[1].kicks, 0);
}

/* A guest that has switched itself off must not execute the next instruction. */
static void what_asks_of_the_machine_stops_its_vcpu(void **state)
{
    struct fixture *fixture = *state;
    const struct accel_machine *machine = &fixture->vm.machine;
    uint32_t value = 0;

    atomic_store(&fixture->vm.requests, VM_REQUEST_POWER_OFF);
    (void)access_port(fixture, 1, 0x80, true, 0);
    assert_int_equal(fixture->processors[0].kicks, 0);
    assert_int_equal(fixture->processors[1].kicks, 1);
    machine->mmio(machine->context, 0, LAYOUT_IOAPIC, 4, true, &value);
    assert_int_equal(fixture->processors[0].kicks, 1);
}

static void string_input_is_one_access(void **state)
{
    struct fixture *fixture = *state;
    const struct accel_machine *machine = &fixture->vm.machine;
    uint8_t bytes[6] = {0};

    /* Nobody answers there. */
    machine->port_read_string(machine->context, 1, 0x99, 2, 3, bytes);
    assert_memory_equal(bytes, "\xff\xff\xff\xff\xff\xff", 6);
    assert_int_equal(fixture->vcpus[0].port_exits, 0);
    assert_int_equal(fixture->vcpus[1].port_exits, 1);
    assert_int_equal(fixture->processors[1].kicks, 0);
    atomic_store(&fixture->vm.requests, VM_REQUEST_RESET);
    machine->port_read_string(machine->context, 1, 0x99, 1, 6, bytes);
    assert_int_equal(fixture->processors[1].kicks, 1);
}

static void local_apics_speak_to_their_processors(void **state)
{
    struct fixture *fixture = *state;
    const struct accel_machine *machine = &fixture->vm.machine;
    const struct irq_source *first = machine->irq_source(machine->context, 0);
    const struct irq_source *second = machine->irq_source(machine->context, 1);
    uint64_t id = 0;

    assert_true(second->read(second->context, LAYOUT_LOCAL_APIC + 0x20, 4, &id));
    assert_int_equal(id, 0x01000000);
    assert_true(first->write(first->context, LAYOUT_LOCAL_APIC + 0x310, 4, 1u << 24));
    assert_true(first->write(first->context, LAYOUT_LOCAL_APIC + 0x300, 4, 0x4500));
    assert_true(first->write(first->context, LAYOUT_LOCAL_APIC + 0x300, 4, 0x469a));
    assert_int_equal(fixture->processors[1].events[IRQ_EVENT_INIT], 1);
    assert_int_equal(fixture->processors[1].events[IRQ_EVENT_STARTUP], 1);
    assert_int_equal(fixture->processors[1].startup_vector, 0x9a);
    assert_int_equal(fixture->processors[0].events[IRQ_EVENT_INIT], 0);
    vm_disconnect_interrupts(&fixture->vm);
    assert_true(first->write(first->context, LAYOUT_LOCAL_APIC + 0x300, 4, 0x4500));
    assert_int_equal(fixture->processors[1].events[IRQ_EVENT_INIT], 1);
}

static void device_lines_interrupt(void **state)
{
    struct fixture *fixture = *state;
    const struct irq_source *source =
        fixture->vm.machine.irq_source(fixture->vm.machine.context, 0);
    static const uint8_t words[] = {0x20, 4, 1};

    (void)access_port(fixture, 0, 0x20, true, 0x11);
    for (size_t i = 0; i < sizeof(words); i++)
        (void)access_port(fixture, 0, 0x21, true, words[i]);
    vm_set_irq(&fixture->vm, 4, true);
    assert_int_equal(fixture->processors[0].events[IRQ_EVENT_INTERRUPT], 1);
    assert_int_equal(source->acknowledge(source->context), 0x24);
    vm_disconnect_interrupts(&fixture->vm);
    vm_reset_interrupts(&fixture->vm);
    assert_int_equal(access_port(fixture, 0, 0x21, false, 0) & 0xff, 0xfb);
}

#define MACHINE_TEST(function)                                                           \
    cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(time_is_the_hosts),
        cmocka_unit_test_setup_teardown(
            devices_and_processor_of_a_deterministic_vm_have_one_clock,
            set_up_deterministic, tear_down),
        cmocka_unit_test_setup_teardown(accelerator_with_controllers_gets_no_others,
                                        set_up_with_controllers, tear_down),
        MACHINE_TEST(accesses_reach_the_buses_and_are_counted),
        MACHINE_TEST(what_asks_of_the_machine_stops_its_vcpu),
        MACHINE_TEST(string_input_is_one_access),
        MACHINE_TEST(local_apics_speak_to_their_processors),
        MACHINE_TEST(device_lines_interrupt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
