/* SPDX-License-Identifier: Apache-2.0 */
/* Random requests, several at once, against a model of the disk. usage: test_disk_model
 * VARIANT */
#include "variants.h"

#include <stdlib.h>

/* Each request has its own part of the disk, so that what they do together is known. */
#define LANES 8
#define LANE_BYTES align_down(DISK_BYTES / LANES, DISK_SECTOR_BYTES)
#define MAX_REQUEST_BYTES (100 * KIB)
#define MAX_PIECES 5
#define ROUNDS 150

struct lane {
    struct disk_request request;
    struct iovec pieces[MAX_PIECES];
    uint8_t buffer[MAX_REQUEST_BYTES + 64];
};

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (random_state >> 33) % limit;
}

/* Cuts the buffer, which may begin at any address, into pieces of any size. */
static void cut_buffer(struct lane *lane)
{
    uint8_t *at = lane->buffer + (random_below(2) == 0 ? 0 : random_below(64));
    uint64_t left_bytes = lane->request.size_bytes;
    unsigned count = 0;

    while (left_bytes > 0) {
        bool last = count == MAX_PIECES - 1;
        uint64_t bytes = last ? left_bytes : 1 + random_below(left_bytes);

        lane->pieces[count++] = (struct iovec){.iov_base = at, .iov_len = bytes};
        at += bytes;
        left_bytes -= bytes;
    }
    lane->request.buffers = lane->pieces;
    lane->request.buffer_count = count;
}

static void fill_lane(struct lane *lane, uint64_t number)
{
    uint64_t sectors = MAX_REQUEST_BYTES / DISK_SECTOR_BYTES;
    uint64_t size_bytes = (1 + random_below(sectors)) * DISK_SECTOR_BYTES;
    uint64_t room = (LANE_BYTES - size_bytes) / DISK_SECTOR_BYTES;

    lane->request = (struct disk_request){
        .operation = (enum disk_operation)random_below(DISK_OPERATIONS),
        .unmap = random_below(2) == 1,
        .offset_bytes = number * LANE_BYTES + random_below(room) * DISK_SECTOR_BYTES,
        .size_bytes = size_bytes,
        .owner = lane,
        .result = 1,
    };
    if (lane->request.operation == DISK_READ || lane->request.operation == DISK_WRITE)
        cut_buffer(lane);
    for (size_t i = 0; i < sizeof(lane->buffer); i++)
        lane->buffer[i] = (uint8_t)random_below(256);
}

static const uint8_t *lane_bytes(const struct lane *lane)
{
    return lane->pieces[0].iov_base; /* the pieces lie one behind the other */
}

/* What a discarded range holds is open: the model takes what is there now. */
static void adopt(struct disk *disk, uint8_t *model, uint64_t offset, uint64_t size_bytes)
{
    assert_int_equal(do_request(disk, DISK_READ, offset, model + offset, size_bytes), 0);
}

static void compare_lane(struct disk *disk, uint8_t *model, const struct lane *lane)
{
    const struct disk_request *request = &lane->request;
    uint8_t *expected = model + request->offset_bytes;

    assert_int_equal(request->result, 0);
    switch (request->operation) {
    case DISK_READ:
        assert_memory_equal(lane_bytes(lane), expected, request->size_bytes);
        break;
    case DISK_WRITE:
        memcpy(expected, lane_bytes(lane), request->size_bytes);
        break;
    case DISK_WRITE_ZEROES:
        memset(expected, 0, request->size_bytes);
        break;
    case DISK_DISCARD:
        adopt(disk, model, request->offset_bytes, request->size_bytes);
        break;
    case DISK_FLUSH:
        break;
    }
}

static void run_round(struct disk *disk, struct lane *lanes, uint8_t *model)
{
    struct disk_request *requests[LANES];
    struct disk_request *done[LANES];
    unsigned count = 1 + (unsigned)random_below(LANES);

    for (unsigned i = 0; i < count; i++) {
        fill_lane(&lanes[i], i);
        requests[i] = &lanes[i].request;
    }
    disk_submit(disk, requests, count);
    reap_all(disk, done, count);
    for (unsigned i = 0; i < count; i++)
        compare_lane(disk, model, done[i]->owner);
}

static void random_requests_do_what_they_do_to_a_model(void **state)
{
    struct test_file file;
    struct disk *disk;
    struct lane *lanes = calloc(LANES, sizeof(*lanes));
    uint8_t *model = malloc(DISK_BYTES);
    uint8_t *seen = malloc(DISK_BYTES);

    (void)state;
    assert_non_null(lanes);
    assert_non_null(model);
    assert_non_null(seen);
    file_init(&file, DISK_BYTES);
    file_read(&file, model);
    memcpy(seen, model, DISK_BYTES);
    random_state = 5;
    disk = open_variant(&file);
    for (int i = 0; i < ROUNDS; i++)
        run_round(disk, lanes, model);
    if (variant->options.ephemeral)
        memcpy(model, seen, DISK_BYTES); /* the file is what it was */
    disk_close(disk);
    file_read(&file, seen);
    assert_memory_equal(seen, model, DISK_BYTES);
    file_finish(&file);
    free(lanes);
    free(model);
    free(seen);
}

static int run_group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_requests_do_what_they_do_to_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int status = variant_choose(argc, argv);

    return status != 0 ? status : run_group();
}
