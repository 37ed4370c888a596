/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of entropy (virtio 1.2, section 5.4): what the guest asks for comes from the
 * host's getrandom(). One queue, served on the main loop: a request is a few bytes and
 * waits for nothing.
 */
#ifndef HUSK_VIRTIO_RNG_H
#define HUSK_VIRTIO_RNG_H

#include "base/error.h"
#include "base/loop.h"
#include "memory/memory.h"
#include "virtio/device.h"

#define VIRTIO_RNG_CLASS_CODE UINT32_C(0x00ff00) /* no class of PCI fits */

struct virtio_rng;

/* `loop` and `memory` are borrowed. Both on the loop's thread. */
int virtio_rng_create(struct loop *loop, struct memory *memory, struct virtio_rng **rng,
                      struct error *err) MUST_CHECK;
void virtio_rng_destroy(struct virtio_rng *rng); /* accepts NULL; after its transport */

struct virtio_device *virtio_rng_device(struct virtio_rng *rng);

#endif
