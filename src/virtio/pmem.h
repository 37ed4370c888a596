/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Persistent memory (virtio 1.2, section 5.19): tells the guest where in its memory there
 * is a file, and makes that durable what it has written there. That is all that passes
 * through the device: loads and stores go to the mapped file itself.
 *
 * A flush waits for the host's storage, so each device has a thread for it.
 */
#ifndef HUSK_VIRTIO_PMEM_H
#define HUSK_VIRTIO_PMEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "memory/memory.h"
#include "virtio/device.h"

#define VIRTIO_PMEM_CLASS_CODE UINT32_C(0x058000) /* PCI: another memory controller */

/* What there is to do when the guest says FLUSH. */
enum virtio_pmem_flush {
    VIRTIO_PMEM_FLUSH_FILE,   /* the map is shared: the file is written */
    VIRTIO_PMEM_FLUSH_NONE,   /* the map is private, and nobody expects more */
    VIRTIO_PMEM_FLUSH_REFUSE, /* the map is private: the guest must not believe that what
                                 it has written is safe, and gets an error */
};

struct virtio_pmem_options {
    const char *name; /* for messages: "pmem PATH"; borrowed */
    uint64_t gpa;
    uint64_t size_bytes;
    int fd; /* of the file; borrowed */
    enum virtio_pmem_flush flush;
};

struct virtio_pmem;

/* `memory` is borrowed. All on the thread that owns the VM. */
int virtio_pmem_create(const struct virtio_pmem_options *options, struct memory *memory,
                       struct virtio_pmem **pmem, struct error *err) MUST_CHECK;
/* Before the end of its transport: its thread ends, after the flush that is in flight. It
 * does not wait forever: false if the host has not answered within `patience_ms`. Then
 * `pmem` and the guest's memory must be left behind, for the process to end with. */
bool virtio_pmem_end(struct virtio_pmem *pmem, int patience_ms) MUST_CHECK;
/* For a look at guest memory while no vCPU runs. True: nothing is in flight, and nothing
 * is begun until _thaw, which the same thread calls soon. False: it is not frozen. */
bool virtio_pmem_freeze(struct virtio_pmem *pmem);
void virtio_pmem_thaw(struct virtio_pmem *pmem);
void virtio_pmem_destroy(struct virtio_pmem *pmem); /* after an _end that was true */

struct virtio_device *virtio_pmem_device(struct virtio_pmem *pmem);

#endif
