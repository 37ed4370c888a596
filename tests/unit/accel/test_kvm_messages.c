/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the KVM accelerator makes of a host's refusals and of rare exits. The linker turns
 * its open and ioctl into the two functions here (--wrap), so no /dev/kvm is needed and
 * each answer can be had.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "accel/accels_private.h"
#include "base/bytes.h"

#define RUN_BYTES 4096
#define GUEST_RIP 0x1234

/* The host of a test: all is well but what it says here. */
static struct host {
    int open_errno;
    int api_version;
    int missing[2];              /* capability numbers */
    unsigned long failing_ioctl; /* this one fails ... */
    int failing_errno;           /* ... so */
    uint32_t refused_msr;
    int run_errno;
    struct kvm_run run; /* what KVM_RUN leaves behind */
    /* what was seen */
    uint32_t msrs_set;
    uint32_t routes; /* in the table that was set last */
    int run_fd;
} host;

/* Meson asks for 64-bit file offsets, by which glibc's open is open64. */
int host_open(const char *path, int flags, ...) __asm__("__wrap_open64");
int host_ioctl(int fd, unsigned long request, ...) __asm__("__wrap_ioctl");

int host_open(const char *path, int flags, ...)
{
    (void)flags;
    assert_string_equal(path, "/dev/kvm");
    errno = host.open_errno;
    return host.open_errno != 0 ? -1 : dup(STDERR_FILENO);
}

static int check_extension(long capability)
{
    return capability != host.missing[0] && capability != host.missing[1];
}

static int create_vcpu(void)
{
    host.run_fd = memfd_create("run", MFD_CLOEXEC);
    assert_int_equal(ftruncate(host.run_fd, RUN_BYTES), 0);
    return dup(host.run_fd);
}

static int run(void)
{
    assert_int_equal(pwrite(host.run_fd, &host.run, sizeof(host.run), 0),
                     sizeof(host.run));
    errno = host.run_errno;
    return host.run_errno != 0 ? -1 : 0;
}

static int set_msr(const struct kvm_msrs *table)
{
    assert_int_equal(table->nmsrs, 1);
    if (table->entries[0].index == host.refused_msr)
        return 0;
    host.msrs_set++;
    return 1;
}

static int answer(unsigned long request, void *argument)
{
    switch (request) {
    case KVM_GET_API_VERSION:
        return host.api_version;
    case KVM_CHECK_EXTENSION:
        return check_extension((long)(intptr_t)argument);
    case KVM_GET_VCPU_MMAP_SIZE:
        return RUN_BYTES;
    case KVM_GET_SUPPORTED_CPUID:
        ((struct kvm_cpuid2 *)argument)->nent = 0;
        return 0;
    case KVM_CREATE_VM:
        return dup(STDERR_FILENO);
    case KVM_CREATE_VCPU:
        return create_vcpu();
    case KVM_SET_GSI_ROUTING:
        host.routes = ((const struct kvm_irq_routing *)argument)->nr;
        return 0;
    case KVM_SET_MSRS:
        return set_msr(argument);
    case KVM_GET_REGS:
        *(struct kvm_regs *)argument = (struct kvm_regs){.rip = GUEST_RIP};
        return 0;
    case KVM_GET_SREGS:
        memset(argument, 0, sizeof(struct kvm_sregs));
        return 0;
    case KVM_RUN:
        return run();
    default:
        return 0;
    }
}

int host_ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    void *argument;

    (void)fd;
    va_start(args, request);
    argument = va_arg(args, void *);
    va_end(args);
    if (request == host.failing_ioctl) {
        errno = host.failing_errno;
        return -1;
    }
    return answer(request, argument);
}

static const struct accel_ops *const kvm = &accel_kvm;

static int healthy_host(void **state)
{
    (void)state;
    host = (struct host){.api_version = KVM_API_VERSION, .missing = {-1, -1}};
    return 0;
}

static void assert_probe_fails(int code, const char *text)
{
    struct error err = ERROR_NONE;

    assert_int_equal(kvm->probe(&err), code);
    assert_string_equal(err.text, text);
}

/* ---- the host refuses -------------------------------------------------------------- */

static void a_healthy_host_works(void **state)
{
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(kvm->probe(&err), 0);
}

static void permission_denied_names_the_group(void **state)
{
    (void)state;
    host.open_errno = EACCES;
    assert_probe_fails(-EACCES,
                       "kvm: cannot open /dev/kvm (join its group: 'sudo usermod "
                       "-aG kvm $USER', then log in again): Permission denied");
}

static void a_missing_device_names_module_or_processor(void **state)
{
    struct error err = ERROR_NONE;

    (void)state;
    host.open_errno = ENOENT;
    assert_int_equal(kvm->probe(&err), -ENOENT);
    if (strstr(err.text, "modprobe") != NULL)
        assert_string_equal(err.text, "kvm: cannot open /dev/kvm (is the module loaded? "
                                      "try 'modprobe kvm_intel' or 'modprobe kvm_amd'): "
                                      "No such file or directory");
    else
        assert_string_equal(err.text,
                            "kvm: cannot open /dev/kvm (this processor offers no "
                            "virtualization: switch it on in the firmware setup or in "
                            "the outer hypervisor): No such file or directory");
}

static void another_api_version_is_refused(void **state)
{
    (void)state;
    host.api_version = 11;
    assert_probe_fails(-ENOTSUP, "kvm: KVM_GET_API_VERSION says 11, husk speaks 12 (the "
                                 "host's kernel is too old)");
}

static void something_else_at_dev_kvm_is_told(void **state)
{
    (void)state;
    host.failing_ioctl = KVM_GET_API_VERSION;
    host.failing_errno = ENOTTY;
    assert_probe_fails(-ENOTTY,
                       "kvm: KVM_GET_API_VERSION failed: Inappropriate ioctl for device");
}

static void missing_capabilities_are_all_named(void **state)
{
    (void)state;
    host.missing[0] = KVM_CAP_IMMEDIATE_EXIT;
    host.missing[1] = KVM_CAP_IRQFD;
    assert_probe_fails(-ENOTSUP,
                       "kvm: this host's KVM lacks KVM_CAP_IMMEDIATE_EXIT "
                       "KVM_CAP_IRQFD (a newer kernel has all that husk needs)");
}

/* ---- a VM on that host ------------------------------------------------------------- */

struct machine {
    struct memory *memory;
    struct accel_vm *vm;
    struct accel_vcpu *vcpu;
    struct error err;
    int result;
};

static struct machine create_machine(void)
{
    const struct memory_span span = {.gpa = 0x100000, .size_bytes = 0x10000};
    const struct memory_options memory_options = {0};
    const struct accel_vm_options options = {.cpu_count = 1};
    struct machine machine = {.err = ERROR_NONE};

    assert_int_equal(
        memory_create(&span, 1, &memory_options, &machine.memory, &machine.err), 0);
    machine.result = kvm->vm_create(&options, machine.memory, &machine.vm, &machine.err);
    if (machine.result == 0)
        machine.result = kvm->vcpu_create(machine.vm, 0, &machine.vcpu, &machine.err);
    return machine;
}

static void destroy_machine(struct machine *machine)
{
    kvm->vcpu_destroy(machine->vcpu);
    kvm->vm_destroy(machine->vm);
    memory_destroy(machine->memory);
    if (host.run_fd > 0)
        assert_int_equal(close(host.run_fd), 0);
}

static void assert_creation_fails(unsigned long ioctl_number, int code, const char *text)
{
    struct machine machine;

    host.failing_ioctl = ioctl_number;
    host.failing_errno = code;
    machine = create_machine();
    assert_int_equal(machine.result, -code);
    assert_string_equal(machine.err.text, text);
    destroy_machine(&machine);
}

static void a_busy_processor_is_told(void **state)
{
    (void)state;
    assert_creation_fails(KVM_CREATE_VM, EBUSY,
                          "kvm: KVM_CREATE_VM failed (does another hypervisor hold the "
                          "processor's virtualization?): Device or resource busy");
}

static void a_refused_slot_names_its_range(void **state)
{
    (void)state;
    assert_creation_fails(KVM_SET_USER_MEMORY_REGION, EINVAL,
                          "kvm: KVM_SET_USER_MEMORY_REGION failed for guest memory "
                          "0x100000 to 0x110000: Invalid argument");
}

static void each_step_names_its_ioctl(void **state)
{
    const struct {
        unsigned long number;
        const char *text;
    } steps[] = {
        {KVM_SET_TSS_ADDR, "kvm: KVM_SET_TSS_ADDR failed: No space left on device"},
        {KVM_CREATE_IRQCHIP, "kvm: KVM_CREATE_IRQCHIP failed: No space left on device"},
        {KVM_SET_GSI_ROUTING, "kvm: KVM_SET_GSI_ROUTING failed: No space left on device"},
        {KVM_CREATE_PIT2, "kvm: KVM_CREATE_PIT2 failed: No space left on device"},
        {KVM_CREATE_VCPU, "vCPU 0: kvm: KVM_CREATE_VCPU failed: No space left on device"},
        {KVM_SET_CPUID2, "vCPU 0: kvm: KVM_SET_CPUID2 failed: No space left on device"},
        {KVM_SET_LAPIC, "vCPU 0: kvm: KVM_SET_LAPIC failed: No space left on device"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        (void)healthy_host(state);
        assert_creation_fails(steps[i].number, ENOSPC, steps[i].text);
    }
}

static void a_refused_optional_msr_does_not_stop_the_others(void **state)
{
    struct machine machine;

    (void)state;
    host.refused_msr = 0x1a0;
    machine = create_machine();
    assert_int_equal(machine.result, 0);
    assert_int_equal(host.msrs_set, 1);
    destroy_machine(&machine);
}

static void a_doorbell_of_any_size_needs_its_capability(void **state)
{
    const struct accel_doorbell bell = {.address = 0xd0000000, .fd = STDERR_FILENO};
    struct error err = ERROR_NONE;
    struct machine machine;

    (void)state;
    host.missing[0] = KVM_CAP_IOEVENTFD_ANY_LENGTH;
    machine = create_machine();
    assert_int_equal(kvm->ioeventfd(machine.vm, &bell, true, &err), -ENOTSUP);
    assert_string_equal(err.text,
                        "kvm: this host's KVM lacks KVM_CAP_IOEVENTFD_ANY_LENGTH:"
                        " a doorbell needs its size");
    destroy_machine(&machine);
}

static void a_route_that_is_refused_leaves_the_table_as_it_was(void **state)
{
    static const unsigned long steps[] = {KVM_SET_GSI_ROUTING, KVM_IRQFD};
    struct machine machine = create_machine();
    uint32_t lines = host.routes;

    (void)state;
    assert_int_equal(lines, 38); /* 23 pins, 15 of them of an 8259, too */
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        struct error err = ERROR_NONE;

        host.failing_ioctl = steps[i];
        host.failing_errno = EINVAL;
        assert_int_equal(
            kvm->route_message(machine.vm, 3, STDERR_FILENO, 0xfee00000, 0x41, &err),
            -EINVAL);
        host.failing_ioctl = 0;
        assert_int_equal(
            kvm->route_message(machine.vm, 4, STDERR_FILENO, 0xfee00000, 0x41, &err), 0);
        assert_int_equal(host.routes, lines + 1);
    }
    destroy_machine(&machine);
}

/* ---- rare exits -------------------------------------------------------------------- */

static struct vcpu_exit run_once(void)
{
    struct machine machine = create_machine();
    struct vcpu_exit exit;

    assert_int_equal(machine.result, 0);
    kvm->vcpu_run(machine.vcpu, &exit);
    destroy_machine(&machine);
    return exit;
}

static void assert_run_fails(int code, const char *text)
{
    struct vcpu_exit exit = run_once();

    assert_int_equal(exit.kind, VCPU_EXIT_FAILED);
    assert_int_equal(exit.failure.code, code);
    assert_string_equal(exit.failure.text, text);
}

static void a_failed_emulation_shows_the_instruction(void **state)
{
    (void)state;
    host.run.exit_reason = KVM_EXIT_INTERNAL_ERROR;
    host.run.emulation_failure.suberror = KVM_INTERNAL_ERROR_EMULATION;
    host.run.emulation_failure.ndata = 3;
    host.run.emulation_failure.flags =
        KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES;
    host.run.emulation_failure.insn_size = 3;
    memcpy(host.run.emulation_failure.insn_bytes, "\xf0\x48\x0f\xc7", 4);
    assert_run_fails(-ENOTSUP,
                     "kvm: KVM_EXIT_INTERNAL_ERROR: KVM cannot emulate the instruction "
                     "with these bytes: f0 48 0f (at 0x1234)");
}

static void a_failed_emulation_without_bytes_says_so(void **state)
{
    (void)state;
    host.run.exit_reason = KVM_EXIT_INTERNAL_ERROR;
    host.run.emulation_failure.suberror = KVM_INTERNAL_ERROR_EMULATION;
    host.run.emulation_failure.insn_size = 3;
    assert_run_fails(-ENOTSUP,
                     "kvm: KVM_EXIT_INTERNAL_ERROR: KVM cannot emulate the instruction "
                     "with these bytes: unknown (at 0x1234)");
}

static void other_internal_errors_are_named(void **state)
{
    (void)state;
    host.run.exit_reason = KVM_EXIT_INTERNAL_ERROR;
    host.run.internal.suberror = KVM_INTERNAL_ERROR_DELIVERY_EV;
    assert_run_fails(-EIO,
                     "kvm: KVM_EXIT_INTERNAL_ERROR: an event could not be delivered "
                     "(suberror 3) (at 0x1234)");
    host.run.internal.suberror = 99;
    assert_run_fails(-EIO,
                     "kvm: KVM_EXIT_INTERNAL_ERROR: unknown reason (suberror 99) (at "
                     "0x1234)");
}

static void a_refused_entry_gives_the_hardware_reason(void **state)
{
    (void)state;
    host.run.exit_reason = KVM_EXIT_FAIL_ENTRY;
    host.run.fail_entry.hardware_entry_failure_reason = 0x80000021;
    assert_run_fails(-EIO, "kvm: KVM_EXIT_FAIL_ENTRY: the processor refuses to enter the "
                           "guest: invalid guest state (hardware reason 0x80000021) (at "
                           "0x1234)");
    host.run.fail_entry.hardware_entry_failure_reason = 7;
    assert_run_fails(-EIO, "kvm: KVM_EXIT_FAIL_ENTRY: the processor refuses to enter the "
                           "guest: unknown reason (hardware reason 0x7) (at 0x1234)");
}

static void an_unknown_exit_gives_its_number(void **state)
{
    (void)state;
    host.run.exit_reason = 200;
    assert_run_fails(-EIO,
                     "kvm: KVM_RUN: exit reason 200 is unknown to husk (at 0x1234)");
}

static void unreachable_memory_is_efault(void **state)
{
    (void)state;
    host.run_errno = EFAULT;
    assert_run_fails(-EFAULT,
                     "kvm: KVM_RUN: the host cannot access guest memory (at 0x1234)");
}

static void mmio_inside_ram_is_efault(void **state)
{
    (void)state;
    host.run.exit_reason = KVM_EXIT_MMIO;
    host.run.mmio.phys_addr = 0x10fff8;
    host.run.mmio.len = 8;
    assert_run_fails(-EFAULT,
                     "kvm: KVM_RUN: the host cannot access guest memory (at 0x1234)");
    host.run.mmio.phys_addr = 0x110000;
    assert_int_equal(run_once().kind, VCPU_EXIT_MMIO);
}

static void other_run_errors_are_told(void **state)
{
    (void)state;
    host.run_errno = ENOMEM;
    assert_run_fails(-ENOMEM, "kvm: KVM_RUN failed: Cannot allocate memory (at 0x1234)");
}

static void interruptions_are_kicks(void **state)
{
    const int codes[] = {EINTR, EAGAIN};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        host.run_errno = codes[i];
        assert_int_equal(run_once().kind, VCPU_EXIT_KICKED);
    }
    host.run_errno = 0;
    host.run.exit_reason = KVM_EXIT_INTR;
    assert_int_equal(run_once().kind, VCPU_EXIT_KICKED);
}

static void shutdown_and_system_events_end_the_guest(void **state)
{
    (void)state;
    host.run.exit_reason = KVM_EXIT_SHUTDOWN;
    assert_int_equal(run_once().kind, VCPU_EXIT_SHUTDOWN);
    host.run.exit_reason = KVM_EXIT_SYSTEM_EVENT;
    assert_int_equal(run_once().kind, VCPU_EXIT_SHUTDOWN);
}

#define TEST(name) cmocka_unit_test_setup(name, healthy_host)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_healthy_host_works),
        TEST(permission_denied_names_the_group),
        TEST(a_missing_device_names_module_or_processor),
        TEST(another_api_version_is_refused),
        TEST(something_else_at_dev_kvm_is_told),
        TEST(missing_capabilities_are_all_named),
        TEST(a_busy_processor_is_told),
        TEST(a_refused_slot_names_its_range),
        TEST(each_step_names_its_ioctl),
        TEST(a_refused_optional_msr_does_not_stop_the_others),
        TEST(a_doorbell_of_any_size_needs_its_capability),
        TEST(a_route_that_is_refused_leaves_the_table_as_it_was),
        TEST(a_failed_emulation_shows_the_instruction),
        TEST(a_failed_emulation_without_bytes_says_so),
        TEST(other_internal_errors_are_named),
        TEST(a_refused_entry_gives_the_hardware_reason),
        TEST(an_unknown_exit_gives_its_number),
        TEST(unreachable_memory_is_efault),
        TEST(mmio_inside_ram_is_efault),
        TEST(other_run_errors_are_told),
        TEST(interruptions_are_kicks),
        TEST(shutdown_and_system_events_end_the_guest),
    };

    return cmocka_run_group_tests_name("accel/kvm_messages", tests, NULL, NULL);
}
