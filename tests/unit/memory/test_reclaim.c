/* SPDX-License-Identifier: Apache-2.0 */
/* What is given back of a guest's memory, and that the guest sees no difference. */
#include "library_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define KERNEL UINT64_C(0x10000)

/* ---- fixtures ---- */

/* As another process would have it: locks belong to the open file. */
static struct library reopened(const struct library *library)
{
    char path[2][64];
    struct library again;

    (void)snprintf(path[0], sizeof(path[0]), "/proc/self/fd/%d", library->pages_fd);
    (void)snprintf(path[1], sizeof(path[1]), "/proc/self/fd/%d", library->marks_fd);
    again = (struct library){.pages_fd = open(path[0], O_RDWR | O_CLOEXEC),
                             .marks_fd = open(path[1], O_RDWR | O_CLOEXEC)};
    assert_true(again.pages_fd >= 0 && again.marks_fd >= 0);
    return again;
}

/* ---- zero pages ---- */

static void pages_of_zeros_are_given_back_and_others_kept(void **state)
{
    struct memory *memory = small_memory();
    struct memory_reclaimed first;
    struct memory_reclaimed second;

    (void)state;
    fill(memory, 0, 'x', 2);
    fill(memory, 2 * PAGE, '\0', 5);
    fill(memory, 2 * MIB, '\0', 1);
    first = reclaim(memory, NULL);
    assert_int_equal(first.zero_bytes, 6 * PAGE);
    assert_int_equal(first.kept_bytes, 2 * PAGE);
    assert_filled(memory, 0, 'x', 2);
    second = reclaim(memory, NULL);
    assert_int_equal(second.zero_bytes, 0);
    assert_int_equal(second.kept_bytes, 2 * PAGE);
    assert_filled(memory, 2 * PAGE, '\0', 5);
    memory_destroy(memory);
}

/* MADV_DONTNEED alone would bring the file's bytes back. */
static void zeros_over_a_file_stay_zeros(void **state)
{
    struct memory *memory = small_memory();
    int fd = file_of(4 * PAGE);

    (void)state;
    map_or_fail(memory, KERNEL, fd, 0, 4 * PAGE, "kernel");
    fill(memory, KERNEL + PAGE, '\0', 2);
    assert_int_equal(reclaim(memory, NULL).zero_bytes, 2 * PAGE);
    assert_filled(memory, KERNEL, 'a', 1);
    assert_filled(memory, KERNEL + PAGE, '\0', 2);
    assert_filled(memory, KERNEL + 3 * PAGE, 'd', 1);
    close(fd);
    memory_destroy(memory);
}

static void a_page_with_one_byte_at_its_end_is_kept(void **state)
{
    struct memory *memory = small_memory();

    (void)state;
    fill(memory, 0, '\0', 1);
    assert_int_equal(memory_write(memory, PAGE - 1, "!", 1), 0);
    assert_int_equal(reclaim(memory, NULL).kept_bytes, PAGE);
    memory_destroy(memory);
}

/* ---- common pages ---- */

static void the_second_guest_shares_and_the_first_one_at_its_next_look(void **state)
{
    struct memory *first = small_memory();
    struct memory *second = small_memory();
    struct library library = new_library();
    struct memory_reclaimed reclaimed;

    (void)state;
    fill(first, 0, 'k', 3);
    fill(second, 0, 'k', 3);
    fill(first, 8 * PAGE, '1', 1); /* what only one of them has */
    fill(second, 8 * PAGE, '2', 1);

    reclaimed = reclaim_with(first, &library);
    assert_int_equal(reclaimed.common_bytes, 0);
    assert_int_equal(reclaimed.later_bytes, 4 * PAGE);
    reclaimed = reclaim_with(second, &library);
    assert_int_equal(reclaimed.common_bytes, 3 * PAGE);
    assert_int_equal(reclaimed.kept_bytes, PAGE);
    reclaimed = reclaim_with(first, &library);
    assert_int_equal(reclaimed.common_bytes, 3 * PAGE);

    assert_filled(first, 0, 'k', 3);
    assert_filled(second, 0, 'k', 3);
    assert_filled(first, 8 * PAGE, '1', 1);
    assert_filled(second, 8 * PAGE, '2', 1);
    memory_destroy(first);
    memory_destroy(second);
    drop_library(&library);
}

/* Its secrets must not get into a file. */
static void a_guest_does_not_share_with_itself(void **state)
{
    struct memory *memory = small_memory();
    struct library library = new_library();
    char held = 'x';

    (void)state;
    fill(memory, 0, 's', 1);
    for (int look = 0; look < 3; look++) {
        struct memory_reclaimed reclaimed = reclaim_with(memory, &library);

        assert_int_equal(reclaimed.common_bytes, 0);
        assert_int_equal(reclaimed.later_bytes, PAGE);
    }
    assert_int_equal(pread(library.pages_fd, &held, 1, 0), 1);
    assert_int_equal(held, 0);
    memory_destroy(memory);
    drop_library(&library);
}

/* Two guests with 'k' in page 0, which is in the library and mapped. */
static void share_page(struct memory *guests[2], const struct library *library)
{
    for (int i = 0; i < 2; i++) {
        guests[i] = small_memory();
        fill(guests[i], 0, 'k', 1);
        (void)reclaim_with(guests[i], library);
    }
    assert_int_equal(reclaim_with(guests[0], library).common_bytes, PAGE);
}

static void what_a_guest_writes_later_is_its_own(void **state)
{
    struct memory *guests[2];
    struct library library = new_library();
    char held = 0;

    (void)state;
    share_page(guests, &library);
    fill(guests[0], 0, 'z', 1);
    assert_filled(guests[1], 0, 'k', 1);
    assert_int_equal(pread(library.pages_fd, &held, 1, 0), 1);
    assert_int_equal(held, 'k');
    assert_int_equal(reclaim_with(guests[0], &library).common_bytes, 0);
    assert_filled(guests[0], 0, 'z', 1);
    for (int i = 0; i < 2; i++)
        memory_destroy(guests[i]);
    drop_library(&library);
}

/* Somebody has cleared the cache: what the new library holds is not in the old one. */
static void another_library_is_taken_only_after_a_reset(void **state)
{
    struct memory *guests[2];
    struct library library = new_library();
    struct library another = new_library();

    (void)state;
    share_page(guests, &library);
    for (int i = 0; i < 2; i++) {
        struct memory_reclaimed reclaimed;
        struct error err = ERROR_NONE;
        struct commons *commons =
            open_or_fail(&another, memory_reserved_bytes(guests[i]), guest_of(guests[i]));

        fill(guests[i], 2 * PAGE, 'z', 1);
        assert_int_equal(memory_reclaim(guests[i], commons, &reclaimed, &err), -ESTALE);
        assert_string_equal(err.text, "library: is another file than at the last look");
        commons_close(commons);
        assert_filled(guests[i], 0, 'k', 1);
        assert_filled(guests[i], 2 * PAGE, 'z', 1);
    }
    for (int i = 0; i < 2; i++) {
        struct error err = ERROR_NONE;

        assert_int_equal(memory_reset(guests[i], &err), 0);
        fill(guests[i], 2 * PAGE, 'z', 1);
        assert_int_equal(reclaim_with(guests[i], &another).common_bytes,
                         i == 1 ? PAGE : 0);
        assert_filled(guests[i], 2 * PAGE, 'z', 1);
    }
    for (int i = 0; i < 2; i++)
        memory_destroy(guests[i]);
    drop_library(&library);
    drop_library(&another);
}

static void zeros_over_a_common_page_stay_zeros(void **state)
{
    struct memory *guests[2];
    struct library library = new_library();

    (void)state;
    share_page(guests, &library);
    fill(guests[0], 0, '\0', 1);
    assert_int_equal(reclaim_with(guests[0], &library).zero_bytes, PAGE);
    assert_filled(guests[0], 0, '\0', 1);
    for (int i = 0; i < 2; i++)
        memory_destroy(guests[i]);
    drop_library(&library);
}

static void a_reset_takes_common_pages_away(void **state)
{
    struct memory *guests[2];
    struct library library = new_library();
    struct error err = ERROR_NONE;

    (void)state;
    share_page(guests, &library);
    assert_int_equal(memory_reset(guests[0], &err), 0);
    assert_filled(guests[0], 0, '\0', 1);
    fill(guests[0], 0, 'k', 1);
    assert_int_equal(reclaim_with(guests[0], &library).common_bytes, PAGE);
    for (int i = 0; i < 2; i++)
        memory_destroy(guests[i]);
    drop_library(&library);
}

static void a_page_in_the_library_never_changes(void **state)
{
    struct memory *guests[2];
    struct memory *others[2];
    struct library library = new_library();

    (void)state;
    share_page(guests, &library);
    for (int i = 0; i < 2; i++) {
        others[i] = small_memory();
        fill(others[i], 0, 'o', 1);
        assert_int_equal(reclaim_with(others[i], &library).common_bytes, 0);
    }
    assert_filled(guests[0], 0, 'k', 1);
    for (int i = 0; i < 2; i++) {
        memory_destroy(guests[i]);
        memory_destroy(others[i]);
    }
    drop_library(&library);
}

static void a_library_that_another_one_writes_is_only_read(void **state)
{
    struct memory *memory = small_memory();
    struct library library = new_library();
    struct library again = reopened(&library);
    struct commons *writer = open_or_fail(&library, memory_reserved_bytes(memory), 1);
    struct commons *reader = open_or_fail(&again, memory_reserved_bytes(memory), 2);
    uint64_t mark = 1;

    (void)state;
    fill(memory, 0, 'k', 1);
    assert_int_equal(reclaim(memory, reader).later_bytes, PAGE);
    assert_int_equal(pread(library.marks_fd, &mark, sizeof(mark), 0), sizeof(mark));
    assert_true(mark == 0);
    assert_int_equal(reclaim(memory, writer).later_bytes, PAGE);
    assert_int_equal(pread(library.marks_fd, &mark, sizeof(mark), 0), sizeof(mark));
    assert_true(mark != 0);
    commons_close(reader);
    commons_close(writer);
    memory_destroy(memory);
    drop_library(&again);
    drop_library(&library);
}

static void a_library_for_another_size_is_refused(void **state)
{
    struct library library = new_library();
    struct commons *commons = open_or_fail(&library, MIB, 1);
    struct error err = ERROR_NONE;

    (void)state;
    commons_close(commons);
    assert_int_equal(commons_open(library.pages_fd, library.marks_fd, 2 * MIB, 1,
                                  "library", &commons, &err),
                     -EINVAL);
    assert_string_equal(err.text,
                        "library: has 1048576 bytes where there should be 2097152");
    drop_library(&library);
}

/* The hash is the same, the page is not: nothing is shared. */
static void content_is_compared_and_not_believed(void **state)
{
    struct memory *guests[2];
    struct library library = new_library();

    (void)state;
    share_page(guests, &library);
    assert_int_equal(pwrite(library.pages_fd, "!", 1, 7), 1);
    fill(guests[1], PAGE, 'x', 1);
    fill(guests[1], 0, 'k', 1);
    assert_int_equal(reclaim_with(guests[1], &library).common_bytes, 0);
    assert_filled(guests[1], 0, 'k', 1);
    for (int i = 0; i < 2; i++)
        memory_destroy(guests[i]);
    drop_library(&library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_zeros_are_given_back_and_others_kept),
        cmocka_unit_test(zeros_over_a_file_stay_zeros),
        cmocka_unit_test(a_page_with_one_byte_at_its_end_is_kept),
        cmocka_unit_test(the_second_guest_shares_and_the_first_one_at_its_next_look),
        cmocka_unit_test(a_guest_does_not_share_with_itself),
        cmocka_unit_test(what_a_guest_writes_later_is_its_own),
        cmocka_unit_test(another_library_is_taken_only_after_a_reset),
        cmocka_unit_test(zeros_over_a_common_page_stay_zeros),
        cmocka_unit_test(a_reset_takes_common_pages_away),
        cmocka_unit_test(a_page_in_the_library_never_changes),
        cmocka_unit_test(a_library_that_another_one_writes_is_only_read),
        cmocka_unit_test(a_library_for_another_size_is_refused),
        cmocka_unit_test(content_is_compared_and_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
