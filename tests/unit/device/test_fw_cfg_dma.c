/* SPDX-License-Identifier: Apache-2.0 */
/* fw_cfg by DMA: what a control block does, and what a hostile one cannot do. */
#include "fw_cfg_fixture.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"

#define TARGET UINT64_C(0x1000)
#define ITEM 0x30

static int create_with_item(void **state)
{
    int status = fixture_create(state);

    fixture_add_bytes(*state, ITEM, "0123456789", 10);
    fixture_attach(*state);
    return status;
}

/* What lies at `gpa` now. */
static void assert_memory(struct fixture *fixture, uint64_t gpa, const void *expected,
                          size_t size)
{
    assert_memory_equal(fixture_memory(fixture, gpa, size), expected, size);
}

static void fill(struct fixture *fixture, uint64_t gpa, size_t size)
{
    memset(fixture_memory(fixture, gpa, size), '.', size);
}

static void the_address_register_reads_as_qemu_cfg(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(bus_read(&fixture->ports, 0x514, 4), load_le32("QEMU"));
    assert_int_equal(bus_read(&fixture->ports, 0x518, 4), load_le32(" CFG"));
    assert_int_equal(bus_read(&fixture->ports, 0x516, 2), load_le16("MU"));
    assert_int_equal(bus_read(&fixture->ports, 0x51b, 1), 'G');
}

static void select_and_read_in_one_block(void **state)
{
    fill(*state, TARGET - 1, 12);
    assert_int_equal(
        fixture_dma(*state, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 10, TARGET), 0);
    assert_memory(*state, TARGET - 1, ".0123456789.", 12);
}

static void only_the_control_field_is_answered(void **state)
{
    assert_int_equal(
        fixture_dma(*state, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 10, TARGET), 0);
    assert_memory(*state, BLOCK_GPA, "\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\x10\0", 16);
}

static void reads_behind_the_end_are_zeros(void **state)
{
    fill(*state, TARGET, 16);
    assert_int_equal(
        fixture_dma(*state, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 15, TARGET), 0);
    assert_memory(*state, TARGET, "0123456789\0\0\0\0\0.", 16);
    /* And the end stays the end. */
    fill(*state, TARGET, 16);
    assert_int_equal(fixture_dma(*state, DMA_READ, 3, TARGET), 0);
    assert_memory(*state, TARGET, "\0\0\0.", 4);
}

static void what_does_not_exist_reads_as_zeros(void **state)
{
    fill(*state, TARGET, 8);
    assert_int_equal(
        fixture_dma(*state, DMA_KEY(0x3f) | DMA_SELECT | DMA_READ, 4, TARGET), 0);
    assert_memory(*state, TARGET, "\0\0\0\0....", 8);
}

static void reading_goes_on_where_the_port_has_stopped(void **state)
{
    fixture_select(*state, ITEM);
    assert_int_equal(fixture_read(*state), '0');
    assert_int_equal(fixture_dma(*state, DMA_READ, 3, TARGET), 0);
    assert_memory(*state, TARGET, "123", 3);
    assert_int_equal(fixture_read(*state), '4');
    assert_int_equal(fixture_dma(*state, DMA_SKIP, 3, 0), 0);
    assert_int_equal(fixture_read(*state), '8');
}

static void skipping_stops_at_the_end(void **state)
{
    assert_int_equal(
        fixture_dma(*state, DMA_KEY(ITEM) | DMA_SELECT | DMA_SKIP, UINT32_MAX, 0), 0);
    assert_int_equal(fixture_read(*state), 0);
    assert_int_equal(fixture_dma(*state, DMA_SKIP, UINT32_MAX, 0), 0);
    assert_int_equal(fixture_dma(*state, DMA_KEY(ITEM) | DMA_SELECT | DMA_SKIP, 9, 0), 0);
    assert_int_equal(fixture_read(*state), '9');
    assert_int_equal(
        fixture_dma(*state, DMA_KEY(0x3f) | DMA_SELECT | DMA_SKIP, UINT32_MAX, 0), 0);
    assert_int_equal(fixture_read(*state), 0);
}

static void nothing_asked_is_nothing_done(void **state)
{
    fill(*state, TARGET, 4);
    assert_int_equal(fixture_dma(*state, DMA_KEY(ITEM) | DMA_ERROR, 4, TARGET), 0);
    assert_memory(*state, TARGET, "....", 4);
    assert_int_equal(fixture_read(*state), 'Q'); /* not selected, either */
}

static void selecting_alone_selects(void **state)
{
    assert_int_equal(fixture_dma(*state, DMA_KEY(ITEM) | DMA_SELECT, 4, UINT64_MAX), 0);
    assert_int_equal(fixture_read(*state), '0');
}

static void writing_is_an_error_and_changes_nothing(void **state)
{
    fill(*state, TARGET, 4);
    assert_int_equal(
        fixture_dma(*state, DMA_KEY(ITEM) | DMA_SELECT | DMA_WRITE, 4, TARGET),
        DMA_ERROR);
    assert_int_equal(fixture_dma(*state, DMA_WRITE | DMA_SKIP, 4, TARGET), DMA_ERROR);
    assert_int_equal(fixture_read(*state), '0');
    assert_int_equal(fixture_dma(*state, DMA_WRITE, 0, TARGET), 0);
}

static void reading_counts_before_writing_and_skipping(void **state)
{
    assert_int_equal(fixture_dma(*state,
                                 DMA_KEY(ITEM) | DMA_SELECT | DMA_READ | DMA_WRITE |
                                     DMA_SKIP | DMA_ERROR,
                                 2, TARGET),
                     0);
    assert_memory(*state, TARGET, "01", 2);
    assert_int_equal(fixture_read(*state), '2');
}

static void nothing_of_a_range_outside_of_ram_is_written(void **state)
{
    static const struct {
        uint64_t gpa;
        uint32_t length;
    } ranges[] = {
        {LOW_RAM_BYTES, 1},       {LOW_RAM_BYTES - 4, 5},
        {0, UINT32_MAX},          {TARGET, UINT32_MAX},
        {HIGH_RAM - 1, 2},        {HIGH_RAM + HIGH_RAM_BYTES - 4, 5},
        {UINT64_MAX, 1},          {UINT64_MAX - 3, 8},
        {UINT64_MAX, UINT32_MAX}, {UINT64_C(0x8000000000000000), 16},
    };
    struct fixture *fixture = *state;

    fixture_select(fixture, ITEM);
    fill(fixture, LOW_RAM_BYTES - 4, 4);
    fill(fixture, HIGH_RAM, 4);
    fill(fixture, HIGH_RAM + HIGH_RAM_BYTES - 4, 4);
    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
        assert_int_equal(fixture_dma(fixture, DMA_READ, ranges[i].length, ranges[i].gpa),
                         DMA_ERROR);
        assert_memory(fixture, LOW_RAM_BYTES - 4, "....", 4);
        assert_memory(fixture, HIGH_RAM, "....", 4);
        assert_memory(fixture, HIGH_RAM + HIGH_RAM_BYTES - 4, "....", 4);
    }
    assert_int_equal(fixture_read(fixture), '0'); /* and nothing was taken */
}

static void all_of_ram_can_be_filled(void **state)
{
    uint8_t *low = fixture_memory(*state, 0, LOW_RAM_BYTES);

    memset(low, '.', LOW_RAM_BYTES);
    fixture_put_block(*state, HIGH_RAM, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ,
                      LOW_RAM_BYTES, 0);
    fixture_start(*state, HIGH_RAM);
    assert_int_equal(load_be32(fixture_memory(*state, HIGH_RAM, 4)), 0);
    assert_memory_equal(low, "0123456789\0", 11);
    for (size_t i = 10; i < LOW_RAM_BYTES; i++)
        assert_int_equal(low[i], 0);
}

static void no_bytes_fit_anywhere(void **state)
{
    assert_int_equal(fixture_dma(*state, DMA_READ, 0, UINT64_MAX), 0);
    assert_int_equal(fixture_dma(*state, DMA_READ, 0, LOW_RAM_BYTES), 0);
}

static void a_block_outside_of_ram_does_nothing(void **state)
{
    static const uint64_t blocks[] = {
        LOW_RAM_BYTES, HIGH_RAM - 8,    HIGH_RAM - 16, HIGH_RAM + HIGH_RAM_BYTES,
        UINT64_MAX,    UINT64_MAX - 15,
    };
    struct fixture *fixture = *state;

    fixture_select(fixture, ITEM);
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
        fixture_start(fixture, blocks[i]);
    assert_int_equal(fixture_read(fixture), '0');
}

static void a_block_across_the_end_of_ram_gets_an_error_if_it_can(void **state)
{
    struct fixture *fixture = *state;

    fixture_select(fixture, ITEM);
    memset(fixture_memory(fixture, LOW_RAM_BYTES - 16, 16), 0x5a, 16);
    fixture_start(fixture, LOW_RAM_BYTES - 3);
    assert_memory(fixture, LOW_RAM_BYTES - 16, "ZZZZZZZZZZZZZZZZ", 16);
    fixture_start(fixture, LOW_RAM_BYTES - 15);
    assert_memory(fixture, LOW_RAM_BYTES - 16, "Z\0\0\0\1ZZZZZZZZZZZ", 16);
    assert_int_equal(fixture_read(fixture), '0');
}

static void a_block_may_end_where_ram_ends(void **state)
{
    struct fixture *fixture = *state;
    uint64_t gpa = HIGH_RAM + HIGH_RAM_BYTES - 16;

    fixture_put_block(fixture, gpa, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 4, TARGET);
    fixture_start(fixture, gpa);
    assert_int_equal(load_be32(fixture_memory(fixture, gpa, 4)), 0);
    assert_memory(fixture, TARGET, "0123", 4);
}

static void a_block_need_not_be_aligned(void **state)
{
    struct fixture *fixture = *state;

    fixture_put_block(fixture, 0x201, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 4, 0x1003);
    fixture_start(fixture, 0x201);
    assert_memory(fixture, 0x1003, "0123", 4);
}

static void data_over_the_block_are_answered_all_the_same(void **state)
{
    struct fixture *fixture = *state;

    /* The block's own words are read once: what covers them changes nothing. */
    assert_int_equal(
        fixture_dma(fixture, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 10, BLOCK_GPA - 2),
        0);
    assert_memory(fixture, BLOCK_GPA - 2, "01\0\0\0\0006789", 10);
    fixture_select(fixture, ITEM);
    assert_int_equal(fixture_dma(fixture, DMA_READ, 10, BLOCK_GPA), 0);
    assert_memory(fixture, BLOCK_GPA, "\0\0\0\000456789", 10);
}

static void the_high_half_counts_once(void **state)
{
    struct fixture *fixture = *state;

    fixture_put_block(fixture, HIGH_RAM, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 2,
                      HIGH_RAM + 0x100);
    fixture_put_block(fixture, 0, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 3, TARGET);
    fixture_start(fixture, HIGH_RAM);
    assert_memory(fixture, HIGH_RAM + 0x100, "01", 2);
    assert_memory(fixture, TARGET, "\0", 1);
    bus_write(&fixture->ports, 0x518, 4, 0);
    assert_memory(fixture, TARGET, "012", 3);
}

static void reset_forgets_the_high_half(void **state)
{
    struct fixture *fixture = *state;

    fixture_put_block(fixture, 0, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 3, TARGET);
    bus_write(&fixture->ports, 0x514, 4, 0x01000000);
    fw_cfg_reset(fixture->fw_cfg);
    bus_write(&fixture->ports, 0x518, 4, 0);
    assert_memory(fixture, TARGET, "012", 3);
}

static void narrow_writes_start_nothing(void **state)
{
    struct fixture *fixture = *state;

    fixture_put_block(fixture, 0, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 3, TARGET);
    bus_write(&fixture->ports, 0x518, 2, 0);
    bus_write(&fixture->ports, 0x51a, 2, 0);
    bus_write(&fixture->ports, 0x51b, 1, 0);
    assert_memory(fixture, TARGET, "\0\0\0", 3);
    assert_int_equal(fixture_read(fixture), 'Q');
}

static void a_file_goes_straight_to_the_guest(void **state)
{
    struct fixture *fixture = *state;
    int fd = memfd_create("item", MFD_CLOEXEC);
    const struct fw_cfg_part part = {
        .at = 1, .size_bytes = 5, .source = source_from_fd(fd, 6), .source_offset = 1};
    struct error err = ERROR_NONE;

    assert_int_equal(write(fd, "abcdef", 6), 6);
    assert_int_equal(
        fw_cfg_add_item(fixture->fw_cfg, FW_CFG_INITRD_DATA, 7, &part, 1, &err), 0);
    fixture_attach(fixture);
    fill(fixture, TARGET, 8);
    assert_int_equal(fixture_dma(fixture,
                                 DMA_KEY(FW_CFG_INITRD_DATA) | DMA_SELECT | DMA_READ, 7,
                                 TARGET),
                     0);
    assert_memory(fixture, TARGET, "\0bcdef\0.", 8);

    assert_int_equal(ftruncate(fd, 3), 0);
    fill(fixture, TARGET, 8);
    assert_int_equal(fixture_dma(fixture,
                                 DMA_KEY(FW_CFG_INITRD_DATA) | DMA_SELECT | DMA_READ, 7,
                                 TARGET),
                     DMA_ERROR);
    assert_memory(fixture, TARGET, "\0\0\0\0\0\0\0.", 8);
    assert_int_equal(close(fd), 0);
}

struct heard {
    unsigned count;
    struct memory_span writes[4];
};

static void hear(void *context, uint64_t gpa, uint64_t size_bytes)
{
    struct heard *heard = context;

    assert_true(heard->count < 4);
    heard->writes[heard->count++] = (struct memory_span){gpa, size_bytes};
}

static void who_listens_hears_of_data_and_answer(void **state)
{
    struct fixture *fixture = *state;
    struct heard heard = {0};

    memory_on_write(fixture->memory, hear, &heard);
    assert_int_equal(
        fixture_dma(fixture, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 15, TARGET), 0);
    assert_int_equal(heard.count, 2);
    assert_true(heard.writes[0].gpa == TARGET && heard.writes[0].size_bytes == 15);
    assert_true(heard.writes[1].gpa == BLOCK_GPA && heard.writes[1].size_bytes == 4);
}

static void counters_count_operations_and_bytes(void **state)
{
    struct fixture *fixture = *state;
    struct fw_cfg_counters counters;

    assert_int_equal(
        fixture_dma(fixture, DMA_KEY(ITEM) | DMA_SELECT | DMA_READ, 15, TARGET), 0);
    assert_int_equal(fixture_dma(fixture, DMA_SKIP, 100, 0), 0);
    assert_int_equal(fixture_dma(fixture, DMA_READ, 100, UINT64_MAX), DMA_ERROR);
    fixture_start(fixture, UINT64_MAX);
    fw_cfg_counters(fixture->fw_cfg, &counters);
    assert_int_equal(counters.port_bytes, 0);
    assert_int_equal(counters.dma_bytes, 15);
    assert_int_equal(counters.dma_operations, 4);
}

#define WITH_ITEM(test)                                                                  \
    cmocka_unit_test_setup_teardown(test, create_with_item, fixture_destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ITEM(the_address_register_reads_as_qemu_cfg),
        WITH_ITEM(select_and_read_in_one_block),
        WITH_ITEM(only_the_control_field_is_answered),
        WITH_ITEM(reads_behind_the_end_are_zeros),
        WITH_ITEM(what_does_not_exist_reads_as_zeros),
        WITH_ITEM(reading_goes_on_where_the_port_has_stopped),
        WITH_ITEM(skipping_stops_at_the_end),
        WITH_ITEM(nothing_asked_is_nothing_done),
        WITH_ITEM(selecting_alone_selects),
        WITH_ITEM(writing_is_an_error_and_changes_nothing),
        WITH_ITEM(reading_counts_before_writing_and_skipping),
        WITH_ITEM(nothing_of_a_range_outside_of_ram_is_written),
        WITH_ITEM(all_of_ram_can_be_filled),
        WITH_ITEM(no_bytes_fit_anywhere),
        WITH_ITEM(a_block_outside_of_ram_does_nothing),
        WITH_ITEM(a_block_across_the_end_of_ram_gets_an_error_if_it_can),
        WITH_ITEM(a_block_may_end_where_ram_ends),
        WITH_ITEM(a_block_need_not_be_aligned),
        WITH_ITEM(data_over_the_block_are_answered_all_the_same),
        WITH_ITEM(the_high_half_counts_once),
        WITH_ITEM(reset_forgets_the_high_half),
        WITH_ITEM(narrow_writes_start_nothing),
        cmocka_unit_test_setup_teardown(a_file_goes_straight_to_the_guest, fixture_create,
                                        fixture_destroy),
        WITH_ITEM(who_listens_hears_of_data_and_answer),
        WITH_ITEM(counters_count_operations_and_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
