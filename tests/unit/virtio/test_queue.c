/* SPDX-License-Identifier: Apache-2.0 */
/* The split ring: chains become buffers, used ones go back, and each way in which a ring
 * can be wrong breaks the queue with its own reason. */
#include "driver.h"

#define TABLE 0x8000 /* an indirect one */
#define BUFFER 0x10000

struct fixture {
    struct memory *memory;
    struct virtio_queue queue;
    struct virtio_chain chain;
};

static int setup(void **state)
{
    static struct fixture fixture;
    const struct virtio_queue_setup ring = ring_setup();

    fixture.memory = driver_memory();
    virtio_queue_init(&fixture.queue, fixture.memory);
    assert_true(virtio_queue_enable(&fixture.queue, &ring));
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    memory_destroy(fixture->memory);
    return 0;
}

static void describe(struct fixture *fixture, unsigned index, uint64_t address,
                     uint32_t size, uint16_t flags, uint16_t next)
{
    put_descriptor(fixture->memory, RING_DESCRIPTORS, index, address, size, flags, next);
}

static bool take(struct fixture *fixture, uint16_t head)
{
    make_available(fixture->memory, head);
    return virtio_queue_take(&fixture->queue, &fixture->chain);
}

static void expect_broken(struct fixture *fixture, uint16_t head, const char *fault)
{
    assert_false(take(fixture, head));
    assert_non_null(fixture->queue.fault);
    assert_string_equal(fixture->queue.fault, fault);
    assert_false(virtio_queue_take(&fixture->queue, &fixture->chain)); /* for good */
    assert_false(virtio_queue_listen(&fixture->queue));
}

static void expect_buffer(struct fixture *fixture, unsigned index, uint64_t gpa,
                          size_t size)
{
    const struct iovec *buffer = &fixture->chain.buffers[index];

    assert_ptr_equal(buffer->iov_base, memory_slice(fixture->memory, gpa, size));
    assert_int_equal(buffer->iov_len, size);
}

/* ---- chains ---- */

static void empty_ring_gives_nothing(void **state)
{
    struct fixture *fixture = *state;

    assert_false(virtio_queue_take(&fixture->queue, &fixture->chain));
    assert_null(fixture->queue.fault);
    virtio_queue_disable(&fixture->queue);
    assert_false(take(fixture, 0));
    assert_null(fixture->queue.fault);
}

static void chain_becomes_buffers(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 5, BUFFER, 16, NEXT, 2);
    describe(fixture, 2, BUFFER + 0x1000, 512, NEXT | WRITE, 7);
    describe(fixture, 7, 4 * MIB, 1, WRITE, 99); /* no NEXT: the number means nothing */
    assert_true(take(fixture, 5));
    assert_int_equal(fixture->chain.head, 5);
    assert_int_equal(fixture->chain.readable_count, 1);
    assert_int_equal(fixture->chain.writable_count, 2);
    assert_int_equal(fixture->chain.readable_bytes, 16);
    assert_int_equal(fixture->chain.writable_bytes, 513);
    expect_buffer(fixture, 0, BUFFER, 16);
    expect_buffer(fixture, 1, BUFFER + 0x1000, 512);
    expect_buffer(fixture, 2, 4 * MIB, 1);
    assert_false(virtio_queue_take(&fixture->queue, &fixture->chain));
    assert_null(fixture->queue.fault);
}

static void buffer_over_two_spans_is_split(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, MIB - 0x10, 0x30, WRITE, 0);
    assert_true(take(fixture, 0));
    assert_int_equal(fixture->chain.writable_count, 2);
    assert_int_equal(fixture->chain.writable_bytes, 0x30);
    expect_buffer(fixture, 0, MIB - 0x10, 0x10);
    expect_buffer(fixture, 1, MIB, 0x20);
}

static void piece_without_bytes_is_no_buffer(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, UINT64_MAX, 0, NEXT, 1);
    describe(fixture, 1, BUFFER, 4, NEXT | WRITE, 2);
    describe(fixture, 2, UINT64_MAX, 0, WRITE, 0);
    assert_true(take(fixture, 0));
    assert_int_equal(fixture->chain.readable_count, 0);
    assert_int_equal(fixture->chain.writable_count, 1);
    expect_buffer(fixture, 0, BUFFER, 4);
}

static void chain_may_be_as_long_as_its_ring(void **state)
{
    struct fixture *fixture = *state;

    for (uint16_t i = 0; i < RING_SIZE; i++)
        describe(fixture, i, BUFFER + i * 0x100u, 8, i < RING_SIZE - 1 ? NEXT : 0,
                 (uint16_t)(i + 1));
    assert_true(take(fixture, 0));
    assert_int_equal(fixture->chain.readable_count, RING_SIZE);
    assert_int_equal(fixture->chain.readable_bytes, 8 * RING_SIZE);
}

static void indirect_table_goes_on_with_a_chain(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, BUFFER, 4, NEXT, 3);
    describe(fixture, 3, TABLE, 48, INDIRECT | WRITE, 0); /* its WRITE means nothing */
    put_descriptor(fixture->memory, TABLE, 0, BUFFER + 0x100, 8, NEXT, 2);
    put_descriptor(fixture->memory, TABLE, 2, BUFFER + 0x200, 16, WRITE, 0);
    assert_true(take(fixture, 0));
    assert_int_equal(fixture->chain.readable_count, 2);
    assert_int_equal(fixture->chain.writable_count, 1);
    expect_buffer(fixture, 0, BUFFER, 4);
    expect_buffer(fixture, 1, BUFFER + 0x100, 8);
    expect_buffer(fixture, 2, BUFFER + 0x200, 16);
}

static void fill_table(struct fixture *fixture, unsigned count)
{
    describe(fixture, 0, TABLE, 16 * count, INDIRECT, 0);
    for (unsigned i = 0; i < count; i++)
        put_descriptor(fixture->memory, TABLE, i, BUFFER, 1, i < count - 1 ? NEXT : 0,
                       (uint16_t)(i + 1));
}

static void indirect_table_may_be_longer_than_its_ring(void **state)
{
    struct fixture *fixture = *state;

    fill_table(fixture, VIRTIO_QUEUE_MAX_SIZE);
    assert_true(take(fixture, 0));
    assert_int_equal(fixture->chain.readable_count, VIRTIO_QUEUE_MAX_SIZE);
}

static void indirect_chain_has_a_limit(void **state)
{
    struct fixture *fixture = *state;

    fill_table(fixture, VIRTIO_QUEUE_MAX_SIZE + 1);
    expect_broken(fixture, 0, "a chain is too long, or a loop");
}

/* ---- broken chains ---- */

static void loop_breaks(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, BUFFER, 1, NEXT, 1);
    describe(fixture, 1, BUFFER, 1, NEXT, 0);
    expect_broken(fixture, 0, "a chain is too long, or a loop");
}

static void head_out_of_range_breaks(void **state)
{
    expect_broken(*state, RING_SIZE, "a descriptor's number is too large");
}

static void next_out_of_range_breaks(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, BUFFER, 1, NEXT, RING_SIZE);
    expect_broken(fixture, 0, "a descriptor's number is too large");
}

static void readable_after_writable_breaks(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, BUFFER, 1, NEXT | WRITE, 1);
    describe(fixture, 1, BUFFER, 1, 0, 0);
    expect_broken(fixture, 0, "a readable buffer follows a writable one");
}

static void buffer_outside_memory_breaks(void **state)
{
    static const struct {
        uint64_t address;
        uint32_t size;
    } cases[] = {
        {2 * MIB, 1},    {2 * MIB - 1, 2},       {MIB - 1, MIB + 2},
        {UINT64_MAX, 1}, {UINT64_MAX - 3, 8},    {4 * MIB + 64 * KIB - 4, 5},
        {0, UINT32_MAX}, {UINT64_C(1) << 63, 1},
    };
    const struct virtio_queue_setup ring = ring_setup();
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        put16(fixture->memory, RING_AVAILABLE + 2, 0);
        assert_true(virtio_queue_enable(&fixture->queue, &ring));
        describe(fixture, 0, cases[i].address, cases[i].size, 0, 0);
        expect_broken(fixture, 0, "a buffer is not in memory");
    }
}

static void sum_of_sizes_must_fit(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, BUFFER, 0x100, NEXT | WRITE, 1);
    describe(fixture, 1, BUFFER, 0xffffff00, WRITE, 0);
    expect_broken(fixture, 0, "a chain has 4 GiB or more");
}

static void indirect_table_of_wrong_size_breaks(void **state)
{
    static const uint32_t sizes[] = {0, 1, 15, 17, 40};
    const struct virtio_queue_setup ring = ring_setup();
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        put16(fixture->memory, RING_AVAILABLE + 2, 0);
        assert_true(virtio_queue_enable(&fixture->queue, &ring));
        describe(fixture, 0, TABLE, sizes[i], INDIRECT, 0);
        expect_broken(fixture, 0, "an indirect table has no whole descriptors");
    }
}

static void indirect_table_in_an_indirect_table_breaks(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, TABLE, 16, INDIRECT, 0);
    put_descriptor(fixture->memory, TABLE, 0, TABLE, 16, INDIRECT, 0);
    expect_broken(fixture, 0, "an indirect table leads to another");
}

static void indirect_descriptor_with_a_next_one_breaks(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, TABLE, 16, INDIRECT | NEXT, 1);
    expect_broken(fixture, 0, "a descriptor is indirect and has a next one");
}

static void next_out_of_an_indirect_table_breaks(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, TABLE, 32, INDIRECT, 0);
    put_descriptor(fixture->memory, TABLE, 0, BUFFER, 1, NEXT, 2);
    expect_broken(fixture, 0, "a descriptor's number is too large");
}

static void indirect_table_outside_memory_breaks(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, UINT64_MAX - 15, 0xfffffff0, INDIRECT, 0);
    expect_broken(fixture, 0, "an indirect table is not in memory");
}

static void indirect_descriptor_must_be_negotiated(void **state)
{
    struct virtio_queue_setup ring = ring_setup();
    struct fixture *fixture = *state;

    ring.indirect = false;
    assert_true(virtio_queue_enable(&fixture->queue, &ring));
    describe(fixture, 0, TABLE, 16, INDIRECT, 0);
    expect_broken(fixture, 0, "an indirect descriptor was not negotiated");
}

/* ---- rings ---- */

static void ring_must_be_well_formed(void **state)
{
    static const struct {
        struct virtio_queue_setup setup;
        const char *fault;
    } cases[] = {
        {{0, 0x1000, 0x3000, 0x4000, false, false},
         "its size is no power of two, or too large"},
        {{3, 0x1000, 0x3000, 0x4000, false, false},
         "its size is no power of two, or too large"},
        {{512, 0x1000, 0x3000, 0x4000, false, false},
         "its size is no power of two, or too large"},
        {{8, 0x1008, 0x3000, 0x4000, false, false}, "a ring is not aligned"},
        {{8, 0x1000, 0x3001, 0x4000, false, false}, "a ring is not aligned"},
        {{8, 0x1000, 0x3000, 0x4002, false, false}, "a ring is not aligned"},
        {{8, 2 * MIB, 0x3000, 0x4000, false, false}, "a ring is not in memory"},
        {{8, 0x1000, 2 * MIB - 20, 0x4000, false, false}, "a ring is not in memory"},
        {{8, 0x1000, 0x3000, 2 * MIB - 68, false, false}, "a ring is not in memory"},
        {{8, MIB - 16, 0x3000, 0x4000, false, false}, "a ring is not in memory"},
        {{8, UINT64_MAX - 15, 0x3000, 0x4000, false, false}, "a ring is not in memory"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_false(virtio_queue_enable(&fixture->queue, &cases[i].setup));
        assert_string_equal(fixture->queue.fault, cases[i].fault);
        assert_false(fixture->queue.enabled);
        assert_false(take(fixture, 0));
    }
}

static void ring_may_end_with_memory(void **state)
{
    const struct virtio_queue_setup ring = {
        .size = 1, .descriptors = MIB - 16, .available = 2 * MIB - 8, .used = 4 * MIB};
    struct fixture *fixture = *state;

    assert_true(virtio_queue_enable(&fixture->queue, &ring));
}

static void index_beyond_the_ring_breaks(void **state)
{
    struct fixture *fixture = *state;

    put16(fixture->memory, RING_AVAILABLE + 2, RING_SIZE); /* the ninth is one too many */
    expect_broken(fixture, 0, "more chains are available than the ring has room for");
}

static void more_in_flight_than_the_ring_holds_breaks(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 0, BUFFER, 1, 0, 0);
    for (unsigned i = 0; i < RING_SIZE; i++)
        assert_true(take(fixture, 0));
    expect_broken(fixture, 0, "more chains are available than the ring has room for");
}

static void indices_wrap(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 1, BUFFER, 4, WRITE, 0);
    for (uint32_t i = 0; i < 0x10003; i++) {
        assert_true(take(fixture, 1));
        virtio_queue_give(&fixture->queue, &fixture->chain, i);
    }
    assert_int_equal(get16(fixture->memory, RING_USED + 2), 3);
    assert_int_equal(get32(fixture->memory, RING_USED + 4 + 8 * 2), 1);
    assert_int_equal(get32(fixture->memory, RING_USED + 4 + 8 * 2 + 4), 0x10002);
}

static void give_head(struct fixture *fixture, uint16_t head, uint32_t written_bytes)
{
    const struct virtio_chain chain = {.head = head};

    virtio_queue_give(&fixture->queue, &chain, written_bytes);
}

struct writes {
    unsigned count;
    uint64_t gpas[4];
    uint64_t sizes[4];
};

static void note_write(void *context, uint64_t gpa, uint64_t size_bytes)
{
    struct writes *writes = context;

    assert_true(writes->count < ARRAY_SIZE(writes->gpas));
    writes->gpas[writes->count] = gpa;
    writes->sizes[writes->count++] = size_bytes;
}

/* An accelerator that has decoded what was there must hear of it. */
static void writes_of_the_device_are_told(void **state)
{
    struct fixture *fixture = *state;
    struct writes writes = {.count = 0};

    memory_on_write(fixture->memory, note_write, &writes);
    describe(fixture, 1, BUFFER, 4, WRITE | NEXT, 2);
    describe(fixture, 2, BUFFER + 64, 16, WRITE, 0);
    assert_true(take(fixture, 1));
    virtio_queue_give(&fixture->queue, &fixture->chain, 10);
    memory_on_write(fixture->memory, NULL, NULL);
    assert_int_equal(writes.count, 3);
    assert_int_equal(writes.gpas[0], BUFFER);
    assert_int_equal(writes.sizes[0], 4);
    assert_int_equal(writes.gpas[1], BUFFER + 64);
    assert_int_equal(writes.sizes[1], 6);
    assert_int_equal(writes.gpas[2], RING_USED + 4);
    assert_int_equal(writes.sizes[2], 8);
}

static void chains_go_back_in_any_order(void **state)
{
    struct fixture *fixture = *state;

    describe(fixture, 3, BUFFER, 4, WRITE, 0);
    describe(fixture, 6, BUFFER, 4, WRITE, 0);
    assert_true(take(fixture, 3));
    assert_true(take(fixture, 6));
    give_head(fixture, 6, 60);
    give_head(fixture, 3, 30);
    assert_int_equal(get16(fixture->memory, RING_USED + 2), 2);
    assert_int_equal(get32(fixture->memory, RING_USED + 4), 6);
    assert_int_equal(get32(fixture->memory, RING_USED + 8), 60);
    assert_int_equal(get32(fixture->memory, RING_USED + 12), 3);
    assert_int_equal(get32(fixture->memory, RING_USED + 16), 30);
    assert_int_equal(get32(fixture->memory, RING_USED + 20), 0);
}

/* ---- who wants to be told ---- */

static void use_one(struct fixture *fixture)
{
    describe(fixture, 0, BUFFER, 4, WRITE, 0);
    assert_true(take(fixture, 0));
    give_head(fixture, 0, 4);
}

static void driver_says_by_a_flag_whether_it_wants_interrupts(void **state)
{
    struct fixture *fixture = *state;

    assert_false(virtio_queue_wants_interrupt(&fixture->queue)); /* no news */
    use_one(fixture);
    assert_true(virtio_queue_wants_interrupt(&fixture->queue));
    assert_false(virtio_queue_wants_interrupt(&fixture->queue));
    put16(fixture->memory, RING_AVAILABLE, 1);
    use_one(fixture);
    assert_false(virtio_queue_wants_interrupt(&fixture->queue));
}

static void use_event_index(struct fixture *fixture)
{
    struct virtio_queue_setup ring = ring_setup();

    ring.event_index = true;
    assert_true(virtio_queue_enable(&fixture->queue, &ring));
}

static void driver_says_by_an_index_when_it_wants_interrupts(void **state)
{
    const uint64_t used_event = RING_AVAILABLE + 4 + 2 * RING_SIZE;
    struct fixture *fixture = *state;

    use_event_index(fixture);
    put16(fixture->memory, RING_AVAILABLE, 1); /* the flag means nothing any more */
    put16(fixture->memory, used_event, 1);
    use_one(fixture);
    assert_false(virtio_queue_wants_interrupt(&fixture->queue)); /* 0 -> 1 */
    use_one(fixture);
    assert_true(virtio_queue_wants_interrupt(&fixture->queue)); /* 1 -> 2 */
    use_one(fixture);
    assert_false(virtio_queue_wants_interrupt(&fixture->queue)); /* 2 -> 3 */
    put16(fixture->memory, used_event, 4);
    use_one(fixture);
    use_one(fixture);
    use_one(fixture);
    assert_true(virtio_queue_wants_interrupt(&fixture->queue)); /* 3 -> 6 */
}

static void event_index_wraps(void **state)
{
    const uint64_t used_event = RING_AVAILABLE + 4 + 2 * RING_SIZE;
    struct fixture *fixture = *state;

    use_event_index(fixture);
    for (unsigned i = 0; i < 0xffff; i++)
        use_one(fixture);
    put16(fixture->memory, used_event, 0xffff);
    (void)virtio_queue_wants_interrupt(&fixture->queue);
    use_one(fixture); /* 0xffff -> 0 */
    assert_true(virtio_queue_wants_interrupt(&fixture->queue));
}

static void device_says_by_a_flag_whether_it_wants_notifications(void **state)
{
    struct fixture *fixture = *state;

    virtio_queue_mute(&fixture->queue);
    assert_int_equal(get16(fixture->memory, RING_USED), 1);
    assert_false(virtio_queue_listen(&fixture->queue));
    assert_int_equal(get16(fixture->memory, RING_USED), 0);
    virtio_queue_mute(&fixture->queue);
    make_available(fixture->memory, 0);
    assert_true(virtio_queue_listen(&fixture->queue)); /* one came meanwhile */
}

static void device_says_by_an_index_when_it_wants_notifications(void **state)
{
    const uint64_t available_event = RING_USED + 4 + 8 * RING_SIZE;
    struct fixture *fixture = *state;

    use_event_index(fixture);
    use_one(fixture);
    use_one(fixture);
    virtio_queue_mute(&fixture->queue);
    assert_int_equal(get16(fixture->memory, RING_USED), 0);
    assert_int_equal(get16(fixture->memory, available_event), 0);
    assert_false(virtio_queue_listen(&fixture->queue));
    assert_int_equal(get16(fixture->memory, available_event), 2);
    make_available(fixture->memory, 0);
    assert_true(virtio_queue_listen(&fixture->queue));
}

#define QUEUE_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(empty_ring_gives_nothing),
        QUEUE_TEST(chain_becomes_buffers),
        QUEUE_TEST(buffer_over_two_spans_is_split),
        QUEUE_TEST(piece_without_bytes_is_no_buffer),
        QUEUE_TEST(chain_may_be_as_long_as_its_ring),
        QUEUE_TEST(indirect_table_goes_on_with_a_chain),
        QUEUE_TEST(indirect_table_may_be_longer_than_its_ring),
        QUEUE_TEST(indirect_chain_has_a_limit),
        QUEUE_TEST(loop_breaks),
        QUEUE_TEST(head_out_of_range_breaks),
        QUEUE_TEST(next_out_of_range_breaks),
        QUEUE_TEST(readable_after_writable_breaks),
        QUEUE_TEST(buffer_outside_memory_breaks),
        QUEUE_TEST(sum_of_sizes_must_fit),
        QUEUE_TEST(indirect_table_of_wrong_size_breaks),
        QUEUE_TEST(indirect_table_in_an_indirect_table_breaks),
        QUEUE_TEST(indirect_descriptor_with_a_next_one_breaks),
        QUEUE_TEST(next_out_of_an_indirect_table_breaks),
        QUEUE_TEST(indirect_table_outside_memory_breaks),
        QUEUE_TEST(indirect_descriptor_must_be_negotiated),
        QUEUE_TEST(ring_must_be_well_formed),
        QUEUE_TEST(ring_may_end_with_memory),
        QUEUE_TEST(index_beyond_the_ring_breaks),
        QUEUE_TEST(more_in_flight_than_the_ring_holds_breaks),
        QUEUE_TEST(indices_wrap),
        QUEUE_TEST(writes_of_the_device_are_told),
        QUEUE_TEST(chains_go_back_in_any_order),
        QUEUE_TEST(driver_says_by_a_flag_whether_it_wants_interrupts),
        QUEUE_TEST(driver_says_by_an_index_when_it_wants_interrupts),
        QUEUE_TEST(event_index_wraps),
        QUEUE_TEST(device_says_by_a_flag_whether_it_wants_notifications),
        QUEUE_TEST(device_says_by_an_index_when_it_wants_notifications),
    };

    return cmocka_run_group_tests_name("virtqueue", tests, NULL, NULL);
}
