/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest needs no more: zeros in its place, on every kind of memory, and the host
 * has it back. */
#include "library_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define KERNEL UINT64_C(0x10000)
#define MAX_COVERS 8192 /* of files' pages, until the next reset */

/* ---- fixtures ---- */

static uint64_t discard(struct memory *memory, uint64_t gpa, size_t pages)
{
    uint64_t kept_bytes = 1;

    assert_int_equal(memory_discard(memory, gpa, pages * PAGE, &kept_bytes), 0);
    return kept_bytes;
}

static size_t resident_pages(struct memory *memory, uint64_t gpa, size_t pages)
{
    unsigned char state[64];
    size_t resident = 0;

    assert_true(pages <= sizeof(state));
    assert_int_equal(
        mincore(memory_slice(memory, gpa, pages * PAGE), pages * PAGE, state), 0);
    for (size_t i = 0; i < pages; i++)
        resident += state[i] & 1;
    return resident;
}

static struct memory *memory_with_kernel(size_t pages)
{
    struct memory *memory = small_memory();
    int fd = file_of(pages * PAGE);

    map_or_fail(memory, KERNEL, fd, 0, pages * PAGE, "kernel");
    close(fd);
    return memory;
}

/* ---- kinds of memory ---- */

static void anonymous_memory_is_zero_and_the_hosts(void **state)
{
    struct memory *memory = small_memory();

    (void)state;
    fill(memory, 0, 'x', 8);
    assert_int_equal(discard(memory, 2 * PAGE, 4), 0);
    assert_int_equal(resident_pages(memory, 0, 8), 4);
    assert_filled(memory, 0, 'x', 2);
    assert_filled(memory, 2 * PAGE, '\0', 4);
    assert_filled(memory, 6 * PAGE, 'x', 2);
    memory_destroy(memory);
}

static void a_files_bytes_do_not_come_back(void **state)
{
    struct memory *memory = memory_with_kernel(6);

    (void)state;
    fill(memory, KERNEL + PAGE, 'x', 2); /* one more is as the file has it */
    assert_int_equal(discard(memory, KERNEL + PAGE, 3), 0);
    assert_int_equal(resident_pages(memory, KERNEL + PAGE, 3), 0);
    assert_filled(memory, KERNEL, 'a', 1);
    assert_filled(memory, KERNEL + PAGE, '\0', 3);
    assert_filled(memory, KERNEL + 4 * PAGE, 'e', 1);
    memory_destroy(memory);
}

static void nor_the_second_time(void **state)
{
    struct memory *memory = memory_with_kernel(6);

    (void)state;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(discard(memory, KERNEL, 2), 0);
        assert_filled(memory, KERNEL, '\0', 2);
        fill(memory, KERNEL, 'y', 2);
    }
    assert_int_equal(discard(memory, KERNEL + PAGE, 3), 0);
    assert_filled(memory, KERNEL, 'y', 1);
    assert_filled(memory, KERNEL + PAGE, '\0', 3);
    assert_filled(memory, KERNEL + 4 * PAGE, 'e', 1);
    memory_destroy(memory);
}

static void a_range_may_be_of_several_kinds(void **state)
{
    struct memory *memory = memory_with_kernel(2);

    (void)state;
    fill(memory, KERNEL - PAGE, 'x', 4);
    assert_int_equal(discard(memory, KERNEL - PAGE, 4), 0);
    assert_int_equal(resident_pages(memory, KERNEL - PAGE, 4), 0);
    assert_filled(memory, KERNEL - PAGE, '\0', 4);
    memory_destroy(memory);
}

/* As two looks share it; the kernel's file is below, and has been given back before. */
static void a_common_page_does_not_come_back(void **state)
{
    struct memory *guests[2];
    struct library library = new_library();

    (void)state;
    for (int i = 0; i < 2; i++) {
        guests[i] = memory_with_kernel(2);
        assert_int_equal(discard(guests[i], KERNEL, 1), 0);
        fill(guests[i], KERNEL, 'k', 1);
        (void)reclaim_with(guests[i], &library);
    }
    assert_true(memory_is_common(guests[1], KERNEL));
    assert_int_equal(discard(guests[1], KERNEL, 1), 0);
    assert_false(memory_is_common(guests[1], KERNEL));
    assert_filled(guests[1], KERNEL, '\0', 1);
    assert_int_equal(reclaim_with(guests[0], &library).common_bytes, PAGE);
    assert_filled(guests[0], KERNEL, 'k', 1);
    for (int i = 0; i < 2; i++)
        memory_destroy(guests[i]);
    drop_library(&library);
}

static void a_look_finds_nothing_more_there(void **state)
{
    struct memory *memory = memory_with_kernel(4);
    struct memory_reclaimed reclaimed;
    struct error err = ERROR_NONE;

    (void)state;
    fill(memory, KERNEL, 'x', 3);
    assert_int_equal(discard(memory, KERNEL, 2), 0);
    fill(memory, KERNEL, '\0', 1); /* used and zero again */
    assert_int_equal(memory_reclaim(memory, NULL, &reclaimed, &err), 0);
    assert_int_equal(reclaimed.zero_bytes, PAGE);
    assert_int_equal(reclaimed.kept_bytes, PAGE);
    assert_filled(memory, KERNEL, '\0', 2);
    assert_filled(memory, KERNEL + 2 * PAGE, 'x', 1);
    memory_destroy(memory);
}

/* ---- what is not RAM ---- */

static void expect_refused(struct memory *memory, uint64_t gpa, uint64_t size_bytes)
{
    uint64_t kept_bytes;

    assert_int_equal(memory_discard(memory, gpa, size_bytes, &kept_bytes), -EINVAL);
}

static void what_is_no_whole_page_of_ram_is_refused(void **state)
{
    struct memory *memory = small_memory();

    (void)state;
    fill(memory, 0, 'x', 2);
    expect_refused(memory, 1, PAGE);
    expect_refused(memory, 0, PAGE + 1);
    expect_refused(memory, MIB, PAGE);
    expect_refused(memory, MIB - PAGE, 2 * PAGE);
    expect_refused(memory, PAGE, UINT64_MAX - PAGE + 1);
    expect_refused(memory, UINT64_MAX - PAGE + 1, 2 * PAGE);
    assert_filled(memory, 0, 'x', 2);
    memory_destroy(memory);
}

static void persistent_memory_is_refused(void **state)
{
    const struct memory_span spans[] = {{0, MIB}, {2 * MIB, 2 * PAGE}};
    const struct memory_options options = {.file_span_count = 1};
    struct memory *memory = NULL;
    struct error err = ERROR_NONE;
    int fd = file_of(2 * PAGE);

    (void)state;
    assert_int_equal(memory_create(spans, 2, &options, &memory, &err), 0);
    assert_int_equal(memory_map_span(memory, 2 * MIB, fd, true, "pmem", &err), 0);
    expect_refused(memory, 2 * MIB, PAGE);
    assert_filled(memory, 2 * MIB, 'a', 1);
    close(fd);
    memory_destroy(memory);
}

static void memory_that_is_to_be_kept_is_refused(void **state)
{
    const struct memory_span spans[] = {{0, MIB}};
    const struct memory_options options = {.prefault = true};
    struct memory *memory = NULL;
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(memory_create(spans, 1, &options, &memory, &err), 0);
    assert_false(memory_may_discard(memory));
    expect_refused(memory, 0, PAGE);
    memory_destroy(memory);
}

/* ---- around it ---- */

static void a_reset_brings_the_file_back_to_be_given_back_again(void **state)
{
    struct memory *memory = memory_with_kernel(4);
    struct error err = ERROR_NONE;
    int fd = file_of(4 * PAGE);

    (void)state;
    assert_int_equal(discard(memory, KERNEL, 4), 0);
    assert_int_equal(memory_reset(memory, &err), 0);
    map_or_fail(memory, KERNEL, fd, 0, 4 * PAGE, "kernel");
    assert_filled(memory, KERNEL + PAGE, 'b', 1);
    assert_int_equal(discard(memory, KERNEL, 4), 0);
    assert_filled(memory, KERNEL, '\0', 4);
    close(fd);
    memory_destroy(memory);
}

struct heard {
    unsigned count;
    uint64_t gpa;
    uint64_t size_bytes;
};

static void note_write(void *context, uint64_t gpa, uint64_t size_bytes)
{
    struct heard *heard = context;

    heard->count++;
    heard->gpa = gpa;
    heard->size_bytes += size_bytes;
}

static void an_accelerator_hears_of_it(void **state)
{
    struct memory *memory = memory_with_kernel(2);
    struct heard heard = {0};

    (void)state;
    memory_on_write(memory, note_write, &heard);
    assert_int_equal(discard(memory, KERNEL - PAGE, 3), 0);
    assert_int_equal(heard.count, 2); /* what was anonymous, and what was a file's */
    assert_int_equal(heard.gpa, KERNEL);
    assert_int_equal(heard.size_bytes, 3 * PAGE);
    memory_destroy(memory);
}

/* ---- many mappings ---- */

/* A guest that gives every second page back and uses it again, and then those between
 * them, of a file that is full of nothing. */
static void mappings_are_limited_and_the_rest_is_kept(void **state)
{
    const uint64_t file_bytes = (UINT64_C(1) * MAX_COVERS + 2) * PAGE;
    const struct memory_span spans[] = {{0, KERNEL + file_bytes + PAGE}};
    struct memory *memory = memory_of(spans, 1);
    int fd = memfd_create("kernel", MFD_CLOEXEC);
    uint64_t last = KERNEL + UINT64_C(1) * MAX_COVERS * PAGE;
    size_t before;
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(ftruncate(fd, (off_t)file_bytes), 0);
    map_or_fail(memory, KERNEL, fd, 0, file_bytes, "kernel");
    fill(memory, last, 'x', 1);
    fill(memory, last + 2 * PAGE, 'x', 1);
    before = count_mappings();
    for (uint64_t i = 0; i < MAX_COVERS; i++) {
        uint64_t page = i < MAX_COVERS / 2 ? 2 * i : 2 * i - MAX_COVERS + 1;

        assert_int_equal(discard(memory, KERNEL + page * PAGE, 1), 0);
        fill(memory, KERNEL + page * PAGE, 'y', 1);
    }
    assert_true(count_mappings() <= before + 2 * (size_t)MAX_COVERS);
    assert_int_equal(discard(memory, last, 3), 2 * PAGE); /* the third is no file's */
    assert_filled(memory, last, 'x', 1);
    assert_filled(memory, last + 2 * PAGE, '\0', 1);
    assert_int_equal(discard(memory, KERNEL, 1), 0); /* again: it needs no mapping */

    assert_int_equal(memory_reset(memory, &err), 0);
    map_or_fail(memory, KERNEL, fd, 0, file_bytes, "kernel");
    assert_int_equal(discard(memory, KERNEL, 1), 0);
    close(fd);
    memory_destroy(memory);
}

/* ---- a guest that does not keep its hands off ---- */

struct toucher {
    volatile char *pages;
    atomic_bool is_over;
};

static void *touch(void *context)
{
    struct toucher *toucher = context;

    while (!atomic_load(&toucher->is_over))
        for (size_t page = 0; page < 4; page++)
            toucher->pages[page * PAGE] = (char)(toucher->pages[page * PAGE + 1] + 'w');
    return NULL;
}

static void a_guest_that_touches_them_meanwhile_hurts_nobody(void **state)
{
    struct memory *memory = memory_with_kernel(6);
    struct toucher toucher = {.pages = memory_slice(memory, KERNEL + PAGE, 4 * PAGE)};
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, touch, &toucher), 0);
    for (int round = 0; round < 2000; round++) {
        assert_int_equal(discard(memory, KERNEL + PAGE, 1), 0);
        assert_int_equal(discard(memory, KERNEL + PAGE, 4), 0);
    }
    atomic_store(&toucher.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_filled(memory, KERNEL, 'a', 1);
    assert_filled(memory, KERNEL + 5 * PAGE, 'f', 1);
    memory_destroy(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anonymous_memory_is_zero_and_the_hosts),
        cmocka_unit_test(a_files_bytes_do_not_come_back),
        cmocka_unit_test(nor_the_second_time),
        cmocka_unit_test(a_range_may_be_of_several_kinds),
        cmocka_unit_test(a_common_page_does_not_come_back),
        cmocka_unit_test(a_look_finds_nothing_more_there),
        cmocka_unit_test(what_is_no_whole_page_of_ram_is_refused),
        cmocka_unit_test(persistent_memory_is_refused),
        cmocka_unit_test(memory_that_is_to_be_kept_is_refused),
        cmocka_unit_test(a_reset_brings_the_file_back_to_be_given_back_again),
        cmocka_unit_test(an_accelerator_hears_of_it),
        cmocka_unit_test(mappings_are_limited_and_the_rest_is_kept),
        cmocka_unit_test(a_guest_that_touches_them_meanwhile_hurts_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
