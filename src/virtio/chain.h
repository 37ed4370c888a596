/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in and out of a descriptor chain, wherever the driver has cut it into pieces.
 * On the thread that has taken the chain. */
#ifndef HUSK_VIRTIO_CHAIN_H
#define HUSK_VIRTIO_CHAIN_H

#include <stddef.h>

#include "virtio/queue.h"

/* Copies the first `size` bytes of what the device reads, or fewer if there are fewer,
 * and returns how many. */
size_t virtio_chain_read(const struct virtio_chain *chain, void *to, size_t size);
/* From the byte `from` on. */
size_t virtio_chain_read_at(const struct virtio_chain *chain, size_t from, void *to,
                            size_t size);

/* The same for what it writes. */
size_t virtio_chain_write(const struct virtio_chain *chain, const void *from,
                          size_t size);

#endif
