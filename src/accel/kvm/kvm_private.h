/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The KVM accelerator's own structures. Source for everything here:
 * linux Documentation/virt/kvm/api.rst.
 *
 *   kvm.c    /dev/kvm and the VM: what the host must offer, memory slots
 *   vcpu.c   a vCPU's life, run loop and kick
 *   state.c  registers, CPUID, MSRs, local APIC
 *   irq.c    interrupt controllers, lines, messages, eventfds
 */
#ifndef HUSK_ACCEL_KVM_PRIVATE_H
#define HUSK_ACCEL_KVM_PRIVATE_H

#include <linux/kvm.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "accel/accel.h"
#include "x86/cpuid.h"

/* More than any host has: KVM itself takes at most 256. */
#define KVM_CPUID_CAPACITY 256

struct accel_vm {
    int device_fd; /* /dev/kvm */
    int fd;
    struct memory *memory; /* borrowed */
    uint32_t cpu_count;
    size_t run_size_bytes; /* of the page shared with KVM, one a vCPU */
    bool emulates;         /* the host has no hardware virtualization */
    bool any_length_doorbell;
    bool tsc_deadline;
    pthread_mutex_t routes_lock;
    struct kvm_irq_routing *routes; /* KVM's whole table: lines first, then messages */
    size_t leaf_count;              /* what the host's KVM supports, not yet filtered */
    struct cpuid_leaf leaves[KVM_CPUID_CAPACITY];
};

struct accel_vcpu {
    struct accel_vm *vm; /* borrowed */
    uint32_t index;
    int fd;
    struct kvm_run *run; /* mapped; shared with KVM */
    /* The thread inside vcpu_run, or 0. Pairs with run->immediate_exit: the runner stores
     * the thread, then KVM reads the flag; the kicker stores the flag, then reads the
     * thread. Both in sequential order, so at least one sees the other. */
    _Atomic pid_t thread_id;
};

/* kvm.c: "kvm: KVM_X failed: <errno>", where the failure has no likely cause. */
int kvm_ioctl_error(struct error *err, int code, const char *ioctl_name);

/* vcpu.c */
int kvm_vcpu_create(struct accel_vm *vm, uint32_t index, struct accel_vcpu **vcpu,
                    struct error *err) MUST_CHECK;
void kvm_vcpu_destroy(struct accel_vcpu *vcpu);
void kvm_vcpu_run(struct accel_vcpu *vcpu, struct vcpu_exit *exit);
void kvm_vcpu_kick(struct accel_vcpu *vcpu);

/* state.c */
int kvm_read_supported_cpuid(struct accel_vm *vm, struct error *err) MUST_CHECK;
/* What firmware would have set up before it starts a kernel. */
int kvm_vcpu_init_state(struct accel_vcpu *vcpu, struct error *err) MUST_CHECK;
int kvm_get_state(struct accel_vcpu *vcpu, struct cpu_state *state,
                  struct error *err) MUST_CHECK;
int kvm_set_state(struct accel_vcpu *vcpu, const struct cpu_state *state,
                  struct error *err) MUST_CHECK;

/* irq.c */
int kvm_init_routes(struct accel_vm *vm, struct error *err) MUST_CHECK;
void kvm_finish_routes(struct accel_vm *vm);
int kvm_create_interrupt_controllers(struct accel_vm *vm, struct error *err) MUST_CHECK;
int kvm_set_line(struct accel_vm *vm, uint32_t gsi, bool level,
                 struct error *err) MUST_CHECK;
int kvm_signal_msi(struct accel_vm *vm, uint64_t address, uint32_t data,
                   struct error *err) MUST_CHECK;
int kvm_ioeventfd(struct accel_vm *vm, const struct accel_doorbell *doorbell, bool attach,
                  struct error *err) MUST_CHECK;
int kvm_route_message(struct accel_vm *vm, uint32_t route, int fd, uint64_t address,
                      uint32_t data, struct error *err) MUST_CHECK;

#endif
