/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A console (virtio 1.2, section 5.3) with one port. Output is handed on as it comes, to
 * somebody who takes it without waiting; input waits with its source until the driver
 * has given buffers for it. Both queues are served on the main loop.
 */
#ifndef HUSK_VIRTIO_CONSOLE_H
#define HUSK_VIRTIO_CONSOLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/loop.h"
#include "memory/memory.h"
#include "virtio/device.h"

#define VIRTIO_CONSOLE_CLASS_CODE UINT32_C(0x078000) /* PCI: other communication */

struct virtio_console_options {
    /* Takes output. The loop's thread, or a vCPU's for a byte in an emergency. */
    void (*output)(void *context, const uint8_t *bytes, size_t size);
    /* There is room for input again, or there may be. The loop's thread, without locks.
     */
    void (*room)(void *context);
    void *context;
};

struct virtio_console;

/* `loop` and `memory` are borrowed. Both on the loop's thread. */
int virtio_console_create(const struct virtio_console_options *options, struct loop *loop,
                          struct memory *memory, struct virtio_console **console,
                          struct error *err) MUST_CHECK;
void virtio_console_destroy(struct virtio_console *console); /* accepts NULL; after its
                                                                transport */

struct virtio_device *virtio_console_device(struct virtio_console *console);

/* Input for the guest: returns how many bytes it has room for. Any thread. */
size_t virtio_console_input(struct virtio_console *console, const uint8_t *bytes,
                            size_t size);

/* The terminal that shows the console has this size, in characters; 0 and 0: nobody
 * knows. The loop's thread. */
void virtio_console_resize(struct virtio_console *console, uint16_t columns,
                           uint16_t rows);

struct virtio_console_counters {
    uint64_t bytes_out;
    uint64_t bytes_in;
};
struct virtio_console_counters
virtio_console_counters(const struct virtio_console *console); /* any thread */

#endif
