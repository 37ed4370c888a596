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
#include "virtio/balloon.h"
#include "virtio/blk.h"
#include "virtio/console.h"
#include "virtio/pci.h"
#include "virtio/pmem.h"
#include "virtio/rng.h"
#include "vm/vm.h"

struct event;

/* The way of one sender of messages to the guest: an eventfd that the accelerator waits
 * for. Under the lock of the sender's device. */
struct message_route {
    bool is_open; /* the accelerator knows it, and has this message: */
    uint64_t address;
    uint32_t data;
    int fd; /* 0: none yet */
};

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

/* Where on the PCI bus the disks are: CONFIG_MAX_DISKS places from here. */
#define VM_PLACE_DISKS 3

/* Of the loop's thread. */
struct vm_reclaim {
    struct event *timer; /* NULL: not wanted */
    uint16_t guest;      /* commons_open */
    unsigned interval_seconds;
    uint64_t considered_ns;   /* when it fired last */
    uint64_t used_ns;         /* by the vCPUs, until then */
    uint64_t used_at_look_ns; /* ... and until the last look at memory */
    bool pending;             /* the next look may find more, whatever the guest does */
    bool without_library;     /* there is none, and that has been said */
    uint64_t looks;
    uint64_t zero_bytes; /* given back, in all looks */
    uint64_t common_bytes;
};

struct vm_disk {
    struct virtio_blk *blk;
    struct virtio_pci pci;
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
    struct virtio_balloon *balloon; /* NULL: none */
    struct virtio_pci balloon_pci;
    struct virtio_console *hvc; /* NULL: none */
    struct virtio_pci hvc_pci;
    size_t pmem_count;
    struct virtio_pmem *pmems[BOOT_MAX_PMEMS];
    struct virtio_pci pmem_pcis[BOOT_MAX_PMEMS];
    struct vm_disk *disks;
    size_t disk_count;
    struct irqchip *irqchip;      /* NULL: the accelerator has interrupt controllers */
    struct accel_machine machine; /* for an accelerator that has none */
    uint32_t vcpu_count;
    struct vcpu *vcpus;

    /* The loop's thread. */
    enum vm_state state;
    char
        pause_reason[ERROR_TEXT_BYTES]; /* why the VM has paused itself; "": it has not */
    void (*paused)(void *context, const char *reason);
    void *paused_context;
    bool has_left_disks; /* at the end: disks or pmems still use memory and PCI functions
                          */
    struct vm_outcome outcome;
    struct event *timeout;
    struct event *loss_event;
    int loss_fd; /* eventfd, written in signal context */
    uint64_t resets;
    struct vm_reclaim reclaim;
    uint64_t retired_before;   /* instructions of earlier processors */
    struct accel_vm *accel_vm; /* replaced by a reset, while no vCPU runs */

    /* Any thread. */
    struct message_route routes[ACCEL_MESSAGE_ROUTES]; /* by the sender's number */
    _Atomic uint64_t irqfd_interrupts;
    struct stages stages;
    struct loop_post post;
    struct loop_post disk_post;        /* a disk wants attention */
    _Atomic unsigned requests;         /* of enum vm_request, taken by the loop */
    _Atomic uint32_t debug_exit_value; /* written before VM_REQUEST_DEBUG_EXIT is set */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* the order, or the number of those inside, has changed */
    enum vcpu_order order;  /* under the lock */
    uint32_t inside;        /* vCPUs that may execute guest code; under the lock */
    struct error failure;   /* of the first vCPU that failed; under the lock */
};

/* assemble.c: whether the processors know how many instructions they have retired. */
bool vm_counts_instructions(const struct vm *vm);

/* assemble.c: the accelerator's side, made anew at each reset. */
int vm_make_processors(struct vm *vm, struct error *err) MUST_CHECK;
void vm_drop_processors(struct vm *vm);
uint64_t vm_code_bytes(const struct vm *vm); /* of private memory, for decoded code */

/* firmware_config.c */
int vm_make_fw_cfg(struct vm *vm, struct error *err) MUST_CHECK;

/* pci_devices.c: what sits on the PCI bus besides the chipset. */
int vm_make_pci_devices(struct vm *vm, struct error *err) MUST_CHECK;
void vm_drop_pci_devices(struct vm *vm); /* before the chipset */
uint64_t vm_ioeventfd_notifications(const struct vm *vm);
/* While the vCPUs are parked: none of their threads touches guest memory until the thaw.
 * The devices of the loop's thread do not anyway. False: one has work in flight, and none
 * is frozen. */
bool vm_freeze_pci_devices(struct vm *vm);
void vm_thaw_pci_devices(struct vm *vm);

/* balloon.c */
int vm_make_balloon(struct vm *vm, struct error *err) MUST_CHECK;
void vm_drop_balloon(struct vm *vm);

/* disks.c */
int vm_make_disks(struct vm *vm, struct error *err) MUST_CHECK;
void vm_drop_disks(struct vm *vm);
/* They take nothing more until the guest starts them again. False: requests are in
 * flight; vm_handle_requests is called when they have come back. */
bool vm_stop_disks(struct vm *vm);
void vm_retry_disks(struct vm *vm); /* begins again what is held */
void vm_handle_disks(void *vm);     /* the loop's end of a call for attention */

/* guest_console.c: the guest's end of the console. _make and _drop: with a chipset. */
struct byte_sink vm_console_sink(struct vm *vm);
int vm_make_console(struct vm *vm, struct error *err) MUST_CHECK;
void vm_drop_console(struct vm *vm);
void vm_console_counters(const struct vm *vm, struct vm_counters *counters);

/* pmems.c */
int vm_make_pmems(struct vm *vm, struct error *err) MUST_CHECK;
void vm_drop_pmems(struct vm *vm);

/* machine.c: the time, and what the processors find around them. vm_set_irq
 * and vm_send_message on any thread. */
void vm_make_clock(struct vm *vm); /* before all else that runs */
int vm_make_interrupts(struct vm *vm, struct error *err) MUST_CHECK; /* before them */
void vm_connect_interrupts(struct vm *vm);                           /* when they exist */
void vm_disconnect_interrupts(struct vm *vm);
void vm_reset_interrupts(struct vm *vm);
void vm_set_irq(void *vm, uint32_t line, bool level);
void vm_replace_timer(void *vm, bool replaced); /* only with husk's own controllers */
void vm_send_message(void *vm, unsigned sender, uint64_t address, uint32_t data);

/* short_cuts.c: by eventfds past vCPU exits and the accelerator's calls, where it has
 * such ways. The first two as struct pci_wires says. */
bool vm_attach_doorbell(void *vm, uint64_t address, int fd);
void vm_detach_doorbell(void *vm, uint64_t address, int fd);
/* False: the message has to go another way. */
bool vm_send_by_eventfd(struct vm *vm, unsigned sender, uint64_t address, uint32_t data);
void vm_forget_routes(struct vm *vm); /* the accelerator's VM ends; no vCPU runs */
void vm_close_routes(struct vm *vm);

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

/* reclaim.c: all on the loop's thread */
int vm_make_reclaim(struct vm *vm, struct error *err) MUST_CHECK; /* after memory */
void vm_start_reclaim(struct vm *vm);
void vm_drop_reclaim(struct vm *vm);

/* lifecycle.c */
void vm_handle_requests(void *vm); /* the loop's end of vm_ask */
void vm_handle_loss(int fd, short what, void *vm);
void vm_handle_timeout(int fd, short what, void *vm);

#endif
