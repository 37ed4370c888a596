/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign bytes and overflow-safe arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

static const uint8_t bytes[] = {0xff, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88};

static void loads_little_endian_at_odd_addresses(void **state)
{
    (void)state;
    assert_int_equal(load_le16(bytes + 1), 0x0201);
    assert_int_equal(load_le32(bytes + 1), 0x04030201);
    assert_true(load_le64(bytes + 1) == UINT64_C(0x8807060504030201));
}

static void stores_what_loads_read(void **state)
{
    uint8_t to[9] = {0};

    (void)state;
    store_le64(to + 1, UINT64_C(0x8807060504030201));
    assert_memory_equal(to + 1, bytes + 1, 8);
    store_le32(to + 1, 0xa4a3a2a1);
    assert_true(load_le64(to + 1) == UINT64_C(0x88070605a4a3a2a1));
    store_le16(to + 1, 0xb2b1);
    assert_true(load_le64(to + 1) == UINT64_C(0x88070605a4a3b2b1));
    assert_int_equal(to[0], 0);
}

static void range_within_survives_overflow(void **state)
{
    (void)state;
    assert_true(range_within(0, 16, 16));
    assert_true(range_within(16, 0, 16));
    assert_false(range_within(17, 0, 16));
    assert_false(range_within(1, 16, 16));
    assert_false(range_within(8, UINT64_MAX, 16));
    assert_false(range_within(UINT64_MAX, 2, UINT64_MAX));
    assert_true(range_within(0, UINT64_MAX, UINT64_MAX));
}

static void ranges_overlap_only_if_they_share_a_byte(void **state)
{
    (void)state;
    assert_true(ranges_overlap(0, 10, 9, 1));
    assert_false(ranges_overlap(0, 10, 10, 1));
    assert_true(ranges_overlap(9, 1, 0, 10));
    assert_false(ranges_overlap(10, 1, 0, 10));
    assert_true(ranges_overlap(0, 100, 50, 1));
    assert_false(ranges_overlap(5, 0, 0, 10));
    assert_false(ranges_overlap(0, 10, 5, 0));
}

static void aligns_to_powers_of_two(void **state)
{
    (void)state;
    assert_true(align_down(0x1fff, 0x1000) == 0x1000);
    assert_true(align_up(0x1001, 0x1000) == 0x2000);
    assert_true(align_up(0x1000, 0x1000) == 0x1000);
    assert_true(align_up(UINT64_MAX, 0x1000) == 0); /* documented: wraps */
    assert_true(is_aligned(0x3000, 0x1000));
    assert_false(is_aligned(0x3001, 0x1000));
}

static void min_and_max_take_the_whole_range(void **state)
{
    (void)state;
    assert_true(min_u64(1, UINT64_MAX) == 1);
    assert_true(max_u64(1, UINT64_MAX) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_little_endian_at_odd_addresses),
        cmocka_unit_test(stores_what_loads_read),
        cmocka_unit_test(range_within_survives_overflow),
        cmocka_unit_test(ranges_overlap_only_if_they_share_a_byte),
        cmocka_unit_test(aligns_to_powers_of_two),
        cmocka_unit_test(min_and_max_take_the_whole_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
