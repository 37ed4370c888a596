/* SPDX-License-Identifier: Apache-2.0 */
/* What stands above the engines: what is opened and what is refused, the door for
 * requests, the order of a flush, the way back, and what the operator is told. */
#include "disk_fixture.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct disk_options options_of(const struct test_file *file)
{
    return (struct disk_options){.path = file->path, .engine = "sync"};
}

/* ---- what is opened ---- */

static void what_is_no_disk_is_refused(void **state)
{
    struct test_file file;

    (void)state;
    assert_refused(&(struct disk_options){.path = "/nowhere/a.img"},
                   "cannot open: No such file or directory");
    assert_refused(&(struct disk_options){.path = "/tmp", .read_only = true},
                   "is a directory, not a disk");
    assert_refused(&(struct disk_options){.path = "/dev/null"},
                   "is neither a regular file nor a block device");
    file_init(&file, 511);
    assert_refused(&(struct disk_options){.path = file.path},
                   "has 511 bytes: a disk needs at least one sector of 512");
    file_finish(&file);
}

static void engine_that_does_not_exist_is_refused_with_those_that_do(void **state)
{
    struct test_file file;

    (void)state;
    file_init(&file, 4096);
    assert_refused(&(struct disk_options){.path = file.path, .engine = "aio"},
                   "unknown engine 'aio': there are auto, sync, threads, mmap, uring");
    file_finish(&file);
}

static void contradictions_are_refused(void **state)
{
    struct test_file file;

    (void)state;
    file_init(&file, 4096);
    assert_refused(
        &(struct disk_options){.path = file.path, .engine = "threads", .ephemeral = true},
        "the engine threads writes to the file: an ephemeral disk needs mmap");
    assert_refused(
        &(struct disk_options){.path = file.path, .engine = "mmap", .direct = true},
        "the engine mmap and ephemeral disks work in the page cache, which 'direct' "
        "leaves out");
    file_finish(&file);
}

static void auto_says_what_it_takes_and_why(void **state)
{
    struct test_file file;
    struct disk_options options;
    struct disk *disk;

    (void)state;
    file_init(&file, 4096);
    options = (struct disk_options){.path = file.path, .ephemeral = true};
    disk = open_or_fail(&options);
    assert_string_equal(disk_engine_name(disk), "mmap");
    assert_string_equal(disk_engine_reason(disk),
                        "a private map keeps writes from the file");
    disk_close(disk);
    options = (struct disk_options){.path = file.path, .engine = "auto"};
    disk = open_or_fail(&options);
    if (strcmp(disk_engine_name(disk), "uring") == 0) {
        assert_string_equal(disk_engine_reason(disk),
                            "requests in flight need no thread each");
    } else {
        assert_string_equal(disk_engine_name(disk), "threads");
        assert_non_null(strstr(disk_engine_reason(disk), "io_uring"));
    }
    disk_close(disk);
    file_finish(&file);
}

/* As container runtimes do. */
static void forbid_io_uring(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_SIZE(steps), .filter = steps};

    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void open_without_io_uring(const char *path)
{
    static const char why[] =
        "the host allows no io_uring (a seccomp filter, kernel.io_uring_disabled or a "
        "limit on locked memory): Operation not permitted";
    struct disk_options options = {.path = path, .engine = "uring"};
    struct disk *disk;

    forbid_io_uring();
    assert_refused(&options, why);
    options.engine = "auto";
    disk = open_or_fail(&options);
    assert_string_equal(disk_engine_name(disk), "threads");
    assert_string_equal(disk_engine_reason(disk), why);
    disk_close(disk);
}

static void host_without_io_uring_is_told_and_served_by_threads(void **state)
{
    struct test_file file;
    pid_t child;
    int status = 0;

    (void)state;
    file_init(&file, 4096);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        open_without_io_uring(file.path);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    file_finish(&file);
}

static void second_writer_is_refused_and_readers_share(void **state)
{
    static const char in_use_by_writer[] =
        "is in use by another writer: give each guest a copy, or open it read-only or "
        "ephemeral in all";
    struct test_file file;
    struct disk_options writer;
    struct disk_options reader;
    struct disk_options ephemeral;
    struct disk *first;
    struct disk *second;

    (void)state;
    file_init(&file, 4096);
    writer = options_of(&file);
    reader = options_of(&file);
    reader.read_only = true;
    ephemeral = (struct disk_options){.path = file.path, .ephemeral = true};
    first = open_or_fail(&writer);
    assert_refused(&writer, in_use_by_writer);
    assert_refused(&reader, in_use_by_writer);
    assert_refused(&ephemeral, in_use_by_writer);
    disk_close(first);

    first = open_or_fail(&reader);
    second = open_or_fail(&ephemeral);
    assert_refused(&writer,
                   "is in use by a reader, so it cannot be opened for writing: open it "
                   "read-only or ephemeral, or give each guest a copy");
    disk_close(second);
    disk_close(first);
    disk_close(open_or_fail(&writer));
    file_finish(&file);
}

static void open_and_close(void *context)
{
    struct disk *disk = open_or_fail(context);

    assert_true(disk_size_bytes(disk) == 1024);
    disk_close(disk);
}

static void size_that_is_no_multiple_of_512_is_cut_with_a_warning(void **state)
{
    struct test_file file;
    struct disk_options options;
    char expected[200];
    char text[1024];

    (void)state;
    file_init(&file, 3 * 512 - 12);
    options = options_of(&file);
    capture_log(open_and_close, &options, text, sizeof(text));
    (void)snprintf(
        expected, sizeof(expected),
        "husk: disk %s: has 1524 bytes, which is no multiple of 512: the guest "
        "does not see the last 500\n",
        file.path);
    assert_string_equal(text, expected);
    file_finish(&file);
}

/* The header of qcow2, which a guest may write there as well as anybody. */
static void content_of_another_format_is_bytes_like_any(void **state)
{
    static const uint8_t magic[] = {'Q', 'F', 'I', 0xfb, 0, 0, 0, 3};
    uint8_t sector[512] = {0};
    struct test_file file;
    struct disk_options options;
    struct disk *disk;

    (void)state;
    file_init(&file, 8192);
    options = options_of(&file);
    disk = open_or_fail(&options);
    memcpy(sector, magic, sizeof(magic));
    assert_int_equal(do_request(disk, DISK_WRITE, 0, sector, sizeof(sector)), 0);
    disk_close(disk);
    disk = open_or_fail(&options);
    assert_true(disk_size_bytes(disk) == 8192);
    memset(sector, 0, sizeof(sector));
    assert_int_equal(do_request(disk, DISK_READ, 0, sector, sizeof(sector)), 0);
    assert_memory_equal(sector, magic, sizeof(magic));
    disk_close(disk);
    file_finish(&file);
}

static void topology_is_of_the_file(void **state)
{
    struct test_file file;
    struct disk_options options;
    struct disk_topology topology;
    struct stat status;
    struct disk *disk;

    (void)state;
    file_init(&file, 4096);
    options = options_of(&file);
    disk = open_or_fail(&options);
    topology = disk_topology(disk);
    assert_int_equal(fstat(file.fd, &status), 0);
    assert_int_equal(topology.logical_block_bytes, 512);
    assert_int_equal(topology.physical_block_bytes, status.st_blksize);
    assert_int_equal(topology.discard_block_bytes, status.st_blksize);
    assert_int_equal(topology.optimal_bytes, 0);
    disk_close(disk);
    file_finish(&file);
}

/* Partition tables count in logical blocks, however the file is opened. */
static void direct_file_keeps_sectors_of_512(void **state)
{
    struct test_file file;
    struct disk_options options;
    struct disk_topology topology;
    struct error err = ERROR_NONE;
    struct disk *disk = NULL;

    (void)state;
    file_init(&file, 8192);
    options = options_of(&file);
    options.direct = true;
    if (disk_open(&options, &disk, &err) == 0) {
        topology = disk_topology(disk);
        assert_int_equal(topology.logical_block_bytes, 512);
        assert_true(topology.physical_block_bytes >= 4096);
        disk_close(disk);
    }
    file_finish(&file);
    if (err.code != 0)
        skip(); /* no O_DIRECT in /tmp */
}

/* ---- the door ---- */

static void requests_outside_of_the_disk_are_refused(void **state)
{
    const uint64_t last_sector = UINT64_MAX - 511;
    uint8_t bytes[1024];
    struct test_file file;
    struct disk_options options;
    struct disk *disk;

    (void)state;
    file_init(&file, 8192);
    options = options_of(&file);
    disk = open_or_fail(&options);
    for (int i = 0; i < DISK_OPERATIONS; i++) {
        enum disk_operation operation = (enum disk_operation)i;

        if (operation == DISK_FLUSH)
            continue;
        assert_int_equal(do_request(disk, operation, 8192 - 512, bytes, 1024), -ERANGE);
        assert_int_equal(do_request(disk, operation, 8192, bytes, 512), -ERANGE);
        assert_int_equal(do_request(disk, operation, last_sector, bytes, 512), -ERANGE);
        assert_int_equal(do_request(disk, operation, last_sector, bytes, 1024), -ERANGE);
        assert_int_equal(do_request(disk, operation, 8192 - 512, bytes, 512), 0);
    }
    assert_int_equal(do_request(disk, DISK_DISCARD, 512, NULL, last_sector), -ERANGE);
    disk_close(disk);
    file_finish(&file);
}

static void requests_of_no_whole_sectors_are_refused(void **state)
{
    uint8_t bytes[1024];
    struct test_file file;
    struct disk_options options;
    struct disk *disk;

    (void)state;
    file_init(&file, 8192);
    options = options_of(&file);
    disk = open_or_fail(&options);
    assert_int_equal(do_request(disk, DISK_READ, 1, bytes, 512), -EINVAL);
    assert_int_equal(do_request(disk, DISK_READ, 0, bytes, 511), -EINVAL);
    assert_int_equal(do_request(disk, DISK_WRITE_ZEROES, 0, NULL, 513), -EINVAL);
    disk_close(disk);
    file_finish(&file);
}

static void requests_whose_buffers_have_another_size_are_refused(void **state)
{
    uint8_t bytes[1024];
    struct iovec buffers[2] = {{bytes, 512}, {bytes, SIZE_MAX}};
    struct disk_request request = {.operation = DISK_READ, .size_bytes = 1024};
    struct disk_request *pointer = &request;
    struct test_file file;
    struct disk_options options;
    struct disk *disk;

    (void)state;
    file_init(&file, 8192);
    options = options_of(&file);
    disk = open_or_fail(&options);
    request.buffers = buffers;
    for (unsigned count = 0; count <= 2; count++) {
        request.buffer_count = count;
        disk_submit(disk, &pointer, 1);
        reap_all(disk, &(struct disk_request *){NULL}, 1);
        assert_int_equal(request.result, -EINVAL);
    }
    disk_close(disk);
    file_finish(&file);
}

static void counters_tell_what_came_back(void **state)
{
    uint8_t bytes[1024] = {0};
    struct test_file file;
    struct disk_options options;
    struct disk_counters counters;
    struct disk *disk;

    (void)state;
    file_init(&file, 8192);
    options = options_of(&file);
    disk = open_or_fail(&options);
    assert_int_equal(do_request(disk, DISK_READ, 0, bytes, 1024), 0);
    assert_int_equal(do_request(disk, DISK_READ, 0, bytes, 512), 0);
    assert_int_equal(do_request(disk, DISK_READ, 8192, bytes, 512), -ERANGE);
    assert_int_equal(do_request(disk, DISK_READ, 0, bytes, 0), 0);
    assert_int_equal(do_request(disk, DISK_FLUSH, 0, NULL, 0), 0);
    counters = disk_counters(disk);
    assert_true(counters.requests[DISK_READ] == 4);
    assert_true(counters.bytes[DISK_READ] == 1536);
    assert_true(counters.errors[DISK_READ] == 1);
    assert_true(counters.requests[DISK_FLUSH] == 1);
    assert_true(counters.requests[DISK_WRITE] == 0);
    disk_close(disk);
    file_finish(&file);
}

/* ---- what the operator is told ---- */

static void fail_three_writes_and_ask_nonsense(void *context)
{
    uint8_t bytes[512] = {0};
    struct host_faults faults = {.operation = DISK_WRITE, .outcome = -ENOSPC, .count = 3};
    struct disk *disk = open_or_fail(context);

    inject(disk, &faults);
    assert_int_equal(do_request(disk, DISK_READ, 8192, bytes, 512), -ERANGE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(do_request(disk, DISK_WRITE, 1024, bytes, 512), -ENOSPC);
    disk_close(disk);
}

/* The gates that ration messages open as if a second had passed. */
static void let_a_second_pass(struct disk *disk)
{
    for (int i = 0; i < DISK_TROUBLES; i++)
        atomic_store(&disk->gates[i].next_ns, 0);
}

static void fail_writes_for_long(void *context)
{
    uint8_t bytes[512] = {0};
    struct host_faults faults = {.operation = DISK_WRITE, .outcome = -ENOSPC, .count = 2};
    struct disk *disk = open_or_fail(context);

    inject(disk, &faults);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(do_request(disk, DISK_WRITE, 1024, bytes, 512), -ENOSPC);
        assert_int_equal(do_request(disk, DISK_READ, 1024, bytes, 512), 0);
        let_a_second_pass(disk);
    }
    assert_int_equal(do_request(disk, DISK_WRITE, 1024, bytes, 512), 0);
    atomic_store(&faults.count, 1);
    assert_int_equal(do_request(disk, DISK_WRITE, 2048, bytes, 512), -ENOSPC);
    disk_close(disk);
}

static void trouble_that_goes_on_is_told_again_when_there_was_none(void **state)
{
    struct test_file file;
    struct disk_options options;
    char expected[300];
    char text[1024];

    (void)state;
    file_init(&file, 8192);
    options = options_of(&file);
    capture_log(fail_writes_for_long, &options, text, sizeof(text));
    (void)snprintf(expected, sizeof(expected),
                   "husk: disk %s: write of 512 bytes at byte 1024 failed: No space left "
                   "on device\n"
                   "husk: disk %s: write of 512 bytes at byte 2048 failed: No space left "
                   "on device\n",
                   file.path, file.path);
    assert_string_equal(text, expected);
    file_finish(&file);
}

static void operator_is_told_once_of_each_kind(void **state)
{
    struct test_file file;
    struct disk_options options;
    char expected[300];
    char text[1024];

    (void)state;
    file_init(&file, 8192);
    options = options_of(&file);
    capture_log(fail_three_writes_and_ask_nonsense, &options, text, sizeof(text));
    (void)snprintf(expected, sizeof(expected),
                   "husk: disk %s: read of 512 bytes at byte 8192 failed: outside of the "
                   "disk\n"
                   "husk: disk %s: write of 512 bytes at byte 1024 failed: No space left "
                   "on device\n",
                   file.path, file.path);
    assert_string_equal(text, expected);
    file_finish(&file);
}

/* ---- the way back ---- */

static bool is_readable(const struct disk *disk)
{
    struct pollfd waiting = {.fd = disk_completion_fd(disk), .events = POLLIN};

    return poll(&waiting, 1, 0) == 1;
}

static void completion_fd_is_readable_until_all_are_reaped(void **state)
{
    struct disk_request requests[3];
    struct disk_request *pointers[3];
    struct disk_request *done[3];
    struct test_file file;
    struct disk_options options;
    struct disk *disk;

    (void)state;
    file_init(&file, 8192);
    options = options_of(&file);
    disk = open_or_fail(&options);
    for (unsigned i = 0; i < 3; i++) {
        requests[i] = (struct disk_request){.operation = DISK_DISCARD, .size_bytes = 512};
        pointers[i] = &requests[i];
    }
    assert_false(is_readable(disk));
    disk_submit(disk, pointers, 3);
    assert_true(is_readable(disk));
    assert_int_equal(disk_reap(disk, done, 2), 2);
    assert_true(is_readable(disk));
    assert_int_equal(disk_reap(disk, done, 2), 1);
    assert_int_equal(disk_reap(disk, done, 2), 0);
    assert_false(is_readable(disk));
    disk_close(disk);
    file_finish(&file);
}

/* ---- the order of a flush ---- */

/* The first write does not come back before it may. */
struct held_write {
    sem_t may_return;
    _Atomic bool held;
};

static int64_t hold_write(void *context, const struct disk_request *request,
                          int64_t result)
{
    struct held_write *held = context;

    if (request->operation == DISK_WRITE && request->offset_bytes == 0 &&
        !atomic_exchange(&held->held, true))
        while (sem_wait(&held->may_return) < 0) {
        }
    return result;
}

enum { EARLY_WRITE, FLUSH, LATE_WRITE, READ, HELD_REQUESTS };

static void flush_waits_for_earlier_writes_and_holds_up_nobody(void **state)
{
    static uint8_t bytes[HELD_REQUESTS][512];
    struct iovec buffers[HELD_REQUESTS];
    struct disk_request requests[HELD_REQUESTS] = {
        [EARLY_WRITE] = {.operation = DISK_WRITE, .offset_bytes = 0},
        [FLUSH] = {.operation = DISK_FLUSH},
        [LATE_WRITE] = {.operation = DISK_WRITE, .offset_bytes = 512},
        [READ] = {.operation = DISK_READ, .offset_bytes = 1024},
    };
    struct disk_request *pointers[HELD_REQUESTS];
    struct disk_request *done[HELD_REQUESTS];
    struct held_write held = {.held = false};
    struct test_file file;
    struct disk_options options;
    struct disk *disk;

    (void)state;
    assert_int_equal(sem_init(&held.may_return, 0, 0), 0);
    file_init(&file, 8192);
    options = options_of(&file);
    options.engine = "threads";
    disk = open_or_fail(&options);
    disk->faults = (struct disk_faults){.outcome = hold_write, .context = &held};
    for (unsigned i = 0; i < HELD_REQUESTS; i++) {
        buffers[i] = (struct iovec){bytes[i], 512};
        requests[i].size_bytes = i == FLUSH ? 0 : 512;
        requests[i].buffers = &buffers[i];
        requests[i].buffer_count = i == FLUSH ? 0 : 1;
        pointers[i] = &requests[i];
    }
    disk_submit(disk, pointers, HELD_REQUESTS);
    reap_all(disk, done, 2);
    assert_true(done[0] == &requests[LATE_WRITE] || done[0] == &requests[READ]);
    assert_true(done[1] == &requests[LATE_WRITE] || done[1] == &requests[READ]);
    assert_ptr_equal(disk->flushes.first, &requests[FLUSH]);
    assert_int_equal(sem_post(&held.may_return), 0);
    reap_all(disk, done, 2);
    assert_ptr_equal(done[0], &requests[EARLY_WRITE]);
    assert_ptr_equal(done[1], &requests[FLUSH]);
    disk_close(disk);
    file_finish(&file);
    (void)sem_destroy(&held.may_return);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_disk_is_refused),
        cmocka_unit_test(engine_that_does_not_exist_is_refused_with_those_that_do),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(auto_says_what_it_takes_and_why),
        cmocka_unit_test(host_without_io_uring_is_told_and_served_by_threads),
        cmocka_unit_test(second_writer_is_refused_and_readers_share),
        cmocka_unit_test(size_that_is_no_multiple_of_512_is_cut_with_a_warning),
        cmocka_unit_test(content_of_another_format_is_bytes_like_any),
        cmocka_unit_test(topology_is_of_the_file),
        cmocka_unit_test(direct_file_keeps_sectors_of_512),
        cmocka_unit_test(requests_outside_of_the_disk_are_refused),
        cmocka_unit_test(requests_of_no_whole_sectors_are_refused),
        cmocka_unit_test(requests_whose_buffers_have_another_size_are_refused),
        cmocka_unit_test(counters_tell_what_came_back),
        cmocka_unit_test(operator_is_told_once_of_each_kind),
        cmocka_unit_test(trouble_that_goes_on_is_told_again_when_there_was_none),
        cmocka_unit_test(completion_fd_is_readable_until_all_are_reaped),
        cmocka_unit_test(flush_waits_for_earlier_writes_and_holds_up_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
