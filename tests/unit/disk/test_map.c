/* SPDX-License-Identifier: Apache-2.0 */
/* What only a map can get wrong: room for what is written, and a file that becomes
 * shorter while many requests use it. (Not under the thread sanitizer: that pages are
 * exchanged under a copy is the point here, and a race to it.) */
#include "disk_fixture.h"

#include <errno.h>
#include <stdlib.h>

#define DISK_BYTES (8 * MIB)
#define PIECE_BYTES (128 * KIB) /* too much to be copied in disk_submit */
#define PIECES (DISK_BYTES / PIECE_BYTES)
#define KEPT_BYTES (4 * MIB + 4096)

struct pieces {
    struct disk_request requests[PIECES];
    struct disk_request *pointers[PIECES];
    struct iovec buffers[PIECES];
    uint8_t bytes[DISK_BYTES];
};

static void submit_pieces(struct disk *disk, struct pieces *pieces,
                          enum disk_operation operation)
{
    for (uint64_t i = 0; i < PIECES; i++) {
        pieces->buffers[i] = (struct iovec){pieces->bytes + i * PIECE_BYTES, PIECE_BYTES};
        pieces->requests[i] = (struct disk_request){
            .operation = operation,
            .offset_bytes = i * PIECE_BYTES,
            .size_bytes = PIECE_BYTES,
            .buffers = &pieces->buffers[i],
            .buffer_count = 1,
        };
        pieces->pointers[i] = &pieces->requests[i];
    }
    disk_submit(disk, pieces->pointers, PIECES);
}

static void assert_right_or_error(const struct disk_request *request)
{
    const uint8_t *bytes = request->buffers[0].iov_base;

    if (request->result != 0) {
        assert_int_equal(request->result, -EIO);
        assert_true(request->offset_bytes + PIECE_BYTES > KEPT_BYTES);
        return;
    }
    for (uint64_t i = 0; i < PIECE_BYTES; i++)
        assert_int_equal(bytes[i], pattern_at(request->offset_bytes + i));
}

static void reads_are_right_or_errors(const struct disk_options *kind)
{
    struct pieces *pieces = malloc(sizeof(*pieces));
    struct disk_request *done[PIECES];
    struct disk_options options = *kind;
    struct test_file file;
    struct disk *disk;

    assert_non_null(pieces);
    file_init(&file, DISK_BYTES);
    options.path = file.path;
    disk = open_or_fail(&options);
    submit_pieces(disk, pieces, DISK_READ);
    assert_int_equal(ftruncate(file.fd, KEPT_BYTES), 0);
    reap_all(disk, done, PIECES);
    for (unsigned i = 0; i < PIECES; i++)
        assert_right_or_error(done[i]);
    disk_close(disk);
    file_finish(&file);
    free(pieces);
}

static void reads_during_a_truncation_are_right_or_errors(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        reads_are_right_or_errors(&(struct disk_options){.engine = "mmap"});
        reads_are_right_or_errors(&(struct disk_options){.ephemeral = true});
    }
}

/* What was written before the end moved may be gone with it; what is written afterwards
 * must be in the file. */
static void writes_after_a_loss_are_in_the_file(void **state)
{
    struct pieces *pieces = malloc(sizeof(*pieces));
    uint8_t *seen = malloc(DISK_BYTES);
    struct disk_request *done[PIECES];
    struct test_file file;
    struct disk *disk;

    (void)state;
    assert_non_null(pieces);
    assert_non_null(seen);
    memset(pieces->bytes, 'w', sizeof(pieces->bytes));
    file_init(&file, DISK_BYTES);
    disk = open_or_fail(&(struct disk_options){.path = file.path, .engine = "mmap"});
    assert_int_equal(ftruncate(file.fd, 4096), 0);
    for (int i = 0; i < 2; i++) {
        submit_pieces(disk, pieces, DISK_WRITE);
        reap_all(disk, done, PIECES);
        for (unsigned k = 0; k < PIECES; k++)
            assert_int_equal(done[k]->result, 0);
        file_read(&file, seen);
        assert_memory_equal(seen, pieces->bytes, DISK_BYTES);
        memset(pieces->bytes, 'v', sizeof(pieces->bytes));
    }
    disk_close(disk);
    file_finish(&file);
    free(pieces);
    free(seen);
}

static void assert_reads_pattern(struct disk *disk, uint64_t offset)
{
    uint8_t bytes[4096];

    assert_int_equal(do_request(disk, DISK_READ, offset, bytes, sizeof(bytes)), 0);
    for (uint64_t i = 0; i < sizeof(bytes); i++)
        assert_int_equal(bytes[i], pattern_at(offset + i));
}

static void write_pattern(const struct test_file *file)
{
    for (uint64_t i = 0; i < file->size_bytes; i++) {
        uint8_t byte = pattern_at(i);

        assert_int_equal(pwrite(file->fd, &byte, 1, (off_t)i), 1);
    }
}

/* What is lost is a page. It is had again when the file has it again, unless the guest
 * had written to it: then nobody has it any more, and that must not go unseen. */
static void ephemeral_disk_gets_over_a_loss(void **state)
{
    uint8_t bytes[4096];
    struct test_file file;
    struct disk *disk;

    (void)state;
    memset(bytes, 'w', sizeof(bytes));
    file_init(&file, 64 * KIB);
    disk = open_or_fail(&(struct disk_options){.path = file.path, .ephemeral = true});
    assert_int_equal(do_request(disk, DISK_WRITE, 60 * KIB, bytes, sizeof(bytes)), 0);
    assert_int_equal(ftruncate(file.fd, 32 * KIB), 0);
    assert_int_equal(do_request(disk, DISK_READ, 40 * KIB, bytes, 4096), -EIO);
    assert_int_equal(do_request(disk, DISK_READ, 60 * KIB, bytes, 4096), -EIO);
    write_pattern(&file);
    assert_reads_pattern(disk, 48 * KIB);
    assert_reads_pattern(disk, 40 * KIB);
    assert_int_equal(do_request(disk, DISK_READ, 60 * KIB, bytes, 4096), -EIO);
    disk_close(disk);
    file_finish(&file);
}

static void room_is_asked_for_once_and_again_after_a_discard(void **state)
{
    uint8_t bytes[8192] = {0};
    struct test_file file;
    struct host_faults faults = {.count = 0};
    struct disk *disk;

    (void)state;
    file_init(&file, MIB);
    disk = open_or_fail(&(struct disk_options){.path = file.path, .engine = "mmap"});
    inject(disk, &faults);
    for (int i = 0; i < 2; i++)
        assert_int_equal(do_request(disk, DISK_WRITE, 4096, bytes, sizeof(bytes)), 0);
    assert_int_equal(faults.seen[DISK_WRITE], 1);
    assert_int_equal(do_request(disk, DISK_DISCARD, 0, NULL, 512 * KIB), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(do_request(disk, DISK_WRITE, 4096, bytes, sizeof(bytes)), 0);
    assert_int_equal(faults.seen[DISK_WRITE], 2);
    disk_close(disk);
    file_finish(&file);
}

static void host_that_cannot_reserve_is_written_to_by_system_calls(void **state)
{
    uint8_t bytes[8192];
    uint8_t seen[8192] = {0};
    struct test_file file;
    struct host_faults faults = {
        .operation = DISK_WRITE, .outcome = -EOPNOTSUPP, .count = 1};
    struct disk *disk;

    (void)state;
    memset(bytes, 's', sizeof(bytes));
    file_init(&file, MIB);
    disk = open_or_fail(&(struct disk_options){.path = file.path, .engine = "mmap"});
    inject(disk, &faults);
    assert_int_equal(do_request(disk, DISK_WRITE, 4096, bytes, sizeof(bytes)), 0);
    assert_int_equal(faults.seen[DISK_WRITE], 2); /* fallocate, pwritev */
    assert_int_equal(do_request(disk, DISK_WRITE, 4096, bytes, sizeof(bytes)), 0);
    assert_int_equal(faults.seen[DISK_WRITE], 3); /* not asked again */
    assert_int_equal(do_request(disk, DISK_READ, 4096, seen, sizeof(seen)), 0);
    assert_memory_equal(seen, bytes, sizeof(seen));
    disk_close(disk);
    file_finish(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_asked_for_once_and_again_after_a_discard),
        cmocka_unit_test(host_that_cannot_reserve_is_written_to_by_system_calls),
        cmocka_unit_test(reads_during_a_truncation_are_right_or_errors),
        cmocka_unit_test(writes_after_a_loss_are_in_the_file),
        cmocka_unit_test(ephemeral_disk_gets_over_a_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
