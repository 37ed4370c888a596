/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that O_DIRECT does not take as they are. */
#ifndef HUSK_DISK_DIRECT_PRIVATE_H
#define HUSK_DISK_DIRECT_PRIVATE_H

#include "disk/disk_private.h"

/* True if what is left of the request cannot go to the host from its own buffers. */
bool disk_direct_must_bounce(const struct disk *disk, const struct disk_request *request);

/* Carries out the rest of a READ or WRITE through a buffer of our own. */
int disk_direct_bounce(struct disk *disk, struct disk_request *request);

#endif
