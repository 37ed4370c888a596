/* SPDX-License-Identifier: Apache-2.0 */
/* The KVM accelerator on the host's real /dev/kvm, with guests of a few instructions. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "accel/accels_private.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "x86/layout.h"

/* A guest's code as assembly; it runs at CODE_GPA in flat 32-bit mode. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a string to be joined with others */
#define GUEST(name, text)                                                                \
    __asm__(".pushsection .rodata\n"                                                     \
            ".code32\n" #name ":\n" text "\n" #name "_end:\n"                            \
            ".code64\n"                                                                  \
            ".popsection\n");                                                            \
    extern const uint8_t name[] __asm__(#name);                                          \
    extern const uint8_t name##_end[] __asm__(#name "_end")
/* NOLINTEND(bugprone-macro-parentheses) */

#define LOAD(machine, name)                                                              \
    load_code(machine, name, (size_t)((uintptr_t)(name##_end) - (uintptr_t)(name)))

#define RAM_BYTES UINT64_C(0x100000)
#define GDT_GPA 0x500
#define IDT_GPA 0x600
#define CODE_GPA 0x1000
#define AP_CODE_GPA 0x2000
#define DATA_GPA 0x4000
#define FILE_GPA 0x10000

#define PORT_A 0x80
#define PORT_B 0x84
#define VECTOR 0x25 /* line 5 of an 8259 whose vectors start at 0x20 */

struct machine {
    struct memory *memory;
    struct accel_vm *vm;
    struct accel_vcpu *vcpus[2];
};

static const struct accel_ops *const kvm = &accel_kvm;

#define assert_ok(call, err)                                                             \
    do {                                                                                 \
        if ((call) != 0)                                                                 \
            fail_msg("%s", (err).text);                                                  \
    } while (0)

static int create_machine(void **state)
{
    static struct machine machine;
    const struct memory_span span = {.gpa = 0, .size_bytes = RAM_BYTES};
    const struct memory_options memory_options = {0};
    const struct accel_vm_options options = {.cpu_count = 2};
    struct error err = ERROR_NONE;

    memset(&machine, 0, sizeof(machine));
    *state = &machine;
    if (kvm->probe(&err) != 0)
        return 0; /* each test then skips */
    assert_ok(memory_create(&span, 1, &memory_options, &machine.memory, &err), err);
    assert_ok(kvm->vm_create(&options, machine.memory, &machine.vm, &err), err);
    for (uint32_t i = 0; i < ARRAY_SIZE(machine.vcpus); i++)
        assert_ok(kvm->vcpu_create(machine.vm, i, &machine.vcpus[i], &err), err);
    return 0;
}

static int destroy_machine(void **state)
{
    struct machine *machine = *state;

    for (size_t i = 0; i < ARRAY_SIZE(machine->vcpus); i++)
        kvm->vcpu_destroy(machine->vcpus[i]);
    kvm->vm_destroy(machine->vm);
    memory_destroy(machine->memory);
    return 0;
}

static struct machine *machine_or_skip(void **state)
{
    struct machine *machine = *state;
    struct error err = ERROR_NONE;

    if (machine->vm == NULL) {
        (void)kvm->probe(&err);
        print_message("skipped: %s\n", err.text);
        skip();
    }
    return machine;
}

static void load_code(struct machine *machine, const uint8_t *code, size_t size)
{
    uint64_t gdt[X86_BOOT_GDT_ENTRIES];
    struct cpu_state cpu;
    struct error err = ERROR_NONE;

    x86_boot_gdt(gdt, false);
    cpu_state_flat32(&cpu, CODE_GPA, GDT_GPA);
    cpu.idt = (struct x86_table){IDT_GPA, 0x2ff};
    cpu.registers[X86_RSP] = DATA_GPA;
    assert_int_equal(memory_write(machine->memory, GDT_GPA, gdt, sizeof(gdt)), 0);
    assert_int_equal(memory_write(machine->memory, CODE_GPA, code, size), 0);
    assert_ok(kvm->set_state(machine->vcpus[0], &cpu, &err), err);
}

static struct vcpu_exit run(struct machine *machine)
{
    struct vcpu_exit exit;

    kvm->vcpu_run(machine->vcpus[0], &exit);
    if (exit.kind == VCPU_EXIT_FAILED)
        print_message("failed: %s\n", exit.failure.text);
    return exit;
}

/* The next exit is a one-byte write of `value` to `port`. */
static void assert_byte_out(struct machine *machine, uint16_t port, uint8_t value)
{
    struct vcpu_exit exit = run(machine);

    assert_int_equal(exit.kind, VCPU_EXIT_PORT);
    assert_int_equal(exit.port.port, port);
    assert_true(exit.port.write);
    assert_int_equal(exit.port.size, 1);
    assert_int_equal(exit.port.count, 1);
    assert_int_equal(*(const uint8_t *)exit.port.data, value);
}

/* ---- exits ------------------------------------------------------------------------- */

GUEST(port_guest, "mov $0x5a, %al\n out %al, $0x80\n"
                  "in $0x84, %al\n out %al, $0x80\n"
                  "mov $0x1234, %ax\n mov $0x3f8, %dx\n out %ax, %dx\n"
                  "mov $0x12345678, %eax\n out %eax, %dx\n"
                  "hlt");

static void port_accesses_exit_with_size_and_data(void **state)
{
    struct machine *machine = machine_or_skip(state);
    struct vcpu_exit exit;

    LOAD(machine, port_guest);
    assert_byte_out(machine, PORT_A, 0x5a);

    exit = run(machine);
    assert_int_equal(exit.kind, VCPU_EXIT_PORT);
    assert_int_equal(exit.port.port, PORT_B);
    assert_false(exit.port.write);
    assert_int_equal(exit.port.size, 1);
    *(uint8_t *)exit.port.data = 0xc3;
    assert_byte_out(machine, PORT_A, 0xc3);

    exit = run(machine);
    assert_int_equal(exit.port.port, 0x3f8);
    assert_int_equal(exit.port.size, 2);
    assert_int_equal(load_le16(exit.port.data), 0x1234);
    exit = run(machine);
    assert_int_equal(exit.port.size, 4);
    assert_int_equal(load_le32(exit.port.data), 0x12345678);
}

GUEST(string_guest, "mov $0x4000, %edi\n mov $3, %ecx\n mov $0x80, %dx\n rep insw\n"
                    "mov $0x4000, %esi\n mov $6, %ecx\n mov $0x84, %dx\n rep outsb\n"
                    "hlt");

/* KVM may cut a row of accesses anywhere, so only the sums are a promise. */
static void string_accesses_come_in_rows(void **state)
{
    static const char words[] = "abcdef";
    struct machine *machine = machine_or_skip(state);
    char seen[sizeof(words)] = "";
    size_t moved;

    LOAD(machine, string_guest);
    for (moved = 0; moved < 6;) {
        struct vcpu_exit exit = run(machine);
        size_t size = (size_t)exit.port.size * exit.port.count;

        assert_int_equal(exit.kind, VCPU_EXIT_PORT);
        assert_int_equal(exit.port.port, PORT_A);
        assert_int_equal(exit.port.size, 2);
        assert_in_range(size, 2, 6 - moved);
        memcpy(exit.port.data, words + moved, size);
        moved += size;
    }
    for (moved = 0; moved < 6;) {
        struct vcpu_exit exit = run(machine);
        size_t size = (size_t)exit.port.size * exit.port.count;

        assert_int_equal(exit.kind, VCPU_EXIT_PORT);
        assert_int_equal(exit.port.port, PORT_B);
        assert_true(exit.port.write);
        assert_in_range(size, 1, 6 - moved);
        memcpy(seen + moved, exit.port.data, size);
        moved += size;
    }
    assert_string_equal(seen, words);
}

GUEST(mmio_guest, "mov 0xd0000000, %eax\n mov %eax, 0xd0000008\n"
                  "movb $0x7e, 0x200000\n hlt");

static void accesses_outside_ram_exit_as_mmio(void **state)
{
    struct machine *machine = machine_or_skip(state);
    struct vcpu_exit exit;

    LOAD(machine, mmio_guest);
    exit = run(machine);
    assert_int_equal(exit.kind, VCPU_EXIT_MMIO);
    assert_int_equal(exit.mmio.gpa, 0xd0000000);
    assert_int_equal(exit.mmio.size, 4);
    assert_false(exit.mmio.write);
    store_le32(exit.mmio.data, 0x11223344);

    exit = run(machine);
    assert_int_equal(exit.kind, VCPU_EXIT_MMIO);
    assert_int_equal(exit.mmio.gpa, 0xd0000008);
    assert_true(exit.mmio.write);
    assert_int_equal(load_le32(exit.mmio.data), 0x11223344);

    exit = run(machine);
    assert_int_equal(exit.mmio.gpa, 0x200000);
    assert_int_equal(exit.mmio.size, 1);
    assert_int_equal(*(const uint8_t *)exit.mmio.data, 0x7e);
}

GUEST(triple_fault_guest, "lidt 0x4000\n ud2"); /* limit 0: memory there is zero */

static void triple_fault_is_a_shutdown(void **state)
{
    struct machine *machine = machine_or_skip(state);

    LOAD(machine, triple_fault_guest);
    assert_int_equal(run(machine).kind, VCPU_EXIT_SHUTDOWN);
}

GUEST(lost_guest, "mov $0xd0000000, %eax\n jmp *%eax");

static void code_outside_ram_fails_and_names_the_place(void **state)
{
    static const char start[] = "kvm: KVM_EXIT_INTERNAL_ERROR: KVM cannot emulate the "
                                "instruction with these bytes:";
    static const char end[] = "(at 0xd0000000)";
    struct machine *machine = machine_or_skip(state);
    struct vcpu_exit exit;

    LOAD(machine, lost_guest);
    exit = run(machine);
    assert_int_equal(exit.kind, VCPU_EXIT_FAILED);
    assert_int_equal(exit.failure.code, -ENOTSUP);
    assert_memory_equal(exit.failure.text, start, strlen(start));
    assert_non_null(strstr(exit.failure.text, end));
}

/* ---- kick -------------------------------------------------------------------------- */

struct runner {
    struct machine *machine;
    pthread_t thread;
    atomic_uint asked;  /* kicks so far; raised before each kick */
    atomic_uint served; /* the latest `asked` that the runner saw after a KICKED */
    unsigned stop_at;
};

/* As the VM's vCPU threads do: run, and look for the reason after each kick. */
static void *run_until_stopped(void *context)
{
    struct runner *runner = context;
    struct vcpu_exit exit;

    while (atomic_load(&runner->served) < runner->stop_at) {
        kvm->vcpu_run(runner->machine->vcpus[0], &exit);
        if (exit.kind != VCPU_EXIT_KICKED)
            return NULL;
        atomic_store(&runner->served, atomic_load(&runner->asked));
    }
    return runner;
}

static void kick_and_wait(struct runner *runner)
{
    unsigned asked = atomic_fetch_add(&runner->asked, 1) + 1;

    kvm->vcpu_kick(runner->machine->vcpus[0]);
    while (atomic_load(&runner->served) != asked)
        sched_yield(); /* a lost kick hangs here, until the test's timeout */
}

static void kick_often(struct machine *machine, unsigned times)
{
    struct runner runner = {.machine = machine, .stop_at = times};
    void *result;

    assert_int_equal(pthread_create(&runner.thread, NULL, run_until_stopped, &runner), 0);
    for (unsigned i = 0; i < times; i++)
        kick_and_wait(&runner);
    assert_int_equal(pthread_join(runner.thread, &result), 0);
    assert_ptr_equal(result, &runner);
}

GUEST(halt_guest, "cli\n hlt");
GUEST(spin_guest, "1: jmp 1b");

static void no_kick_is_lost_on_a_halted_vcpu(void **state)
{
    struct machine *machine = machine_or_skip(state);

    LOAD(machine, halt_guest);
    kick_often(machine, 200);
}

static void no_kick_is_lost_on_a_busy_vcpu(void **state)
{
    struct machine *machine = machine_or_skip(state);

    LOAD(machine, spin_guest);
    kick_often(machine, 200);
}

static void a_kick_before_the_run_ends_it_once(void **state)
{
    struct machine *machine = machine_or_skip(state);

    LOAD(machine, port_guest);
    kvm->vcpu_kick(machine->vcpus[0]);
    kvm->vcpu_kick(machine->vcpus[0]);
    assert_int_equal(run(machine).kind, VCPU_EXIT_KICKED);
    assert_byte_out(machine, PORT_A, 0x5a);
}

static void a_kick_does_not_swallow_a_pending_answer(void **state)
{
    struct machine *machine = machine_or_skip(state);
    struct vcpu_exit exit;

    LOAD(machine, port_guest);
    assert_byte_out(machine, PORT_A, 0x5a);
    exit = run(machine);
    *(uint8_t *)exit.port.data = 0x77;
    kvm->vcpu_kick(machine->vcpus[0]);
    assert_int_equal(run(machine).kind, VCPU_EXIT_KICKED);
    assert_byte_out(machine, PORT_A, 0x77);
}

/* ---- interrupts -------------------------------------------------------------------- */

/* Opens the first 8259 for line 5 alone and the local APIC for messages, then says so and
 * waits. Its handler tells of each interrupt; it returns without IRET, which KVM's
 * instruction emulator lacks in protected mode. */
GUEST(interrupt_guest,
      "mov $0x11, %al\n out %al, $0x20\n mov $0x20, %al\n out %al, $0x21\n"
      "mov $0x04, %al\n out %al, $0x21\n mov $0x01, %al\n out %al, $0x21\n"
      "mov $0xdf, %al\n out %al, $0x21\n"
      "movl $0x1ff, 0xfee000f0\n"
      "mov $0x01, %al\n out %al, $0x80\n"
      "1: sti\n hlt\n jmp 1b\n"
      "interrupt_handler:\n"
      "mov $0x02, %al\n out %al, $0x80\n"
      "mov $0x20, %al\n out %al, $0x20\n"
      "movl $0, 0xfee000b0\n"
      "add $12, %esp\n jmp 1b\n"
      "other_handler:\n"
      "mov $0x03, %al\n out %al, $0x80\n"
      "movl $0, 0xfee000b0\n"
      "add $12, %esp\n jmp 1b");
extern const uint8_t interrupt_handler[];
extern const uint8_t other_handler[];

static uint32_t handler_gpa(const uint8_t *handler)
{
    return CODE_GPA + (uint32_t)((uintptr_t)handler - (uintptr_t)interrupt_guest);
}

static void set_gate(struct machine *machine, uint32_t vector, uint32_t handler)
{
    /* SDM vol. 3, figure 6-2: present 32-bit interrupt gate. */
    uint64_t gate = (handler & 0xffff) | (uint64_t)X86_BOOT_CS << 16 |
                    UINT64_C(0x8e00) << 32 | (uint64_t)(handler & 0xffff0000) << 32;

    assert_int_equal(memory_write(machine->memory, IDT_GPA + UINT64_C(8) * vector, &gate,
                                  sizeof(gate)),
                     0);
}

static struct machine *machine_waiting_for_interrupts(void **state)
{
    struct machine *machine = machine_or_skip(state);

    LOAD(machine, interrupt_guest);
    set_gate(machine, VECTOR, handler_gpa(interrupt_handler));
    set_gate(machine, VECTOR + 1, handler_gpa(interrupt_handler));
    set_gate(machine, VECTOR + 2, handler_gpa(other_handler));
    assert_byte_out(machine, PORT_A, 1);
    return machine;
}

static void a_raised_line_interrupts(void **state)
{
    struct machine *machine = machine_waiting_for_interrupts(state);
    struct error err = ERROR_NONE;

    for (int i = 0; i < 2; i++) {
        assert_ok(kvm->set_line(machine->vm, 5, true, &err), err);
        assert_byte_out(machine, PORT_A, 2);
        assert_ok(kvm->set_line(machine->vm, 5, false, &err), err);
    }
}

static void a_line_beyond_the_last_is_refused(void **state)
{
    struct machine *machine = machine_or_skip(state);
    struct error err = ERROR_NONE;

    assert_int_equal(kvm->set_line(machine->vm, 24, true, &err), -EINVAL);
    assert_string_equal(err.text, "kvm: interrupt line 24: the highest is 23");
}

static void a_message_interrupts(void **state)
{
    struct machine *machine = machine_waiting_for_interrupts(state);
    struct error err = ERROR_NONE;

    for (int i = 0; i < 2; i++) {
        assert_ok(kvm->signal_msi(machine->vm, LAYOUT_LOCAL_APIC, VECTOR + 1, &err), err);
        assert_byte_out(machine, PORT_A, 2);
    }
}

static void assert_message(struct machine *machine, int fd, uint8_t printed)
{
    assert_int_equal(eventfd_write(fd, 1), 0);
    assert_byte_out(machine, PORT_A, printed);
}

static void an_eventfd_sends_the_message_that_it_was_given_last(void **state)
{
    struct machine *machine = machine_waiting_for_interrupts(state);
    CLEANUP_FD int first = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CLEANUP_FD int second = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct error err = ERROR_NONE;

    assert_ok(
        kvm->route_message(machine->vm, 7, first, LAYOUT_LOCAL_APIC, VECTOR + 1, &err),
        err);
    assert_message(machine, first, 2);
    assert_message(machine, first, 2);
    assert_ok(kvm->route_message(machine->vm, ACCEL_MESSAGE_ROUTES - 1, second,
                                 LAYOUT_LOCAL_APIC, VECTOR + 2, &err),
              err);
    assert_message(machine, second, 3);
    assert_ok(
        kvm->route_message(machine->vm, 7, first, LAYOUT_LOCAL_APIC, VECTOR + 2, &err),
        err);
    assert_message(machine, first, 3);
    assert_message(machine, second, 3);
}

/* KVM takes tables whole: one with messages must have the lines, too. */
static void lines_interrupt_beside_messages(void **state)
{
    struct machine *machine = machine_waiting_for_interrupts(state);
    CLEANUP_FD int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct error err = ERROR_NONE;

    assert_ok(kvm->route_message(machine->vm, 0, fd, LAYOUT_LOCAL_APIC, VECTOR + 1, &err),
              err);
    assert_ok(kvm->set_line(machine->vm, 5, true, &err), err);
    assert_byte_out(machine, PORT_A, 2);
}

/* ---- doorbells --------------------------------------------------------------------- */

GUEST(doorbell_guest, "mov $7, %al\n out %al, $0x84\n out %al, $0x84\n"
                      "movw $7, 0xd0000000\n movw $8, 0xd0000000\n"
                      "mov $1, %al\n out %al, $0x80\n hlt");

static uint64_t rings(int fd)
{
    eventfd_t count = 0;

    return eventfd_read(fd, &count) == 0 ? count : 0;
}

static void doorbells_ring_without_an_exit(void **state)
{
    struct machine *machine = machine_or_skip(state);
    CLEANUP_FD int port_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CLEANUP_FD int mmio_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const struct accel_doorbell port_bell = {
        .address = PORT_B, .is_port = true, .size_bytes = 1, .fd = port_fd};
    const struct accel_doorbell mmio_bell = {.address = 0xd0000000, .fd = mmio_fd};
    struct error err = ERROR_NONE;

    LOAD(machine, doorbell_guest);
    assert_ok(kvm->ioeventfd(machine->vm, &port_bell, true, &err), err);
    assert_ok(kvm->ioeventfd(machine->vm, &mmio_bell, true, &err), err);
    assert_byte_out(machine, PORT_A, 1);
    assert_int_equal(rings(port_fd), 2);
    assert_int_equal(rings(mmio_fd), 2);

    assert_ok(kvm->ioeventfd(machine->vm, &port_bell, false, &err), err);
    LOAD(machine, doorbell_guest);
    assert_byte_out(machine, PORT_B, 7);
    assert_int_equal(rings(port_fd), 0);
}

static void a_doorbell_with_a_match_rings_for_that_value_only(void **state)
{
    struct machine *machine = machine_or_skip(state);
    CLEANUP_FD int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const struct accel_doorbell bell = {
        .address = 0xd0000000, .size_bytes = 2, .has_match = true, .match = 8, .fd = fd};
    struct vcpu_exit exit;
    struct error err = ERROR_NONE;

    LOAD(machine, doorbell_guest);
    assert_ok(kvm->ioeventfd(machine->vm, &bell, true, &err), err);
    assert_byte_out(machine, PORT_B, 7);
    assert_byte_out(machine, PORT_B, 7);
    exit = run(machine);
    assert_int_equal(exit.kind, VCPU_EXIT_MMIO);
    assert_int_equal(load_le16(exit.mmio.data), 7);
    assert_int_equal(rings(fd), 0);
    assert_byte_out(machine, PORT_A, 1);
    assert_int_equal(rings(fd), 1);
}

static void a_doorbell_twice_is_refused_with_its_place(void **state)
{
    struct machine *machine = machine_or_skip(state);
    CLEANUP_FD int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const struct accel_doorbell bell = {
        .address = PORT_B, .is_port = true, .size_bytes = 1, .fd = fd};
    struct error err = ERROR_NONE;

    assert_ok(kvm->ioeventfd(machine->vm, &bell, true, &err), err);
    assert_int_equal(kvm->ioeventfd(machine->vm, &bell, true, &err), -EEXIST);
    assert_string_equal(err.text, "kvm: KVM_IOEVENTFD failed for port 0x84: File exists");
}

/* ---- state and processors ---------------------------------------------------------- */

static void assert_same_state(const struct cpu_state *seen, const struct cpu_state *set)
{
    assert_memory_equal(seen->registers, set->registers, sizeof(set->registers));
    for (size_t i = 0; i < X86_SEGMENT_COUNT; i++) {
        const struct x86_segment *a = &seen->segments[i], *b = &set->segments[i];

        assert_int_equal(a->base, b->base);
        assert_int_equal(a->limit, b->limit);
        assert_int_equal(a->selector, b->selector);
        assert_int_equal(a->type, b->type);
        assert_int_equal(a->dpl, b->dpl);
        assert_int_equal(a->present, b->present);
        assert_int_equal(a->code_or_data, b->code_or_data);
        assert_int_equal(a->db, b->db);
        assert_int_equal(a->long_mode, b->long_mode);
        assert_int_equal(a->granularity, b->granularity);
    }
    assert_int_equal(seen->rip, set->rip);
    assert_int_equal(seen->rflags, set->rflags);
    assert_int_equal(seen->gdt.base, set->gdt.base);
    assert_int_equal(seen->gdt.limit, set->gdt.limit);
    assert_int_equal(seen->idt.base, set->idt.base);
    assert_int_equal(seen->idt.limit, set->idt.limit);
    assert_int_equal(seen->cr0, set->cr0);
    assert_int_equal(seen->cr2, set->cr2);
    assert_int_equal(seen->cr3, set->cr3);
    assert_int_equal(seen->cr4, set->cr4);
    assert_int_equal(seen->efer, set->efer);
}

static void a_state_comes_back_as_it_was_set(void **state)
{
    struct machine *machine = machine_or_skip(state);
    struct cpu_state states[3], seen;
    struct error err = ERROR_NONE;

    cpu_state_reset(&states[0]);
    cpu_state_flat32(&states[1], 0x12345678, GDT_GPA);
    cpu_state_long64(&states[2], UINT64_C(0x123456789a), 0x9000, GDT_GPA);
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        for (uint64_t r = 0; r < X86_REGISTER_COUNT; r++)
            states[i].registers[r] = UINT64_C(0x1111111111111111) * r + i;
        states[i].idt = (struct x86_table){0x7000, 0x123};
        states[i].cr2 = 0xdead000;
        assert_ok(kvm->set_state(machine->vcpus[1], &states[i], &err), err);
        assert_ok(kvm->get_state(machine->vcpus[1], &seen, &err), err);
        assert_same_state(&seen, &states[i]);
    }
}

/* INIT, then SIPI with page 2, to the processor with APIC id 1. */
GUEST(two_cpu_guest, "movl $0x01000000, 0xfee00310\n movl $0x4500, 0xfee00300\n"
                     "movl $0x01000000, 0xfee00310\n movl $0x4602, 0xfee00300\n"
                     "mov $1, %al\n out %al, $0x80\n hlt");
GUEST(second_cpu_guest, ".code16\n mov $2, %al\n out %al, $0x84\n hlt");

static void *run_second_vcpu(void *context)
{
    static struct vcpu_exit exit;
    struct machine *machine = context;

    do {
        kvm->vcpu_run(machine->vcpus[1], &exit);
    } while (exit.kind == VCPU_EXIT_KICKED);
    return &exit;
}

static void the_second_vcpu_waits_for_init_and_sipi(void **state)
{
    struct machine *machine = machine_or_skip(state);
    const struct vcpu_exit *exit;
    struct cpu_state cpu;
    struct error err = ERROR_NONE;
    pthread_t thread;
    void *result;

    LOAD(machine, two_cpu_guest);
    assert_int_equal(memory_write(machine->memory, AP_CODE_GPA, second_cpu_guest, 5), 0);
    assert_int_equal(pthread_create(&thread, NULL, run_second_vcpu, machine), 0);
    assert_byte_out(machine, PORT_A, 1);
    assert_int_equal(pthread_join(thread, &result), 0);
    exit = result;
    assert_int_equal(exit->kind, VCPU_EXIT_PORT);
    assert_int_equal(exit->port.port, PORT_B);
    assert_int_equal(*(const uint8_t *)exit->port.data, 2);
    assert_ok(kvm->get_state(machine->vcpus[1], &cpu, &err), err);
    assert_int_equal(cpu.segments[X86_CS].base, AP_CODE_GPA);
}

GUEST(cpuid_guest, "mov $1, %eax\n cpuid\n shr $16, %ebx\n"
                   "mov %bl, %al\n out %al, $0x80\n"
                   "mov %bh, %al\n out %al, $0x80\n hlt");

static void cpuid_is_the_filtered_one(void **state)
{
    struct machine *machine = machine_or_skip(state);

    LOAD(machine, cpuid_guest);
    assert_byte_out(machine, PORT_A, ARRAY_SIZE(machine->vcpus));
    assert_byte_out(machine, PORT_A, 0); /* APIC id */
}

/* ---- file pages -------------------------------------------------------------------- */

GUEST(file_guest, "mov 0x10000, %al\n out %al, $0x80\n"
                  "movb $0x99, 0x10000\n mov 0x10000, %al\n out %al, $0x80\n hlt");

static int file_of_one_page(uint8_t first_byte)
{
    int fd = memfd_create("guest-file", MFD_CLOEXEC);

    assert_int_equal(ftruncate(fd, (off_t)X86_PAGE_BYTES), 0);
    assert_int_equal(pwrite(fd, &first_byte, 1, 0), 1);
    return fd;
}

static void a_mapped_file_is_read_and_written_privately(void **state)
{
    struct machine *machine = machine_or_skip(state);
    CLEANUP_FD int fd = file_of_one_page(0x42);
    struct error err = ERROR_NONE;
    uint8_t byte = 0;

    assert_ok(memory_map_file(machine->memory, FILE_GPA, fd, 0, X86_PAGE_BYTES,
                              "guest-file", &err),
              err);
    LOAD(machine, file_guest);
    assert_byte_out(machine, PORT_A, 0x42);
    assert_byte_out(machine, PORT_A, 0x99);
    assert_int_equal(pread(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, 0x42);
}

GUEST(rereading_guest, "mov 0x10000, %al\n out %al, $0x80\n"
                       "mov 0x10000, %al\n out %al, $0x80\n hlt");

static void patch(struct machine *machine, uint8_t value)
{
    assert_int_equal(memory_write(machine->memory, FILE_GPA, &value, 1), 0);
}

/* The host's write replaces the file's page by a copy, which the guest's map must follow.
 */
static void a_page_patched_before_the_start_is_read_as_patched(void **state)
{
    struct machine *machine = machine_or_skip(state);
    CLEANUP_FD int fd = file_of_one_page(0x42);
    struct error err = ERROR_NONE;
    uint8_t byte = 0;

    assert_ok(memory_map_file(machine->memory, FILE_GPA, fd, 0, X86_PAGE_BYTES,
                              "guest-file", &err),
              err);
    LOAD(machine, rereading_guest);
    assert_int_equal(memory_read(machine->memory, FILE_GPA, &byte, 1), 0);
    assert_int_equal(byte, 0x42);
    patch(machine, 0x43);
    assert_byte_out(machine, PORT_A, 0x43);
}

static void a_page_patched_after_the_guest_has_read_it_is_read_as_patched(void **state)
{
    struct machine *machine = machine_or_skip(state);
    CLEANUP_FD int fd = file_of_one_page(0x42);
    struct error err = ERROR_NONE;

    assert_ok(memory_map_file(machine->memory, FILE_GPA, fd, 0, X86_PAGE_BYTES,
                              "guest-file", &err),
              err);
    LOAD(machine, rereading_guest);
    assert_byte_out(machine, PORT_A, 0x42);
    patch(machine, 0x43);
    assert_byte_out(machine, PORT_A, 0x43);
}

static void a_truncated_file_fails_with_efault(void **state)
{
    struct machine *machine = machine_or_skip(state);
    CLEANUP_FD int fd = file_of_one_page(0x42);
    struct error err = ERROR_NONE;
    struct vcpu_exit exit;

    assert_ok(memory_map_file(machine->memory, FILE_GPA, fd, 0, X86_PAGE_BYTES,
                              "guest-file", &err),
              err);
    LOAD(machine, file_guest);
    assert_int_equal(ftruncate(fd, 0), 0);
    exit = run(machine);
    assert_int_equal(exit.kind, VCPU_EXIT_FAILED);
    assert_int_equal(exit.failure.code, -EFAULT);
    assert_true(memory_find_loss(machine->memory));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_machine, destroy_machine)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(port_accesses_exit_with_size_and_data),
        TEST(string_accesses_come_in_rows),
        TEST(accesses_outside_ram_exit_as_mmio),
        TEST(triple_fault_is_a_shutdown),
        TEST(code_outside_ram_fails_and_names_the_place),
        TEST(no_kick_is_lost_on_a_halted_vcpu),
        TEST(no_kick_is_lost_on_a_busy_vcpu),
        TEST(a_kick_before_the_run_ends_it_once),
        TEST(a_kick_does_not_swallow_a_pending_answer),
        TEST(a_raised_line_interrupts),
        TEST(a_line_beyond_the_last_is_refused),
        TEST(a_message_interrupts),
        TEST(an_eventfd_sends_the_message_that_it_was_given_last),
        TEST(lines_interrupt_beside_messages),
        TEST(doorbells_ring_without_an_exit),
        TEST(a_doorbell_with_a_match_rings_for_that_value_only),
        TEST(a_doorbell_twice_is_refused_with_its_place),
        TEST(a_state_comes_back_as_it_was_set),
        TEST(the_second_vcpu_waits_for_init_and_sipi),
        TEST(cpuid_is_the_filtered_one),
        TEST(a_mapped_file_is_read_and_written_privately),
        TEST(a_page_patched_before_the_start_is_read_as_patched),
        TEST(a_page_patched_after_the_guest_has_read_it_is_read_as_patched),
        TEST(a_truncated_file_fails_with_efault),
    };

    return cmocka_run_group_tests_name("accel/kvm", tests, NULL, NULL);
}
