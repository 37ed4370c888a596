/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes at offsets; see source.h. */
#include "base/source.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fd.h"

struct source source_from_fd(int fd, uint64_t size_bytes)
{
    return (struct source){.size_bytes = size_bytes, .fd = fd};
}

struct source source_from_memory(const void *data, size_t size_bytes)
{
    return (struct source){.size_bytes = size_bytes, .fd = -1, .data = data};
}

int source_read(const struct source *source, uint64_t offset, void *buffer, size_t size,
                struct error *err)
{
    int status;

    if (!range_within(offset, size, source->size_bytes))
        return error_set(err, -ERANGE,
                         "ends at byte %" PRIu64 ", but %zu bytes at offset %" PRIu64
                         " are needed",
                         source->size_bytes, size, offset);
    if (size == 0)
        return 0; /* an empty source may have no data at all */
    if (source->fd < 0) {
        memcpy(buffer, source->data + offset, size);
        return 0;
    }
    status = fd_read_at(source->fd, offset, buffer, size);
    if (status == -ENODATA)
        return error_set(err, status, "became shorter while it was read");
    if (status < 0)
        return error_set_errno(err, status, "cannot read");
    return 0;
}
