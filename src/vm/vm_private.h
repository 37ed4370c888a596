/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of vm/ share: the machine's parts and the vCPUs' marching orders. */
#ifndef HUSK_VM_VM_PRIVATE_H
#define HUSK_VM_VM_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "accel/accel.h"
#include "base/virtual_clock.h"
#include "device/chipset.h"
#include "device/fw_cfg.h"
#include "device/irqchip.h"
#include "virtio/pci.h"
#include "virtio/rng.h"
#include "vm/vm.h"

struct event;

/* What vCPU threads do next. */
enum vcpu_order {
    ORDER_PARK, /* wait outside the guest */
    ORDER_RUN,
    ORDER_QUIT, /* the thread ends */
};

/* One vCPU. `accel_vcpu` and `thread` belong to the loop's thread while parked, the
 * counters to the vCPU's thread (read by others as approximations). */
struct vcpu {
    struct vm *vm;
    uint32_t index;
    struct accel_vcpu *accel_vcpu;
    pthread_t thread;
    bool has_thread;
    _Atomic uint64_t port_exits;
    _Atomic uint64_t mmio_exits;
    _Atomic uint64_t kicks;
};

/* What vCPU threads and signal handlers ask of the loop's thread. */
enum vm_request {
    VM_REQUEST_RESET = 0x1,
    VM_REQUEST_POWER_OFF = 0x2,
    VM_REQUEST_CRASHED = 0x4,
    VM_REQUEST_DEBUG_EXIT = 0x8,
    VM_REQUEST_FAILED = 0x10,
};

struct vm {
    /* Fixed after vm_create. */
    const struct vm_config *config; /* borrowed */
    struct loop *loop;              /* borrowed */
    struct console *console;        /* borrowed */
    void (*ended)(void *context);
    void *ended_context;
    char *cmdline;
    struct boot_options boot_options;
    struct boot_inputs inputs;
    bool has_inputs;
    struct boot_plan *plan;
    struct memory *memory;
    struct host_clock host_clock;
    struct virtual_clock virtual_clock;
    struct machine_clock *clock; /* one of the two: the devices' time */
    const struct accel_ops *accel;
    struct bus ports;
    struct bus mmio;
    struct chipset *chipset;
    struct fw_cfg *fw_cfg;
    struct virtio_rng *rng; /* NULL: none */
    struct virtio_pci rng_pci;
    struct irqchip *irqchip;      /* NULL: the accelerator has interrupt controllers */
    struct accel_machine machine; /* for an accelerator that has none */
    uint32_t vcpu_count;
    struct vcpu *vcpus;

    /* The loop's thread. */
    enum vm_state state;
    struct vm_outcome outcome;
    struct event *timeout;
    struct event *loss_event;
    int loss_fd; /* eventfd, written in signal context */
    uint64_t resets;
    uint64_t retired_before;   /* instructions of earlier processors */
    struct accel_vm *accel_vm; /* replaced by a reset, while no vCPU runs */

    /* Any thread. */
    struct stages stages;
    struct loop_post post;
    _Atomic unsigned requests;         /* of enum vm_request, taken by the loop */
    _Atomic uint32_t debug_exit_value; /* written before VM_REQUEST_DEBUG_EXIT is set */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* the order, or the number of those inside, has changed */
    enum vcpu_order order;  /* under the lock */
    uint32_t inside;        /* vCPUs that may execute guest code; under the lock */
    struct error failure;   /* of the first vCPU that failed; under the lock */
};

/* assemble.c: the accelerator's side, made anew at each reset. */
int vm_make_processors(struct vm *vm, struct error *err) MUST_CHECK;
void vm_drop_processors(struct vm *vm);

/* firmware_config.c */
int vm_make_fw_cfg(struct vm *vm, struct error *err) MUST_CHECK;

/* pci_devices.c: what sits on the PCI bus besides the chipset. */
int vm_make_pci_devices(struct vm *vm, struct error *err) MUST_CHECK;
void vm_drop_pci_devices(struct vm *vm); /* before the chipset */

/* machine.c: the time, and what the processors find around them. vm_set_irq
 * and vm_send_message on any thread. */
void vm_make_clock(struct vm *vm); /* before all else that runs */
int vm_make_interrupts(struct vm *vm, struct error *err) MUST_CHECK; /* before them */
void vm_connect_interrupts(struct vm *vm);                           /* when they exist */
void vm_disconnect_interrupts(struct vm *vm);
void vm_reset_interrupts(struct vm *vm);
void vm_set_irq(void *vm, uint32_t line, bool level);
void vm_replace_timer(void *vm, bool replaced); /* only with husk's own controllers */
void vm_send_message(void *vm, uint64_t address, uint32_t data);

/* vcpu.c: threads and orders. All on the loop's thread but vm_ask. */
int vm_start_threads(struct vm *vm, struct error *err) MUST_CHECK;
void vm_end_threads(struct vm *vm);
void vm_order_run(struct vm *vm);
void vm_order_park(struct vm *vm); /* returns when nobody is inside */

/* One access of a vCPU to a bus; `data` holds `size` bytes. */
void vm_serve(const struct bus *bus, uint64_t address, unsigned size, bool write,
              void *data);

/* Any thread: has the loop look at `request`, and lets no vCPU enter the guest until it
 * has. */
void vm_ask(struct vm *vm, enum vm_request request);

/* lifecycle.c */
void vm_handle_requests(void *vm); /* the loop's end of vm_ask */
void vm_handle_loss(int fd, short what, void *vm);
void vm_handle_timeout(int fd, short what, void *vm);

#endif
