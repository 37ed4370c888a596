/* SPDX-License-Identifier: Apache-2.0 */
/* virtio-rng as its driver uses it, on a loop that the test turns. */
#include "pci_fixture.h"

#include <event2/event.h>
#include <string.h>

#include "virtio/rng.h"

#define BUFFER 0x10000

struct fixture {
    struct guest guest;
    struct loop *loop;
    struct virtio_rng *rng;
};

static int setup(void **state)
{
    static struct fixture fixture;
    struct error err = ERROR_NONE;

    guest_init(&fixture.guest);
    assert_int_equal(loop_create(&fixture.loop, &err), 0);
    assert_int_equal(
        virtio_rng_create(fixture.loop, fixture.guest.memory, &fixture.rng, &err), 0);
    guest_attach(&fixture.guest, virtio_rng_device(fixture.rng), VIRTIO_RNG_CLASS_CODE);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    guest_finish(&fixture->guest);
    virtio_rng_destroy(fixture->rng);
    loop_destroy(fixture->loop);
    return 0;
}

static void turn_loop(struct fixture *fixture)
{
    assert_true(event_base_loop(loop_event_base(fixture->loop), EVLOOP_NONBLOCK) >= 0);
}

static void ask(struct fixture *fixture, unsigned index, uint64_t address, uint32_t size)
{
    put_descriptor(fixture->guest.memory, RING_DESCRIPTORS, index, address, size, WRITE,
                   0);
    make_available(fixture->guest.memory, (uint16_t)index);
}

static unsigned zero_bytes(struct fixture *fixture, uint64_t gpa, size_t size)
{
    const uint8_t *bytes = memory_slice(fixture->guest.memory, gpa, size);
    unsigned zeros = 0;

    for (size_t i = 0; i < size; i++)
        zeros += bytes[i] == 0;
    return zeros;
}

static uint16_t used(struct fixture *fixture)
{
    return get16(fixture->guest.memory, RING_USED + 2);
}

static void function_is_a_source_of_entropy(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(guest_config_read(&fixture->guest, 0x00, 4), 0x10441af4);
    assert_int_equal(guest_config_read(&fixture->guest, 0x08, 4), 0x00ff0001);
    assert_int_equal(guest_read(&fixture->guest, QUEUE_COUNT, 2), 1);
    assert_int_equal(guest_read(&fixture->guest, CONFIG, 4), 0xffffffff);
}

static void buffers_are_filled(void **state)
{
    struct fixture *fixture = *state;

    guest_start_driver(&fixture->guest, VIRTIO_F_VERSION_1);
    ask(fixture, 0, BUFFER, 64);
    ask(fixture, 1, BUFFER + 0x1000, 64);
    guest_write(&fixture->guest, NOTIFY, 2, 0);
    turn_loop(fixture);
    assert_int_equal(used(fixture), 2);
    assert_int_equal(get32(fixture->guest.memory, RING_USED + 8), 64);
    assert_true(zero_bytes(fixture, BUFFER, 64) < 32); /* 0.25 are to be expected */
    assert_memory_not_equal(memory_slice(fixture->guest.memory, BUFFER, 64),
                            memory_slice(fixture->guest.memory, BUFFER + 0x1000, 64), 64);
    assert_int_equal(zero_bytes(fixture, BUFFER + 64, 64), 64); /* not a byte more */
    assert_true(fixture->guest.level);
}

static void request_before_the_start_is_served_at_the_start(void **state)
{
    struct fixture *fixture = *state;

    ask(fixture, 0, BUFFER, 8);
    guest_start_driver(&fixture->guest, VIRTIO_F_VERSION_1);
    turn_loop(fixture);
    assert_int_equal(used(fixture), 1);
}

static void request_of_a_time_without_memory_is_served_later(void **state)
{
    struct fixture *fixture = *state;

    guest_start_driver(&fixture->guest, VIRTIO_F_VERSION_1);
    guest_config_write(&fixture->guest, 0x04, 2, 0x0002); /* no bus master */
    ask(fixture, 0, BUFFER, 8);
    guest_write(&fixture->guest, NOTIFY, 2, 0);
    turn_loop(fixture);
    assert_int_equal(used(fixture), 0);
    guest_config_write(&fixture->guest, 0x04, 2, 0x0006);
    turn_loop(fixture);
    assert_int_equal(used(fixture), 1);
}

static void large_request_gets_less(void **state)
{
    struct fixture *fixture = *state;

    guest_start_driver(&fixture->guest, VIRTIO_F_VERSION_1);
    ask(fixture, 0, BUFFER, 0x10000);
    guest_write(&fixture->guest, NOTIFY, 2, 0);
    turn_loop(fixture);
    assert_int_equal(get32(fixture->guest.memory, RING_USED + 8), 4096);
    assert_int_equal(zero_bytes(fixture, BUFFER + 4096, 4096), 4096);
}

static void request_without_room_is_given_back_empty(void **state)
{
    struct fixture *fixture = *state;

    guest_start_driver(&fixture->guest, VIRTIO_F_VERSION_1);
    put_descriptor(fixture->guest.memory, RING_DESCRIPTORS, 0, BUFFER, 64, 0, 0);
    make_available(fixture->guest.memory, 0);
    guest_write(&fixture->guest, NOTIFY, 2, 0);
    turn_loop(fixture);
    assert_int_equal(used(fixture), 1);
    assert_int_equal(get32(fixture->guest.memory, RING_USED + 8), 0);
    assert_int_equal(zero_bytes(fixture, BUFFER, 64), 64);
}

static void nothing_is_written_after_a_reset(void **state)
{
    struct fixture *fixture = *state;

    guest_start_driver(&fixture->guest, VIRTIO_F_VERSION_1);
    ask(fixture, 0, BUFFER, 64);
    guest_write(&fixture->guest, STATUS, 1, 0);
    guest_write(&fixture->guest, NOTIFY, 2, 0);
    turn_loop(fixture);
    assert_int_equal(used(fixture), 0);
    assert_int_equal(zero_bytes(fixture, BUFFER, 64), 64);
}

static void broken_ring_stops_it_until_a_reset(void **state)
{
    struct fixture *fixture = *state;

    guest_start_driver(&fixture->guest, VIRTIO_F_VERSION_1);
    ask(fixture, 0, 0x80000000, 64);
    guest_write(&fixture->guest, NOTIFY, 2, 0);
    turn_loop(fixture);
    assert_int_equal(guest_read(&fixture->guest, STATUS, 1), 0x4f);
    assert_int_equal(used(fixture), 0);
    put16(fixture->guest.memory, RING_AVAILABLE + 2, 0);
    guest_start_driver(&fixture->guest, VIRTIO_F_VERSION_1);
    ask(fixture, 0, BUFFER, 64);
    guest_write(&fixture->guest, NOTIFY, 2, 0);
    turn_loop(fixture);
    assert_int_equal(used(fixture), 1);
}

#define RNG_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RNG_TEST(function_is_a_source_of_entropy),
        RNG_TEST(buffers_are_filled),
        RNG_TEST(request_before_the_start_is_served_at_the_start),
        RNG_TEST(request_of_a_time_without_memory_is_served_later),
        RNG_TEST(large_request_gets_less),
        RNG_TEST(request_without_room_is_given_back_empty),
        RNG_TEST(nothing_is_written_after_a_reset),
        RNG_TEST(broken_ring_stops_it_until_a_reset),
    };

    return cmocka_run_group_tests_name("virtio-rng", tests, NULL, NULL);
}
