/* SPDX-License-Identifier: Apache-2.0 */
/* virtio-console as its driver uses it, on a loop that the test turns. */
#include "pci_fixture.h"

#include <event2/event.h>
#include <string.h>

#include "virtio/console.h"

#define SIZE 1      /* VIRTIO_CONSOLE_F_SIZE */
#define EMERGENCY 4 /* VIRTIO_CONSOLE_F_EMERG_WRITE */

/* Output has the rings of driver.h, input its own. */
#define INPUT_RINGS 0x20000
#define OUTPUT_NOTIFY (NOTIFY + 4)
#define BUFFER 0x10000
#define INPUT_BUFFER 0x30000

struct fixture {
    struct guest guest;
    struct loop *loop;
    struct virtio_console *console;
    char output[256];
    size_t output_size;
    bool counts_only; /* output is not kept */
    unsigned rooms;
};

static void take_output(void *context, const uint8_t *bytes, size_t size)
{
    struct fixture *fixture = context;

    if (!fixture->counts_only) {
        assert_true(size <= sizeof(fixture->output) - 1 - fixture->output_size);
        memcpy(fixture->output + fixture->output_size, bytes, size);
    }
    fixture->output_size += size;
}

static void note_room(void *context)
{
    struct fixture *fixture = context;

    fixture->rooms++;
}

static int setup(void **state)
{
    static struct fixture fixture;
    const struct virtio_console_options options = {
        .output = take_output, .room = note_room, .context = &fixture};
    struct error err = ERROR_NONE;

    memset(&fixture, 0, sizeof(fixture));
    guest_init(&fixture.guest);
    assert_int_equal(loop_create(&fixture.loop, &err), 0);
    assert_int_equal(virtio_console_create(&options, fixture.loop, fixture.guest.memory,
                                           &fixture.console, &err),
                     0);
    guest_attach(&fixture.guest, virtio_console_device(fixture.console),
                 VIRTIO_CONSOLE_CLASS_CODE);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    guest_finish(&fixture->guest);
    virtio_console_destroy(fixture->console);
    loop_destroy(fixture->loop);
    return 0;
}

static void turn_loop(struct fixture *fixture)
{
    assert_true(event_base_loop(loop_event_base(fixture->loop), EVLOOP_NONBLOCK) >= 0);
}

static void place_input_queue(struct guest *guest)
{
    guest_write(guest, QUEUE_SELECT, 2, 0);
    guest_write(guest, QUEUE_SIZE, 2, RING_SIZE);
    guest_write(guest, QUEUE_DESCRIPTORS, 4, INPUT_RINGS + RING_DESCRIPTORS);
    guest_write(guest, QUEUE_AVAILABLE, 4, INPUT_RINGS + RING_AVAILABLE);
    guest_write(guest, QUEUE_USED, 4, INPUT_RINGS + RING_USED);
    guest_write(guest, QUEUE_ENABLE, 2, 1);
}

static void start_driver(struct fixture *fixture)
{
    guest_set_features(&fixture->guest, VIRTIO_F_VERSION_1 | SIZE | EMERGENCY);
    assert_int_equal(guest_read(&fixture->guest, STATUS, 1), 0x0b);
    place_input_queue(&fixture->guest);
    guest_place_queue(&fixture->guest, 1);
    guest_write(&fixture->guest, STATUS, 1, 0x0f);
    turn_loop(fixture);
}

static void write_text(struct fixture *fixture, const char *text)
{
    struct memory *memory = fixture->guest.memory;

    assert_int_equal(memory_write(memory, BUFFER, text, strlen(text)), 0);
    put_descriptor(memory, RING_DESCRIPTORS, 0, BUFFER, (uint32_t)strlen(text), 0, 0);
    make_available(memory, 0);
    guest_write(&fixture->guest, OUTPUT_NOTIFY, 2, 1);
    turn_loop(fixture);
}

/* Buffer `index` for input, of `size` bytes. */
static void offer(struct fixture *fixture, unsigned index, uint32_t size)
{
    struct memory *memory = fixture->guest.memory;
    uint64_t available = INPUT_RINGS + RING_AVAILABLE;
    uint16_t next = get16(memory, available + 2);

    put_descriptor(memory, INPUT_RINGS + RING_DESCRIPTORS, index,
                   INPUT_BUFFER + UINT64_C(16) * index, size, WRITE, 0);
    put16(memory, available + 4 + UINT64_C(2) * (next % RING_SIZE), (uint16_t)index);
    put16(memory, available + 2, (uint16_t)(next + 1));
}

static size_t type_text(struct fixture *fixture, const char *text)
{
    return virtio_console_input(fixture->console, (const uint8_t *)text, strlen(text));
}

static void assert_input(struct fixture *fixture, unsigned index, const char *text)
{
    const char *bytes = memory_slice(fixture->guest.memory,
                                     INPUT_BUFFER + UINT64_C(16) * index, strlen(text));

    assert_memory_equal(bytes, text, strlen(text));
}

static uint16_t used(struct fixture *fixture, uint64_t rings)
{
    return get16(fixture->guest.memory, rings + RING_USED + 2);
}

static void function_is_a_console_of_one_port(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(guest_config_read(&fixture->guest, 0x00, 4), 0x10431af4);
    assert_int_equal(guest_config_read(&fixture->guest, 0x08, 4), 0x07800001);
    assert_int_equal(guest_read(&fixture->guest, QUEUE_COUNT, 2), 2);
    assert_int_equal(guest_read(&fixture->guest, DEVICE_FEATURE, 4) & 0xff,
                     SIZE | EMERGENCY);
    assert_int_equal(guest_read(&fixture->guest, CONFIG, 4), 0);     /* unknown size */
    assert_int_equal(guest_read(&fixture->guest, CONFIG + 4, 4), 1); /* ports */
    assert_int_equal(guest_read(&fixture->guest, CONFIG + 8, 4), 0);
}

static void output_comes_out(void **state)
{
    struct fixture *fixture = *state;

    start_driver(fixture);
    write_text(fixture, "one ");
    write_text(fixture, "two");
    assert_string_equal(fixture->output, "one two");
    assert_int_equal(used(fixture, 0), 2);
    assert_int_equal(get32(fixture->guest.memory, RING_USED + 8), 0);
    assert_int_equal(virtio_console_counters(fixture->console).bytes_out, 7);
    assert_true(fixture->guest.level);
}

static void output_in_pieces_comes_out_whole(void **state)
{
    struct fixture *fixture = *state;
    struct memory *memory = fixture->guest.memory;

    start_driver(fixture);
    assert_int_equal(memory_write(memory, BUFFER, "abcdef", 6), 0);
    put_descriptor(memory, RING_DESCRIPTORS, 0, BUFFER, 2, NEXT, 1);
    put_descriptor(memory, RING_DESCRIPTORS, 1, BUFFER + 4, 2, NEXT, 2);
    put_descriptor(memory, RING_DESCRIPTORS, 2, BUFFER + 2, 2, 0, 0);
    make_available(memory, 0);
    guest_write(&fixture->guest, OUTPUT_NOTIFY, 2, 1);
    turn_loop(fixture);
    assert_string_equal(fixture->output, "abefcd");
}

/* The same 40 KiB three times: more than anybody wants to say at once. */
static void output_without_end_is_cut_off(void **state)
{
    struct fixture *fixture = *state;
    struct memory *memory = fixture->guest.memory;

    fixture->counts_only = true;
    start_driver(fixture);
    for (uint16_t i = 0; i < 3; i++)
        put_descriptor(memory, RING_DESCRIPTORS, i, 0, 40 * KIB, i < 2 ? NEXT : 0,
                       (uint16_t)(i + 1));
    make_available(memory, 0);
    guest_write(&fixture->guest, OUTPUT_NOTIFY, 2, 1);
    turn_loop(fixture);
    assert_int_equal(fixture->output_size, 64 * KIB);
}

static void input_goes_into_the_buffers_that_are_there(void **state)
{
    struct fixture *fixture = *state;

    start_driver(fixture);
    write_text(fixture, "$ ");
    offer(fixture, 0, 4);
    offer(fixture, 1, 16);
    assert_int_equal(type_text(fixture, "uname"), 5);
    assert_input(fixture, 0, "unam");
    assert_input(fixture, 1, "e");
    assert_int_equal(get32(fixture->guest.memory, INPUT_RINGS + RING_USED + 8), 4);
    assert_int_equal(get32(fixture->guest.memory, INPUT_RINGS + RING_USED + 16), 1);
    assert_int_equal(virtio_console_counters(fixture->console).bytes_in, 5);
}

static void input_without_buffers_waits_until_there_is_room(void **state)
{
    struct fixture *fixture = *state;
    unsigned rooms;

    start_driver(fixture);
    write_text(fixture, "$ ");
    offer(fixture, 0, 2);
    assert_int_equal(type_text(fixture, "abc"), 2);
    assert_int_equal(type_text(fixture, "c"), 0);
    rooms = fixture->rooms;
    offer(fixture, 1, 2);
    guest_write(&fixture->guest, NOTIFY, 2, 0);
    turn_loop(fixture);
    assert_int_equal(fixture->rooms, rooms + 1);
    assert_int_equal(type_text(fixture, "c"), 1);
    assert_input(fixture, 1, "c");
}

/* Linux loses what comes while it makes the port. */
static void input_waits_until_the_driver_has_sent_something(void **state)
{
    struct fixture *fixture = *state;

    start_driver(fixture);
    offer(fixture, 0, 16);
    guest_write(&fixture->guest, NOTIFY, 2, 0);
    turn_loop(fixture);
    assert_int_equal(type_text(fixture, "a"), 0);
    assert_int_equal(fixture->rooms, 0);
    write_text(fixture, "$ ");
    assert_int_equal(fixture->rooms, 1);
    assert_int_equal(type_text(fixture, "a"), 1);
    assert_input(fixture, 0, "a");
}

static void input_does_not_wait_for_ever_for_a_driver_that_is_silent(void **state)
{
    struct fixture *fixture = *state;

    start_driver(fixture);
    offer(fixture, 0, 16);
    while (fixture->rooms == 0)
        assert_true(event_base_loop(loop_event_base(fixture->loop), EVLOOP_ONCE) >= 0);
    assert_int_equal(type_text(fixture, "a"), 1);
}

static void nothing_is_taken_before_the_start_or_after_a_reset(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(type_text(fixture, "a"), 0);
    start_driver(fixture);
    write_text(fixture, "$ ");
    offer(fixture, 0, 16);
    guest_write(&fixture->guest, STATUS, 1, 0);
    assert_int_equal(type_text(fixture, "a"), 0);
    write_text(fixture, "lost");
    assert_string_equal(fixture->output, "$ ");
    assert_int_equal(used(fixture, INPUT_RINGS), 0);
}

static void one_queue_works_while_the_other_is_reset(void **state)
{
    struct fixture *fixture = *state;

    guest_set_features(&fixture->guest, VIRTIO_F_VERSION_1 | VIRTIO_F_RING_RESET);
    place_input_queue(&fixture->guest);
    guest_place_queue(&fixture->guest, 1);
    guest_write(&fixture->guest, STATUS, 1, 0x0f);
    guest_write(&fixture->guest, QUEUE_SELECT, 2, 0);
    guest_write(&fixture->guest, QUEUE_RESET, 2, 1);
    write_text(fixture, "still here");
    assert_string_equal(fixture->output, "still here");
    assert_int_equal(type_text(fixture, "a"), 0);
}

static void size_is_told_when_it_is_known_and_when_it_changes(void **state)
{
    struct fixture *fixture = *state;

    virtio_console_resize(fixture->console, 80, 25);
    start_driver(fixture);
    assert_int_equal(guest_read(&fixture->guest, CONFIG, 2), 80);
    assert_int_equal(guest_read(&fixture->guest, CONFIG + 2, 2), 25);
    assert_int_equal(guest_read(&fixture->guest, ISR, 1), 0); /* it is not ready */
    write_text(fixture, "$ ");
    assert_int_equal(guest_read(&fixture->guest, ISR, 1), 3);
    assert_int_equal(guest_read(&fixture->guest, GENERATION, 1), 1);
    virtio_console_resize(fixture->console, 132, 43);
    assert_int_equal(guest_read(&fixture->guest, ISR, 1), 2);
    assert_int_equal(guest_read(&fixture->guest, GENERATION, 1), 2);
    assert_int_equal(guest_read(&fixture->guest, CONFIG, 4), 43 << 16 | 132);
    virtio_console_resize(fixture->console, 132, 43); /* the same */
    assert_int_equal(guest_read(&fixture->guest, ISR, 1), 0);
}

static void byte_in_an_emergency_needs_no_driver(void **state)
{
    struct fixture *fixture = *state;

    guest_write(&fixture->guest, CONFIG + 8, 4, '!');
    guest_write(&fixture->guest, CONFIG + 8, 4, 0xffffff00 | '?');
    guest_write(&fixture->guest, CONFIG, 4, 0xffffffff); /* the size is not the guest's */
    assert_string_equal(fixture->output, "!?");
    assert_int_equal(guest_read(&fixture->guest, CONFIG, 4), 0);
}

static void broken_ring_stops_it(void **state)
{
    struct fixture *fixture = *state;

    start_driver(fixture);
    put_descriptor(fixture->guest.memory, RING_DESCRIPTORS, 0, 0x80000000, 4, 0, 0);
    make_available(fixture->guest.memory, 0);
    guest_write(&fixture->guest, OUTPUT_NOTIFY, 2, 1);
    turn_loop(fixture);
    assert_int_equal(guest_read(&fixture->guest, STATUS, 1), 0x4f);
    assert_int_equal(used(fixture, 0), 0);
    assert_int_equal(type_text(fixture, "a"), 0);
}

#define CONSOLE_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONSOLE_TEST(function_is_a_console_of_one_port),
        CONSOLE_TEST(output_comes_out),
        CONSOLE_TEST(output_in_pieces_comes_out_whole),
        CONSOLE_TEST(output_without_end_is_cut_off),
        CONSOLE_TEST(input_goes_into_the_buffers_that_are_there),
        CONSOLE_TEST(input_without_buffers_waits_until_there_is_room),
        CONSOLE_TEST(input_waits_until_the_driver_has_sent_something),
        CONSOLE_TEST(input_does_not_wait_for_ever_for_a_driver_that_is_silent),
        CONSOLE_TEST(nothing_is_taken_before_the_start_or_after_a_reset),
        CONSOLE_TEST(one_queue_works_while_the_other_is_reset),
        CONSOLE_TEST(size_is_told_when_it_is_known_and_when_it_changes),
        CONSOLE_TEST(byte_in_an_emergency_needs_no_driver),
        CONSOLE_TEST(broken_ring_stops_it),
    };

    return cmocka_run_group_tests_name("virtio-console", tests, NULL, NULL);
}
