/* SPDX-License-Identifier: Apache-2.0 */
/* A VM and a console that only remember what was asked of them, instead of vm/. */
#ifndef HUSK_TESTS_FAKE_VM_H
#define HUSK_TESTS_FAKE_VM_H

#include <stdatomic.h>

#include "vm/console.h"
#include "vm/vm.h"

struct vm {
    enum vm_state state;
    bool ignores_power_button;
    unsigned pauses;
    unsigned resumes;
    unsigned presses;
    atomic_uint stops;
    unsigned dumps;
    unsigned disk_updates;
    uint16_t columns; /* of the console */
    uint16_t rows;
    const char *pause_reason; /* NULL: none */
    size_t disk_count;
    struct vm_disk_status disks[2];
    bool has_balloon;
    struct virtio_balloon_status balloon;
    int balloon_refusal; /* a negative errno; 0: it does as it is told */
    enum vm_end end;
    struct loop *ends_loop; /* stopped by vm_stop, as husk run does; or NULL */
    struct vm_counters counters;
    struct boot_plan plan;
    struct stages stages;
};

#define FAKE_INPUT_BYTES 65536

struct console {
    const char *backlog;  /* what a new reader gets */
    bool refuses_readers; /* console_attach fails */
    atomic_size_t room;   /* input bytes that will be taken */
    atomic_size_t refusals;
    atomic_size_t input_used;
    uint8_t input[FAKE_INPUT_BYTES];
};

#endif
