/* SPDX-License-Identifier: Apache-2.0 */
/* virtio-pmem as its driver uses it: flushes, which a thread of its own serves. The
 * host's storage is the test: it answers when and how it likes. */
#include "pci_fixture.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>

#include "base/log.h"
#include "virtio/pmem.h"

#define REQUEST 0x10000
#define RESPONSE 0x11000
#define UNTOUCHED 0xffffffff

struct fixture {
    struct guest guest;
    struct virtio_pmem *pmem;
};

/* ---- the host ---- */

static atomic_int syncs;      /* begun */
static atomic_int sync_errno; /* 0: they succeed */
static atomic_bool sync_waits;

/* The linker's --wrap has this name. NOLINTBEGIN(bugprone-reserved-identifier) */
int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
/* NOLINTEND(bugprone-reserved-identifier) */
{
    assert_int_equal(fd, 77);
    atomic_fetch_add(&syncs, 1);
    while (atomic_load(&sync_waits))
        (void)poll(NULL, 0, 1);
    errno = atomic_load(&sync_errno);
    return errno == 0 ? 0 : -1;
}

/* Waits for as long as only a fault would take. */
static void await_syncs(int count)
{
    for (int i = 0; i < 10000 && atomic_load(&syncs) < count; i++)
        (void)poll(NULL, 0, 1);
    assert_int_equal(atomic_load(&syncs), count);
}

/* ---- the driver ---- */

static void create(struct fixture *fixture, enum virtio_pmem_flush flush)
{
    const struct virtio_pmem_options options = {.name = "pmem a.img",
                                                .gpa = 0x140000000,
                                                .size_bytes = 0x600000,
                                                .fd = 77,
                                                .flush = flush};
    struct error err = ERROR_NONE;

    atomic_store(&syncs, 0);
    atomic_store(&sync_errno, 0);
    guest_init(&fixture->guest);
    if (virtio_pmem_create(&options, fixture->guest.memory, &fixture->pmem, &err) < 0)
        fail_msg("%s", err.text);
    guest_attach(&fixture->guest, virtio_pmem_device(fixture->pmem),
                 VIRTIO_PMEM_CLASS_CODE);
    guest_start_driver(&fixture->guest, VIRTIO_F_VERSION_1);
}

static void destroy(struct fixture *fixture)
{
    assert_true(virtio_pmem_end(fixture->pmem, 60000));
    guest_finish(&fixture->guest);
    virtio_pmem_destroy(fixture->pmem);
}

static void put32(struct fixture *fixture, uint64_t gpa, uint32_t value)
{
    assert_int_equal(memory_write(fixture->guest.memory, gpa, &value, sizeof(value)), 0);
}

/* Makes a request of `type` available, with descriptors `index` and the next. */
static void ask(struct fixture *fixture, unsigned index, uint32_t type)
{
    struct memory *memory = fixture->guest.memory;

    put32(fixture, REQUEST + UINT64_C(16) * index, type);
    put32(fixture, RESPONSE + UINT64_C(16) * index, UNTOUCHED);
    put_descriptor(memory, RING_DESCRIPTORS, index, REQUEST + UINT64_C(16) * index, 4,
                   NEXT, (uint16_t)(index + 1));
    put_descriptor(memory, RING_DESCRIPTORS, index + 1, RESPONSE + UINT64_C(16) * index,
                   4, WRITE, 0);
    make_available(memory, (uint16_t)index);
}

/* Pairs with the device's release: what it has written is there. */
static uint16_t used(struct fixture *fixture)
{
    return atomic_load(
        (_Atomic uint16_t *)memory_slice(fixture->guest.memory, RING_USED + 2, 2));
}

static void await_used(struct fixture *fixture, uint16_t count)
{
    for (int i = 0; i < 10000 && used(fixture) != count; i++)
        (void)poll(NULL, 0, 1);
    assert_int_equal(used(fixture), count);
}

static void await_status(struct fixture *fixture, uint32_t status)
{
    for (int i = 0; i < 10000 && guest_read(&fixture->guest, STATUS, 1) != status; i++)
        (void)poll(NULL, 0, 1);
    assert_int_equal(guest_read(&fixture->guest, STATUS, 1), status);
}

static void notify(struct fixture *fixture)
{
    guest_write(&fixture->guest, NOTIFY, 2, 0);
}

static uint32_t answer_of(struct fixture *fixture, unsigned index)
{
    return get32(fixture->guest.memory, RESPONSE + UINT64_C(16) * index);
}

/* ---- tests ---- */

static void function_says_where_the_memory_is(void **state)
{
    struct fixture fixture;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_NONE);
    assert_int_equal(guest_config_read(&fixture.guest, 0x00, 4), 0x105b1af4);
    assert_int_equal(guest_config_read(&fixture.guest, 0x08, 4), 0x05800001);
    assert_int_equal(guest_read(&fixture.guest, QUEUE_COUNT, 2), 1);
    assert_int_equal(guest_read(&fixture.guest, CONFIG, 4), 0x40000000);
    assert_int_equal(guest_read(&fixture.guest, CONFIG + 4, 4), 1);
    assert_int_equal(guest_read(&fixture.guest, CONFIG + 8, 4), 0x600000);
    assert_int_equal(guest_read(&fixture.guest, CONFIG + 12, 4), 0);
    assert_int_equal(guest_read(&fixture.guest, CONFIG + 10, 1), 0x60);
    guest_write(&fixture.guest, CONFIG, 4, 0);
    assert_int_equal(guest_read(&fixture.guest, CONFIG, 4), 0x40000000);
    destroy(&fixture);
}

static void flush_of_a_file_succeeds(void **state)
{
    struct fixture fixture;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_FILE);
    ask(&fixture, 0, 0);
    ask(&fixture, 2, 0);
    notify(&fixture);
    await_used(&fixture, 2);
    assert_int_equal(answer_of(&fixture, 0), 0);
    assert_int_equal(answer_of(&fixture, 2), 0);
    assert_int_equal(get32(fixture.guest.memory, RING_USED + 8), 4); /* bytes written */
    destroy(&fixture);
}

static void flush_that_fails_is_an_error_and_so_are_those_after_it(void **state)
{
    struct fixture fixture;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_FILE);
    atomic_store(&sync_errno, EIO);
    ask(&fixture, 0, 0);
    notify(&fixture);
    await_used(&fixture, 1);
    assert_int_equal(answer_of(&fixture, 0), 1);
    atomic_store(&sync_errno, 0); /* but what was lost stays lost */
    ask(&fixture, 2, 0);
    notify(&fixture);
    await_used(&fixture, 2);
    assert_int_equal(answer_of(&fixture, 2), 1);
    destroy(&fixture);
}

static void flushes_that_come_meanwhile_are_served_together(void **state)
{
    struct fixture fixture;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_FILE);
    atomic_store(&sync_waits, true);
    ask(&fixture, 0, 0);
    notify(&fixture);
    await_syncs(1);
    ask(&fixture, 2, 0);
    ask(&fixture, 4, 0);
    notify(&fixture);
    assert_int_equal(used(&fixture), 0);
    atomic_store(&sync_waits, false);
    await_used(&fixture, 3);
    assert_int_equal(atomic_load(&syncs), 2);
    destroy(&fixture);
}

/* The vCPU that resets it goes on at once. */
static void reset_during_a_flush_is_done_when_the_host_has_answered(void **state)
{
    struct fixture fixture;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_FILE);
    atomic_store(&sync_waits, true);
    ask(&fixture, 0, 0);
    notify(&fixture);
    await_syncs(1);
    guest_write(&fixture.guest, STATUS, 1, 0);
    assert_int_equal(guest_read(&fixture.guest, STATUS, 1), VIRTIO_STATUS_ACKNOWLEDGE);
    atomic_store(&sync_waits, false);
    await_status(&fixture, 0);
    assert_int_equal(used(&fixture), 0);
    assert_int_equal(answer_of(&fixture, 0), UNTOUCHED);
    destroy(&fixture);
}

static void end_does_not_wait_forever_for_the_host(void **state)
{
    struct fixture fixture;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_FILE);
    atomic_store(&sync_waits, true);
    ask(&fixture, 0, 0);
    notify(&fixture);
    await_syncs(1);
    assert_false(virtio_pmem_end(fixture.pmem, 10));
    atomic_store(&sync_waits, false);
    destroy(&fixture);
}

static void flush_of_a_read_only_file_is_an_error(void **state)
{
    struct fixture fixture;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_REFUSE);
    ask(&fixture, 0, 0);
    notify(&fixture);
    await_used(&fixture, 1);
    assert_int_equal(answer_of(&fixture, 0), 1);
    destroy(&fixture);
}

static void flush_of_what_is_ephemeral_does_nothing_and_succeeds(void **state)
{
    struct fixture fixture;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_NONE);
    ask(&fixture, 0, 0);
    notify(&fixture);
    await_used(&fixture, 1);
    assert_int_equal(answer_of(&fixture, 0), 0);
    assert_int_equal(atomic_load(&syncs), 0);
    destroy(&fixture);
}

static void unknown_request_is_an_error(void **state)
{
    struct fixture fixture;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_NONE);
    ask(&fixture, 0, 1);
    notify(&fixture);
    await_used(&fixture, 1);
    assert_int_equal(answer_of(&fixture, 0), 1);
    destroy(&fixture);
}

static void request_without_room_for_an_answer_gets_none(void **state)
{
    struct fixture fixture;
    struct memory *memory;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_NONE);
    memory = fixture.guest.memory;
    put32(&fixture, RESPONSE, UNTOUCHED);
    put_descriptor(memory, RING_DESCRIPTORS, 0, REQUEST, 4, 0, 0);
    make_available(memory, 0);
    put_descriptor(memory, RING_DESCRIPTORS, 1, REQUEST, 3, NEXT, 2); /* no whole type */
    put_descriptor(memory, RING_DESCRIPTORS, 2, RESPONSE, 2, WRITE, 0);
    make_available(memory, 1);
    notify(&fixture);
    await_used(&fixture, 2);
    assert_int_equal(get32(memory, RING_USED + 8), 0);
    assert_int_equal(get32(memory, RING_USED + 16), 2);
    assert_int_equal(get32(memory, RESPONSE), 0xffff0001);
    destroy(&fixture);
}

static void request_before_the_start_is_served_at_the_start(void **state)
{
    struct fixture fixture;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_NONE);
    guest_write(&fixture.guest, STATUS, 1, 0);
    assert_int_equal(guest_read(&fixture.guest, STATUS, 1), 0);
    ask(&fixture, 0, 0);
    guest_start_driver(&fixture.guest, VIRTIO_F_VERSION_1);
    await_used(&fixture, 1);
    assert_int_equal(answer_of(&fixture, 0), 0);
    destroy(&fixture);
}

static void broken_ring_stops_it_until_a_reset(void **state)
{
    struct fixture fixture;
    struct memory *memory;

    (void)state;
    create(&fixture, VIRTIO_PMEM_FLUSH_NONE);
    memory = fixture.guest.memory;
    put_descriptor(memory, RING_DESCRIPTORS, 0, 0x80000000, 4, WRITE, 0);
    make_available(memory, 0);
    notify(&fixture);
    await_status(&fixture, 0x4f);
    put16(memory, RING_AVAILABLE + 2, 0);
    guest_start_driver(&fixture.guest, VIRTIO_F_VERSION_1);
    ask(&fixture, 0, 0);
    notify(&fixture);
    await_used(&fixture, 1);
    assert_int_equal(answer_of(&fixture, 0), 0);
    destroy(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(function_says_where_the_memory_is),
        cmocka_unit_test(flush_of_a_file_succeeds),
        cmocka_unit_test(flush_that_fails_is_an_error_and_so_are_those_after_it),
        cmocka_unit_test(flushes_that_come_meanwhile_are_served_together),
        cmocka_unit_test(reset_during_a_flush_is_done_when_the_host_has_answered),
        cmocka_unit_test(end_does_not_wait_forever_for_the_host),
        cmocka_unit_test(flush_of_a_read_only_file_is_an_error),
        cmocka_unit_test(flush_of_what_is_ephemeral_does_nothing_and_succeeds),
        cmocka_unit_test(unknown_request_is_an_error),
        cmocka_unit_test(request_without_room_for_an_answer_gets_none),
        cmocka_unit_test(request_before_the_start_is_served_at_the_start),
        cmocka_unit_test(broken_ring_stops_it_until_a_reset),
    };

    log_set_level(LOG_ERROR); /* failed flushes are told */
    return cmocka_run_group_tests_name("virtio-pmem", tests, NULL, NULL);
}
