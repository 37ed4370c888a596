/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that resets virtio-rng again and again while the loop serves it on another
 * thread: once a reset is done, nothing is written any more. */
#include "pci_fixture.h"

#include <pthread.h>

#include "base/loop.h"
#include "virtio/rng.h"

#define ROUNDS 300
#define BUFFER 0x10000
#define BUFFER_BYTES 256

static void *run_loop(void *context)
{
    struct error err = ERROR_NONE;

    assert_int_equal(loop_run(context, &err), 0);
    return NULL;
}

static void stop_loop(void *context)
{
    loop_stop(context);
}

/* Offers all of the ring, starts and notifies the device, and resets it whatever has
 * become of that. The ring is written beforehand, since the thread sanitizer takes a
 * driver's plain writes beside the device's reads for a race. */
static void ask_and_reset(struct guest *guest)
{
    put16(guest->memory, RING_AVAILABLE + 2, 0);
    for (uint16_t i = 0; i < RING_SIZE; i++) {
        put_descriptor(guest->memory, RING_DESCRIPTORS, i, BUFFER + i * 0x1000u,
                       BUFFER_BYTES, WRITE, 0);
        make_available(guest->memory, i);
    }
    guest_start_driver(guest, VIRTIO_F_VERSION_1 | VIRTIO_F_EVENT_IDX);
    guest_write(guest, NOTIFY, 2, 0);
    guest_write(guest, STATUS, 1, 0);
    assert_int_equal(guest_read(guest, STATUS, 1), 0);
}

static void nothing_is_in_flight_after_a_reset(void **state)
{
    static struct guest guest;
    struct virtio_rng *rng = NULL;
    struct loop *loop = NULL;
    struct error err = ERROR_NONE;
    struct loop_post stop;
    pthread_t thread;

    (void)state;
    guest_init(&guest);
    assert_int_equal(loop_create(&loop, &err), 0);
    assert_int_equal(virtio_rng_create(loop, guest.memory, &rng, &err), 0);
    guest_attach(&guest, virtio_rng_device(rng), VIRTIO_RNG_CLASS_CODE);
    assert_int_equal(loop_post_init(&stop, loop, stop_loop, loop, &err), 0);
    assert_int_equal(pthread_create(&thread, NULL, run_loop, loop), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint16_t used;

        ask_and_reset(&guest);
        used = get16(guest.memory, RING_USED + 2);
        /* As a driver does with memory that is its own again: plain writes. */
        memset(memory_slice(guest.memory, BUFFER, RING_SIZE * UINT64_C(0x1000)), 0,
               RING_SIZE * UINT64_C(0x1000));
        put16(guest.memory, RING_USED + 2, 0);
        assert_in_range(used, 0, RING_SIZE);
        assert_false(guest.level);
    }
    loop_post(&stop);
    assert_int_equal(pthread_join(thread, NULL), 0);
    loop_post_finish(&stop);
    guest_finish(&guest);
    virtio_rng_destroy(rng);
    loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_in_flight_after_a_reset),
    };

    return cmocka_run_group_tests_name("virtio reset", tests, NULL, NULL);
}
