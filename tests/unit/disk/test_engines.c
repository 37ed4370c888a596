/* SPDX-License-Identifier: Apache-2.0 */
/* What every engine must do alike. usage: test_disk_engines VARIANT */
#include "variants.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* Where a file is cut: inside of a page. */
#define CUT_BYTES (5 * UINT64_C(4096) + 512)

/* ---- many at once ---- */

#define MANY 300

struct many {
    struct disk_request requests[MANY];
    struct disk_request *pointers[MANY];
    struct iovec buffers[MANY];
    uint8_t bytes[MANY][DISK_SECTOR_BYTES];
};

/* MANY writes of one sector each, number i full of i. */
static struct many *submit_many(struct disk *disk)
{
    struct many *many = calloc(1, sizeof(*many));

    assert_non_null(many);
    for (unsigned i = 0; i < MANY; i++) {
        memset(many->bytes[i], (int)(i % 256), DISK_SECTOR_BYTES);
        many->buffers[i] = (struct iovec){many->bytes[i], DISK_SECTOR_BYTES};
        many->requests[i] = (struct disk_request){
            .operation = DISK_WRITE,
            .offset_bytes = i * DISK_SECTOR_BYTES,
            .size_bytes = DISK_SECTOR_BYTES,
            .buffers = &many->buffers[i],
            .buffer_count = 1,
            .result = 1,
        };
        many->pointers[i] = &many->requests[i];
    }
    disk_submit(disk, many->pointers, MANY);
    return many;
}

static void assert_many_written(const struct test_file *file)
{
    uint8_t *seen = malloc(DISK_BYTES);

    assert_non_null(seen);
    file_read(file, seen);
    for (size_t i = 0; i < MANY * DISK_SECTOR_BYTES; i++)
        assert_int_equal(seen[i], variant->options.ephemeral
                                      ? pattern_at(i)
                                      : i / DISK_SECTOR_BYTES % 256);
    free(seen);
}

static void each_of_many_requests_comes_back_once(void **state)
{
    struct test_file file;
    struct disk_request *done[MANY];
    struct disk *disk;
    struct many *many;

    (void)state;
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    many = submit_many(disk);
    reap_all(disk, done, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(done[i]->result, 0);
        done[i]->result = 1; /* whoever comes back twice is caught by the line above */
    }
    assert_int_equal(disk_reap(disk, done, 1), 0);
    disk_close(disk);
    assert_many_written(&file);
    file_finish(&file);
    free(many);
}

static void drain_leaves_nothing_in_flight_and_all_to_reap(void **state)
{
    struct test_file file;
    struct disk_request *done[MANY];
    struct disk *disk;
    struct many *many;

    (void)state;
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    many = submit_many(disk);
    disk_drain(disk);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(many->requests[i].result, 0);
    assert_int_equal(disk_reap(disk, done, MANY), MANY);
    disk_close(disk);
    file_finish(&file);
    free(many);
}

/* Nothing of the host's kernel may hold on to the file, and its lock, for longer. */
static void closed_disk_can_be_opened_again_at_once(void **state)
{
    uint8_t bytes[512] = {0};
    struct test_file file;

    (void)state;
    file_init(&file, DISK_BYTES);
    for (int i = 0; i < 50; i++) {
        struct disk *disk = open_variant(&file);

        assert_int_equal(do_request(disk, DISK_WRITE, 0, bytes, sizeof(bytes)), 0);
        disk_close(disk);
    }
    file_finish(&file);
}

static void close_waits_for_requests_in_flight(void **state)
{
    struct test_file file;
    struct disk *disk;
    struct many *many;

    (void)state;
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    many = submit_many(disk);
    disk_close(disk);
    memset(many->bytes, 0xee,
           sizeof(many->bytes)); /* whoever still uses them writes this */
    assert_many_written(&file);
    file_finish(&file);
    free(many);
}

/* ---- flush ---- */

struct order {
    _Atomic int next;
    _Atomic int last_write;
    _Atomic int flush;
};

static int64_t note_order(void *context, const struct disk_request *request,
                          int64_t result)
{
    struct order *order = context;
    int place = atomic_fetch_add(&order->next, 1);

    if (request->operation == DISK_FLUSH)
        atomic_store(&order->flush, place);
    else
        atomic_store(&order->last_write, place);
    return result;
}

static void flush_follows_the_writes_before_it(void **state)
{
    struct test_file file;
    struct order order = {0};
    struct disk_request flush = {.operation = DISK_FLUSH, .result = 1};
    struct disk_request *flush_pointer = &flush;
    struct disk_request *done[MANY + 1];
    struct disk *disk;
    struct many *many;

    (void)state;
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    disk->faults = (struct disk_faults){.outcome = note_order, .context = &order};
    many = submit_many(disk);
    disk_submit(disk, &flush_pointer, 1);
    reap_all(disk, done, MANY + 1);
    assert_ptr_equal(done[MANY], &flush);
    assert_int_equal(flush.result, 0);
    assert_true(order.last_write < order.flush);
    disk_close(disk);
    file_finish(&file);
    free(many);
}

/* ---- what is done at once ---- */

static bool is_on_ext4(const struct test_file *file)
{
    struct statfs status;

    return fstatfs(file->fd, &status) == 0 && status.f_type == EXT4_SUPER_MAGIC;
}

/* io_uring would hand it to a thread of the kernel. */
static void small_write_that_comes_alone_is_done_at_once_on_ext4(void **state)
{
    static _Alignas(4096) uint8_t bytes[128 * KIB];
    struct test_file file;
    struct iovec buffer = {bytes, 4096};
    struct disk_request write = {.operation = DISK_WRITE,
                                 .size_bytes = 4096,
                                 .buffers = &buffer,
                                 .buffer_count = 1};
    struct disk_request *pointer = &write;
    struct disk_request *done[1];
    struct disk *disk;

    (void)state;
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    disk_submit(disk, &pointer, 1);
    if (is_on_ext4(&file) && disk->file.direct_bytes == 0)
        assert_ptr_equal(disk->completed.first, &write);
    else
        print_message("neither ext4 nor in the page cache: nothing to see here\n");
    reap_all(disk, done, 1);
    assert_int_equal(write.result, 0);

    /* A large one is the ring's. */
    buffer.iov_len = write.size_bytes = sizeof(bytes);
    disk_submit(disk, &pointer, 1);
    assert_null(disk->completed.first);
    reap_all(disk, done, 1);
    assert_int_equal(write.result, 0);
    disk_close(disk);
    file_finish(&file);
}

/* ---- discard and zeros ---- */

static uint64_t allocated_bytes(const struct test_file *file)
{
    struct stat status;

    assert_int_equal(fsync(file->fd), 0);
    assert_int_equal(fstat(file->fd, &status), 0);
    return (uint64_t)status.st_blocks * 512;
}

static void discard_gives_blocks_back_to_the_host(void **state)
{
    struct test_file file;
    struct disk *disk;
    uint64_t before;

    (void)state;
    file_init(&file, DISK_BYTES);
    before = allocated_bytes(&file);
    disk = open_variant(&file);
    assert_int_equal(do_request(disk, DISK_DISCARD, 64 * KIB, NULL, 512 * KIB), 0);
    assert_true(allocated_bytes(&file) == before - 512 * KIB);
    assert_true(disk_size_bytes(disk) == DISK_BYTES);
    disk_close(disk);
    file_finish(&file);
}

static void write_to_a_discarded_range_is_kept(void **state)
{
    struct test_file file;
    struct disk *disk;
    uint8_t bytes[3 * DISK_SECTOR_BYTES];
    uint8_t seen[3 * DISK_SECTOR_BYTES];

    (void)state;
    memset(bytes, 'd', sizeof(bytes));
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(do_request(disk, DISK_DISCARD, 0, NULL, DISK_BYTES), 0);
        assert_int_equal(do_request(disk, DISK_WRITE, 4096 + 512, bytes, sizeof(bytes)),
                         0);
        assert_int_equal(do_request(disk, DISK_READ, 4096 + 512, seen, sizeof(seen)), 0);
        assert_memory_equal(seen, bytes, sizeof(bytes));
    }
    disk_close(disk);
    file_finish(&file);
}

/* Zeroes what is no multiple of anything but the sector; looks at its edges. */
static void assert_zeroes(struct disk *disk, bool unmap)
{
    struct disk_request request = {.operation = DISK_WRITE_ZEROES,
                                   .unmap = unmap,
                                   .offset_bytes = 3 * DISK_SECTOR_BYTES,
                                   .size_bytes = 200 * KIB + 512};
    struct disk_request *pointer = &request;
    struct disk_request *done;
    uint8_t *seen = malloc(DISK_BYTES);
    uint64_t end = request.offset_bytes + request.size_bytes;

    assert_non_null(seen);
    disk_submit(disk, &pointer, 1);
    reap_all(disk, &done, 1);
    assert_int_equal(request.result, 0);
    assert_int_equal(do_request(disk, DISK_READ, 0, seen, DISK_BYTES), 0);
    for (uint64_t i = 0; i < DISK_BYTES; i++)
        assert_int_equal(seen[i],
                         i >= request.offset_bytes && i < end ? 0 : pattern_at(i));
    free(seen);
}

static void zeros_are_read_where_they_were_asked_for(void **state)
{
    for (int unmap = 0; unmap < 2; unmap++) {
        struct test_file file;
        struct disk *disk;

        (void)state;
        file_init(&file, DISK_BYTES);
        disk = open_variant(&file);
        assert_zeroes(disk, unmap == 1);
        disk_close(disk);
        file_finish(&file);
    }
}

static void zeros_are_written_where_the_host_has_no_way_to_say_so(void **state)
{
    struct test_file file;
    struct host_faults faults = {
        .operation = DISK_WRITE_ZEROES, .outcome = -EOPNOTSUPP, .count = 2};
    struct disk *disk;

    (void)state;
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    inject(disk, &faults);
    assert_zeroes(disk, true);
    assert_int_equal(faults.seen[DISK_WRITE_ZEROES], 2);
    assert_true(faults.seen[DISK_WRITE] >= 4); /* 64 KiB each */
    disk_close(disk);
    file_finish(&file);
}

static void discard_that_the_host_cannot_do_is_no_error(void **state)
{
    struct test_file file;
    struct host_faults faults = {
        .operation = DISK_DISCARD, .outcome = -EOPNOTSUPP, .count = 1};
    struct disk *disk;

    (void)state;
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    inject(disk, &faults);
    assert_int_equal(do_request(disk, DISK_DISCARD, 0, NULL, 64 * KIB), 0);
    disk_close(disk);
    file_finish(&file);
}

/* ---- a host that fails ---- */

static void assert_host_error(enum disk_operation operation, int error)
{
    uint8_t bytes[4096] = {0};
    struct test_file file;
    struct host_faults faults = {.operation = operation, .outcome = error, .count = 1};
    struct disk *disk;

    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    assert_int_equal(do_request(disk, DISK_DISCARD, 0, NULL, 64 * KIB), 0);
    inject(disk, &faults);
    assert_int_equal(do_request(disk, operation, 8192, bytes, sizeof(bytes)), error);
    assert_true(disk_counters(disk).errors[operation] == 1);
    assert_int_equal(do_request(disk, operation, 8192, bytes, sizeof(bytes)), 0);
    assert_true(disk_counters(disk).errors[operation] == 1);
    disk_close(disk);
    file_finish(&file);
}

static void error_of_the_host_is_the_requests_and_ends_there(void **state)
{
    (void)state;
    if (strcmp(variant->name, "mmap") != 0) /* a copy has no error */
        assert_host_error(DISK_READ, -EIO);
    assert_host_error(DISK_WRITE, -EIO);
    assert_host_error(DISK_WRITE, -ENOSPC);
    if (variant->options.ephemeral)
        return; /* there is nothing to flush */
    assert_host_error(DISK_WRITE_ZEROES, -EIO);
    assert_host_error(DISK_DISCARD, -EIO);
}

static void no_flush_is_true_any_more_after_one_has_failed(void **state)
{
    struct test_file file;
    struct host_faults faults = {.operation = DISK_FLUSH, .outcome = -EIO, .count = 1};
    struct disk *disk;

    (void)state;
    if (variant->options.ephemeral)
        return; /* there is nothing to flush */
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    inject(disk, &faults);
    assert_int_equal(do_request(disk, DISK_FLUSH, 0, NULL, 0), -EIO);
    assert_int_equal(do_request(disk, DISK_FLUSH, 0, NULL, 0), -EIO);
    assert_int_equal(faults.seen[DISK_FLUSH], 2);
    assert_true(disk_counters(disk).errors[DISK_FLUSH] == 2);
    disk_close(disk);
    file_finish(&file);
}

static void short_transfer_is_gone_on_with(void **state)
{
    uint8_t *bytes = malloc(64 * KIB);
    struct test_file file;
    struct host_faults faults = {.operation = DISK_READ, .outcome = 4096, .count = 1};
    struct disk *disk;

    (void)state;
    assert_non_null(bytes);
    memset(bytes, 0, 64 * KIB);
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    inject(disk, &faults);
    assert_int_equal(do_request(disk, DISK_READ, 4096, bytes, 64 * KIB), 0);
    for (uint64_t i = 0; i < 64 * KIB; i++)
        assert_int_equal(bytes[i], pattern_at(4096 + i));
    assert_true(faults.seen[DISK_READ] >= 2);
    disk_close(disk);
    file_finish(&file);
    free(bytes);
}

static void truncated_file_is_an_error_of_its_requests_alone(void **state)
{
    uint8_t bytes[4096];
    struct test_file file;
    struct disk *disk;

    (void)state;
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    assert_int_equal(do_request(disk, DISK_READ, 0, bytes, sizeof(bytes)), 0);
    assert_int_equal(ftruncate(file.fd, CUT_BYTES), 0);
    assert_int_equal(do_request(disk, DISK_READ, 64 * KIB, bytes, 4096), -EIO);
    assert_int_equal(do_request(disk, DISK_READ, 64 * KIB, bytes, 4096), -EIO);
    assert_int_equal(do_request(disk, DISK_READ, CUT_BYTES, bytes, 512), -EIO);
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(do_request(disk, DISK_READ, 16 * KIB, bytes, 4096), 0);
    for (uint64_t i = 0; i < 4096; i++)
        assert_int_equal(bytes[i], pattern_at(16 * KIB + i));
    disk_close(disk);
    file_finish(&file);
}

static void write_behind_a_truncated_end_is_kept_or_an_error(void **state)
{
    uint8_t bytes[4096];
    uint8_t seen[4096] = {0};
    struct test_file file;
    struct disk *disk;

    (void)state;
    memset(bytes, 'w', sizeof(bytes));
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    assert_int_equal(ftruncate(file.fd, 4096), 0);
    if (variant->options.ephemeral) {
        assert_int_equal(do_request(disk, DISK_WRITE, 64 * KIB, bytes, 4096), -EIO);
    } else {
        assert_int_equal(do_request(disk, DISK_WRITE, 64 * KIB, bytes, 4096), 0);
        assert_int_equal(fd_read_at(file.fd, 64 * KIB, seen, sizeof(seen)), 0);
        assert_memory_equal(seen, bytes, sizeof(seen));
    }
    disk_close(disk);
    file_finish(&file);
}

/* ---- the door, seen through each engine ---- */

static void read_only_disk_refuses_changes_and_keeps_the_file(void **state)
{
    uint8_t bytes[4096] = {0};
    struct test_file file;
    struct disk_options options = variant->options;
    struct stat before;
    struct stat after;
    struct disk *disk;

    (void)state;
    file_init(&file, DISK_BYTES);
    options.path = file.path;
    options.read_only = true;
    assert_int_equal(fstat(file.fd, &before), 0);
    disk = open_or_fail(&options);
    assert_true(disk_is_read_only(disk));
    assert_int_equal(do_request(disk, DISK_WRITE, 0, bytes, sizeof(bytes)), -EROFS);
    assert_int_equal(do_request(disk, DISK_DISCARD, 0, NULL, 4096), -EROFS);
    assert_int_equal(do_request(disk, DISK_WRITE_ZEROES, 0, NULL, 4096), -EROFS);
    assert_int_equal(do_request(disk, DISK_FLUSH, 0, NULL, 0), 0);
    assert_int_equal(do_request(disk, DISK_READ, 0, bytes, sizeof(bytes)), 0);
    assert_int_equal(bytes[0], pattern_at(0));
    disk_close(disk);
    assert_int_equal(fstat(file.fd, &after), 0);
    assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
    file_finish(&file);
}

static void writes_of_an_ephemeral_disk_are_read_back_and_change_no_file(void **state)
{
    uint8_t bytes[4096];
    uint8_t seen[4096] = {0};
    struct test_file file;
    struct stat before;
    struct stat after;
    struct disk *disk;

    (void)state;
    memset(bytes, 'e', sizeof(bytes));
    file_init(&file, DISK_BYTES);
    assert_int_equal(fchmod(file.fd, 0444), 0);
    assert_int_equal(fstat(file.fd, &before), 0);
    disk = open_variant(&file);
    assert_false(disk_is_read_only(disk));
    assert_int_equal(do_request(disk, DISK_WRITE, 512, bytes, sizeof(bytes)), 0);
    assert_int_equal(do_request(disk, DISK_FLUSH, 0, NULL, 0), 0);
    assert_int_equal(do_request(disk, DISK_READ, 512, seen, sizeof(seen)), 0);
    assert_memory_equal(seen, bytes, sizeof(bytes));
    assert_int_equal(do_request(disk, DISK_WRITE_ZEROES, 0, NULL, DISK_BYTES), 0);
    disk_close(disk);
    assert_int_equal(fstat(file.fd, &after), 0);
    assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
    assert_int_equal(fd_read_at(file.fd, 512, seen, sizeof(seen)), 0);
    for (uint64_t i = 0; i < sizeof(seen); i++)
        assert_int_equal(seen[i], pattern_at(512 + i));
    file_finish(&file);
}

static void file_that_grows_is_a_larger_disk(void **state)
{
    uint8_t bytes[4096];
    uint8_t seen[4096] = {0};
    struct test_file file;
    struct disk *disk;

    (void)state;
    memset(bytes, 'g', sizeof(bytes));
    file_init(&file, DISK_BYTES);
    disk = open_variant(&file);
    assert_false(disk_update_size(disk));
    assert_int_equal(ftruncate(file.fd, 2 * DISK_BYTES), 0);
    assert_int_equal(do_request(disk, DISK_WRITE, DISK_BYTES, bytes, 4096), -ERANGE);
    assert_int_equal(disk_update_size(disk), !variant->options.ephemeral);
    if (variant->options.ephemeral) {
        assert_true(disk_size_bytes(disk) == DISK_BYTES);
    } else {
        assert_true(disk_size_bytes(disk) == 2 * DISK_BYTES);
        assert_int_equal(do_request(disk, DISK_DISCARD, 0, NULL, 2 * DISK_BYTES), 0);
        assert_int_equal(do_request(disk, DISK_WRITE, DISK_BYTES - 512, bytes, 4096), 0);
        assert_int_equal(do_request(disk, DISK_READ, DISK_BYTES - 512, seen, 4096), 0);
        assert_memory_equal(seen, bytes, sizeof(bytes));
    }
    disk_close(disk);
    file_finish(&file);
}

static const struct CMUnitTest tests_of_all[] = {
    cmocka_unit_test(each_of_many_requests_comes_back_once),
    cmocka_unit_test(drain_leaves_nothing_in_flight_and_all_to_reap),
    cmocka_unit_test(closed_disk_can_be_opened_again_at_once),
    cmocka_unit_test(close_waits_for_requests_in_flight),
    cmocka_unit_test(write_to_a_discarded_range_is_kept),
    cmocka_unit_test(zeros_are_read_where_they_were_asked_for),
    cmocka_unit_test(discard_that_the_host_cannot_do_is_no_error),
    cmocka_unit_test(error_of_the_host_is_the_requests_and_ends_there),
    cmocka_unit_test(no_flush_is_true_any_more_after_one_has_failed),
    cmocka_unit_test(truncated_file_is_an_error_of_its_requests_alone),
    cmocka_unit_test(write_behind_a_truncated_end_is_kept_or_an_error),
    cmocka_unit_test(read_only_disk_refuses_changes_and_keeps_the_file),
    cmocka_unit_test(file_that_grows_is_a_larger_disk),
};

/* Disks whose writes reach the file. */
static const struct CMUnitTest tests_of_lasting_disks[] = {
    cmocka_unit_test(flush_follows_the_writes_before_it),
    cmocka_unit_test(discard_gives_blocks_back_to_the_host),
    cmocka_unit_test(zeros_are_written_where_the_host_has_no_way_to_say_so),
};

static const struct CMUnitTest tests_of_ephemeral_disks[] = {
    cmocka_unit_test(writes_of_an_ephemeral_disk_are_read_back_and_change_no_file),
};

/* A copy out of a map is never short. */
static const struct CMUnitTest tests_of_engines_without_a_map[] = {
    cmocka_unit_test(short_transfer_is_gone_on_with),
};

static const struct CMUnitTest tests_of_uring[] = {
    cmocka_unit_test(small_write_that_comes_alone_is_done_at_once_on_ext4),
};

static int run_groups(void)
{
    int failed = cmocka_run_group_tests(tests_of_all, NULL, NULL);

    if (variant->options.ephemeral)
        failed += cmocka_run_group_tests(tests_of_ephemeral_disks, NULL, NULL);
    else
        failed += cmocka_run_group_tests(tests_of_lasting_disks, NULL, NULL);
    if (strcmp(variant->options.engine, "mmap") != 0)
        failed += cmocka_run_group_tests(tests_of_engines_without_a_map, NULL, NULL);
    if (strcmp(variant->options.engine, "uring") == 0)
        failed += cmocka_run_group_tests(tests_of_uring, NULL, NULL);
    return failed;
}

int main(int argc, char **argv)
{
    int status = variant_choose(argc, argv);

    return status != 0 ? status : run_groups();
}
