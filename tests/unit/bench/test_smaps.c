/* SPDX-License-Identifier: Apache-2.0 */
/* Whose memory a mapping is, by what /proc/PID/smaps says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "bench/smaps_private.h"

static struct smaps_sum sum_of(const char *text, uint64_t memory_bytes)
{
    struct smaps_sum sum = {.rss_bytes = 0};
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

    assert_non_null(file);
    smaps_add_text(file, memory_bytes, &sum);
    (void)fclose(file);
    return sum;
}

/* Guest memory of 1 MiB: a kernel's file with memory before and behind it. */
static void neighbours_as_large_as_the_guest_are_its_memory(void **state)
{
    const struct smaps_sum sum =
        sum_of("7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n"
               "Rss:                  12 kB\n"
               "Pss:                  11 kB\n"
               "Pss_Dirty:             9 kB\n"
               "Private_Clean:         0 kB\n"
               "Private_Dirty:         4 kB\n"
               "7f0000010000-7f0000020000 rw-p 00200000 fe:00 123 /var/cache/husk/0.elf\n"
               "Rss:                  64 kB\n"
               "Pss:                  40 kB\n"
               "Private_Clean:         8 kB\n"
               "Private_Dirty:        16 kB\n"
               "7f0000020000-7f0000100000 rw-p 00000000 00:00 0 \n"
               "Rss:                  32 kB\n"
               "Pss:                  32 kB\n"
               "Private_Clean:         0 kB\n"
               "Private_Dirty:        32 kB\n"
               "VmFlags: rd wr mr mw me dd nr \n",
               MIB);

    (void)state;
    assert_int_equal(sum.rss_bytes, 108 * KIB);
    assert_int_equal(sum.pss_bytes, 83 * KIB);
    assert_int_equal(sum.private_bytes[SMAPS_GUEST], 60 * KIB);
    assert_int_equal(sum.private_bytes[SMAPS_PROGRAM], 0);
    assert_int_equal(sum.private_bytes[SMAPS_OTHER], 0);
}

static void what_is_no_guests_is_told_by_file_and_permission(void **state)
{
    const struct smaps_sum sum =
        sum_of("400000-500000 r-xp 00000000 fe:00 1 /usr/bin/program\n"
               "Private_Clean:        20 kB\n"
               "Private_Dirty:         1 kB\n"
               "500000-510000 rw-p 00000000 00:00 0 [heap]\n"
               "Private_Dirty:         2 kB\n"
               "7f0000000000-7f0000010000 rwxp 00000000 00:00 0 \n"
               "Private_Dirty:         4 kB\n"
               "7f0000020000-7f0000030000 rw-s 00000000 00:01 9 /memfd:code (deleted)\n"
               "Rss:                  16 kB\n"
               "Pss:                   8 kB\n"
               "Private_Dirty:         0 kB\n",
               MIB);

    (void)state;
    assert_int_equal(sum.private_bytes[SMAPS_PROGRAM], 21 * KIB);
    assert_int_equal(sum.private_bytes[SMAPS_OTHER], 2 * KIB);
    assert_int_equal(sum.private_bytes[SMAPS_CODE], 12 * KIB);
    assert_int_equal(sum.rss_bytes, 8 * KIB);
    assert_int_equal(sum.private_bytes[SMAPS_GUEST], 0);
}

/* Code that is made lies next to the guest's memory and is none of it. */
static void executable_neighbours_are_not_the_guests(void **state)
{
    const struct smaps_sum sum =
        sum_of("7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n"
               "Private_Dirty:        16 kB\n"
               "7f0000100000-7f0000110000 rwxp 00000000 00:00 0 \n"
               "Private_Dirty:         4 kB\n",
               MIB);

    (void)state;
    assert_int_equal(sum.private_bytes[SMAPS_GUEST], 16 * KIB);
    assert_int_equal(sum.private_bytes[SMAPS_CODE], 4 * KIB);
}

static void a_running_process_can_be_looked_at_and_another_not(void **state)
{
    struct smaps_sum sum = {.rss_bytes = 0};
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(smaps_add(getpid(), GIB, &sum, &err), 0);
    assert_true(sum.private_bytes[SMAPS_PROGRAM] > 0);
    assert_true(sum.rss_bytes >= sum.pss_bytes);
    assert_int_equal(smaps_add(0, GIB, &sum, &err), -ENOENT);
    assert_string_equal(err.text, "cannot open /proc/0/smaps: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_as_large_as_the_guest_are_its_memory),
        cmocka_unit_test(what_is_no_guests_is_told_by_file_and_permission),
        cmocka_unit_test(executable_neighbours_are_not_the_guests),
        cmocka_unit_test(a_running_process_can_be_looked_at_and_another_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
