/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine's life with a scripted accelerator in place of a processor: each test says
 * what exits the guest makes and looks at how the machine ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accel/accel.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "vm/vm.h"
#include "x86/layout.h"

/* ---- the scripted accelerator
 * ------------------------------------------------------------ */

struct accel_vm {
    struct memory *memory;
};

struct accel_vcpu {
    struct accel_vm *vm;
    uint32_t index;
    unsigned step; /* how often vcpu_run was called */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool kicked;
    uint8_t data[8]; /* of the exit in progress */
};

/* Fills *exit for this step, or returns false: the guest idles until it is kicked. */
typedef bool script(struct accel_vcpu *vcpu, struct vcpu_exit *exit);
static script *guest_script;

static atomic_int power_ons; /* vm_create calls: 1 + resets */
static atomic_int entries;   /* vcpu_run calls */

static int fake_vm_create(const struct accel_vm_options *options, struct memory *memory,
                          struct accel_vm **vm, struct error *err)
{
    (void)options;
    (void)err;
    *vm = calloc(1, sizeof(**vm));
    assert_non_null(*vm);
    (*vm)->memory = memory;
    atomic_fetch_add(&power_ons, 1);
    return 0;
}

static void fake_vm_destroy(struct accel_vm *vm)
{
    free(vm);
}

static int fake_vcpu_create(struct accel_vm *vm, uint32_t index, struct accel_vcpu **vcpu,
                            struct error *err)
{
    (void)err;
    *vcpu = calloc(1, sizeof(**vcpu));
    assert_non_null(*vcpu);
    (*vcpu)->vm = vm;
    (*vcpu)->index = index;
    CHECK(pthread_mutex_init(&(*vcpu)->lock, NULL) == 0);
    CHECK(pthread_cond_init(&(*vcpu)->changed, NULL) == 0);
    return 0;
}

static void fake_vcpu_destroy(struct accel_vcpu *vcpu)
{
    CHECK(pthread_cond_destroy(&vcpu->changed) == 0);
    CHECK(pthread_mutex_destroy(&vcpu->lock) == 0);
    free(vcpu);
}

static int fake_get_state(struct accel_vcpu *vcpu, struct cpu_state *state,
                          struct error *err)
{
    (void)vcpu;
    (void)err;
    cpu_state_reset(state);
    return 0;
}

static int fake_set_state(struct accel_vcpu *vcpu, const struct cpu_state *state,
                          struct error *err)
{
    (void)vcpu;
    (void)state;
    (void)err;
    return 0;
}

static void fake_vcpu_run(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    atomic_fetch_add(&entries, 1);
    memset(exit, 0, sizeof(*exit));
    CHECK(pthread_mutex_lock(&vcpu->lock) == 0);
    exit->kind = VCPU_EXIT_KICKED;
    if (!vcpu->kicked && !guest_script(vcpu, exit))
        while (!vcpu->kicked)
            CHECK(pthread_cond_wait(&vcpu->changed, &vcpu->lock) == 0);
    vcpu->kicked = false;
    vcpu->step++;
    CHECK(pthread_mutex_unlock(&vcpu->lock) == 0);
}

static void fake_vcpu_kick(struct accel_vcpu *vcpu)
{
    CHECK(pthread_mutex_lock(&vcpu->lock) == 0);
    vcpu->kicked = true;
    CHECK(pthread_cond_signal(&vcpu->changed) == 0);
    CHECK(pthread_mutex_unlock(&vcpu->lock) == 0);
}

static int fake_set_line(struct accel_vm *vm, uint32_t gsi, bool level, struct error *err)
{
    (void)vm;
    (void)gsi;
    (void)level;
    (void)err;
    return 0;
}

static struct accel_ops fake_accel = {
    .name = "fake",
    .vm_create = fake_vm_create,
    .vm_destroy = fake_vm_destroy,
    .vcpu_create = fake_vcpu_create,
    .vcpu_destroy = fake_vcpu_destroy,
    .get_state = fake_get_state,
    .set_state = fake_set_state,
    .vcpu_run = fake_vcpu_run,
    .vcpu_kick = fake_vcpu_kick,
    .set_line = fake_set_line,
};

/* In place of accel/accels.c. */
int accel_choose(const char *name, const struct accel_ops **accel, char *reason,
                 size_t reason_size, struct error *err)
{
    (void)name;
    (void)err;
    *accel = &fake_accel;
    (void)snprintf(reason, reason_size, "scripted");
    return 0;
}

static bool write_port(struct accel_vcpu *vcpu, struct vcpu_exit *exit, uint16_t port,
                       uint8_t size, uint32_t value)
{
    memcpy(vcpu->data, &value, sizeof(value));
    exit->kind = VCPU_EXIT_PORT;
    exit->port.port = port;
    exit->port.size = size;
    exit->port.count = 1;
    exit->port.write = true;
    exit->port.data = vcpu->data;
    return true;
}

/* ---- a machine around it
 * ------------------------------------------------------------------- */

#define KERNEL_PAGE 4096
#define KERNEL_GPA 0x100000

/* One page of code at 1 MiB and a PVH note. */
static void write_kernel(const char *path, uint8_t fill)
{
    static uint8_t file[2 * KERNEL_PAGE];
    Elf64_Ehdr *header = (Elf64_Ehdr *)file;
    Elf64_Phdr *segments = (Elf64_Phdr *)(file + sizeof(*header));
    uint8_t *note = file + 0x200;
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

    memset(file, 0, sizeof(file));
    memcpy(header->e_ident, ELFMAG, SELFMAG);
    header->e_ident[EI_CLASS] = ELFCLASS64;
    header->e_ident[EI_DATA] = ELFDATA2LSB;
    header->e_ident[EI_VERSION] = EV_CURRENT;
    header->e_type = ET_EXEC;
    header->e_machine = EM_X86_64;
    header->e_version = EV_CURRENT;
    header->e_entry = KERNEL_GPA;
    header->e_phoff = sizeof(*header);
    header->e_ehsize = sizeof(*header);
    header->e_phentsize = sizeof(*segments);
    header->e_phnum = 2;
    segments[0] = (Elf64_Phdr){.p_type = PT_LOAD,
                               .p_flags = PF_R | PF_X,
                               .p_offset = KERNEL_PAGE,
                               .p_vaddr = KERNEL_GPA,
                               .p_paddr = KERNEL_GPA,
                               .p_filesz = KERNEL_PAGE,
                               .p_memsz = KERNEL_PAGE};
    segments[1] = (Elf64_Phdr){.p_type = PT_NOTE,
                               .p_offset = 0x200,
                               .p_filesz = 24,
                               .p_memsz = 24,
                               .p_align = 4};
    store_le32(note, 4);
    store_le32(note + 4, 8);
    store_le32(note + 8, 18); /* XEN_ELFNOTE_PHYS32_ENTRY */
    memcpy(note + 12, "Xen", 4);
    store_le64(note + 16, KERNEL_GPA);
    memset(file + KERNEL_PAGE, fill, KERNEL_PAGE);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, file, sizeof(file)), sizeof(file));
    assert_int_equal(close(fd), 0);
}

struct machine {
    char kernel[64];
    struct vm_config config;
    struct loop *loop;
    struct console *console;
    struct vm *vm;
    struct event *hook; /* runs `act` on the loop every millisecond */
    void (*act)(struct machine *machine);
    int acts;
    uint64_t deadline_ns;
};

static void machine_ended(void *context)
{
    struct machine *machine = context;

    loop_stop(machine->loop);
}

static void run_hook(evutil_socket_t fd, short what, void *context)
{
    struct machine *machine = context;

    (void)fd;
    (void)what;
    assert_true(clock_monotonic_ns() < machine->deadline_ns);
    if (machine->act != NULL)
        machine->act(machine);
    machine->acts++;
}

static void machine_init(struct machine *machine, script *guest)
{
    struct error err = ERROR_NONE;

    memset(machine, 0, sizeof(*machine));
    guest_script = guest;
    atomic_store(&power_ons, 0);
    atomic_store(&entries, 0);
    (void)snprintf(machine->kernel, sizeof(machine->kernel), "/tmp/husk-lifecycle-%d",
                   (int)getpid());
    write_kernel(machine->kernel, 0x90);
    config_init(&machine->config);
    machine->config.kernel = strdup(machine->kernel);
    machine->config.memory_bytes = 16 * MIB;
    machine->config.debug_exit_port = 0xf4;
    assert_int_equal(loop_create(&machine->loop, &err), 0);
    assert_int_equal(console_create(-1, NULL, &machine->console, &err), 0);
}

/* Runs to the end of the machine and returns the reason. */
static enum vm_end machine_run(struct machine *machine)
{
    static const struct timeval every = {.tv_usec = 1000};
    struct error err = ERROR_NONE;

    if (vm_create(&machine->config, machine->loop, machine->console, machine_ended,
                  machine, &machine->vm, &err) < 0)
        fail_msg("vm_create: %s", err.text);
    machine->deadline_ns = clock_monotonic_ns() + 60 * NS_PER_SECOND;
    machine->hook =
        event_new(loop_event_base(machine->loop), -1, EV_PERSIST, run_hook, machine);
    assert_non_null(machine->hook);
    assert_int_equal(event_add(machine->hook, &every), 0);
    assert_int_equal(vm_start(machine->vm, &err), 0);
    assert_int_equal(loop_run(machine->loop, &err), 0);
    assert_int_equal(vm_state(machine->vm), VM_ENDED);
    return vm_outcome(machine->vm)->end;
}

static void machine_finish(struct machine *machine)
{
    event_free(machine->hook);
    vm_destroy(machine->vm);
    console_destroy(machine->console);
    loop_destroy(machine->loop);
    config_finish(&machine->config);
    (void)unlink(machine->kernel);
}

/* ---- tests
 * ------------------------------------------------------------------------------------ */

static bool powers_off(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    /* SLP_EN with the S5 type. */
    return vcpu->index == 0 && write_port(vcpu, exit, LAYOUT_PORT_ACPI_CONTROL, 2,
                                          1u << 13 | LAYOUT_ACPI_S5_TYPE << 10);
}

static void guest_that_powers_off_ends_and_runs_no_more(void **state)
{
    struct machine machine;

    (void)state;
    machine_init(&machine, powers_off);
    assert_int_equal(machine_run(&machine), VM_END_POWER_OFF);
    assert_int_equal(atomic_load(&entries), 1);
    assert_true(stages_ms(vm_stages(machine.vm), STAGE_END) >=
                stages_ms(vm_stages(machine.vm), STAGE_INIT_END));
    machine_finish(&machine);
}

static bool exits_with_0x21(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    return write_port(vcpu, exit, 0xf4, 4, 0x21);
}

static void debug_exit_value_is_kept(void **state)
{
    struct machine machine;

    (void)state;
    machine_init(&machine, exits_with_0x21);
    assert_int_equal(machine_run(&machine), VM_END_DEBUG_EXIT);
    assert_int_equal(vm_outcome(machine.vm)->debug_exit_value, 0x21);
    machine_finish(&machine);
}

static bool triple_faults(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    (void)vcpu;
    exit->kind = VCPU_EXIT_SHUTDOWN;
    return true;
}

static void triple_fault_is_a_crash(void **state)
{
    struct machine machine;

    (void)state;
    machine_init(&machine, triple_faults);
    assert_int_equal(machine_run(&machine), VM_END_CRASHED);
    machine_finish(&machine);
}

/* All others do something all the time. */
static bool first_triple_faults(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    return vcpu->index == 0 ? triple_faults(vcpu, exit)
                            : write_port(vcpu, exit, 0x80, 1, vcpu->step);
}

static int entries_when_dumped;

/* Asked for by the dump of a crash, when all are parked. */
static int count_entries(struct accel_vcpu *vcpu, struct cpu_state *state,
                         struct error *err)
{
    entries_when_dumped = atomic_load(&entries);
    return fake_get_state(vcpu, state, err);
}

static void crashed_guest_runs_no_more_after_its_dump(void **state)
{
    (void)state;
    fake_accel.get_state = count_entries;
    for (int i = 0; i < 5; i++) {
        struct machine machine;

        machine_init(&machine, first_triple_faults);
        machine.config.cpu_count = 8;
        assert_int_equal(machine_run(&machine), VM_END_CRASHED);
        assert_int_equal(atomic_load(&entries), entries_when_dumped);
        machine_finish(&machine);
    }
    fake_accel.get_state = fake_get_state;
}

static bool fails(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    (void)vcpu;
    exit->kind = VCPU_EXIT_FAILED;
    error_set(&exit->failure, -EINVAL, "cannot go on");
    return true;
}

static void failure_names_the_vcpu_and_the_reason(void **state)
{
    struct machine machine;

    (void)state;
    machine_init(&machine, fails);
    assert_int_equal(machine_run(&machine), VM_END_FAILED);
    assert_string_equal(vm_outcome(machine.vm)->failure.text, "vCPU 0: cannot go on");
    machine_finish(&machine);
}

/* First life: scribbles over its own code and resets. Second: looks, and powers off. */
static bool scribbles_and_resets(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    uint8_t byte = 0;

    CHECK(memory_read(vcpu->vm->memory, KERNEL_GPA + 7, &byte, 1) == 0);
    if (atomic_load(&power_ons) == 2)
        return byte == 0x90 ? powers_off(vcpu, exit) : triple_faults(vcpu, exit);
    byte = 0xcc;
    CHECK(memory_write(vcpu->vm->memory, KERNEL_GPA + 7, &byte, 1) == 0);
    return write_port(vcpu, exit, LAYOUT_PORT_RESET, 1, 0x6);
}

static void reset_starts_from_pristine_memory(void **state)
{
    struct vm_counters counters;
    struct machine machine;

    (void)state;
    machine_init(&machine, scribbles_and_resets);
    assert_int_equal(machine_run(&machine), VM_END_POWER_OFF);
    vm_counters(machine.vm, &counters);
    assert_int_equal(counters.resets, 1);
    machine_finish(&machine);
}

static void no_reboot_turns_a_reset_into_the_end(void **state)
{
    struct machine machine;

    (void)state;
    machine_init(&machine, scribbles_and_resets);
    machine.config.no_reboot = true;
    assert_int_equal(machine_run(&machine), VM_END_REBOOT);
    assert_int_equal(atomic_load(&power_ons), 1);
    machine_finish(&machine);
}

static bool resets_for_ever(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    if (atomic_load(&power_ons) == 50)
        return powers_off(vcpu, exit);
    return write_port(vcpu, exit, LAYOUT_PORT_RESET, 1, 0x6);
}

static void many_resets_in_a_row_with_four_vcpus(void **state)
{
    struct machine machine;

    (void)state;
    machine_init(&machine, resets_for_ever);
    machine.config.cpu_count = 4;
    assert_int_equal(machine_run(&machine), VM_END_POWER_OFF);
    assert_true(atomic_load(&power_ons) >= 50);
    machine_finish(&machine);
}

/* In the first life both ask for a reset, the second vCPU when the first one's wish is
 * already being granted. */
static bool both_reset(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    static atomic_bool second_waits;

    if (atomic_load(&power_ons) > 1)
        return false;
    while (vcpu->index == 0 && !atomic_load(&second_waits))
        (void)sched_yield();
    atomic_store(&second_waits, true);
    while (vcpu->index == 1 && !vcpu->kicked)
        CHECK(pthread_cond_wait(&vcpu->changed, &vcpu->lock) == 0);
    return vcpu->index == 0 ? write_port(vcpu, exit, LAYOUT_PORT_RESET, 1, 0x6)
                            : write_port(vcpu, exit, LAYOUT_PORT_I8042 + 4, 1, 0xfe);
}

static void stop_in_the_second_life(struct machine *machine)
{
    static int acts_before;

    if (atomic_load(&power_ons) == 1)
        acts_before = machine->acts;
    else if (machine->acts > acts_before + 20)
        vm_stop(machine->vm, VM_END_STOPPED);
}

static void resets_of_one_moment_are_one(void **state)
{
    struct machine machine;

    (void)state;
    machine_init(&machine, both_reset);
    machine.config.cpu_count = 2;
    machine.act = stop_in_the_second_life;
    assert_int_equal(machine_run(&machine), VM_END_STOPPED);
    assert_int_equal(atomic_load(&power_ons), 2);
    machine_finish(&machine);
}

/* Exits all the time, so that pauses hit it in every place. */
static bool busy(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    return write_port(vcpu, exit, 0x80, 1, vcpu->step);
}

static void pause_and_resume(struct machine *machine)
{
    static int entries_when_paused;

    if (machine->acts >= 200) {
        vm_stop(machine->vm, VM_END_STOPPED);
        return;
    }
    if (vm_state(machine->vm) == VM_RUNNING) {
        vm_pause(machine->vm);
        assert_int_equal(vm_state(machine->vm), VM_PAUSED);
        entries_when_paused = atomic_load(&entries);
    } else {
        assert_int_equal(atomic_load(&entries), entries_when_paused);
        vm_resume(machine->vm);
    }
}

static void paused_guest_executes_nothing(void **state)
{
    struct machine machine;

    (void)state;
    machine_init(&machine, busy);
    machine.config.cpu_count = 2;
    machine.act = pause_and_resume;
    assert_int_equal(machine_run(&machine), VM_END_STOPPED);
    machine_finish(&machine);
}

static bool idles(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    (void)vcpu;
    (void)exit;
    return false;
}

static struct machine *truncating; /* whose kernel the guest's host truncates */

static bool reads_its_truncated_code(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    uint8_t byte = 1;

    (void)exit;
    CHECK(truncate(truncating->kernel, 0) == 0);
    CHECK(memory_read(vcpu->vm->memory, KERNEL_GPA, &byte, 1) == 0); /* no SIGBUS death */
    CHECK(byte == 0);
    return false;
}

static void truncated_kernel_ends_with_its_name(void **state)
{
    struct machine machine;
    char wanted[160];

    (void)state;
    machine_init(&machine, reads_its_truncated_code);
    truncating = &machine;
    assert_int_equal(machine_run(&machine), VM_END_FAILED);
    (void)snprintf(wanted, sizeof(wanted),
                   "kernel %s: became shorter while the guest was using it",
                   machine.kernel);
    assert_memory_equal(vm_outcome(machine.vm)->failure.text, wanted, strlen(wanted));
    machine_finish(&machine);
}

static void timeout_ends_an_idle_guest(void **state)
{
    struct machine machine;

    (void)state;
    machine_init(&machine, idles);
    machine.config.timeout_seconds = 1;
    assert_int_equal(machine_run(&machine), VM_END_TIMEOUT);
    machine_finish(&machine);
}

static void power_button_tells_when_nobody_listens(struct machine *machine)
{
    assert_false(vm_power_button(machine->vm));
    vm_stop(machine->vm, VM_END_STOPPED);
}

static void power_button_without_acpi_driver_is_not_heard(void **state)
{
    struct machine machine;

    (void)state;
    machine_init(&machine, idles);
    machine.act = power_button_tells_when_nobody_listens;
    assert_int_equal(machine_run(&machine), VM_END_STOPPED);
    machine_finish(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: cmocka puts back the SIGBUS handling of before each test, and memory/
         * installs its own only once. */
        cmocka_unit_test(truncated_kernel_ends_with_its_name),
        cmocka_unit_test(guest_that_powers_off_ends_and_runs_no_more),
        cmocka_unit_test(debug_exit_value_is_kept),
        cmocka_unit_test(triple_fault_is_a_crash),
        cmocka_unit_test(crashed_guest_runs_no_more_after_its_dump),
        cmocka_unit_test(failure_names_the_vcpu_and_the_reason),
        cmocka_unit_test(reset_starts_from_pristine_memory),
        cmocka_unit_test(no_reboot_turns_a_reset_into_the_end),
        cmocka_unit_test(many_resets_in_a_row_with_four_vcpus),
        cmocka_unit_test(resets_of_one_moment_are_one),
        cmocka_unit_test(paused_guest_executes_nothing),
        cmocka_unit_test(timeout_ends_an_idle_guest),
        cmocka_unit_test(power_button_without_acpi_driver_is_not_heard),
    };

    clock_mark_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
