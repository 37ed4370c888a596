/* SPDX-License-Identifier: Apache-2.0 */
/* The virtio devices that fuzz_virtio_devices.c drives, each on files that are memory. */
#ifndef HUSK_TESTS_FUZZ_VIRTIO_DEVICES_H
#define HUSK_TESTS_FUZZ_VIRTIO_DEVICES_H

#include <stdint.h>

#include "base/loop.h"
#include "memory/memory.h"
#include "virtio/device.h"

struct fuzz_device {
    struct memory *memory; /* borrowed */
    struct loop *loop;     /* borrowed; the caller turns it */
    struct virtio_device *device;
    void *implementation;
    int fd; /* its file */
};

/* In this order. `variant` chooses among a device's options. */
struct fuzz_device_kind {
    uint32_t class_code;
    void (*create)(struct fuzz_device *device, uint8_t variant);
    void (*resize)(struct fuzz_device *device, uint64_t bytes); /* NULL: it has no size */
    void (*end)(struct fuzz_device *device); /* NULL: it has no thread of its own */
    void (*destroy)(struct fuzz_device *device);
};

extern const struct fuzz_device_kind fuzz_device_kinds[];
extern const unsigned fuzz_device_kind_count;

#endif
