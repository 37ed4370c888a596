/* SPDX-License-Identifier: Apache-2.0 */
/* The reservation, checked access, file maps in place, and reset. */
#include "memory_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

static void base_is_aligned_to_a_gigabyte_and_hva_is_base_plus_gpa(void **state)
{
    const struct memory_span spans[] = {{0, MIB}, {5 * GIB, 2 * MIB}};
    struct memory *memory = memory_of(spans, 2);
    const struct memory_region *regions = memory_regions(memory);
    uintptr_t base = (uintptr_t)regions[0].hva;

    (void)state;
    assert_int_equal(memory_region_count(memory), 2);
    assert_true(is_aligned(base, GIB));
    assert_true(regions[1].gpa == 5 * GIB);
    assert_true(regions[1].size_bytes == 2 * MIB);
    assert_true((uintptr_t)regions[1].hva == base + 5 * GIB);
    assert_true((uintptr_t)memory_slice(memory, 5 * GIB + 7, 1) == base + 5 * GIB + 7);
    memory_destroy(memory);
    memory_destroy(NULL);
}

static void fresh_memory_reads_zero_and_keeps_what_is_written(void **state)
{
    struct memory *memory = small_memory();
    uint64_t value = 1;

    (void)state;
    assert_int_equal(memory_read(memory, 0x1234, &value, sizeof(value)), 0);
    assert_true(value == 0);
    value = UINT64_C(0x1122334455667788);
    assert_int_equal(memory_write(memory, 0x1ffc, &value, sizeof(value)), 0);
    value = 0;
    assert_int_equal(memory_read(memory, 0x1ffc, &value, sizeof(value)), 0);
    assert_true(value == UINT64_C(0x1122334455667788));
    memory_destroy(memory);
}

static void ranges_that_leave_a_span_or_wrap_are_refused(void **state)
{
    static const struct {
        uint64_t gpa;
        size_t size;
        bool inside;
    } cases[] = {
        {0, MIB, true},
        {MIB - 1, 1, true},
        {MIB, 0, true},
        {0, MIB + 1, false},
        {MIB - 1, 2, false},
        {MIB, 1, false},
        {MIB + PAGE, 0, false},
        {2 * MIB - 1, 2, false},
        {2 * MIB, 64 * KIB, true},
        {2 * MIB, 64 * KIB + 1, false},
        {1, SIZE_MAX, false},
        {UINT64_MAX, 2, false},
        {UINT64_MAX, 1, false},
        {UINT64_MAX, 0, false},
    };
    struct memory *memory = small_memory();
    static uint8_t buffer[MIB];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int expected = cases[i].inside ? 0 : -EFAULT;

        assert_int_equal(memory_slice(memory, cases[i].gpa, cases[i].size) != NULL,
                         cases[i].inside);
        assert_int_equal(memory_read(memory, cases[i].gpa, buffer, cases[i].size),
                         expected);
        assert_int_equal(memory_write(memory, cases[i].gpa, buffer, cases[i].size),
                         expected);
    }
    memory_destroy(memory);
}

/* The kernel copies for us: EFAULT tells an inaccessible page without a signal. */
static int peek(uintptr_t address)
{
    char byte;
    struct iovec to = {.iov_base = &byte, .iov_len = 1};
    struct iovec from = {.iov_len = 1};
    ssize_t got;

    memcpy(&from.iov_base, &address, sizeof(address));
    got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    return got == 1 ? 0 : -errno;
}

static void holes_and_guard_are_inaccessible(void **state)
{
    struct memory *memory = small_memory();
    uintptr_t base = (uintptr_t)memory_regions(memory)[0].hva;

    (void)state;
    assert_int_equal(peek(base), 0);
    assert_int_equal(peek(base + MIB - 1), 0);
    assert_int_equal(peek(base + MIB), -EFAULT);
    assert_int_equal(peek(base + 2 * MIB - 1), -EFAULT);
    assert_int_equal(peek(base + 2 * MIB), 0);
    assert_int_equal(peek(base + 2 * MIB + 64 * KIB - 1), 0);
    assert_int_equal(peek(base + 2 * MIB + 64 * KIB), -EFAULT);
    assert_int_equal(peek(base + 4 * MIB + 2 * MIB - 1), -EFAULT);
    memory_destroy(memory);
    assert_int_equal(peek(base), -EFAULT);
}

static void bad_spans_are_refused_with_exact_messages(void **state)
{
    static const struct {
        struct memory_span spans[2];
        size_t count;
        const char *text;
    } cases[] = {
        {{{0}}, 0, "guest memory of 0 spans is not supported (1 to 11 are)"},
        {{{0}}, 12, "guest memory of 12 spans is not supported (1 to 11 are)"},
        {{{0, 0}}, 1, "guest memory of 0x0 bytes at 0x0 does not consist of whole pages"},
        {{{0, 100}},
         1,
         "guest memory of 0x64 bytes at 0x0 does not consist of whole pages"},
        {{{1, 4096}},
         1,
         "guest memory of 0x1000 bytes at 0x1 does not consist of whole pages"},
        {{{UINT64_C(1) << 46, 4096}},
         1,
         "guest memory of 0x1000 bytes at 0x400000000000 ends beyond the 64 TiB that "
         "husk can reserve"},
        {{{4096, UINT64_MAX - 4095}},
         1,
         "guest memory of 0xfffffffffffff000 bytes at 0x1000 ends beyond the 64 TiB that "
         "husk can reserve"},
        {{{0, 8192}, {4096, 4096}},
         2,
         "guest memory at 0x1000 overlaps the span before it, or is not in order"},
        {{{8192, 4096}, {0, 4096}},
         2,
         "guest memory at 0x0 overlaps the span before it, or is not in order"},
    };
    const struct memory_options options = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct memory *memory = NULL;
        struct error err = ERROR_NONE;

        assert_int_equal(
            memory_create(cases[i].spans, cases[i].count, &options, &memory, &err),
            -EINVAL);
        assert_string_equal(err.text, cases[i].text);
        assert_null(memory);
    }
}

static void maps_file_pages_in_place_and_leaves_the_file_alone(void **state)
{
    struct memory *memory = small_memory();
    CLEANUP_FD int fd = file_of(3 * PAGE);
    char byte;

    (void)state;
    map_or_fail(memory, 0x10000, fd, PAGE, 2 * PAGE, "kernel");
    assert_int_equal(byte_at(memory, 0x10000 - 1), 0);
    assert_int_equal(byte_at(memory, 0x10000), 'b');
    assert_int_equal(byte_at(memory, 0x10000 + 2 * PAGE - 1), 'c');
    assert_int_equal(byte_at(memory, 0x10000 + 2 * PAGE), 0);

    assert_int_equal(memory_write(memory, 0x10000, "X", 1), 0);
    assert_int_equal(byte_at(memory, 0x10000), 'X');
    assert_int_equal(fd_read_at(fd, PAGE, &byte, 1), 0);
    assert_int_equal(byte, 'b');
    memory_destroy(memory);
}

static void maps_a_last_page_that_is_partly_file(void **state)
{
    struct memory *memory = small_memory();
    CLEANUP_FD int fd = file_of(PAGE + 10);

    (void)state;
    map_or_fail(memory, 0, fd, 0, 2 * PAGE, "kernel");
    assert_int_equal(byte_at(memory, PAGE + 9), 'b');
    assert_int_equal(byte_at(memory, PAGE + 10), 0);
    assert_int_equal(byte_at(memory, 2 * PAGE - 1), 0);
    assert_false(memory_find_loss(memory));
    memory_destroy(memory);
}

static void bad_maps_are_refused_with_exact_messages(void **state)
{
    static const struct {
        uint64_t gpa;
        uint64_t offset;
        uint64_t size_bytes;
        int code;
        const char *text;
    } cases[] = {
        {0x10001, 0, 4096, -EINVAL,
         "vmlinux: 0x1000 bytes from offset 0x0 cannot be mapped at 0x10001: not whole "
         "pages"},
        {0x10000, 16, 4096, -EINVAL,
         "vmlinux: 0x1000 bytes from offset 0x10 cannot be mapped at 0x10000: not whole "
         "pages"},
        {0x10000, 0, 10, -EINVAL,
         "vmlinux: 0xa bytes from offset 0x0 cannot be mapped at 0x10000: not whole "
         "pages"},
        {0x10000, 0, 0, -EINVAL,
         "vmlinux: 0x0 bytes from offset 0x0 cannot be mapped at 0x10000: not whole "
         "pages"},
        {0xff000, 0, 8192, -EFAULT,
         "vmlinux: 0x2000 bytes cannot be mapped at 0xff000: not inside guest memory"},
        {0xfffffffffffff000, 0, 8192, -EFAULT,
         "vmlinux: 0x2000 bytes cannot be mapped at 0xfffffffffffff000: not inside guest "
         "memory"},
        {0x10000, 0x1000, 0x2000, -ERANGE,
         "vmlinux: ends at byte 8192, but 0x2000 bytes from offset 0x1000 are to be "
         "mapped"},
        {0x10000, 0xfffffffffffff000, 0x2000, -ERANGE,
         "vmlinux: ends at byte 8192, but 0x2000 bytes from offset 0xfffffffffffff000 "
         "are to be mapped"},
    };
    struct memory *memory = small_memory();
    CLEANUP_FD int fd = file_of(2 * PAGE);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = ERROR_NONE;

        assert_int_equal(memory_map_file(memory, cases[i].gpa, fd, cases[i].offset,
                                         cases[i].size_bytes, "vmlinux", &err),
                         cases[i].code);
        assert_string_equal(err.text, cases[i].text);
        assert_int_equal(byte_at(memory, 0x10000), 0);
    }
    memory_destroy(memory);
}

static void refused_mmap_names_the_file(void **state)
{
    struct memory *memory = small_memory();
    CLEANUP_FD int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(memory_map_file(memory, 0, fd, 0, PAGE, "initrd x", &err), -ENODEV);
    assert_string_equal(err.text, "initrd x: cannot map: No such device");
    memory_destroy(memory);
}

static void too_many_maps_are_an_error(void **state)
{
    struct memory *memory = small_memory();
    CLEANUP_FD int fd = file_of(PAGE);
    struct error err = ERROR_NONE;

    (void)state;
    for (uint64_t i = 0; i < 128; i++)
        map_or_fail(memory, i * PAGE, fd, 0, PAGE, "kernel");
    assert_int_equal(memory_map_file(memory, 128 * PAGE, fd, 0, PAGE, "kernel", &err),
                     -ENOSPC);
    assert_string_equal(err.text, "kernel: more than 128 file maps in one guest");
    memory_destroy(memory);
}

static void reset_brings_zeros_and_then_the_pristine_bytes(void **state)
{
    struct memory *memory = small_memory();
    CLEANUP_FD int fd = file_of(PAGE);
    struct error err = ERROR_NONE;
    void *before = memory_slice(memory, 0, 1);

    (void)state;
    map_or_fail(memory, 0, fd, 0, PAGE, "kernel");
    assert_int_equal(memory_write(memory, 0, "X", 1), 0);
    assert_int_equal(memory_write(memory, 2 * MIB, "Y", 1), 0);

    assert_int_equal(memory_reset(memory, &err), 0);
    assert_ptr_equal(memory_slice(memory, 0, 1), before);
    assert_int_equal(byte_at(memory, 0), 0);
    assert_int_equal(byte_at(memory, 2 * MIB), 0);

    map_or_fail(memory, 0, fd, 0, PAGE, "kernel");
    assert_int_equal(byte_at(memory, 0), 'a');
    memory_destroy(memory);
}

static void reset_makes_room_for_as_many_maps_again(void **state)
{
    struct memory *memory = small_memory();
    CLEANUP_FD int fd = file_of(PAGE);
    CLEANUP_FD int first_free = dup(fd);
    struct error err = ERROR_NONE;
    int after;

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 128; i++)
            map_or_fail(memory, i * PAGE, fd, 0, PAGE, "kernel");
        assert_int_equal(memory_reset(memory, &err), 0);
    }
    after = dup(fd);
    assert_int_equal(after, first_free + 1); /* no descriptor was left behind */
    fd_close(&after);
    memory_destroy(memory);
}

struct heard {
    unsigned times;
    uint64_t gpa;
    uint64_t size_bytes;
};

static void hear(void *context, uint64_t gpa, uint64_t size_bytes)
{
    struct heard *heard = context;

    *heard = (struct heard){heard->times + 1, gpa, size_bytes};
}

static void who_listens_hears_of_what_devices_write(void **state)
{
    struct memory *memory = small_memory();
    struct heard heard = {0};

    (void)state;
    memory_written(memory, 0, 1); /* nobody listens */
    memory_on_write(memory, hear, &heard);
    memory_written(memory, 0x1234, 0x10000);
    assert_int_equal(heard.times, 1);
    assert_true(heard.gpa == 0x1234);
    assert_true(heard.size_bytes == 0x10000);
    memory_on_write(memory, NULL, NULL);
    memory_written(memory, 0, 1);
    assert_int_equal(heard.times, 1);
    memory_destroy(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base_is_aligned_to_a_gigabyte_and_hva_is_base_plus_gpa),
        cmocka_unit_test(fresh_memory_reads_zero_and_keeps_what_is_written),
        cmocka_unit_test(ranges_that_leave_a_span_or_wrap_are_refused),
        cmocka_unit_test(holes_and_guard_are_inaccessible),
        cmocka_unit_test(bad_spans_are_refused_with_exact_messages),
        cmocka_unit_test(maps_file_pages_in_place_and_leaves_the_file_alone),
        cmocka_unit_test(maps_a_last_page_that_is_partly_file),
        cmocka_unit_test(bad_maps_are_refused_with_exact_messages),
        cmocka_unit_test(refused_mmap_names_the_file),
        cmocka_unit_test(too_many_maps_are_an_error),
        cmocka_unit_test(reset_brings_zeros_and_then_the_pristine_bytes),
        cmocka_unit_test(reset_makes_room_for_as_many_maps_again),
        cmocka_unit_test(who_listens_hears_of_what_devices_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
