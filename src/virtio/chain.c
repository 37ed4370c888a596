/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in and out of a descriptor chain; see chain.h. */
#include "virtio/chain.h"

#include <string.h>

#include "base/bytes.h"

size_t virtio_chain_read_at(const struct virtio_chain *chain, size_t from, void *to,
                            size_t size)
{
    const struct iovec *buffers = chain->buffers;
    size_t done = 0;

    for (unsigned i = 0; i < chain->readable_count && done < size; i++) {
        size_t skipped = min_u64(buffers[i].iov_len, from);
        size_t part = min_u64(buffers[i].iov_len - skipped, size - done);

        memcpy((uint8_t *)to + done, (const uint8_t *)buffers[i].iov_base + skipped,
               part);
        from -= skipped;
        done += part;
    }
    return done;
}

size_t virtio_chain_read(const struct virtio_chain *chain, void *to, size_t size)
{
    return virtio_chain_read_at(chain, 0, to, size);
}

size_t virtio_chain_write(const struct virtio_chain *chain, const void *from, size_t size)
{
    const struct iovec *buffers = chain->buffers + chain->readable_count;
    size_t done = 0;

    for (unsigned i = 0; i < chain->writable_count && done < size; i++) {
        size_t part = min_u64(buffers[i].iov_len, size - done);

        memcpy(buffers[i].iov_base, (const uint8_t *)from + done, part);
        done += part;
    }
    return done;
}
