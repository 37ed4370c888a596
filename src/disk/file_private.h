/* SPDX-License-Identifier: Apache-2.0 */
/* The file or block device behind a disk: opened, locked and measured. */
#ifndef HUSK_DISK_FILE_PRIVATE_H
#define HUSK_DISK_FILE_PRIVATE_H

#include "disk/disk.h"

#include <pthread.h>

struct disk_file {
    char *path; /* as the user gave it, for messages; owned */
    int fd;     /* owned; its OFD lock goes with it */
    bool read_only;
    bool block_device;
    struct disk_topology topology;

    /* O_DIRECT: offsets and sizes must be multiples of direct_bytes, addresses of
     * buffers of direct_memory_bytes (powers of two). 0: not direct. */
    uint32_t direct_bytes;
    uint32_t direct_memory_bytes;
    uint8_t *bounce; /* DISK_BOUNCE_BYTES, for requests that are not so; under the lock */
    pthread_mutex_t bounce_lock;
};

/* Also what one piece of a misaligned request moves at most. */
#define DISK_BOUNCE_BYTES UINT64_C(262144)

int disk_file_open(struct disk_file *file, const struct disk_options *options,
                   struct error *err) MUST_CHECK;
void disk_file_close(struct disk_file *file);

/* The size in bytes, down to the last one; 0 or a negative errno. */
int disk_file_measure(const struct disk_file *file, uint64_t *size_bytes) MUST_CHECK;

/* The unit that the disk's size is cut to. */
uint64_t disk_file_unit_bytes(const struct disk_file *file);

#endif
