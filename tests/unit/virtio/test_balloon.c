/* SPDX-License-Identifier: Apache-2.0 */
/* virtio-balloon as its driver uses it, on a loop that the test turns. */
#include "pci_fixture.h"

#include <event2/event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "virtio/balloon.h"

#define PAGE UINT64_C(4096)

/* 5.5.3 */
#define STATISTICS 0x02
#define DEFLATE_ON_OOM 0x04
#define POISON 0x10
#define REPORTING 0x20

/* 5.5.4 */
#define CONFIG_ACTUAL (CONFIG + 4)
#define CONFIG_POISON (CONFIG + 12)

#define LIST 0x10000       /* of page numbers, or statistics */
#define PAGES (256 * KIB)  /* pages to give away */
#define KERNEL (512 * KIB) /* pages of a file */
#define KERNEL_PAGES 16

struct fixture {
    struct guest guest;
    struct loop *loop;
    struct virtio_balloon *balloon;
};

static void map_kernel(struct memory *memory)
{
    int fd = memfd_create("kernel", MFD_CLOEXEC);
    struct error err = ERROR_NONE;
    char page[PAGE];

    memset(page, 'k', sizeof(page));
    for (int i = 0; i < KERNEL_PAGES; i++)
        assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
    assert_int_equal(
        memory_map_file(memory, KERNEL, fd, 0, KERNEL_PAGES * PAGE, "kernel", &err), 0);
    close(fd);
}

/* The third span of driver.h's memory is none that may be given back. */
static int setup(void **state)
{
    static struct fixture fixture;
    const struct virtio_balloon_options options = {
        .spans = {{64 * KIB, MIB - 64 * KIB}, {MIB, MIB}}, .span_count = 2};
    struct error err = ERROR_NONE;

    guest_init(&fixture.guest);
    map_kernel(fixture.guest.memory);
    assert_int_equal(loop_create(&fixture.loop, &err), 0);
    assert_int_equal(virtio_balloon_create(&options, fixture.loop, fixture.guest.memory,
                                           &fixture.balloon, &err),
                     0);
    guest_attach(&fixture.guest, virtio_balloon_device(fixture.balloon),
                 VIRTIO_BALLOON_CLASS_CODE);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    guest_finish(&fixture->guest);
    virtio_balloon_destroy(fixture->balloon);
    loop_destroy(fixture->loop);
    return 0;
}

/* Until it has nothing to do. */
static void turn_loop(struct fixture *fixture)
{
    for (int i = 0; i < 20; i++)
        assert_true(event_base_loop(loop_event_base(fixture->loop), EVLOOP_NONBLOCK) >=
                    0);
}

static void fill(struct fixture *fixture, uint64_t gpa, char letter, size_t pages)
{
    memset(memory_slice(fixture->guest.memory, gpa, pages * PAGE), letter, pages * PAGE);
}

static void assert_filled(struct fixture *fixture, uint64_t gpa, char letter,
                          size_t pages)
{
    const char *bytes = memory_slice(fixture->guest.memory, gpa, pages * PAGE);

    for (size_t i = 0; i < pages * PAGE; i++)
        if (bytes[i] != letter)
            fail_msg("byte 0x%zx behind 0x%zx is 0x%02x", i, (size_t)gpa,
                     (unsigned char)bytes[i]);
}

static size_t resident_pages(struct fixture *fixture, uint64_t gpa, size_t pages)
{
    unsigned char state[64];
    size_t resident = 0;

    assert_int_equal(mincore(memory_slice(fixture->guest.memory, gpa, pages * PAGE),
                             pages * PAGE, state),
                     0);
    for (size_t i = 0; i < pages; i++)
        resident += state[i] & 1;
    return resident;
}

/* With one queue. */
static void start_driver(struct fixture *fixture, uint64_t features, uint16_t queue)
{
    guest_set_features(&fixture->guest, VIRTIO_F_VERSION_1 | features);
    assert_int_equal(guest_read(&fixture->guest, STATUS, 1), 0x0b);
    guest_place_queue(&fixture->guest, queue);
    guest_write(&fixture->guest, STATUS, 1, 0x0f);
    turn_loop(fixture);
}

static void notify(struct fixture *fixture, uint16_t queue)
{
    guest_write(&fixture->guest, NOTIFY + UINT64_C(4) * queue, 2, queue);
    turn_loop(fixture);
}

static uint16_t used(struct fixture *fixture)
{
    return get16(fixture->guest.memory, RING_USED + 2);
}

static struct virtio_balloon_status status(struct fixture *fixture)
{
    struct virtio_balloon_status status;

    virtio_balloon_status(fixture->balloon, &status);
    return status;
}

/* ---- configuration ---- */

static void function_is_a_balloon_of_five_queues(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(guest_config_read(&fixture->guest, 0x00, 4), 0x10451af4);
    assert_int_equal(guest_config_read(&fixture->guest, 0x08, 4), 0x00ff0001);
    assert_int_equal(guest_read(&fixture->guest, QUEUE_COUNT, 2), 5);
    assert_int_equal(guest_read(&fixture->guest, DEVICE_FEATURE, 4) & 0xff,
                     STATISTICS | DEFLATE_ON_OOM | POISON | REPORTING);
    for (unsigned at = 0; at < 16; at += 4)
        assert_int_equal(guest_read(&fixture->guest, CONFIG + at, 4), 0);
}

static void driver_hears_of_a_target_and_says_how_far_it_is(void **state)
{
    struct fixture *fixture = *state;

    start_driver(fixture, 0, 0);
    virtio_balloon_set_target(fixture->balloon, 3 * PAGE);
    assert_true(fixture->guest.level);
    assert_int_equal(guest_read(&fixture->guest, ISR, 1), 2);
    assert_int_equal(guest_read(&fixture->guest, GENERATION, 1), 1);
    assert_int_equal(guest_read(&fixture->guest, CONFIG, 4), 3);
    virtio_balloon_set_target(fixture->balloon, 3 * PAGE);
    assert_false(fixture->guest.level); /* that is nothing new */
    guest_write(&fixture->guest, CONFIG_ACTUAL, 4, 2);
    assert_int_equal(guest_read(&fixture->guest, CONFIG_ACTUAL, 4), 2);
    assert_int_equal(status(fixture).target_bytes, 3 * PAGE);
    assert_int_equal(status(fixture).actual_bytes, 2 * PAGE);
}

static void target_stays_over_a_reset_and_the_balloon_is_empty(void **state)
{
    struct fixture *fixture = *state;

    virtio_balloon_set_target(fixture->balloon, 3 * PAGE);
    assert_false(fixture->guest.level); /* nobody is there to hear of it */
    start_driver(fixture, 0, 0);
    guest_write(&fixture->guest, CONFIG_ACTUAL, 4, 3);
    guest_write(&fixture->guest, CONFIG_POISON, 4, 0xaa);
    guest_write(&fixture->guest, STATUS, 1, 0);
    assert_int_equal(guest_read(&fixture->guest, CONFIG, 4), 3);
    assert_int_equal(guest_read(&fixture->guest, CONFIG_ACTUAL, 4), 0);
    assert_int_equal(guest_read(&fixture->guest, CONFIG_POISON, 4), 0);
}

static void other_words_are_for_reading(void **state)
{
    struct fixture *fixture = *state;

    guest_write(&fixture->guest, CONFIG, 4, 7);
    guest_write(&fixture->guest, CONFIG + 8, 4, 7);
    guest_write(&fixture->guest, CONFIG_ACTUAL + 2, 2, 7);
    for (unsigned at = 0; at < 16; at += 4)
        assert_int_equal(guest_read(&fixture->guest, CONFIG + at, 4), 0);
}

/* ---- inflation ---- */

/* Chain 0 is a list of page numbers at LIST. */
static void name_pages(struct fixture *fixture, uint16_t queue, const uint32_t *numbers,
                       size_t count)
{
    struct memory *memory = fixture->guest.memory;

    assert_int_equal(memory_write(memory, LIST, numbers, count * sizeof(numbers[0])), 0);
    put_descriptor(memory, RING_DESCRIPTORS, 0, LIST,
                   (uint32_t)(count * sizeof(numbers[0])), 0, 0);
    make_available(memory, 0);
    notify(fixture, queue);
}

static void named_pages_are_given_back_and_no_others(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t first = PAGES / PAGE;
    const uint32_t numbers[] = {first + 1, first + 2, first + 6, first + 5, first + 8};

    fill(fixture, PAGES, 'x', 10);
    start_driver(fixture, 0, 0);
    name_pages(fixture, 0, numbers, ARRAY_SIZE(numbers));
    assert_int_equal(used(fixture), 1);
    assert_int_equal(get32(fixture->guest.memory, RING_USED + 8), 0);
    assert_true(fixture->guest.level);
    assert_int_equal(resident_pages(fixture, PAGES, 10), 5);
    assert_filled(fixture, PAGES, 'x', 1);
    assert_filled(fixture, PAGES + PAGE, '\0', 2);
    assert_filled(fixture, PAGES + 3 * PAGE, 'x', 2);
    assert_filled(fixture, PAGES + 5 * PAGE, '\0', 2);
    assert_filled(fixture, PAGES + 7 * PAGE, 'x', 1);
    assert_filled(fixture, PAGES + 8 * PAGE, '\0', 1);
    assert_filled(fixture, PAGES + 9 * PAGE, 'x', 1);
    assert_int_equal(status(fixture).inflated_bytes, 5 * PAGE);
    assert_int_equal(status(fixture).reported_bytes, 0);
}

static void deflation_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t numbers[] = {PAGES / PAGE};

    fill(fixture, PAGES, 'x', 1);
    start_driver(fixture, 0, 1);
    name_pages(fixture, 1, numbers, 1);
    assert_int_equal(used(fixture), 1);
    assert_filled(fixture, PAGES, 'x', 1);
}

/* Below the first span, in a span that is none of the balloon's, in a hole, nowhere. */
static void pages_that_may_not_be_given_back_stay(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t numbers[] = {15, 4 * MIB / PAGE, 3 * MIB / PAGE, UINT32_MAX,
                                PAGES / PAGE};

    fill(fixture, 15 * PAGE, 'r', 1);
    fill(fixture, 4 * MIB, 'r', 1);
    fill(fixture, PAGES, 'x', 1);
    start_driver(fixture, 0, 0);
    name_pages(fixture, 0, numbers, ARRAY_SIZE(numbers));
    assert_int_equal(used(fixture), 1);
    assert_filled(fixture, 15 * PAGE, 'r', 1);
    assert_filled(fixture, 4 * MIB, 'r', 1);
    assert_filled(fixture, PAGES, '\0', 1);
}

/* More than a turn of the loop takes, and in two pieces that cut a number in two. */
static void long_list_is_taken_to_its_end(void **state)
{
    struct fixture *fixture = *state;
    struct memory *memory = fixture->guest.memory;
    uint32_t numbers[1000];

    for (uint32_t i = 0; i < ARRAY_SIZE(numbers); i++)
        numbers[i] = PAGES / PAGE + 63;
    numbers[0] = PAGES / PAGE;
    numbers[ARRAY_SIZE(numbers) - 1] = PAGES / PAGE + 1;
    fill(fixture, PAGES, 'x', 2);
    start_driver(fixture, 0, 0);
    assert_int_equal(memory_write(memory, LIST, numbers, sizeof(numbers)), 0);
    put_descriptor(memory, RING_DESCRIPTORS, 0, LIST, 2, NEXT, 1);
    put_descriptor(memory, RING_DESCRIPTORS, 1, LIST + 2, sizeof(numbers) - 2, 0, 0);
    make_available(memory, 0);
    notify(fixture, 0);
    assert_int_equal(used(fixture), 1);
    assert_filled(fixture, PAGES, '\0', 2);
    assert_int_equal(status(fixture).inflated_bytes, 1000 * PAGE);
}

static void reset_in_the_middle_of_a_list_ends_it(void **state)
{
    struct fixture *fixture = *state;
    struct memory *memory = fixture->guest.memory;
    uint8_t zeros[4096] = {0};

    start_driver(fixture, 0, 0);
    assert_int_equal(memory_write(memory, LIST, zeros, sizeof(zeros)), 0);
    put_descriptor(memory, RING_DESCRIPTORS, 0, LIST, sizeof(zeros), 0, 0);
    make_available(memory, 0);
    guest_write(&fixture->guest, NOTIFY, 2, 0);
    assert_int_equal(
        event_base_loop(loop_event_base(fixture->loop), EVLOOP_NONBLOCK | EVLOOP_ONCE),
        0);
    assert_int_equal(status(fixture).inflated_bytes, 256 * PAGE);
    guest_write(&fixture->guest, STATUS, 1, 0);
    turn_loop(fixture);
    assert_int_equal(status(fixture).inflated_bytes, 256 * PAGE);
    assert_int_equal(used(fixture), 0);
}

/* ---- reports ---- */

static void report(struct fixture *fixture, uint16_t queue, uint64_t gpa,
                   uint32_t size_bytes)
{
    put_descriptor(fixture->guest.memory, RING_DESCRIPTORS, 0, gpa, size_bytes, WRITE, 0);
    make_available(fixture->guest.memory, 0);
    notify(fixture, queue);
}

/* As the specification numbers the queues, as Linux does, and without statistics. */
static void free_pages_are_given_back_on_queue(struct fixture *fixture, uint64_t features,
                                               uint16_t queue)
{
    fill(fixture, PAGES, 'x', 8);
    start_driver(fixture, features | REPORTING, queue);
    report(fixture, queue, PAGES + PAGE, 6 * PAGE);
    assert_int_equal(used(fixture), 1);
    assert_true(fixture->guest.level);
    assert_int_equal(resident_pages(fixture, PAGES, 8), 2);
    assert_filled(fixture, PAGES, 'x', 1);
    assert_filled(fixture, PAGES + PAGE, '\0', 6);
    assert_filled(fixture, PAGES + 7 * PAGE, 'x', 1);
    assert_int_equal(status(fixture).reported_bytes, 6 * PAGE);
    assert_int_equal(status(fixture).inflated_bytes, 0);
}

static void reports_come_on_queue_4(void **state)
{
    free_pages_are_given_back_on_queue(*state, STATISTICS, 4);
}

static void or_on_queue_3(void **state)
{
    free_pages_are_given_back_on_queue(*state, STATISTICS, 3);
}

static void or_in_place_of_statistics(void **state)
{
    free_pages_are_given_back_on_queue(*state, 0, 2);
}

static void free_pages_of_a_file_are_zeros_then(void **state)
{
    struct fixture *fixture = *state;

    start_driver(fixture, REPORTING, 4);
    report(fixture, 4, KERNEL, 2 * PAGE);
    assert_filled(fixture, KERNEL, '\0', 2);
    assert_filled(fixture, KERNEL + 2 * PAGE, 'k', 1);
}

static void part_of_a_page_stays(void **state)
{
    struct fixture *fixture = *state;

    fill(fixture, PAGES, 'x', 4);
    start_driver(fixture, REPORTING, 4);
    report(fixture, 4, PAGES + 1, 3 * PAGE - 2);
    assert_filled(fixture, PAGES, 'x', 1);
    assert_filled(fixture, PAGES + PAGE, '\0', 1);
    assert_filled(fixture, PAGES + 2 * PAGE, 'x', 2);
    report(fixture, 4, PAGES + 2 * PAGE + 1, PAGE); /* no whole page */
    report(fixture, 4, PAGES + 3 * PAGE + 1, 8);
    assert_filled(fixture, PAGES + 2 * PAGE, 'x', 2);
    assert_int_equal(used(fixture), 3);
    assert_int_equal(status(fixture).reported_bytes, PAGE);
}

static void report_may_have_many_pieces(void **state)
{
    struct fixture *fixture = *state;
    struct memory *memory = fixture->guest.memory;

    fill(fixture, MIB - 4 * PAGE, 'x', 4);
    fill(fixture, MIB, 'x', 4);
    start_driver(fixture, REPORTING, 4);
    put_descriptor(memory, RING_DESCRIPTORS, 0, MIB + 3 * PAGE, PAGE, NEXT | WRITE, 1);
    put_descriptor(memory, RING_DESCRIPTORS, 1, MIB - 3 * PAGE, 4 * PAGE, WRITE, 0);
    make_available(memory, 0);
    notify(fixture, 4);
    assert_int_equal(used(fixture), 1);
    assert_filled(fixture, MIB - 4 * PAGE, 'x', 1);
    assert_filled(fixture, MIB - 3 * PAGE, '\0', 3); /* from one span into the next */
    assert_filled(fixture, MIB, '\0', 1);
    assert_filled(fixture, MIB + PAGE, 'x', 2);
    assert_filled(fixture, MIB + 3 * PAGE, '\0', 1);
}

static void report_of_what_is_not_memory_breaks_the_ring(void **state)
{
    struct fixture *fixture = *state;

    start_driver(fixture, REPORTING, 4);
    report(fixture, 4, 3 * MIB, PAGE);
    assert_int_equal(guest_read(&fixture->guest, STATUS, 1), 0x4f);
    assert_int_equal(used(fixture), 0);
}

/* 5.5.6.7.2 */
static void poisoned_pages_keep_their_bytes(void **state)
{
    struct fixture *fixture = *state;

    fill(fixture, PAGES, '\xaa', 2);
    guest_set_features(&fixture->guest, VIRTIO_F_VERSION_1 | REPORTING | POISON);
    guest_place_queue(&fixture->guest, 4);
    guest_write(&fixture->guest, CONFIG_POISON, 4, 0xaaaaaaaa);
    guest_write(&fixture->guest, STATUS, 1, 0x0f);
    report(fixture, 4, PAGES, 2 * PAGE);
    assert_int_equal(used(fixture), 1);
    assert_filled(fixture, PAGES, '\xaa', 2);
    assert_int_equal(status(fixture).poisoned_bytes, 2 * PAGE);
    assert_int_equal(status(fixture).reported_bytes, 0);
}

static void pages_that_were_cleared_are_given_back(void **state)
{
    struct fixture *fixture = *state;

    fill(fixture, PAGES, '\0', 2);
    start_driver(fixture, REPORTING | POISON, 4);
    report(fixture, 4, PAGES, 2 * PAGE);
    assert_int_equal(resident_pages(fixture, PAGES, 2), 0);
    assert_int_equal(status(fixture).reported_bytes, 2 * PAGE);
}

/* ---- statistics ---- */

struct statistic {
    uint16_t tag;
    uint64_t value;
};

static void offer_statistics(struct fixture *fixture, uint16_t chain,
                             const struct statistic *statistics, size_t count)
{
    struct memory *memory = fixture->guest.memory;
    uint64_t at = LIST + chain * PAGE;

    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[10];

        store_le16(bytes, statistics[i].tag);
        store_le64(bytes + 2, statistics[i].value);
        assert_int_equal(memory_write(memory, at + i * sizeof(bytes), bytes, 10), 0);
    }
    put_descriptor(memory, RING_DESCRIPTORS, chain, at, (uint32_t)(10 * count), 0, 0);
    make_available(memory, chain);
    notify(fixture, 2);
}

static void statistics_are_kept_until_they_are_asked_for(void **state)
{
    struct fixture *fixture = *state;
    const struct statistic first[] = {
        {VIRTIO_BALLOON_FREE_BYTES, 1000}, {VIRTIO_BALLOON_TOTAL_BYTES, 2000}, {200, 3}};
    const struct statistic second[] = {{VIRTIO_BALLOON_FREE_BYTES, 500}};

    start_driver(fixture, STATISTICS, 2);
    assert_int_equal(status(fixture).statistics_known, 0);
    offer_statistics(fixture, 0, first, 3);
    notify(fixture, 2); /* for nothing */
    assert_int_equal(used(fixture), 0);

    assert_int_equal(status(fixture).statistics_known,
                     1 << VIRTIO_BALLOON_FREE_BYTES | 1 << VIRTIO_BALLOON_TOTAL_BYTES);
    assert_int_equal(used(fixture), 1);
    assert_true(fixture->guest.level);
    assert_int_equal(status(fixture).statistics[VIRTIO_BALLOON_FREE_BYTES], 1000);
    assert_int_equal(used(fixture), 1); /* it has been asked already */

    offer_statistics(fixture, 1, second, 1);
    assert_int_equal(status(fixture).statistics_known, 1 << VIRTIO_BALLOON_FREE_BYTES);
    assert_int_equal(status(fixture).statistics[VIRTIO_BALLOON_FREE_BYTES], 500);
}

static void second_buffer_gives_the_first_one_back(void **state)
{
    struct fixture *fixture = *state;
    const struct statistic statistics[] = {{VIRTIO_BALLOON_FREE_BYTES, 1},
                                           {VIRTIO_BALLOON_FREE_BYTES, 2}};

    start_driver(fixture, STATISTICS, 2);
    offer_statistics(fixture, 0, &statistics[0], 1);
    offer_statistics(fixture, 1, &statistics[1], 1);
    assert_int_equal(used(fixture), 1);
    assert_int_equal(status(fixture).statistics[VIRTIO_BALLOON_FREE_BYTES], 2);
}

static void statistics_of_a_driver_that_is_gone_are_unknown(void **state)
{
    struct fixture *fixture = *state;
    const struct statistic statistics[] = {{VIRTIO_BALLOON_FREE_BYTES, 1}};

    start_driver(fixture, STATISTICS, 2);
    offer_statistics(fixture, 0, statistics, 1);
    guest_write(&fixture->guest, STATUS, 1, 0);
    assert_int_equal(status(fixture).statistics_known, 0);
    assert_int_equal(used(fixture), 0);
}

#define BALLOON_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BALLOON_TEST(function_is_a_balloon_of_five_queues),
        BALLOON_TEST(driver_hears_of_a_target_and_says_how_far_it_is),
        BALLOON_TEST(target_stays_over_a_reset_and_the_balloon_is_empty),
        BALLOON_TEST(other_words_are_for_reading),
        BALLOON_TEST(named_pages_are_given_back_and_no_others),
        BALLOON_TEST(deflation_changes_nothing),
        BALLOON_TEST(pages_that_may_not_be_given_back_stay),
        BALLOON_TEST(long_list_is_taken_to_its_end),
        BALLOON_TEST(reset_in_the_middle_of_a_list_ends_it),
        BALLOON_TEST(reports_come_on_queue_4),
        BALLOON_TEST(or_on_queue_3),
        BALLOON_TEST(or_in_place_of_statistics),
        BALLOON_TEST(free_pages_of_a_file_are_zeros_then),
        BALLOON_TEST(part_of_a_page_stays),
        BALLOON_TEST(report_may_have_many_pieces),
        BALLOON_TEST(report_of_what_is_not_memory_breaks_the_ring),
        BALLOON_TEST(poisoned_pages_keep_their_bytes),
        BALLOON_TEST(pages_that_were_cleared_are_given_back),
        BALLOON_TEST(statistics_are_kept_until_they_are_asked_for),
        BALLOON_TEST(second_buffer_gives_the_first_one_back),
        BALLOON_TEST(statistics_of_a_driver_that_is_gone_are_unknown),
    };

    return cmocka_run_group_tests_name("virtio-balloon", tests, NULL, NULL);
}
