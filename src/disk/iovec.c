/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the buffers of a request; see iovec_private.h. */
#include "disk/iovec_private.h"

#include <string.h>

#include "base/bytes.h"

/* The part of `buffer` behind its first `skip` bytes; lowers *skip by what it takes. */
static struct iovec skip_in_buffer(struct iovec buffer, uint64_t *skip)
{
    size_t skipped = (size_t)min_u64(*skip, buffer.iov_len);

    *skip -= skipped;
    return (struct iovec){.iov_base = (char *)buffer.iov_base + skipped,
                          .iov_len = buffer.iov_len - skipped};
}

int iovec_part(const struct disk_request *request, uint64_t skip, struct iovec part[],
               int max)
{
    int count = 0;

    for (unsigned i = 0; i < request->buffer_count && count < max; i++) {
        part[count] = skip_in_buffer(request->buffers[i], &skip);
        if (part[count].iov_len > 0)
            count++;
    }
    return count;
}

void iovec_copy(const struct disk_request *request, uint64_t skip, void *memory,
                uint64_t size_bytes)
{
    char *at = memory;

    for (unsigned i = 0; i < request->buffer_count && size_bytes > 0; i++) {
        struct iovec part = skip_in_buffer(request->buffers[i], &skip);
        size_t bytes = (size_t)min_u64(part.iov_len, size_bytes);

        if (bytes == 0)
            continue;
        if (request->operation == DISK_READ)
            memcpy(part.iov_base, at, bytes);
        else
            memcpy(at, part.iov_base, bytes);
        at += bytes;
        size_bytes -= bytes;
    }
}
