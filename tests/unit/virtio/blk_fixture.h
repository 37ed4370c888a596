/* SPDX-License-Identifier: Apache-2.0 */
/* A guest with a virtio-blk on a file with known bytes, driven chain by chain. */
#ifndef HUSK_TESTS_VIRTIO_BLK_FIXTURE_H
#define HUSK_TESTS_VIRTIO_BLK_FIXTURE_H

#include <semaphore.h>

#include "../disk/disk_fixture.h"
#include "pci_fixture.h"

#include "virtio/blk_private.h"

#define DISK_BYTES MIB
#define DISK_SECTORS (DISK_BYTES / DISK_SECTOR_BYTES)
#define SECTOR(number) ((number)*DISK_SECTOR_BYTES)

/* Request types (5.2.6). */
#define TYPE_READ 0
#define TYPE_WRITE 1
#define TYPE_FLUSH 4
#define TYPE_GET_ID 8
#define TYPE_DISCARD 11
#define TYPE_WRITE_ZEROES 13

#define NO_STATUS 0xee /* what is there before the device has written one */

#define ENTRIES 64 /* of each queue */
#define QUEUES 2

/* Guest memory: a queue's rings, then room for headers, statuses and data. */
#define QUEUE_AT(queue) (0x10000 + (queue)*UINT64_C(0x4000))
#define AVAILABLE_AT(queue) (QUEUE_AT(queue) + 0x1000)
#define USED_AT(queue) (QUEUE_AT(queue) + 0x2000)
#define HEADERS 0x30000
#define STATUSES 0x34000
#define DATA 0x40000

struct blk_guest {
    struct guest guest;
    struct test_file file;
    struct disk *disk;
    struct virtio_blk *blk;
    struct host_faults faults;
    _Atomic unsigned attentions;
    unsigned next_descriptor[QUEUES];
    uint16_t offered[QUEUES]; /* index of the available ring */
    unsigned requests;
};

/* What a test may want otherwise. */
struct blk_setup {
    const char *engine; /* NULL: "threads" */
    const char *serial;
    bool read_only;
    enum virtio_blk_policy on_read_error;
    enum virtio_blk_policy on_write_error;
    struct host_faults faults; /* as in disk_fixture.h */
    struct stall *stall;
};

/* A host that answers when it is told to. */
struct stall {
    sem_t begun; /* posted for each request that waits */
    sem_t go;
    int64_t outcome; /* of the first `failures` */
    _Atomic int failures;
    _Atomic int answers;
};
void stall_init(struct stall *stall);
void stall_wait(struct stall *stall, unsigned count); /* until so many wait */
void stall_release(struct stall *stall, unsigned count);

void blk_guest_init(struct blk_guest *guest, const struct blk_setup *setup);
void blk_guest_finish(struct blk_guest *guest);

/* From reset to DRIVER_OK, with both queues. */
#define ALL_FEATURES UINT64_MAX /* that are offered */
void blk_start_driver(struct blk_guest *guest, uint64_t features);
uint64_t blk_offered_features(struct blk_guest *guest);

/* A chain under construction; pieces in any number. */
struct pieces {
    unsigned queue;
    unsigned head;
    unsigned count;
};
struct pieces pieces_begin(struct blk_guest *guest, unsigned queue);
void pieces_add(struct blk_guest *guest, struct pieces *pieces, uint64_t gpa,
                uint32_t size, uint16_t flags);
void pieces_offer(struct blk_guest *guest, const struct pieces *pieces); /* no notify */

/* Puts a header into memory and returns where. */
uint64_t put_header(struct blk_guest *guest, uint32_t type, uint64_t sector);
/* A place for a status, with NO_STATUS in it. */
uint64_t put_status(struct blk_guest *guest);

/* A whole request of header, data (if `size` is not 0; written by the device for
 * `device_writes`) and status. Returns where its status will be. */
uint64_t offer(struct blk_guest *guest, unsigned queue, uint32_t type, uint64_t sector,
               uint64_t data_gpa, uint32_t size, bool device_writes);
void notify(struct blk_guest *guest, unsigned queue);

/* Waits for the used ring to have `count` entries since the start. */
void wait_used(struct blk_guest *guest, unsigned queue, uint16_t count);
uint16_t used_count(struct blk_guest *guest, unsigned queue);
uint32_t used_length(struct blk_guest *guest, unsigned queue, unsigned entry);
uint8_t status_at(struct blk_guest *guest, uint64_t gpa);

/* One request on queue 0 from offer to end; its status. */
uint8_t request(struct blk_guest *guest, uint32_t type, uint64_t sector,
                uint64_t data_gpa, uint32_t size, bool device_writes);
uint8_t read_sectors(struct blk_guest *guest, uint64_t sector, uint32_t size);
uint8_t write_sectors(struct blk_guest *guest, uint64_t sector, uint32_t size);

/* A range of DISCARD and WRITE_ZEROES, number `index` at DATA. */
void put_range(struct blk_guest *guest, unsigned index, uint64_t sector,
               uint32_t sector_count, uint32_t flags);

/* Guest bytes at DATA, and the pattern of the file. */
uint8_t *data(struct blk_guest *guest);
void assert_pattern(const uint8_t *bytes, uint64_t offset, size_t size);
void assert_file_byte(struct blk_guest *guest, uint64_t offset, uint8_t value);

/* Waits until `is_so` holds. */
void wait_for(bool (*is_so)(struct blk_guest *guest), struct blk_guest *guest);

#endif
