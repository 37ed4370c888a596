/* SPDX-License-Identifier: Apache-2.0 */
/* A vCPU under KVM: its life, its run loop, and the kick that ends a run. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "accel/kvm/kvm_private.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/fd.h"

/*
 * The kick. Its signal has a handler that does nothing: what counts is that KVM_RUN
 * returns EINTR. A signal that comes just before KVM_RUN would be lost, so the kicker
 * first sets run->immediate_exit, which KVM looks at on entry.
 */
static int kick_signal(void)
{
    return SIGRTMIN;
}

static void ignore_kick(int number)
{
    (void)number;
}

static void install_kick_handler(void)
{
    struct sigaction action = {.sa_handler = ignore_kick};

    CHECK(sigaction(kick_signal(), &action, NULL) == 0);
}

/* The calling thread's id, ready to be kicked. */
static pid_t prepare_this_thread(void)
{
    static pthread_once_t handler_installed = PTHREAD_ONCE_INIT;
    static _Thread_local pid_t thread_id;
    sigset_t kick;

    if (thread_id == 0) {
        CHECK(pthread_once(&handler_installed, install_kick_handler) == 0);
        (void)sigemptyset(&kick);
        (void)sigaddset(&kick, kick_signal());
        CHECK(pthread_sigmask(SIG_UNBLOCK, &kick, NULL) == 0);
        thread_id = gettid();
    }
    return thread_id;
}

void kvm_vcpu_kick(struct accel_vcpu *vcpu)
{
    pid_t thread_id;

    __atomic_store_n(&vcpu->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
    thread_id = atomic_load(&vcpu->thread_id);
    /* The thread may have left KVM_RUN meanwhile, or ended: then this is a stray EINTR,
     * or ESRCH. */
    if (thread_id != 0)
        (void)tgkill(getpid(), thread_id, kick_signal());
}

int kvm_vcpu_create(struct accel_vm *vm, uint32_t index, struct accel_vcpu **created,
                    struct error *err)
{
    struct accel_vcpu *vcpu = calloc(1, sizeof(*vcpu));
    void *run;

    if (vcpu == NULL)
        return error_set_errno(err, ENOMEM, "kvm: cannot create vCPU %u", index);
    vcpu->vm = vm;
    vcpu->index = index;
    vcpu->fd = ioctl(vm->fd, KVM_CREATE_VCPU, index);
    if (vcpu->fd < 0) {
        (void)kvm_ioctl_error(err, errno, "KVM_CREATE_VCPU");
        goto fail;
    }
    run = mmap(NULL, vm->run_size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu->fd, 0);
    if (run == MAP_FAILED) {
        (void)error_set_errno(err, errno, "kvm: cannot map the vCPU's run page");
        goto fail;
    }
    vcpu->run = run;
    if (kvm_vcpu_init_state(vcpu, err) != 0)
        goto fail;
    *created = vcpu;
    return 0;
fail:
    kvm_vcpu_destroy(vcpu);
    return error_prefix(err, "vCPU %u", index);
}

void kvm_vcpu_destroy(struct accel_vcpu *vcpu)
{
    if (vcpu == NULL)
        return;
    if (vcpu->run != NULL)
        (void)munmap(vcpu->run, vcpu->vm->run_size_bytes);
    fd_close(&vcpu->fd);
    free(vcpu);
}

/* ---- exits as data ----------------------------------------------------------------- */

/* Linear address of the current instruction, for messages; 0 if KVM does not say. */
static uint64_t instruction_address(const struct accel_vcpu *vcpu)
{
    struct kvm_regs registers;
    struct kvm_sregs system;

    if (ioctl(vcpu->fd, KVM_GET_REGS, &registers) < 0 ||
        ioctl(vcpu->fd, KVM_GET_SREGS, &system) < 0)
        return 0;
    return system.cs.base + registers.rip;
}

static void PRINTF_LIKE(4, 5)
    exit_failed(const struct accel_vcpu *vcpu, struct vcpu_exit *exit, int code,
                const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    exit->kind = VCPU_EXIT_FAILED;
    (void)error_set(&exit->failure, code, "kvm: %s (at 0x%" PRIx64 ")", text,
                    instruction_address(vcpu));
}

static void exit_unreachable(const struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    exit_failed(vcpu, exit, EFAULT, "KVM_RUN: the host cannot access guest memory");
}

static void exit_port(const struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    struct kvm_run *run = vcpu->run;

    exit->kind = VCPU_EXIT_PORT;
    exit->port.port = run->io.port;
    exit->port.size = run->io.size;
    exit->port.count = run->io.count;
    exit->port.write = run->io.direction == KVM_EXIT_IO_OUT;
    exit->port.data = (uint8_t *)run + run->io.data_offset;
}

static void exit_mmio(const struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    struct kvm_run *run = vcpu->run;

    /* A page of RAM that its file no longer backs is EFAULT on processors, but KVM's
     * instruction emulator takes it for a device. */
    if (memory_slice(vcpu->vm->memory, run->mmio.phys_addr, 1) != NULL) {
        exit_unreachable(vcpu, exit);
        return;
    }
    exit->kind = VCPU_EXIT_MMIO;
    exit->mmio.gpa = run->mmio.phys_addr;
    exit->mmio.size = (uint8_t)run->mmio.len;
    exit->mmio.write = run->mmio.is_write != 0;
    exit->mmio.data = run->mmio.data;
}

static void exit_kicked(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    /* Whoever kicks from here on said why before the caller looks for reasons. */
    __atomic_store_n(&vcpu->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
    exit->kind = VCPU_EXIT_KICKED;
}

static void exit_entry_failed(const struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    /* Intel: exit reasons with the entry-failure bit 31 (SDM vol. 3, appendix C). AMD:
     * VMEXIT_INVALID (APM vol. 2, appendix C), which KVM gives in 32 or 64 bits. */
    static const struct {
        uint64_t reason;
        const char *meaning;
    } meanings[] = {
        {0x80000021, "invalid guest state"}, {0x80000022, "model-specific registers"},
        {0x80000029, "machine check"},       {UINT32_MAX, "invalid guest state"},
        {UINT64_MAX, "invalid guest state"},
    };
    uint64_t reason = vcpu->run->fail_entry.hardware_entry_failure_reason;
    const char *meaning = "unknown reason";

    for (size_t i = 0; i < ARRAY_SIZE(meanings); i++) {
        if (meanings[i].reason == reason)
            meaning = meanings[i].meaning;
    }
    exit_failed(vcpu, exit, EIO,
                "KVM_EXIT_FAIL_ENTRY: the processor refuses to enter the guest: %s "
                "(hardware reason 0x%" PRIx64 ")",
                meaning, reason);
}

static void exit_not_emulated(const struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    const struct kvm_run *run = vcpu->run;
    char bytes[3 * sizeof(run->emulation_failure.insn_bytes) + 1] = " unknown";
    size_t count = 0;

    /* `flags` exists from 2 data words on, the instruction's bytes are 2 more. */
    if (run->emulation_failure.ndata >= 3 &&
        (run->emulation_failure.flags &
         KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES) != 0)
        count = min_u64(run->emulation_failure.insn_size,
                        sizeof(run->emulation_failure.insn_bytes));
    for (size_t i = 0; i < count; i++)
        (void)snprintf(bytes + 3 * i, 4, " %02x", run->emulation_failure.insn_bytes[i]);
    exit_failed(vcpu, exit, ENOTSUP,
                "KVM_EXIT_INTERNAL_ERROR: KVM cannot emulate the instruction with these "
                "bytes:%s",
                bytes);
}

static void exit_internal_error(const struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    static const char *const meanings[] = {
        [KVM_INTERNAL_ERROR_SIMUL_EX] = "exceptions at the same time",
        [KVM_INTERNAL_ERROR_DELIVERY_EV] = "an event could not be delivered",
        [KVM_INTERNAL_ERROR_UNEXPECTED_EXIT_REASON] = "unexpected exit reason",
    };
    uint32_t suberror = vcpu->run->internal.suberror;
    const char *meaning = suberror < ARRAY_SIZE(meanings) ? meanings[suberror] : NULL;

    if (suberror == KVM_INTERNAL_ERROR_EMULATION) {
        exit_not_emulated(vcpu, exit);
        return;
    }
    exit_failed(vcpu, exit, EIO, "KVM_EXIT_INTERNAL_ERROR: %s (suberror %u)",
                meaning != NULL ? meaning : "unknown reason", suberror);
}

static void exit_by_reason(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    switch (vcpu->run->exit_reason) {
    case KVM_EXIT_IO:
        exit_port(vcpu, exit);
        break;
    case KVM_EXIT_MMIO:
        exit_mmio(vcpu, exit);
        break;
    case KVM_EXIT_INTR:
        exit_kicked(vcpu, exit);
        break;
    case KVM_EXIT_SHUTDOWN:
    case KVM_EXIT_SYSTEM_EVENT:
        exit->kind = VCPU_EXIT_SHUTDOWN;
        break;
    case KVM_EXIT_FAIL_ENTRY:
        exit_entry_failed(vcpu, exit);
        break;
    case KVM_EXIT_INTERNAL_ERROR:
        exit_internal_error(vcpu, exit);
        break;
    default:
        exit_failed(vcpu, exit, EIO, "KVM_RUN: exit reason %u is unknown to husk",
                    vcpu->run->exit_reason);
        break;
    }
}

static void exit_by_errno(struct accel_vcpu *vcpu, struct vcpu_exit *exit, int code)
{
    switch (code) {
    case EINTR:
    case EAGAIN: /* a vCPU that waited for SIPI has got it */
        exit_kicked(vcpu, exit);
        break;
    case EFAULT:
        exit_unreachable(vcpu, exit);
        break;
    default:
        exit_failed(vcpu, exit, code, "KVM_RUN failed: %s", strerror(code));
        break;
    }
}

void kvm_vcpu_run(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    int result;
    int code;

    exit->failure.code = 0;
    atomic_store(&vcpu->thread_id, prepare_this_thread());
    result = ioctl(vcpu->fd, KVM_RUN, 0);
    code = errno;
    atomic_store(&vcpu->thread_id, 0);
    if (result < 0)
        exit_by_errno(vcpu, exit, code);
    else
        exit_by_reason(vcpu, exit);
}
