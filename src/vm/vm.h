/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual machine: assembled from a configuration, run by one thread a vCPU, controlled
 * from the main loop.
 *
 * Threads: everything here is called on the loop's thread unless it says otherwise, and
 * the callbacks come there.
 */
#ifndef HUSK_VM_VM_H
#define HUSK_VM_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "accel/accel.h"
#include "base/error.h"
#include "base/loop.h"
#include "boot/boot.h"
#include "config/config.h"
#include "disk/disk.h"
#include "virtio/balloon.h"
#include "vm/console.h"
#include "vm/stages.h"

struct vm;

enum vm_state {
    VM_CREATED,
    VM_RUNNING,
    VM_PAUSED,
    VM_ENDED,
};
const char *vm_state_name(enum vm_state state); /* "running", ... */

enum vm_end {
    VM_END_NONE,       /* still alive */
    VM_END_POWER_OFF,  /* the guest switched itself off */
    VM_END_REBOOT,     /* the guest asked for a reset under --no-reboot */
    VM_END_CRASHED,    /* triple fault */
    VM_END_DEBUG_EXIT, /* a write to the debug-exit port; `value` */
    VM_END_STOPPED,    /* vm_stop */
    VM_END_TIMEOUT,    /* --timeout */
    VM_END_FAILED,     /* the host side cannot go on; `failure` */
};

struct vm_outcome {
    enum vm_end end;
    uint32_t debug_exit_value;
    struct error failure;
};

/* Translates the configuration's words for boot/. Strings are borrowed from `config` and
 * `cmdline`. Pure; `husk plan` uses it too. */
int vm_boot_options(const struct vm_config *config, const char *cmdline,
                    struct boot_options *options, struct error *err) MUST_CHECK;

/* Opens the files, plans, makes memory, loads, creates accelerator, devices and vCPUs.
 * Nothing runs yet. `config` is borrowed for the VM's life. `ended` is called once.
 * -EADDRNOTAVAIL: a setting wants a port that a device has. */
int vm_create(const struct vm_config *config, struct loop *loop, struct console *console,
              void (*ended)(void *context), void *context, struct vm **vm,
              struct error *err) MUST_CHECK;

/* Stops what runs, then frees. Accepts NULL. */
void vm_destroy(struct vm *vm);

int vm_start(struct vm *vm, struct error *err) MUST_CHECK;

/* Returns when no vCPU executes guest code any more. No effect unless running. */
void vm_pause(struct vm *vm);
void vm_resume(struct vm *vm); /* no effect unless paused */

/* The VM pauses itself when a disk's policy says so. `paused` is called then, with the
 * reason: "disk a.img: write of 512 bytes at byte 0 failed: No space left on device". A
 * resume tries again. */
void vm_on_pause(struct vm *vm, void (*paused)(void *context, const char *reason),
                 void *context);
const char *vm_pause_reason(const struct vm *vm); /* "": it has not paused itself */

/* Presses the power button. False if the guest does not listen to it. */
bool vm_power_button(struct vm *vm);

/* Ends the VM at once as VM_END_STOPPED (or `end`). No effect when it has ended. */
void vm_stop(struct vm *vm, enum vm_end end);

/* Writes the registers of all vCPUs to the log. */
void vm_dump(struct vm *vm);

enum vm_state vm_state(const struct vm *vm);
const struct vm_outcome *vm_outcome(const struct vm *vm);
const struct boot_plan *vm_plan(const struct vm *vm);
struct stages *vm_stages(struct vm *vm);

/* A serial break condition on the console. */
void vm_console_break(struct vm *vm);
/* The terminal that shows the console is so large; for guests that can be told. */
void vm_console_resize(struct vm *vm, uint16_t columns, uint16_t rows);

struct vm_counters {
    const char *accel;
    bool counts_instructions; /* the accelerator does */
    uint64_t retired_instructions;
    uint64_t port_exits;
    uint64_t mmio_exits;
    uint64_t kicks;
    uint64_t ioeventfd_notifications; /* of devices, by guests that did not exit for it */
    uint64_t irqfd_interrupts;        /* messages that went to the guest by an eventfd */
    uint64_t resets;
    uint64_t idle_looks; /* at the memory of the idle guest */
    uint64_t idle_zero_bytes;
    uint64_t idle_common_bytes; /* given back in all of them */
    uint64_t console_bytes_out;
    uint64_t console_bytes_in;
    uint64_t fw_cfg_port_bytes; /* read through the data port */
    uint64_t fw_cfg_dma_bytes;  /* read by DMA */
    uint64_t fw_cfg_dma_operations;
    bool translates; /* the accelerator does; since the start, or the last reset: */
    struct accel_translations translations;
};
void vm_counters(const struct vm *vm, struct vm_counters *counters);

size_t vm_disk_count(const struct vm *vm);
struct vm_disk_status {
    const char *path;
    uint64_t size_bytes;
    bool read_only;
    const char *engine;
    const char *engine_reason;
    unsigned queues;
    unsigned in_flight; /* requests, those held included */
    unsigned held;      /* failed by the host, to be tried again at the resume */
    struct disk_counters counters;
};
void vm_disk_status(const struct vm *vm, size_t index, struct vm_disk_status *status);

/* Looks at the files' sizes again, and tells the guest what has changed. */
void vm_update_disks(struct vm *vm);

/* How much memory the guest shall do without, in whole pages. -ENODEV: it has no balloon,
 * and the error says why. -ERANGE: it has not more than that. */
int vm_set_balloon(struct vm *vm, uint64_t target_bytes, struct error *err) MUST_CHECK;
/* False: it has none. */
bool vm_balloon_status(struct vm *vm, struct virtio_balloon_status *status);

/* What the process takes of the host's memory, by what it is for. */
enum vm_usage_kind {
    VM_USAGE_RAM,     /* what the guest has written */
    VM_USAGE_KERNEL,  /* pages of the kernel's file, or of its unpacked copy; of firmware
                       */
    VM_USAGE_INITRD,  /* of initrds and modules */
    VM_USAGE_COMMON,  /* of the library of common pages */
    VM_USAGE_PMEM,    /* of persistent memory */
    VM_USAGE_CODE,    /* decoded and translated instructions */
    VM_USAGE_PROGRAM, /* husk and its libraries */
    VM_USAGE_MONITOR, /* all that husk has allocated */
};
#define VM_USAGE_KINDS 8

struct vm_usage {
    uint64_t rss_bytes;
    uint64_t pss_bytes;
    uint64_t private_bytes; /* USS: what the host would get back */
};
int vm_memory_usage(const struct vm *vm, struct vm_usage usage[VM_USAGE_KINDS],
                    struct error *err) MUST_CHECK;
const char *vm_usage_kind_name(enum vm_usage_kind kind); /* "guest_ram", ... */

/* True if the guest has written nothing to its console, but to where the text screen of a
 * VGA would be. Nobody sees that: the machine has no display. */
bool vm_only_drew(const struct vm *vm);

#endif
