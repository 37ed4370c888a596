/* SPDX-License-Identifier: Apache-2.0 */
/* What virtio-blk answers to each kind of request, well made or not. */
#include "blk_fixture.h"

#include <sys/stat.h>

#define OK 0
#define IOERR 1
#define UNSUPPORTED 2
#define NO_FLUSH (ALL_FEATURES & ~(VIRTIO_BLK_F_FLUSH | VIRTIO_BLK_F_CONFIG_WCE))

static struct blk_guest *start(const struct blk_setup *setup)
{
    static struct blk_guest guest;

    blk_guest_init(&guest, setup);
    blk_start_driver(&guest, ALL_FEATURES);
    return &guest;
}

static int setup(void **state)
{
    *state = start(&(struct blk_setup){.serial = "0123456789abcdefghij"});
    return 0;
}

static int setup_read_only(void **state)
{
    *state = start(&(struct blk_setup){.read_only = true});
    return 0;
}

static int teardown(void **state)
{
    blk_guest_finish(*state);
    return 0;
}

/* ---- what it says of itself ---- */

static void function_is_mass_storage(void **state)
{
    struct blk_guest *guest = *state;

    assert_int_equal(guest_config_read(&guest->guest, 0x00, 4), 0x10421af4);
    assert_int_equal(guest_config_read(&guest->guest, 0x08, 4), 0x01800001);
    assert_int_equal(guest_read(&guest->guest, QUEUE_COUNT, 2), QUEUES);
}

static void features_are_those_of_a_disk_to_write_to(void **state)
{
    assert_int_equal(blk_offered_features(*state), 0x10130007e44);
}

static void features_of_a_read_only_disk_say_so(void **state)
{
    assert_int_equal(blk_offered_features(*state), 0x10130001e64);
}

static uint32_t config(struct blk_guest *guest, uint32_t offset, unsigned size)
{
    return guest_read(&guest->guest, CONFIG + offset, size);
}

static void configuration_describes_the_disk(void **state)
{
    struct blk_guest *guest = *state;
    uint32_t block = disk_topology(guest->disk).physical_block_bytes;

    assert_int_equal(config(guest, 0, 4), DISK_SECTORS);
    assert_int_equal(config(guest, 4, 4), 0);
    assert_int_equal(config(guest, 12, 4), 254);
    assert_int_equal(config(guest, 20, 4), 512);
    assert_int_equal(512u << config(guest, 24, 1), block);
    assert_int_equal(config(guest, 25, 1), 0);
    assert_int_equal(config(guest, 26, 2), block / 512);
    assert_int_equal(config(guest, 28, 4), 0);
    assert_int_equal(config(guest, 32, 1), 1);
    assert_int_equal(config(guest, 34, 2), QUEUES);
    assert_int_equal(config(guest, 36, 4), 0x200000);
    assert_int_equal(config(guest, 40, 4), 32);
    assert_int_equal(config(guest, 44, 4), block / 512);
    assert_int_equal(config(guest, 48, 4), 0x200000);
    assert_int_equal(config(guest, 52, 4), 32);
    assert_int_equal(config(guest, 56, 1), 1);
    assert_int_equal(config(guest, 60, 4), UINT32_MAX); /* behind its end */
}

static void only_writeback_can_be_written(void **state)
{
    struct blk_guest *guest = *state;

    guest_write(&guest->guest, CONFIG + 0, 4, 1);
    guest_write(&guest->guest, CONFIG + 32, 4, 0);
    guest_write(&guest->guest, CONFIG + 32, 1, 0);
    assert_int_equal(config(guest, 0, 4), DISK_SECTORS);
    assert_int_equal(config(guest, 32, 1), 0);
}

/* ---- reads and writes ---- */

static void read_brings_what_the_file_has(void **state)
{
    struct blk_guest *guest = *state;

    assert_int_equal(read_sectors(guest, 3, 4096), OK);
    assert_pattern(data(guest), SECTOR(3), 4096);
    assert_int_equal(data(guest)[4096], 0);
    assert_int_equal(used_length(guest, 0, 0), 4097);
    assert_true(guest->guest.level);
}

static void write_brings_to_the_file_what_memory_has(void **state)
{
    struct blk_guest *guest = *state;

    memset(data(guest), 0xab, 1024);
    assert_int_equal(write_sectors(guest, 5, 1024), OK);
    assert_int_equal(used_length(guest, 0, 0), 1);
    assert_file_byte(guest, SECTOR(5) - 1, pattern_at(SECTOR(5) - 1));
    assert_file_byte(guest, SECTOR(5), 0xab);
    assert_file_byte(guest, SECTOR(7) - 1, 0xab);
    assert_file_byte(guest, SECTOR(7), pattern_at(SECTOR(7)));
}

/* 2.7.4.1: a device makes no assumptions on how a message is cut into descriptors. */
static void request_may_be_cut_into_any_pieces(void **state)
{
    struct blk_guest *guest = *state;
    struct pieces pieces = pieces_begin(guest, 0);
    uint64_t header = put_header(guest, TYPE_READ, 1);

    pieces_add(guest, &pieces, header, 3, 0);
    pieces_add(guest, &pieces, header + 3, 0, 0);
    pieces_add(guest, &pieces, header + 3, 13, 0);
    pieces_add(guest, &pieces, DATA, 1, WRITE);
    pieces_add(guest, &pieces, DATA + 1, 700, WRITE);
    pieces_add(guest, &pieces, DATA + 701, 0, WRITE);
    pieces_add(guest, &pieces, DATA + 701, 324, WRITE); /* with the status */
    pieces_add(guest, &pieces, DATA + 5000, 0, WRITE);
    data(guest)[1024] = NO_STATUS;
    pieces_offer(guest, &pieces);
    notify(guest, 0);
    wait_used(guest, 0, 1);
    assert_int_equal(data(guest)[1024], OK);
    assert_pattern(data(guest), 512, 1024);
}

static void header_and_data_may_share_a_piece(void **state)
{
    struct blk_guest *guest = *state;
    struct pieces pieces = pieces_begin(guest, 0);
    uint64_t status;

    assert_int_equal(memory_write(guest->guest.memory, DATA,
                                  memory_slice(guest->guest.memory,
                                               put_header(guest, TYPE_WRITE, 9), 16),
                                  16),
                     0);
    memset(data(guest) + 16, 0x5a, 512);
    pieces_add(guest, &pieces, DATA, 16 + 512, 0);
    status = put_status(guest);
    pieces_add(guest, &pieces, status, 1, WRITE);
    pieces_offer(guest, &pieces);
    notify(guest, 0);
    wait_used(guest, 0, 1);
    assert_int_equal(status_at(guest, status), OK);
    assert_file_byte(guest, SECTOR(9), 0x5a);
    assert_file_byte(guest, SECTOR(10) - 1, 0x5a);
    assert_file_byte(guest, SECTOR(10), pattern_at(SECTOR(10)));
}

static void requests_outside_of_the_disk_are_errors(void **state)
{
    struct blk_guest *guest = *state;
    const uint64_t sectors[] = {DISK_SECTORS, DISK_SECTORS - 1, UINT64_MAX,
                                UINT64_C(1) << 55, UINT64_MAX / 512};

    for (size_t i = 0; i < ARRAY_SIZE(sectors); i++) {
        assert_int_equal(read_sectors(guest, sectors[i], 1024), IOERR);
        assert_int_equal(write_sectors(guest, sectors[i], 1024), IOERR);
    }
    assert_int_equal(read_sectors(guest, DISK_SECTORS - 1, 512), OK);
}

static void parts_of_sectors_are_errors(void **state)
{
    assert_int_equal(read_sectors(*state, 0, 511), IOERR);
    assert_int_equal(write_sectors(*state, 0, 513), IOERR);
}

static void nothing_to_read_or_write_is_no_error(void **state)
{
    assert_int_equal(read_sectors(*state, 0, 0), OK);
    assert_int_equal(write_sectors(*state, 0, 0), OK);
}

static void each_queue_gets_back_what_it_has_asked_for(void **state)
{
    struct blk_guest *guest = *state;
    uint64_t first = offer(guest, 0, TYPE_READ, 0, DATA, 512, true);
    uint64_t second = offer(guest, 1, TYPE_READ, 8, DATA + 512, 1024, true);

    notify(guest, 1);
    notify(guest, 0);
    wait_used(guest, 1, 1);
    wait_used(guest, 0, 1);
    assert_int_equal(status_at(guest, first), OK);
    assert_int_equal(status_at(guest, second), OK);
    assert_int_equal(used_length(guest, 0, 0), 513);
    assert_int_equal(used_length(guest, 1, 0), 1025);
    assert_pattern(data(guest), 0, 512);
    assert_pattern(data(guest) + 512, SECTOR(8), 1024);
}

static void ring_may_be_filled_again_and_again(void **state)
{
    struct blk_guest *guest = *state;

    for (unsigned round = 0; round < 20; round++) {
        uint64_t status[21];

        for (unsigned i = 0; i < ARRAY_SIZE(status); i++)
            status[i] =
                offer(guest, 0, TYPE_READ, i, DATA + i * UINT64_C(512), 512, true);
        notify(guest, 0);
        wait_used(guest, 0, guest->offered[0]);
        for (unsigned i = 0; i < ARRAY_SIZE(status); i++)
            assert_int_equal(status_at(guest, status[i]), OK);
        assert_pattern(data(guest), 0, ARRAY_SIZE(status) * 512);
    }
}

/* ---- other requests ---- */

static void flush_reaches_the_host(void **state)
{
    struct blk_guest *guest = *state;

    assert_int_equal(write_sectors(guest, 0, 512), OK);
    assert_int_equal(guest->faults.seen[DISK_FLUSH], 0);
    assert_int_equal(request(guest, TYPE_FLUSH, 0, 0, 0, false), OK);
    assert_int_equal(guest->faults.seen[DISK_FLUSH], 1);
}

static void serial_has_20_bytes_and_no_end(void **state)
{
    struct blk_guest *guest = *state;

    data(guest)[20] = 0x77;
    assert_int_equal(request(guest, TYPE_GET_ID, 0, DATA, 20, true), OK);
    assert_memory_equal(data(guest), "0123456789abcdefghij\x77", 21);
    memset(data(guest), 0, 32);
    assert_int_equal(request(guest, TYPE_GET_ID, 0, DATA, 7, true), OK);
    assert_memory_equal(data(guest), "0123456\0", 8);
    assert_int_equal(request(guest, TYPE_GET_ID, 0, DATA, 4096, true), OK);
    assert_memory_equal(data(guest), "0123456789abcdefghij\0", 21);
    assert_int_equal(request(guest, TYPE_GET_ID, 0, 0, 0, true), OK);
}

static void unknown_types_are_not_supported(void **state)
{
    const uint32_t types[] = {2,  3,  5,  6,  7,          9,         10,
                              12, 14, 15, 26, 0x80000000, UINT32_MAX};

    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        assert_int_equal(request(*state, types[i], 0, DATA, 512, true), UNSUPPORTED);
}

static uint8_t ask_ranges(struct blk_guest *guest, uint32_t type, unsigned count)
{
    return request(guest, type, 0, DATA, count * (uint32_t)sizeof(struct blk_range),
                   false);
}

static uint8_t ask_range(struct blk_guest *guest, uint32_t type, uint64_t sector,
                         uint32_t sector_count, uint32_t flags)
{
    put_range(guest, 0, sector, sector_count, flags);
    return ask_ranges(guest, type, 1);
}

static void discard_gives_blocks_back(void **state)
{
    struct blk_guest *guest = *state;
    struct stat before, after;

    assert_int_equal(fstat(guest->file.fd, &before), 0);
    put_range(guest, 0, 0, 128, 0);
    put_range(guest, 1, 1024, 256, 0);
    assert_int_equal(ask_ranges(guest, TYPE_DISCARD, 2), OK);
    assert_int_equal(fstat(guest->file.fd, &after), 0);
    assert_int_equal(before.st_blocks - after.st_blocks, 128 + 256);
    assert_int_equal(after.st_size, DISK_BYTES);
    assert_true(disk_counters(guest->disk).bytes[DISK_DISCARD] == SECTOR(384));
}

static void zeros_are_what_is_read_with_and_without_unmap(void **state)
{
    struct blk_guest *guest = *state;

    put_range(guest, 0, 2, 1, 0);
    put_range(guest, 1, 8, 16, 1);
    assert_int_equal(ask_ranges(guest, TYPE_WRITE_ZEROES, 2), OK);
    assert_file_byte(guest, SECTOR(2) - 1, pattern_at(SECTOR(2) - 1));
    assert_file_byte(guest, SECTOR(2), 0);
    assert_file_byte(guest, SECTOR(3) - 1, 0);
    assert_file_byte(guest, SECTOR(3), pattern_at(SECTOR(3)));
    assert_file_byte(guest, SECTOR(8), 0);
    assert_file_byte(guest, SECTOR(24) - 1, 0);
    assert_file_byte(guest, SECTOR(24), pattern_at(SECTOR(24)));
}

static void range_flags_that_are_not_known_are_not_supported(void **state)
{
    struct blk_guest *guest = *state;

    assert_int_equal(ask_range(guest, TYPE_DISCARD, 0, 8, 1), UNSUPPORTED);
    assert_int_equal(ask_range(guest, TYPE_DISCARD, 0, 8, 2), UNSUPPORTED);
    assert_int_equal(ask_range(guest, TYPE_WRITE_ZEROES, 0, 8, 2), UNSUPPORTED);
    assert_int_equal(ask_range(guest, TYPE_WRITE_ZEROES, 0, 8, 0x80000001), UNSUPPORTED);
    put_range(guest, 0, 0, 8, 0);
    put_range(guest, 1, 8, 8, 4);
    assert_int_equal(ask_ranges(guest, TYPE_DISCARD, 2), UNSUPPORTED);
    assert_file_byte(guest, 0, pattern_at(0)); /* nothing was begun */
}

static void ranges_that_are_nowhere_are_errors(void **state)
{
    struct blk_guest *guest = *state;
    const uint32_t types[] = {TYPE_DISCARD, TYPE_WRITE_ZEROES};

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        assert_int_equal(ask_range(guest, types[i], UINT64_MAX, 8, 0), IOERR);
        assert_int_equal(ask_range(guest, types[i], UINT64_MAX / 512, 8, 0), IOERR);
        assert_int_equal(ask_range(guest, types[i], DISK_SECTORS - 1, 2, 0), IOERR);
        assert_int_equal(ask_range(guest, types[i], 0, UINT32_MAX, 0), IOERR);
        assert_int_equal(ask_range(guest, types[i], DISK_SECTORS, 0, 0), OK);
        assert_int_equal(ask_ranges(guest, types[i], 0), IOERR);
        assert_int_equal(ask_ranges(guest, types[i], 33), IOERR);
        assert_int_equal(request(guest, types[i], 0, DATA, 15, false), IOERR);
        assert_int_equal(request(guest, types[i], 0, DATA, 24, false), IOERR);
    }
}

/* ---- chains that are no requests ---- */

static uint8_t offer_two_pieces(struct blk_guest *guest, uint64_t header, uint32_t size)
{
    struct pieces pieces = pieces_begin(guest, 0);
    uint64_t status = put_status(guest);

    pieces_add(guest, &pieces, header, size, 0);
    pieces_add(guest, &pieces, status, 1, WRITE);
    pieces_offer(guest, &pieces);
    notify(guest, 0);
    wait_used(guest, 0, guest->offered[0]);
    return status_at(guest, status);
}

static void short_header_is_an_error(void **state)
{
    assert_int_equal(offer_two_pieces(*state, put_header(*state, TYPE_READ, 0), 15),
                     IOERR);
    assert_int_equal(offer_two_pieces(*state, put_header(*state, TYPE_READ, 0), 0),
                     IOERR);
    assert_int_equal(read_sectors(*state, 0, 512), OK);
}

static void status_alone_is_an_error(void **state)
{
    struct blk_guest *guest = *state;
    struct pieces pieces = pieces_begin(guest, 0);
    uint64_t status = put_status(guest);

    pieces_add(guest, &pieces, status, 1, WRITE);
    pieces_offer(guest, &pieces);
    notify(guest, 0);
    wait_used(guest, 0, 1);
    assert_int_equal(status_at(guest, status), IOERR);
}

static bool needs_reset(struct blk_guest *guest)
{
    return guest_read(&guest->guest, STATUS, 1) == 0x4f;
}

/* A guest that got its chain back would take the status for what was there before. */
static void request_without_room_for_a_status_breaks_the_ring(void **state)
{
    struct blk_guest *guest = *state;
    struct pieces pieces = pieces_begin(guest, 0);

    pieces_add(guest, &pieces, put_header(guest, TYPE_WRITE, 0), 16, 0);
    pieces_add(guest, &pieces, DATA, 512, 0);
    pieces_add(guest, &pieces, DATA, 0, WRITE);
    pieces_offer(guest, &pieces);
    notify(guest, 0);
    wait_for(needs_reset, guest);
    assert_int_equal(used_count(guest, 0), 0);
    assert_file_byte(guest, 0, pattern_at(0));
    blk_start_driver(guest, ALL_FEATURES);
    assert_int_equal(read_sectors(guest, 0, 512), OK);
}

static void buffer_outside_of_memory_breaks_the_ring(void **state)
{
    struct blk_guest *guest = *state;

    (void)offer(guest, 0, TYPE_READ, 0, 0x80000000, 512, true);
    notify(guest, 0);
    wait_for(needs_reset, guest);
    assert_int_equal(used_count(guest, 0), 0);
    blk_start_driver(guest, ALL_FEATURES);
    assert_int_equal(read_sectors(guest, 0, 512), OK);
}

/* ---- read-only ---- */

static void read_only_disk_refuses_writes_and_keeps_its_file(void **state)
{
    struct blk_guest *guest = *state;
    struct stat before, after;

    assert_int_equal(fstat(guest->file.fd, &before), 0);
    assert_int_equal(write_sectors(guest, 0, 512), IOERR);
    assert_int_equal(ask_range(guest, TYPE_DISCARD, 0, 8, 0), UNSUPPORTED);
    assert_int_equal(ask_range(guest, TYPE_WRITE_ZEROES, 0, 8, 0), UNSUPPORTED);
    assert_int_equal(request(guest, TYPE_FLUSH, 0, 0, 0, false), OK);
    assert_int_equal(read_sectors(guest, 0, 4096), OK);
    assert_pattern(data(guest), 0, 4096);
    assert_int_equal(fstat(guest->file.fd, &after), 0);
    assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
}

/* ---- caching ---- */

static void without_flush_each_write_is_stable_when_it_is_done(void **state)
{
    struct blk_guest *guest = *state;

    blk_start_driver(guest, NO_FLUSH);
    assert_int_equal(write_sectors(guest, 0, 512), OK);
    assert_int_equal(guest->faults.seen[DISK_FLUSH], 1);
    assert_int_equal(ask_range(guest, TYPE_WRITE_ZEROES, 0, 8, 0), OK);
    assert_int_equal(guest->faults.seen[DISK_FLUSH], 2);
    assert_int_equal(read_sectors(guest, 0, 512), OK);
    assert_int_equal(guest->faults.seen[DISK_FLUSH], 2);
}

static void driver_without_flush_is_shown_no_cache(void **state)
{
    struct blk_guest *guest = *state;

    blk_start_driver(guest, ALL_FEATURES & ~VIRTIO_BLK_F_FLUSH);
    assert_int_equal(config(guest, 32, 1), 0);
    guest_write(&guest->guest, CONFIG + 32, 1, 1);
    assert_int_equal(config(guest, 32, 1), 0);
    assert_int_equal(write_sectors(guest, 0, 512), OK);
    assert_int_equal(guest->faults.seen[DISK_FLUSH], 1);
}

static void write_through_is_the_drivers_to_choose_and_ends_with_a_reset(void **state)
{
    struct blk_guest *guest = *state;

    guest_write(&guest->guest, CONFIG + 32, 1, 0);
    assert_int_equal(write_sectors(guest, 0, 512), OK);
    assert_int_equal(guest->faults.seen[DISK_FLUSH], 1);
    guest_write(&guest->guest, CONFIG + 32, 1, 1);
    assert_int_equal(write_sectors(guest, 0, 512), OK);
    assert_int_equal(guest->faults.seen[DISK_FLUSH], 1);
    guest_write(&guest->guest, CONFIG + 32, 1, 0);
    blk_start_driver(guest, ALL_FEATURES);
    assert_int_equal(config(guest, 32, 1), 1);
    assert_int_equal(write_sectors(guest, 0, 512), OK);
    assert_int_equal(guest->faults.seen[DISK_FLUSH], 1);
}

/* ---- size ---- */

static bool has_interrupted(struct blk_guest *guest)
{
    return guest->guest.level;
}

static void new_size_of_the_file_is_told(void **state)
{
    struct blk_guest *guest = *state;

    assert_int_equal(read_sectors(guest, DISK_SECTORS, 512), IOERR);
    wait_for(has_interrupted, guest);
    assert_int_equal(guest_read(&guest->guest, ISR, 1), 1);
    assert_int_equal(ftruncate(guest->file.fd, DISK_BYTES + 1024), 0);
    virtio_blk_update_size(guest->blk);
    wait_for(has_interrupted, guest);
    assert_int_equal(guest_read(&guest->guest, ISR, 1), 2);
    assert_int_equal(guest_read(&guest->guest, GENERATION, 1), 1);
    assert_int_equal(config(guest, 0, 4), DISK_SECTORS + 2);
    assert_int_equal(read_sectors(guest, DISK_SECTORS, 1024), OK);
    assert_int_equal(read_sectors(guest, DISK_SECTORS, 2048), IOERR);
}

/* ---- bus ---- */

static void nothing_is_taken_while_it_may_not_access_memory(void **state)
{
    struct blk_guest *guest = *state;

    guest_config_write(&guest->guest, 0x04, 2, 0x0002); /* no bus master */
    (void)offer(guest, 0, TYPE_READ, 0, DATA, 512, true);
    notify(guest, 0);
    /* When the second order is carried out, the notification has been looked at. */
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(ftruncate(guest->file.fd, (off_t)(DISK_BYTES + SECTOR(i))), 0);
        virtio_blk_update_size(guest->blk);
        wait_for(has_interrupted, guest);
        assert_int_equal(guest_read(&guest->guest, ISR, 1), 2);
    }
    assert_int_equal(used_count(guest, 0), 0);
    assert_int_equal(data(guest)[0], 0);
    guest_config_write(&guest->guest, 0x04, 2, 0x0006); /* now it looks by itself */
    wait_used(guest, 0, 1);
    assert_pattern(data(guest), 0, 512);
}

#define BLK_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
#define READ_ONLY_TEST(function)                                                         \
    cmocka_unit_test_setup_teardown(function, setup_read_only, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BLK_TEST(function_is_mass_storage),
        BLK_TEST(features_are_those_of_a_disk_to_write_to),
        READ_ONLY_TEST(features_of_a_read_only_disk_say_so),
        BLK_TEST(configuration_describes_the_disk),
        BLK_TEST(only_writeback_can_be_written),
        BLK_TEST(read_brings_what_the_file_has),
        BLK_TEST(write_brings_to_the_file_what_memory_has),
        BLK_TEST(request_may_be_cut_into_any_pieces),
        BLK_TEST(header_and_data_may_share_a_piece),
        BLK_TEST(requests_outside_of_the_disk_are_errors),
        BLK_TEST(parts_of_sectors_are_errors),
        BLK_TEST(nothing_to_read_or_write_is_no_error),
        BLK_TEST(each_queue_gets_back_what_it_has_asked_for),
        BLK_TEST(ring_may_be_filled_again_and_again),
        BLK_TEST(flush_reaches_the_host),
        BLK_TEST(serial_has_20_bytes_and_no_end),
        BLK_TEST(unknown_types_are_not_supported),
        BLK_TEST(discard_gives_blocks_back),
        BLK_TEST(zeros_are_what_is_read_with_and_without_unmap),
        BLK_TEST(range_flags_that_are_not_known_are_not_supported),
        BLK_TEST(ranges_that_are_nowhere_are_errors),
        BLK_TEST(short_header_is_an_error),
        BLK_TEST(status_alone_is_an_error),
        BLK_TEST(request_without_room_for_a_status_breaks_the_ring),
        BLK_TEST(buffer_outside_of_memory_breaks_the_ring),
        READ_ONLY_TEST(read_only_disk_refuses_writes_and_keeps_its_file),
        BLK_TEST(without_flush_each_write_is_stable_when_it_is_done),
        BLK_TEST(driver_without_flush_is_shown_no_cache),
        BLK_TEST(write_through_is_the_drivers_to_choose_and_ends_with_a_reset),
        BLK_TEST(new_size_of_the_file_is_told),
        BLK_TEST(nothing_is_taken_while_it_may_not_access_memory),
    };

    return cmocka_run_group_tests_name("virtio-blk requests", tests, NULL, NULL);
}
