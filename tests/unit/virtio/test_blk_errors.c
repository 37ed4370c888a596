/* SPDX-License-Identifier: Apache-2.0 */
/* What virtio-blk does when the host fails a request: tells the guest, or holds it. */
#include "blk_fixture.h"

#include <errno.h>
#include <stdio.h>

#define OK 0
#define IOERR 1

static void begin(struct blk_guest *guest, const struct blk_setup *setup)
{
    blk_guest_init(guest, setup);
    blk_start_driver(guest, ALL_FEATURES);
}

static struct blk_guest *fresh(void)
{
    static struct blk_guest guest;

    return &guest;
}

static unsigned held(struct blk_guest *guest)
{
    struct virtio_blk_status status;

    virtio_blk_status(guest->blk, &status);
    return status.held;
}

static bool one_is_held(struct blk_guest *guest)
{
    return held(guest) == 1;
}

static bool two_are_held(struct blk_guest *guest)
{
    return held(guest) == 2;
}

static bool wants_attention(struct blk_guest *guest)
{
    return guest->attentions > 0;
}

/* ---- told to the guest ---- */

static void reported_error_is_the_requests_and_ends_there(void **state)
{
    struct blk_guest *guest = fresh();

    (void)state;
    begin(guest, &(struct blk_setup){
                     .faults = {.operation = DISK_WRITE, .outcome = -EIO, .count = 1}});
    assert_int_equal(write_sectors(guest, 0, 512), IOERR);
    assert_int_equal(write_sectors(guest, 0, 512), OK);
    assert_int_equal(guest->attentions, 0);
    blk_guest_finish(guest);
}

static void truncated_file_is_an_error_of_its_sectors(void **state)
{
    static const char *const engines[] = {"sync", "threads", "mmap", "uring"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
        struct blk_guest *guest = fresh();

        begin(guest, &(struct blk_setup){.engine = engines[i]});
        assert_int_equal(read_sectors(guest, 64, 512), OK);
        assert_int_equal(ftruncate(guest->file.fd, 4096), 0);
        assert_int_equal(read_sectors(guest, 64, 512), IOERR);
        assert_int_equal(read_sectors(guest, 0, 512), OK);
        assert_pattern(data(guest), 0, 512);
        blk_guest_finish(guest);
    }
}

static void fail_two_writes(void *context)
{
    struct blk_guest *guest = context;

    assert_int_equal(write_sectors(guest, 8, 512), IOERR);
    assert_int_equal(write_sectors(guest, 9, 512), IOERR);
}

/* Both with a policy that might hold it, and does not, and with none. */
static void error_that_no_policy_holds_is_told_once_with_its_place(void **state)
{
    const enum virtio_blk_policy policies[] = {VIRTIO_BLK_REPORT,
                                               VIRTIO_BLK_STOP_IF_FULL};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
        struct blk_guest *guest = fresh();
        char text[1024], expected[256];

        begin(guest,
              &(struct blk_setup){
                  .on_write_error = policies[i],
                  .faults = {.operation = DISK_WRITE, .outcome = -EIO, .count = 2}});
        capture_log(fail_two_writes, guest, text, sizeof(text));
        (void)snprintf(expected, sizeof(expected),
                       "husk: disk %s: write of 512 bytes at byte 4096 failed: "
                       "Input/output error\n",
                       guest->file.path);
        assert_string_equal(text, expected);
        blk_guest_finish(guest);
    }
}

/* ---- held ---- */

static void request_on_a_full_host_is_held_and_done_when_there_is_room(void **state)
{
    struct blk_guest *guest = fresh();
    struct virtio_blk_status status;
    char expected[256];
    uint64_t written;

    (void)state;
    begin(guest,
          &(struct blk_setup){
              .on_write_error = VIRTIO_BLK_STOP_IF_FULL,
              .faults = {.operation = DISK_WRITE, .outcome = -ENOSPC, .count = 2}});
    memset(data(guest), 0x33, 512);
    written = offer(guest, 0, TYPE_WRITE, 4, DATA, 512, false);
    notify(guest, 0);
    wait_for(one_is_held, guest);
    wait_for(wants_attention, guest);
    virtio_blk_status(guest->blk, &status);
    (void)snprintf(expected, sizeof(expected),
                   "disk %s: write of 512 bytes at byte 2048 failed: No space left on "
                   "device",
                   guest->file.path);
    assert_string_equal(status.trouble, expected);
    assert_int_equal(status.in_flight, 1);
    assert_int_equal(used_count(guest, 0), 0);
    assert_int_equal(status_at(guest, written), NO_STATUS);

    guest->attentions = 0;
    virtio_blk_retry(guest->blk); /* still full */
    wait_for(wants_attention, guest);
    assert_int_equal(held(guest), 1);
    virtio_blk_retry(guest->blk);
    wait_used(guest, 0, 1);
    assert_int_equal(status_at(guest, written), OK);
    assert_file_byte(guest, SECTOR(4), 0x33);
    virtio_blk_status(guest->blk, &status);
    assert_string_equal(status.trouble, "");
    assert_int_equal(status.in_flight, 0);
    blk_guest_finish(guest);
}

static void nothing_is_taken_while_something_is_held(void **state)
{
    struct blk_guest *guest = fresh();
    uint64_t statuses[3];

    (void)state;
    begin(guest, &(struct blk_setup){
                     .on_write_error = VIRTIO_BLK_STOP,
                     .faults = {.operation = DISK_WRITE, .outcome = -EIO, .count = 1}});
    statuses[0] = offer(guest, 0, TYPE_WRITE, 0, DATA, 512, false);
    notify(guest, 0);
    wait_for(one_is_held, guest);
    statuses[1] = offer(guest, 0, TYPE_READ, 8, DATA + 4096, 512, true);
    statuses[2] = offer(guest, 1, TYPE_READ, 9, DATA + 8192, 512, true);
    notify(guest, 0);
    notify(guest, 1);
    virtio_blk_retry(guest->blk);
    wait_used(guest, 0, 2);
    wait_used(guest, 1, 1);
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        assert_int_equal(status_at(guest, statuses[i]), OK);
    blk_guest_finish(guest);
}

static void each_policy_has_its_errors(void **state)
{
    static const struct {
        enum disk_operation operation;
        int outcome;
        enum virtio_blk_policy on_read_error, on_write_error;
        bool is_held;
    } cases[] = {
        {DISK_READ, -EIO, VIRTIO_BLK_REPORT, VIRTIO_BLK_STOP, false},
        {DISK_READ, -EIO, VIRTIO_BLK_STOP, VIRTIO_BLK_REPORT, true},
        {DISK_WRITE, -EIO, VIRTIO_BLK_STOP, VIRTIO_BLK_REPORT, false},
        {DISK_WRITE, -EIO, VIRTIO_BLK_REPORT, VIRTIO_BLK_STOP, true},
        {DISK_WRITE, -EIO, VIRTIO_BLK_REPORT, VIRTIO_BLK_STOP_IF_FULL, false},
        {DISK_WRITE, -EDQUOT, VIRTIO_BLK_REPORT, VIRTIO_BLK_STOP_IF_FULL, true},
        {DISK_WRITE, -ENOSPC, VIRTIO_BLK_REPORT, VIRTIO_BLK_STOP, true},
        {DISK_WRITE, -ENOSPC, VIRTIO_BLK_STOP, VIRTIO_BLK_REPORT, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct blk_guest *guest = fresh();
        uint64_t status;

        begin(guest, &(struct blk_setup){.on_read_error = cases[i].on_read_error,
                                         .on_write_error = cases[i].on_write_error,
                                         .faults = {.operation = cases[i].operation,
                                                    .outcome = cases[i].outcome,
                                                    .count = 1}});
        status = offer(guest, 0, cases[i].operation == DISK_READ ? TYPE_READ : TYPE_WRITE,
                       0, DATA, 512, cases[i].operation == DISK_READ);
        notify(guest, 0);
        if (cases[i].is_held) {
            wait_for(one_is_held, guest);
            virtio_blk_retry(guest->blk);
        }
        wait_used(guest, 0, 1);
        assert_int_equal(status_at(guest, status), cases[i].is_held ? OK : IOERR);
        blk_guest_finish(guest);
    }
}

/* What the guest asks wrongly is no trouble of the host's. */
static void mistakes_of_the_guest_are_never_held(void **state)
{
    struct blk_guest *guest = fresh();

    (void)state;
    begin(guest, &(struct blk_setup){.on_read_error = VIRTIO_BLK_STOP,
                                     .on_write_error = VIRTIO_BLK_STOP});
    assert_int_equal(read_sectors(guest, DISK_SECTORS, 512), IOERR);
    assert_int_equal(write_sectors(guest, 0, 100), IOERR);
    assert_int_equal(held(guest), 0);
    blk_guest_finish(guest);
}

/* A second fdatasync would succeed, and be a lie. */
static void failed_flush_is_an_error_when_it_is_gone_on_with(void **state)
{
    struct blk_guest *guest = fresh();
    uint64_t status;

    (void)state;
    begin(guest, &(struct blk_setup){
                     .on_write_error = VIRTIO_BLK_STOP,
                     .faults = {.operation = DISK_FLUSH, .outcome = -EIO, .count = 1}});
    status = offer(guest, 0, TYPE_FLUSH, 0, 0, 0, false);
    notify(guest, 0);
    wait_for(one_is_held, guest);
    virtio_blk_retry(guest->blk);
    wait_used(guest, 0, 1);
    assert_int_equal(status_at(guest, status), IOERR);
    assert_int_equal(guest->faults.seen[DISK_FLUSH], 1);
    blk_guest_finish(guest);
}

/* A write on each queue, both held because the host is full. */
static void begin_with_two_held(struct blk_guest *guest, struct stall *stall,
                                uint64_t statuses[QUEUES])
{
    stall_init(stall);
    stall->outcome = -ENOSPC;
    stall->failures = QUEUES;
    begin(guest, &(struct blk_setup){.on_write_error = VIRTIO_BLK_STOP, .stall = stall});
    for (unsigned queue = 0; queue < QUEUES; queue++) {
        statuses[queue] = offer(guest, queue, TYPE_WRITE, queue, DATA, 512, false);
        notify(guest, queue);
    }
    stall_wait(stall, QUEUES); /* of what is begun after the first is held, none is */
    stall_release(stall, QUEUES);
    wait_for(two_are_held, guest);
}

static void driver_that_resets_gives_up_what_is_held(void **state)
{
    struct blk_guest *guest = fresh();
    uint64_t statuses[QUEUES];
    struct stall stall;

    (void)state;
    begin_with_two_held(guest, &stall, statuses);
    guest_write(&guest->guest, STATUS, 1, 0);
    assert_int_equal(guest_read(&guest->guest, STATUS, 1), 0);
    assert_int_equal(held(guest), 0);
    virtio_blk_retry(guest->blk);
    blk_start_driver(guest, ALL_FEATURES);
    stall_release(&stall, 1);
    assert_int_equal(read_sectors(guest, 0, 512), OK);
    assert_int_equal(status_at(guest, statuses[0]), NO_STATUS);
    assert_int_equal(stall.answers, 3); /* the read is the third */
    blk_guest_finish(guest);
}

static void queue_that_is_reset_gives_up_what_is_held_of_it_alone(void **state)
{
    struct blk_guest *guest = fresh();
    uint64_t statuses[QUEUES];
    struct stall stall;

    (void)state;
    begin_with_two_held(guest, &stall, statuses);
    guest_write(&guest->guest, QUEUE_SELECT, 2, 0);
    guest_write(&guest->guest, QUEUE_RESET, 2, 1);
    assert_int_equal(guest_read(&guest->guest, QUEUE_RESET, 2), 0);
    assert_int_equal(held(guest), 1);
    stall_release(&stall, 1);
    virtio_blk_retry(guest->blk);
    wait_used(guest, 1, 1);
    assert_int_equal(status_at(guest, statuses[0]), NO_STATUS);
    assert_int_equal(status_at(guest, statuses[1]), OK);
    assert_int_equal(stall.answers, 3);
    blk_guest_finish(guest);
}

/* So is the flush that makes a write stable for a driver that cannot ask for one. */
static void write_that_cannot_be_made_stable_is_an_error(void **state)
{
    struct blk_guest *guest = fresh();

    (void)state;
    begin(guest, &(struct blk_setup){
                     .faults = {.operation = DISK_FLUSH, .outcome = -EIO, .count = 1}});
    guest_write(&guest->guest, CONFIG + 32, 1, 0);
    assert_int_equal(write_sectors(guest, 0, 512), IOERR);
    blk_guest_finish(guest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reported_error_is_the_requests_and_ends_there),
        cmocka_unit_test(truncated_file_is_an_error_of_its_sectors),
        cmocka_unit_test(error_that_no_policy_holds_is_told_once_with_its_place),
        cmocka_unit_test(request_on_a_full_host_is_held_and_done_when_there_is_room),
        cmocka_unit_test(nothing_is_taken_while_something_is_held),
        cmocka_unit_test(each_policy_has_its_errors),
        cmocka_unit_test(mistakes_of_the_guest_are_never_held),
        cmocka_unit_test(failed_flush_is_an_error_when_it_is_gone_on_with),
        cmocka_unit_test(driver_that_resets_gives_up_what_is_held),
        cmocka_unit_test(queue_that_is_reset_gives_up_what_is_held_of_it_alone),
        cmocka_unit_test(write_that_cannot_be_made_stable_is_an_error),
    };

    return cmocka_run_group_tests_name("virtio-blk errors", tests, NULL, NULL);
}
