/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the buffers of a request. */
#ifndef HUSK_DISK_IOVEC_PRIVATE_H
#define HUSK_DISK_IOVEC_PRIVATE_H

#include "disk/disk.h"

/* Puts into `part` the buffers, or pieces of them, from byte `skip` of the request on, as
 * far as `max` go. Returns how many. */
int iovec_part(const struct disk_request *request, uint64_t skip, struct iovec part[],
               int max);

/* Copies `size_bytes` between `memory` and the buffers of the request from byte `skip`
 * on: into the buffers of a READ, out of those of a WRITE. */
void iovec_copy(const struct disk_request *request, uint64_t skip, void *memory,
                uint64_t size_bytes);

#endif
