/* SPDX-License-Identifier: Apache-2.0 */
/* The KVM accelerator: what the host must offer, and a VM's creation and memory slots. */
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "accel/accels_private.h"
#include "accel/kvm/kvm_private.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/log.h"
#include "x86/layout.h"

#define DEVICE_PATH "/dev/kvm"

static const struct {
    int number;
    const char *name;
} required_capabilities[] = {
    {KVM_CAP_USER_MEMORY, "KVM_CAP_USER_MEMORY"},
    {KVM_CAP_SET_TSS_ADDR, "KVM_CAP_SET_TSS_ADDR"},
    {KVM_CAP_SET_IDENTITY_MAP_ADDR, "KVM_CAP_SET_IDENTITY_MAP_ADDR"},
    {KVM_CAP_EXT_CPUID, "KVM_CAP_EXT_CPUID"},
    {KVM_CAP_MP_STATE, "KVM_CAP_MP_STATE"},
    {KVM_CAP_IMMEDIATE_EXIT, "KVM_CAP_IMMEDIATE_EXIT"},
    {KVM_CAP_IRQCHIP, "KVM_CAP_IRQCHIP"},
    {KVM_CAP_PIT2, "KVM_CAP_PIT2"},
    {KVM_CAP_IRQ_ROUTING, "KVM_CAP_IRQ_ROUTING"},
    {KVM_CAP_SIGNAL_MSI, "KVM_CAP_SIGNAL_MSI"},
    {KVM_CAP_IOEVENTFD, "KVM_CAP_IOEVENTFD"},
    {KVM_CAP_IRQFD, "KVM_CAP_IRQFD"},
};

int kvm_ioctl_error(struct error *err, int code, const char *ioctl_name)
{
    return error_set_errno(err, code, "kvm: %s failed", ioctl_name);
}

/* VMX: CPUID leaf 1, ECX bit 5 (SDM vol. 2). SVM: leaf 0x80000001, ECX bit 2 (APM 3). */
static bool processor_has_virtualization(void)
{
    unsigned eax, ebx, ecx, edx;

    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & 1u << 5) != 0)
        return true;
    return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0 && (ecx & 1u << 2) != 0;
}

static int open_error(struct error *err, int code)
{
    switch (code) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
        if (processor_has_virtualization())
            return error_set_errno(err, code,
                                   "kvm: cannot open " DEVICE_PATH
                                   " (is the module loaded? try 'modprobe kvm_intel' or "
                                   "'modprobe kvm_amd')");
        return error_set_errno(err, code,
                               "kvm: cannot open " DEVICE_PATH
                               " (this processor offers no virtualization: switch it on "
                               "in the firmware setup or in the outer hypervisor)");
    case EACCES:
    case EPERM:
        return error_set_errno(err, code,
                               "kvm: cannot open " DEVICE_PATH
                               " (join its group: 'sudo usermod -aG kvm $USER', then log "
                               "in again)");
    default:
        return error_set_errno(err, code, "kvm: cannot open " DEVICE_PATH);
    }
}

static int check_api_version(int fd, struct error *err)
{
    int version = ioctl(fd, KVM_GET_API_VERSION, 0);

    if (version < 0)
        return kvm_ioctl_error(err, errno, "KVM_GET_API_VERSION");
    if (version != KVM_API_VERSION)
        return error_set(err, ENOTSUP,
                         "kvm: KVM_GET_API_VERSION says %d, husk speaks %d (the host's "
                         "kernel is too old)",
                         version, KVM_API_VERSION);
    return 0;
}

static int check_capabilities(int fd, struct error *err)
{
    char missing[ERROR_TEXT_BYTES / 2] = "";

    for (size_t i = 0; i < ARRAY_SIZE(required_capabilities); i++) {
        size_t used = strlen(missing);

        if (ioctl(fd, KVM_CHECK_EXTENSION, required_capabilities[i].number) <= 0)
            (void)snprintf(missing + used, sizeof(missing) - used, " %s",
                           required_capabilities[i].name);
    }
    if (missing[0] != '\0')
        return error_set(err, ENOTSUP,
                         "kvm: this host's KVM lacks%s (a newer kernel has all that husk "
                         "needs)",
                         missing);
    return 0;
}

/* Opens /dev/kvm and makes sure that it will do. */
static int open_device(int *device_fd, struct error *err)
{
    CLEANUP_FD int fd = open(DEVICE_PATH, O_RDWR | O_CLOEXEC);
    int result;

    if (fd < 0)
        return open_error(err, errno);
    result = check_api_version(fd, err);
    if (result == 0)
        result = check_capabilities(fd, err);
    if (result == 0)
        *device_fd = fd_take(&fd);
    return result;
}

static int kvm_probe(struct error *err)
{
    CLEANUP_FD int device_fd = -1;

    return open_device(&device_fd, err);
}

static int create_vm_fd(struct accel_vm *vm, struct error *err)
{
    do {
        vm->fd = ioctl(vm->device_fd, KVM_CREATE_VM, 0);
    } while (vm->fd < 0 && errno == EINTR);
    if (vm->fd < 0 && errno == EBUSY)
        return error_set_errno(err, EBUSY,
                               "kvm: KVM_CREATE_VM failed (does another hypervisor hold "
                               "the processor's virtualization?)");
    if (vm->fd < 0)
        return kvm_ioctl_error(err, errno, "KVM_CREATE_VM");
    return 0;
}

static int read_host_facts(struct accel_vm *vm, struct error *err)
{
    int run_size_bytes = ioctl(vm->device_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
    int cpu_limit = ioctl(vm->device_fd, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS);

    if (run_size_bytes < 0)
        return kvm_ioctl_error(err, errno, "KVM_GET_VCPU_MMAP_SIZE");
    if (cpu_limit > 0 && vm->cpu_count > (uint32_t)cpu_limit)
        return error_set(err, EINVAL, "kvm: %u vCPUs: this host's KVM has at most %d",
                         vm->cpu_count, cpu_limit);
    vm->run_size_bytes = (size_t)run_size_bytes;
    vm->any_length_doorbell =
        ioctl(vm->device_fd, KVM_CHECK_EXTENSION, KVM_CAP_IOEVENTFD_ANY_LENGTH) > 0;
    vm->tsc_deadline =
        ioctl(vm->device_fd, KVM_CHECK_EXTENSION, KVM_CAP_TSC_DEADLINE_TIMER) > 0;
    vm->emulates = !processor_has_virtualization();
    if (vm->emulates)
        log_info("kvm: this host's processor offers no virtualization, so its KVM "
                 "emulates each instruction: slowly, and without cmpxchg16b");
    return kvm_read_supported_cpuid(vm, err);
}

/* Pages that KVM needs for real mode on Intel's first processors, before any vCPU. */
static int place_private_pages(struct accel_vm *vm, struct error *err)
{
    uint64_t identity_map = LAYOUT_KVM_IDENTITY_MAP;

    if (ioctl(vm->fd, KVM_SET_IDENTITY_MAP_ADDR, &identity_map) < 0)
        return kvm_ioctl_error(err, errno, "KVM_SET_IDENTITY_MAP_ADDR");
    if (ioctl(vm->fd, KVM_SET_TSS_ADDR, LAYOUT_KVM_TSS) < 0)
        return kvm_ioctl_error(err, errno, "KVM_SET_TSS_ADDR");
    return 0;
}

/* One slot a region; what lies between them exits as MMIO. */
static int add_memory_slots(struct accel_vm *vm, struct error *err)
{
    const struct memory_region *regions = memory_regions(vm->memory);

    for (size_t i = 0; i < memory_region_count(vm->memory); i++) {
        struct kvm_userspace_memory_region slot = {
            .slot = (uint32_t)i,
            .guest_phys_addr = regions[i].gpa,
            .memory_size = regions[i].size_bytes,
            .userspace_addr = (uintptr_t)regions[i].hva,
        };

        if (ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &slot) < 0)
            return error_set_errno(err, errno,
                                   "kvm: KVM_SET_USER_MEMORY_REGION failed for guest "
                                   "memory 0x%" PRIx64 " to 0x%" PRIx64,
                                   regions[i].gpa,
                                   regions[i].gpa + regions[i].size_bytes);
    }
    return 0;
}

static void kvm_vm_destroy(struct accel_vm *vm)
{
    if (vm == NULL)
        return;
    fd_close(&vm->fd);
    fd_close(&vm->device_fd);
    kvm_finish_routes(vm);
    free(vm);
}

static int kvm_vm_create(const struct accel_vm_options *options, struct memory *memory,
                         struct accel_vm **created, struct error *err)
{
    struct accel_vm *vm = calloc(1, sizeof(*vm));
    int result;

    if (vm == NULL)
        return error_set_errno(err, ENOMEM, "kvm: cannot create a VM");
    vm->device_fd = vm->fd = -1;
    vm->memory = memory;
    vm->cpu_count = options->cpu_count;
    result = kvm_init_routes(vm, err);
    if (result == 0)
        result = open_device(&vm->device_fd, err);
    if (result == 0)
        result = read_host_facts(vm, err);
    if (result == 0)
        result = create_vm_fd(vm, err);
    if (result == 0)
        result = place_private_pages(vm, err);
    /* Memory first: each of these steps waits for KVM's readers, and behind the
     * controllers the slots would wait another time (milliseconds; measured on
     * Linux 6.18). */
    if (result == 0)
        result = add_memory_slots(vm, err);
    if (result == 0)
        result = kvm_create_interrupt_controllers(vm, err);
    if (result != 0) {
        kvm_vm_destroy(vm);
        return result;
    }
    *created = vm;
    return 0;
}

const struct accel_ops accel_kvm = {
    .name = "kvm",
    .probe = kvm_probe,
    .vm_create = kvm_vm_create,
    .vm_destroy = kvm_vm_destroy,
    .vcpu_create = kvm_vcpu_create,
    .vcpu_destroy = kvm_vcpu_destroy,
    .get_state = kvm_get_state,
    .set_state = kvm_set_state,
    .vcpu_run = kvm_vcpu_run,
    .vcpu_kick = kvm_vcpu_kick,
    .set_line = kvm_set_line,
    .signal_msi = kvm_signal_msi,
    .ioeventfd = kvm_ioeventfd,
    .route_message = kvm_route_message,
};
