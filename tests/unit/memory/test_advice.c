/* SPDX-License-Identifier: Apache-2.0 */
/* Huge pages, KSM advice and prefaulting, as the host's kernel reports them. */
#include "memory_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define HUGE_POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define HUGE_PAGE (2 * MIB)

static uint64_t number_in(const char *path)
{
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[64] = "";

    /* The file is shorter than the buffer. */
    if (fd < 0 || fd_read_at(fd, 0, text, sizeof(text) - 1) != -ENODATA)
        return 0;
    return strtoull(text, NULL, 10);
}

static uint64_t free_huge_pages(void)
{
    return number_in(HUGE_POOL "free_hugepages") - number_in(HUGE_POOL "resv_hugepages");
}

/* How many of the pages are in memory, by mincore. */
static size_t resident_pages(struct memory *memory, uint64_t gpa, uint64_t size_bytes)
{
    unsigned char resident[256];
    size_t count = 0;

    assert_true(size_bytes / PAGE <= sizeof(resident));
    assert_int_equal(mincore(memory_slice(memory, gpa, size_bytes), size_bytes, resident),
                     0);
    for (size_t i = 0; i < size_bytes / PAGE; i++)
        count += resident[i] & 1;
    return count;
}

/* Sums the "<key>: N kB" lines that smaps has for [hva, hva + size); with a flag name,
 * counts the mappings whose VmFlags have it. */
static size_t smaps_count(const struct memory_region *region, const char *key,
                          const char *flag)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    uintptr_t first = (uintptr_t)region->hva;
    bool inside = false;
    size_t total = 0;
    char line[512];

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        char *dash = NULL;
        uintptr_t start = strtoull(line, &dash, 16);

        if (dash != line && *dash == '-')
            inside = start >= first && start < first + region->size_bytes;
        else if (inside && strncmp(line, key, strlen(key)) == 0)
            total += flag != NULL ? strstr(line, flag) != NULL
                                  : strtoull(line + strlen(key) + 1, NULL, 10);
    }
    (void)fclose(file);
    return total;
}

static struct memory *memory_with(const struct memory_options *options,
                                  uint64_t size_bytes)
{
    const struct memory_span span = {0, size_bytes};
    struct memory *memory = NULL;
    struct error err = ERROR_NONE;

    if (memory_create(&span, 1, options, &memory, &err) < 0)
        fail_msg("%s", err.text);
    return memory;
}

static void too_few_huge_pages_are_an_early_error_with_counts(void **state)
{
    const struct memory_options options = {.huge_pages = true};
    uint64_t available = free_huge_pages();
    const struct memory_span span = {0, (available + 3) * HUGE_PAGE};
    struct memory *memory = NULL;
    struct error err = ERROR_NONE;
    char expected[256];

    (void)state;
    if (number_in(HUGE_POOL "nr_overcommit_hugepages") > 0) {
        print_message("skipped: this host makes huge pages on demand\n");
        skip();
    }
    (void)snprintf(expected, sizeof(expected),
                   "guest memory needs %llu huge pages of 2 MiB, and %llu are free; "
                   "raise vm.nr_hugepages or leave out the huge pages",
                   (unsigned long long)available + 3, (unsigned long long)available);
    assert_int_equal(memory_create(&span, 1, &options, &memory, &err), -ENOMEM);
    assert_string_equal(err.text, expected);
    assert_null(memory);
}

/* Less than a huge page: nothing needs the pool. */
static void span_smaller_than_a_huge_page_gets_small_ones(void **state)
{
    const struct memory_options options = {.huge_pages = true};
    struct memory *memory = memory_with(&options, MIB);

    (void)state;
    assert_int_equal(memory_write(memory, MIB - 1, "X", 1), 0);
    assert_int_equal(byte_at(memory, MIB - 1), 'X');
    memory_destroy(memory);
}

static void file_is_not_mapped_into_huge_pages(void **state)
{
    const struct memory_options options = {.huge_pages = true};
    struct memory *memory = memory_with(&options, MIB);
    CLEANUP_FD int fd = file_of(PAGE);
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(memory_map_file(memory, 0, fd, 0, PAGE, "kernel", &err), -EINVAL);
    assert_string_equal(err.text,
                        "kernel: a file cannot be mapped into memory of huge pages");
    memory_destroy(memory);
}

static void huge_pages_have_a_small_tail_and_survive_reset(void **state)
{
    const struct memory_options options = {.huge_pages = true, .prefault = true};
    struct memory *memory;
    struct error err = ERROR_NONE;

    (void)state;
    if (free_huge_pages() < 1) {
        print_message("skipped: no free huge page on this host\n");
        skip();
    }
    memory = memory_with(&options, HUGE_PAGE + 2 * PAGE);
    assert_int_equal(memory_apply_advice(memory, &err), 0);
    assert_int_equal(smaps_count(memory_regions(memory), "Private_Hugetlb:", NULL), 2048);
    assert_int_equal(memory_write(memory, HUGE_PAGE - 1, "XY", 2), 0);
    assert_int_equal(byte_at(memory, HUGE_PAGE), 'Y');
    assert_int_equal(memory_reset(memory, &err), 0);
    assert_int_equal(byte_at(memory, HUGE_PAGE - 1), 0);
    assert_int_equal(byte_at(memory, HUGE_PAGE), 0);
    memory_destroy(memory);
}

static void without_advice_nothing_is_populated(void **state)
{
    const struct memory_options options = {0};
    struct memory *memory = memory_with(&options, MIB);
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(memory_apply_advice(memory, &err), 0);
    assert_int_equal(resident_pages(memory, 0, MIB), 0);
    assert_int_equal(smaps_count(memory_regions(memory), "VmFlags:", " mg"), 0);
    memory_destroy(memory);
}

static void prefault_populates_ram_and_keeps_file_pages_shared(void **state)
{
    const struct memory_options options = {.prefault = true};
    struct memory *memory = memory_with(&options, MIB);
    CLEANUP_FD int fd = file_of(8 * PAGE);
    struct error err = ERROR_NONE;

    (void)state;
    map_or_fail(memory, 0x10000, fd, 0, 8 * PAGE, "kernel");
    map_or_fail(memory, 0x20000, fd, PAGE, 2 * PAGE, "initrd");
    assert_int_equal(memory_apply_advice(memory, &err), 0);
    assert_int_equal(resident_pages(memory, 0, MIB), 256);
    /* All but the ten file pages are ours alone. */
    assert_int_equal(smaps_count(memory_regions(memory), "Anonymous:", NULL),
                     (256 - 10) * 4);
    assert_int_equal(smaps_count(memory_regions(memory), "Rss:", NULL), 256 * 4);
    memory_destroy(memory);
}

static void prefault_of_a_truncated_file_names_it(void **state)
{
    const struct memory_options options = {.prefault = true};
    struct memory *memory = memory_with(&options, MIB);
    CLEANUP_FD int fd = file_of(PAGE);
    struct error err = ERROR_NONE;

    (void)state;
    map_or_fail(memory, 0x10000, fd, 0, PAGE, "kernel vmlinux");
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(memory_apply_advice(memory, &err), -EFAULT);
    assert_string_equal(err.text, "kernel vmlinux: cannot fill 0x1000 bytes at 0x10000 "
                                  "in advance: Bad address");
    memory_destroy(memory);
}

static void mergeable_memory_is_marked_for_ksm(void **state)
{
    const struct memory_options options = {.mergeable = true};
    struct memory *memory;
    struct error err = ERROR_NONE;

    (void)state;
    if (access("/sys/kernel/mm/ksm/run", F_OK) < 0) {
        print_message("skipped: this host's kernel has no KSM\n");
        skip();
    }
    memory = memory_with(&options, MIB);
    assert_int_equal(memory_apply_advice(memory, &err), 0);
    assert_int_equal(smaps_count(memory_regions(memory), "VmFlags:", " mg"), 1);
    memory_destroy(memory);
}

static void core_dumps_leave_guest_memory_out(void **state)
{
    const struct memory_options options = {0};
    struct memory *memory = memory_with(&options, MIB);

    (void)state;
    assert_int_equal(smaps_count(memory_regions(memory), "VmFlags:", " dd"), 1);
    memory_destroy(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_few_huge_pages_are_an_early_error_with_counts),
        cmocka_unit_test(span_smaller_than_a_huge_page_gets_small_ones),
        cmocka_unit_test(file_is_not_mapped_into_huge_pages),
        cmocka_unit_test(huge_pages_have_a_small_tail_and_survive_reset),
        cmocka_unit_test(without_advice_nothing_is_populated),
        cmocka_unit_test(prefault_populates_ram_and_keeps_file_pages_shared),
        cmocka_unit_test(prefault_of_a_truncated_file_names_it),
        cmocka_unit_test(mergeable_memory_is_marked_for_ksm),
        cmocka_unit_test(core_dumps_leave_guest_memory_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
