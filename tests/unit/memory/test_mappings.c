/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of guest memory when there may be no more mappings, by the host's count or
 * by husk's: what would have been given back is kept, and the guest sees no difference.
 */
#include "library_test.h"

#include <errno.h>

#define KERNEL UINT64_C(0x10000)
#define MAX_COMMON_RUNS 8192 /* mapped from the library, until the next reset */

/* ---- a host that refuses ---- */

static bool host_refuses;

/* The linker's --wrap has these names. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_mmap64(void *address, size_t size, int protection, int flags, int fd,
                    off_t offset);
void *__wrap_mmap64(void *address, size_t size, int protection, int flags, int fd,
                    off_t offset);

void *__wrap_mmap64(void *address, size_t size, int protection, int flags, int fd,
                    off_t offset)
/* NOLINTEND(bugprone-reserved-identifier) */
{
    if (host_refuses && (flags & MAP_FIXED) != 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap64(address, size, protection, flags, fd, offset);
}

static int teardown(void **state)
{
    (void)state;
    host_refuses = false;
    return 0;
}

/* ---- what it refuses ---- */

static void pages_that_cannot_be_shared_are_kept(void **state)
{
    struct memory *first = small_memory();
    struct memory *second = small_memory();
    struct library library = new_library();
    struct memory_reclaimed reclaimed;

    (void)state;
    fill(first, 0, 'k', 2);
    fill(second, 0, 'k', 2);
    fill(second, 4 * PAGE, '\0', 1);
    (void)reclaim_with(first, &library);
    host_refuses = true;
    reclaimed = reclaim_with(second, &library);
    assert_int_equal(reclaimed.common_bytes, 0);
    assert_int_equal(reclaimed.kept_bytes, 2 * PAGE);
    assert_int_equal(reclaimed.zero_bytes, PAGE); /* which needs no mapping */
    assert_false(memory_is_common(second, 0));
    assert_filled(second, 0, 'k', 2);

    host_refuses = false;
    assert_int_equal(reclaim_with(second, &library).common_bytes, 2 * PAGE);
    assert_filled(second, 0, 'k', 2);
    memory_destroy(first);
    memory_destroy(second);
    drop_library(&library);
}

static void pages_of_files_that_cannot_be_covered_are_kept(void **state)
{
    struct memory *memory = small_memory();
    struct memory_reclaimed reclaimed;
    int fd = file_of(4 * PAGE);
    uint64_t kept_bytes;

    (void)state;
    map_or_fail(memory, KERNEL, fd, 0, 4 * PAGE, "kernel");
    fill(memory, KERNEL + PAGE, '\0', 1);
    host_refuses = true;
    reclaimed = reclaim(memory, NULL);
    assert_int_equal(reclaimed.zero_bytes, 0);
    assert_int_equal(reclaimed.kept_bytes, PAGE);
    assert_int_equal(memory_discard(memory, KERNEL + 2 * PAGE, PAGE, &kept_bytes), 0);
    assert_int_equal(kept_bytes, PAGE);
    assert_filled(memory, KERNEL + PAGE, '\0', 1);
    assert_filled(memory, KERNEL + 2 * PAGE, 'c', 1);

    host_refuses = false;
    assert_int_equal(reclaim(memory, NULL).zero_bytes, PAGE);
    assert_int_equal(memory_discard(memory, KERNEL + 2 * PAGE, PAGE, &kept_bytes), 0);
    assert_int_equal(kept_bytes, 0);
    assert_filled(memory, KERNEL + 2 * PAGE, '\0', 1);
    close(fd);
    memory_destroy(memory);
}

/* ---- what husk does not even ask for ---- */

/* Every second page. */
static void fill_runs(struct memory *memory, size_t runs)
{
    for (size_t i = 0; i < runs; i++)
        fill(memory, 2 * i * PAGE, 'k', 1);
}

static void the_library_is_mapped_so_often_and_the_rest_is_kept(void **state)
{
    const size_t runs = MAX_COMMON_RUNS + 2;
    const struct memory_span spans[] = {{0, 2 * runs * PAGE}};
    struct memory *first = memory_of(spans, 1);
    struct memory *second = memory_of(spans, 1);
    struct library library = new_library();
    struct memory_reclaimed reclaimed;
    struct error err = ERROR_NONE;
    size_t before;

    (void)state;
    fill_runs(first, runs);
    fill_runs(second, runs);
    (void)reclaim_with(first, &library);
    before = count_mappings();
    reclaimed = reclaim_with(second, &library);
    assert_int_equal(reclaimed.common_bytes, MAX_COMMON_RUNS * PAGE);
    assert_int_equal(reclaimed.kept_bytes, 2 * PAGE);
    assert_true(count_mappings() <= before + 2 * (size_t)MAX_COMMON_RUNS);

    /* What is there already needs none. */
    before = count_mappings();
    fill(second, 0, 'k', 1);
    reclaimed = reclaim_with(second, &library);
    assert_int_equal(reclaimed.common_bytes, PAGE);
    assert_int_equal(reclaimed.kept_bytes, 2 * PAGE);
    assert_int_equal(count_mappings(), before);
    assert_filled(second, 0, 'k', 1);

    assert_int_equal(memory_reset(second, &err), 0);
    fill_runs(second, 1);
    assert_int_equal(reclaim_with(second, &library).common_bytes, PAGE);
    memory_destroy(first);
    memory_destroy(second);
    drop_library(&library);
}

#define MAPPINGS_TEST(function) cmocka_unit_test_teardown(function, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MAPPINGS_TEST(pages_that_cannot_be_shared_are_kept),
        MAPPINGS_TEST(pages_of_files_that_cannot_be_covered_are_kept),
        MAPPINGS_TEST(the_library_is_mapped_so_often_and_the_rest_is_kept),
    };

    return cmocka_run_group_tests_name("mappings", tests, NULL, NULL);
}
