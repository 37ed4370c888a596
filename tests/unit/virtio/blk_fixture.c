/* SPDX-License-Identifier: Apache-2.0 */
/* See blk_fixture.h. */
#include "blk_fixture.h"

#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"

/* Only ever reached by a fault. */
#define PATIENCE_MS 20000

/* ---- hosts ---- */

void stall_init(struct stall *stall)
{
    memset(stall, 0, sizeof(*stall));
    assert_int_equal(sem_init(&stall->begun, 0, 0), 0);
    assert_int_equal(sem_init(&stall->go, 0, 0), 0);
}

void stall_wait(struct stall *stall, unsigned count)
{
    while (count-- > 0)
        assert_int_equal(sem_wait(&stall->begun), 0);
}

void stall_release(struct stall *stall, unsigned count)
{
    while (count-- > 0)
        assert_int_equal(sem_post(&stall->go), 0);
}

static int64_t wait_for_release(void *context, const struct disk_request *request,
                                int64_t result)
{
    struct stall *stall = context;

    (void)request;
    CHECK(sem_post(&stall->begun) == 0);
    CHECK(sem_wait(&stall->go) == 0);
    atomic_fetch_add(&stall->answers, 1);
    return atomic_fetch_sub(&stall->failures, 1) > 0 ? stall->outcome : result;
}

/* ---- life ---- */

static void note_attention(void *context)
{
    struct blk_guest *guest = context;

    atomic_fetch_add(&guest->attentions, 1);
}

void blk_guest_init(struct blk_guest *guest, const struct blk_setup *setup)
{
    struct disk_options disk = {.engine =
                                    setup->engine != NULL ? setup->engine : "threads",
                                .read_only = setup->read_only};
    const struct virtio_blk_options options = {
        .queue_count = QUEUES,
        .serial = setup->serial,
        .on_read_error = setup->on_read_error,
        .on_write_error = setup->on_write_error,
        .attention = note_attention,
        .context = guest,
    };
    struct error err = ERROR_NONE;

    memset(guest, 0, sizeof(*guest));
    guest_init(&guest->guest);
    file_init(&guest->file, DISK_BYTES);
    disk.path = guest->file.path;
    guest->disk = open_or_fail(&disk);
    guest->faults = setup->faults;
    if (setup->stall != NULL)
        guest->disk->faults =
            (struct disk_faults){.outcome = wait_for_release, .context = setup->stall};
    else
        inject(guest->disk, &guest->faults);
    assert_int_equal(
        virtio_blk_create(&options, guest->disk, guest->guest.memory, &guest->blk, &err),
        0);
    guest_attach(&guest->guest, virtio_blk_device(guest->blk), VIRTIO_BLK_CLASS_CODE);
}

void blk_guest_finish(struct blk_guest *guest)
{
    virtio_blk_end(guest->blk);
    assert_true(virtio_blk_has_ended(guest->blk, PATIENCE_MS));
    guest_finish(&guest->guest);
    virtio_blk_destroy(guest->blk);
    file_finish(&guest->file);
}

/* ---- the driver ---- */

uint64_t blk_offered_features(struct blk_guest *guest)
{
    uint64_t features = 0;

    for (uint32_t half = 0; half < 2; half++) {
        guest_write(&guest->guest, DEVICE_FEATURE_SELECT, 4, half);
        features |= (uint64_t)guest_read(&guest->guest, DEVICE_FEATURE, 4) << (32 * half);
    }
    return features;
}

static void place_queue(struct blk_guest *blk, uint16_t queue)
{
    struct guest *guest = &blk->guest;

    put16(guest->memory, AVAILABLE_AT(queue) + 2, 0);
    put16(guest->memory, USED_AT(queue) + 2, 0);
    blk->next_descriptor[queue] = 0;
    blk->offered[queue] = 0;
    guest_write(guest, QUEUE_SELECT, 2, queue);
    guest_write(guest, QUEUE_SIZE, 2, ENTRIES);
    guest_write(guest, QUEUE_DESCRIPTORS, 4, (uint32_t)QUEUE_AT(queue));
    guest_write(guest, QUEUE_DESCRIPTORS + 4, 4, 0);
    guest_write(guest, QUEUE_AVAILABLE, 4, (uint32_t)AVAILABLE_AT(queue));
    guest_write(guest, QUEUE_AVAILABLE + 4, 4, 0);
    guest_write(guest, QUEUE_USED, 4, (uint32_t)USED_AT(queue));
    guest_write(guest, QUEUE_USED + 4, 4, 0);
    guest_write(guest, QUEUE_ENABLE, 2, 1);
}

void blk_start_driver(struct blk_guest *guest, uint64_t features)
{
    guest_set_features(&guest->guest, features & blk_offered_features(guest));
    assert_int_equal(guest_read(&guest->guest, STATUS, 1), 0x0b);
    for (uint16_t queue = 0; queue < QUEUES; queue++)
        place_queue(guest, queue);
    guest_write(&guest->guest, STATUS, 1, 0x0f);
}

struct pieces pieces_begin(struct blk_guest *guest, unsigned queue)
{
    return (struct pieces){.queue = queue, .head = guest->next_descriptor[queue]};
}

void pieces_add(struct blk_guest *guest, struct pieces *pieces, uint64_t gpa,
                uint32_t size, uint16_t flags)
{
    uint64_t table = QUEUE_AT(pieces->queue);
    unsigned index = guest->next_descriptor[pieces->queue];

    /* Descriptors are used round about; no test has more in flight than there are. */
    put_descriptor(guest->guest.memory, table, index, gpa, size, flags, 0);
    if (pieces->count > 0) {
        unsigned before = (index + ENTRIES - 1) % ENTRIES;
        uint64_t flags_at = table + before * UINT64_C(16) + 12;

        put16(guest->guest.memory, flags_at, get16(guest->guest.memory, flags_at) | NEXT);
        put16(guest->guest.memory, flags_at + 2, (uint16_t)index);
    }
    pieces->count++;
    guest->next_descriptor[pieces->queue] = (index + 1) % ENTRIES;
}

void pieces_offer(struct blk_guest *guest, const struct pieces *pieces)
{
    uint16_t *offered = &guest->offered[pieces->queue];
    uint64_t ring = AVAILABLE_AT(pieces->queue);

    put16(guest->guest.memory, ring + 4 + UINT64_C(2) * (*offered % ENTRIES),
          (uint16_t)pieces->head);
    ++*offered;
    atomic_store((_Atomic uint16_t *)memory_slice(guest->guest.memory, ring + 2, 2),
                 *offered);
}

uint64_t put_header(struct blk_guest *guest, uint32_t type, uint64_t sector)
{
    uint64_t gpa = HEADERS + UINT64_C(16) * (guest->requests % ENTRIES);
    uint8_t header[16] = {0};

    store_le32(header, type);
    store_le64(header + 8, sector);
    assert_int_equal(memory_write(guest->guest.memory, gpa, header, sizeof(header)), 0);
    return gpa;
}

uint64_t put_status(struct blk_guest *guest)
{
    uint64_t gpa = STATUSES + guest->requests++ % ENTRIES;
    uint8_t none = NO_STATUS;

    assert_int_equal(memory_write(guest->guest.memory, gpa, &none, 1), 0);
    return gpa;
}

uint64_t offer(struct blk_guest *guest, unsigned queue, uint32_t type, uint64_t sector,
               uint64_t data_gpa, uint32_t size, bool device_writes)
{
    struct pieces pieces = pieces_begin(guest, queue);
    uint64_t status;

    pieces_add(guest, &pieces, put_header(guest, type, sector), 16, 0);
    if (size > 0)
        pieces_add(guest, &pieces, data_gpa, size, device_writes ? WRITE : 0);
    status = put_status(guest);
    pieces_add(guest, &pieces, status, 1, WRITE);
    pieces_offer(guest, &pieces);
    return status;
}

void notify(struct blk_guest *guest, unsigned queue)
{
    guest_write(&guest->guest, NOTIFY + queue * UINT64_C(4), 2, queue);
}

/* ---- waiting ---- */

void wait_for(bool (*is_so)(struct blk_guest *guest), struct blk_guest *guest)
{
    const struct timespec pause = {.tv_nsec = (long)NS_PER_MS / 5};
    uint64_t end_ns = clock_monotonic_ns() + PATIENCE_MS * NS_PER_MS;

    while (!is_so(guest)) {
        if (clock_monotonic_ns() > end_ns)
            fail_msg("it does not come");
        (void)nanosleep(&pause, NULL);
    }
}

uint16_t used_count(struct blk_guest *guest, unsigned queue)
{
    return atomic_load(
        (_Atomic uint16_t *)memory_slice(guest->guest.memory, USED_AT(queue) + 2, 2));
}

static unsigned awaited_queue;
static uint16_t awaited_count;

static bool is_used(struct blk_guest *guest)
{
    return used_count(guest, awaited_queue) == awaited_count;
}

void wait_used(struct blk_guest *guest, unsigned queue, uint16_t count)
{
    awaited_queue = queue;
    awaited_count = count;
    wait_for(is_used, guest);
}

uint32_t used_length(struct blk_guest *guest, unsigned queue, unsigned entry)
{
    return get32(guest->guest.memory,
                 USED_AT(queue) + 4 + UINT64_C(8) * (entry % ENTRIES) + 4);
}

uint8_t status_at(struct blk_guest *guest, uint64_t gpa)
{
    uint8_t status;

    assert_int_equal(memory_read(guest->guest.memory, gpa, &status, 1), 0);
    return status;
}

/* ---- whole requests ---- */

uint8_t request(struct blk_guest *guest, uint32_t type, uint64_t sector,
                uint64_t data_gpa, uint32_t size, bool device_writes)
{
    uint64_t status = offer(guest, 0, type, sector, data_gpa, size, device_writes);

    notify(guest, 0);
    wait_used(guest, 0, guest->offered[0]);
    return status_at(guest, status);
}

uint8_t read_sectors(struct blk_guest *guest, uint64_t sector, uint32_t size)
{
    return request(guest, TYPE_READ, sector, DATA, size, true);
}

uint8_t write_sectors(struct blk_guest *guest, uint64_t sector, uint32_t size)
{
    return request(guest, TYPE_WRITE, sector, DATA, size, false);
}

void put_range(struct blk_guest *guest, unsigned index, uint64_t sector,
               uint32_t sector_count, uint32_t flags)
{
    uint8_t *range = data(guest) + index * sizeof(struct blk_range);

    store_le64(range, sector);
    store_le32(range + 8, sector_count);
    store_le32(range + 12, flags);
}

uint8_t *data(struct blk_guest *guest)
{
    return memory_slice(guest->guest.memory, DATA, 64 * KIB);
}

void assert_pattern(const uint8_t *bytes, uint64_t offset, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != pattern_at(offset + i))
            fail_msg("byte %zu is %u, not %u", i, bytes[i], pattern_at(offset + i));
}

void assert_file_byte(struct blk_guest *guest, uint64_t offset, uint8_t value)
{
    uint8_t byte;

    assert_int_equal(fd_read_at(guest->file.fd, offset, &byte, 1), 0);
    assert_int_equal(byte, value);
}
