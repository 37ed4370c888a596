/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who executes guest instructions.
 *
 * An accelerator is one const table of functions. It gets guest memory, a processor model
 * and entry states, runs vCPUs until something concerns the rest of the machine, and says
 * what in a struct vcpu_exit. The interrupt controllers (local APICs, IOAPIC, 8259) and
 * the 8254 are either its own, as the host's kernel has them, and the rest raises lines
 * through `set_line` and `signal_msi`; or they are devices that speak to it through
 * `vcpu_event` and struct irq_source, and it accesses the machine by calls.
 *
 * Threads: vm_create, vm_destroy, vcpu_create, vcpu_destroy, get/set_state on the
 * VM's owner while no vCPU runs; vcpu_run on the vCPU's own thread; vcpu_kick, set_line,
 * signal_msi on any thread.
 */
#ifndef HUSK_ACCEL_ACCEL_H
#define HUSK_ACCEL_ACCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/virtual_clock.h"
#include "memory/memory.h"
#include "x86/irq_source.h"
#include "x86/x86.h"

struct accel_vm;
struct accel_vcpu;

enum vcpu_exit_kind {
    VCPU_EXIT_PORT,     /* port access: serve it, then run again */
    VCPU_EXIT_MMIO,     /* access outside RAM: serve it, then run again */
    VCPU_EXIT_KICKED,   /* vcpu_kick, or a signal */
    VCPU_EXIT_SHUTDOWN, /* triple fault */
    VCPU_EXIT_FAILED,   /* the accelerator cannot go on; see `failure` */
};

struct vcpu_exit {
    enum vcpu_exit_kind kind;
    union {
        struct {
            uint16_t port;
            uint8_t size;   /* of one access: 1, 2, 4 */
            uint32_t count; /* accesses in a row (string instructions) */
            bool write;
            void *data; /* size * count bytes, to read or to fill before the next run */
        } port;
        struct {
            uint64_t gpa;
            uint8_t size; /* 1 to 8 */
            bool write;
            void *data;
        } mmio;
    };
    struct error failure; /* VCPU_EXIT_FAILED */
};

/* The machine around the processors, for accelerators that access it themselves rather
 * than by exits. Called on vCPU threads. `data` holds `size` bytes. */
struct accel_machine {
    void *context;
    void (*port)(void *context, uint32_t cpu_index, uint16_t port, unsigned size,
                 bool write, void *data);
    void (*mmio)(void *context, uint32_t cpu_index, uint64_t gpa, unsigned size,
                 bool write, void *data);
    /* `count` reads of one port in a row, as string instructions do them. NULL: `port` is
     * called for each. */
    void (*port_read_string)(void *context, uint32_t cpu_index, uint16_t port,
                             unsigned size, uint32_t count, void *data);
    const struct irq_source *(*irq_source)(void *context, uint32_t cpu_index);
    /* The time of a deterministic VM, which has one vCPU: its retired instructions let it
     * pass, a nanosecond each, and it calls the timers. NULL: time is the host's. */
    struct virtual_clock *clock;
    /* A vCPU enters user mode (CPL 3) for the first time. NULL: nobody wants to know. */
    void (*user_mode)(void *context);
};

/* How the software CPU runs code; others have one way. */
enum accel_tier {
    ACCEL_TIER_AUTO, /* the translator where the host allows it */
    ACCEL_TIER_INTERPRETER,
    ACCEL_TIER_TRANSLATOR,
};

struct accel_vm_options {
    uint32_t cpu_count;
    enum accel_tier tier;
    uint32_t check_every; /* translated blocks: compared with the interpreter; 0: none */
    const struct accel_machine
        *machine; /* borrowed; needed where vcpu_event is not NULL */
};

/* A guest address whose writes ring an eventfd. */
struct accel_doorbell {
    uint64_t address; /* guest-physical, or a port */
    bool is_port;
    uint32_t size_bytes; /* 1, 2, 4, 8; 0: any (faster where the host has it) */
    bool has_match;      /* only writes of `match` */
    uint64_t match;
    int fd; /* borrowed */
};

/* Ways for messages that one VM can have: more than a PCI bus has vectors. */
#define ACCEL_MESSAGE_ROUTES 1024

#define ACCEL_NOT_COUNTED UINT64_MAX

/* What became of guest code that is translated into code of the host's. */
struct accel_translations {
    uint64_t blocks; /* translated, since the start */
    uint64_t instructions;
    uint64_t code_bytes;  /* that they have become, with what is seldom run */
    uint64_t nanoseconds; /* of processor time that this has taken; about */
    uint64_t evictions;   /* of all that a vCPU had */
    uint64_t tlb_fills;   /* addresses looked up in page tables */
    uint64_t interpreted; /* single instructions, from translated code */
    uint64_t lookups;     /* branches whose target C looked for */
};

struct accel_ops {
    const char *name; /* also the start of each error's text: "kvm: ..." */

    /* 0 if this host can run it; else why not and what would help. */
    int (*probe)(struct error *err);

    int (*vm_create)(const struct accel_vm_options *options, struct memory *memory,
                     struct accel_vm **vm, struct error *err);
    void (*vm_destroy)(struct accel_vm *vm); /* after its vCPUs */

    /* vCPU 0 runs at once, the others wait for INIT and SIPI. */
    int (*vcpu_create)(struct accel_vm *vm, uint32_t index, struct accel_vcpu **vcpu,
                       struct error *err);
    void (*vcpu_destroy)(struct accel_vcpu *vcpu);
    int (*get_state)(struct accel_vcpu *vcpu, struct cpu_state *state, struct error *err);
    int (*set_state)(struct accel_vcpu *vcpu, const struct cpu_state *state,
                     struct error *err);

    /* Runs guest code until *exit has something for the rest of the machine. */
    void (*vcpu_run)(struct accel_vcpu *vcpu, struct vcpu_exit *exit);
    /* Makes vcpu_run, now or at its next call, return VCPU_EXIT_KICKED soon. Waits for
     * nothing. */
    void (*vcpu_kick)(struct accel_vcpu *vcpu);

    /* NULL: the accelerator has the interrupt controllers and the 8254, and set_line and
     * signal_msi reach them. Otherwise they are devices of the machine (set_line and
     * signal_msi are NULL), and this is how the local APIC of a vCPU speaks to it. Any
     * thread. */
    void (*vcpu_event)(struct accel_vcpu *vcpu, enum irq_event event, uint8_t vector);
    /* With vcpu_event: the time until the guest reads at least `tsc` as its time-stamp
     * counter; 0 if it does now. Any thread. */
    uint64_t (*vcpu_ns_until_tsc)(const struct accel_vcpu *vcpu, uint64_t tsc);

    /* Instructions that the vCPU has retired since it was made, as of lately; exact while
     * it does not run. NULL, or ACCEL_NOT_COUNTED: nobody counts them. Any thread. */
    uint64_t (*vcpu_instructions)(const struct accel_vcpu *vcpu);
    /* Optional. Bytes of private memory that hold what vcpu_run has made of guest code,
     * for all vCPUs together. Any thread. */
    uint64_t (*code_bytes)(const struct accel_vm *vm);
    /* Optional. Of all vCPUs that there are; false: their code is not translated. Not
     * while vCPUs are made or destroyed. */
    bool (*translations)(const struct accel_vm *vm,
                         struct accel_translations *translations);
    /* Optional. Gives back what vcpu_run keeps to be faster and can make again. While no
     * vCPU runs; any thread. */
    void (*forget_code)(struct accel_vm *vm);

    /* Interrupt line `gsi` (0 to 23) to `level`. */
    int (*set_line)(struct accel_vm *vm, uint32_t gsi, bool level, struct error *err);
    /* One message-signalled interrupt (PCI address and data). */
    int (*signal_msi)(struct accel_vm *vm, uint64_t address, uint32_t data,
                      struct error *err);

    /* Optional short cuts of the host kernel; NULL: the caller takes the way through
     * vcpu_exit and signal_msi. */

    /* Guest writes to the doorbell signal its eventfd and do not exit. Those that are
     * attached at the VM's end go with it. Any thread. */
    int (*ioeventfd)(struct accel_vm *vm, const struct accel_doorbell *doorbell,
                     bool attach, struct error *err);
    /* From now on each write to eventfd `fd` sends this message, and no earlier one.
     * `route` is below ACCEL_MESSAGE_ROUTES; it keeps its eventfd, which is borrowed,
     * until the VM's end. Any thread. */
    int (*route_message)(struct accel_vm *vm, uint32_t route, int fd, uint64_t address,
                         uint32_t data, struct error *err);
};

/* All that are built in, best first; NULL-terminated (accels.c). */
extern const struct accel_ops *const accels[];

/* How fast it runs a simple loop on this host, in million instructions a second: measured
 * (some ms), and remembered in the runtime directory until the host boots anew. */
int accel_speed(const struct accel_ops *accel, uint32_t *mips,
                struct error *err) MUST_CHECK;

/* The one named `name`, or for "auto" the fastest that works here. `reason` (at least 256
 * bytes) says why auto took it. Unknown name, or none works: error with each one's
 * reason. */
int accel_choose(const char *name, const struct accel_ops **accel, char *reason,
                 size_t reason_size, struct error *err) MUST_CHECK;

#endif
