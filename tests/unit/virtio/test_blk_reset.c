/* SPDX-License-Identifier: Apache-2.0 */
/* A virtio-blk whose host does not answer: no vCPU waits for it, resets are done when
 * what is in flight has come back, and the end comes in any case. */
#include "blk_fixture.h"

#define OK 0
#define IN_FLIGHT 32

static struct stall stall;

static struct blk_guest *start(const char *engine)
{
    static struct blk_guest guest;

    stall_init(&stall);
    blk_guest_init(&guest, &(struct blk_setup){.engine = engine, .stall = &stall});
    blk_start_driver(&guest, ALL_FEATURES);
    return &guest;
}

static uint32_t device_status(struct blk_guest *guest)
{
    return guest_read(&guest->guest, STATUS, 1);
}

static bool is_reset(struct blk_guest *guest)
{
    return device_status(guest) == 0;
}

/* A chain is two pieces, so that the ring of 64 has room for all. */
static void offer_read(struct blk_guest *guest, unsigned queue, uint64_t sector)
{
    struct pieces pieces = pieces_begin(guest, queue);
    uint64_t header = put_header(guest, TYPE_READ, sector);

    (void)put_status(guest);
    pieces_add(guest, &pieces, header, 16, 0);
    pieces_add(guest, &pieces, DATA + sector * 1024, 513, WRITE);
    pieces_offer(guest, &pieces);
}

/* Of engines that hand requests to threads, and of the one that does not: its requests
 * are in flight when the batch is. */
static unsigned most_at_once(const char *engine)
{
    return strcmp(engine, "sync") == 0 ? 1 : IN_FLIGHT;
}

static void reset_with_requests_in_flight_is_done_when_they_are(void **state)
{
    static const char *const engines[] = {"sync", "threads"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
        struct blk_guest *guest = start(engines[i]);

        for (uint64_t sector = 0; sector < IN_FLIGHT; sector++)
            offer_read(guest, 0, sector);
        notify(guest, 0);
        stall_wait(&stall, most_at_once(engines[i]) < 8 ? 1 : 8); /* threads of a pool */

        guest_write(&guest->guest, STATUS, 1, 0); /* comes back at once */
        assert_int_equal(device_status(guest), 0x01);
        /* Nothing is accepted until it is done. */
        guest_write(&guest->guest, STATUS, 1, 0x0f);
        guest_write(&guest->guest, QUEUE_SELECT, 2, 0);
        guest_write(&guest->guest, QUEUE_ENABLE, 2, 1);
        assert_int_equal(device_status(guest), 0x01);
        guest_write(&guest->guest, STATUS, 1, 0);
        assert_int_equal(device_status(guest), 0x01);

        stall_release(&stall, IN_FLIGHT);
        wait_for(is_reset, guest);
        assert_int_equal(used_count(guest, 0), 0);
        assert_false(guest->guest.level);
        assert_int_equal(guest_read(&guest->guest, QUEUE_ENABLE, 2), 0);

        memset(data(guest), 0, 64 * KIB); /* it is the guest's again */
        blk_start_driver(guest, ALL_FEATURES);
        stall_release(&stall, 1);
        assert_int_equal(read_sectors(guest, 1, 512), OK);
        assert_pattern(data(guest), 512, 512);
        assert_int_equal(data(guest)[1024], 0);
        blk_guest_finish(guest);
    }
}

static void registers_answer_while_the_host_does_not(void **state)
{
    struct blk_guest *guest = start("sync");

    (void)state;
    offer_read(guest, 0, 0);
    notify(guest, 0);
    stall_wait(&stall, 1);
    notify(guest, 1);
    assert_int_equal(device_status(guest), 0x0f);
    assert_int_equal(guest_read(&guest->guest, CONFIG, 4), DISK_SECTORS);
    guest_write(&guest->guest, CONFIG + 32, 1, 1);
    virtio_blk_update_size(guest->blk);
    virtio_blk_retry(guest->blk);
    stall_release(&stall, 1);
    wait_used(guest, 0, 1);
    blk_guest_finish(guest);
}

static bool queue_is_reset(struct blk_guest *guest)
{
    return guest_read(&guest->guest, QUEUE_RESET, 2) == 0;
}

static void reset_of_a_queue_waits_for_its_requests_and_no_others(void **state)
{
    struct blk_guest *guest = start("threads");

    (void)state;
    offer_read(guest, 0, 0);
    notify(guest, 0);
    stall_wait(&stall, 1);
    guest_write(&guest->guest, QUEUE_SELECT, 2, 1);
    guest_write(&guest->guest, QUEUE_RESET, 2, 1);
    assert_int_equal(guest_read(&guest->guest, QUEUE_RESET, 2), 0);
    guest_write(&guest->guest, QUEUE_SELECT, 2, 0);
    guest_write(&guest->guest, QUEUE_RESET, 2, 1);
    assert_int_equal(guest_read(&guest->guest, QUEUE_RESET, 2), 1);
    assert_int_equal(device_status(guest), 0x0f);
    stall_release(&stall, 1);
    wait_for(queue_is_reset, guest);
    assert_int_equal(used_count(guest, 0), 0);
    assert_int_equal(guest_read(&guest->guest, QUEUE_ENABLE, 2), 0);
    blk_guest_finish(guest);
}

static bool wants_attention(struct blk_guest *guest)
{
    return guest->attentions > 0;
}

/* As for a reset of the machine, after which memory is not what it was. */
static void owner_is_told_when_nothing_is_in_flight_any_more(void **state)
{
    struct blk_guest *guest = start("threads");

    (void)state;
    assert_true(virtio_blk_stop(guest->blk));
    blk_start_driver(guest, ALL_FEATURES);
    offer_read(guest, 0, 0);
    notify(guest, 0);
    stall_wait(&stall, 1);
    assert_false(virtio_blk_stop(guest->blk));
    assert_int_equal(guest->attentions, 0);
    stall_release(&stall, 1);
    wait_for(wants_attention, guest);
    assert_true(virtio_blk_stop(guest->blk));
    assert_int_equal(used_count(guest, 0), 0);
    blk_guest_finish(guest);
}

static void end_does_not_wait_for_a_host_that_does_not_answer(void **state)
{
    struct blk_guest *guest = start("sync");

    (void)state;
    offer_read(guest, 0, 0);
    notify(guest, 0);
    stall_wait(&stall, 1);
    virtio_blk_end(guest->blk);
    assert_false(virtio_blk_has_ended(guest->blk, 20));
    stall_release(&stall, 1);
    blk_guest_finish(guest);
    assert_int_equal(guest->attentions, 0);
}

/* Whatever is in flight at whatever moment. */
static void resets_at_any_moment_leave_nothing_behind(void **state)
{
    static struct blk_guest guest;

    (void)state;
    blk_guest_init(&guest, &(struct blk_setup){.engine = "threads"});
    for (unsigned round = 0; round < 200; round++) {
        blk_start_driver(&guest, ALL_FEATURES);
        for (unsigned i = 0; i < round % IN_FLIGHT; i++)
            offer_read(&guest, i % QUEUES, i);
        notify(&guest, 0);
        notify(&guest, 1);
        guest_write(&guest.guest, STATUS, 1, 0);
        wait_for(is_reset, &guest);
        /* As a driver does with memory that is its own again: plain writes. */
        memset(data(&guest), 0, 64 * KIB);
        assert_false(guest.guest.level);
    }
    blk_guest_finish(&guest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reset_with_requests_in_flight_is_done_when_they_are),
        cmocka_unit_test(registers_answer_while_the_host_does_not),
        cmocka_unit_test(reset_of_a_queue_waits_for_its_requests_and_no_others),
        cmocka_unit_test(owner_is_told_when_nothing_is_in_flight_any_more),
        cmocka_unit_test(end_does_not_wait_for_a_host_that_does_not_answer),
        cmocka_unit_test(resets_at_any_moment_leave_nothing_behind),
    };

    return cmocka_run_group_tests_name("virtio-blk reset", tests, NULL, NULL);
}
