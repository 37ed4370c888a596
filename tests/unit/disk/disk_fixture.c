/* SPDX-License-Identifier: Apache-2.0 */
/* See disk_fixture.h. */
#include "disk_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/map_guard.h"

uint8_t pattern_at(uint64_t offset)
{
    return (uint8_t)(1 + (offset * 7 + offset / 512) % 251);
}

void file_init_in(struct test_file *file, const char *directory, uint64_t size_bytes)
{
    uint8_t block[4096];

    *file = (struct test_file){.size_bytes = size_bytes};
    (void)snprintf(file->path, sizeof(file->path), "%s/husk-disk-XXXXXX", directory);
    file->fd = mkostemp(file->path, O_CLOEXEC);
    assert_true(file->fd >= 0);
    for (uint64_t at = 0; at < size_bytes; at += sizeof(block)) {
        for (size_t i = 0; i < sizeof(block); i++)
            block[i] = pattern_at(at + i);
        assert_int_equal(
            fd_write_all(file->fd, block, min_u64(sizeof(block), size_bytes - at)), 0);
    }
}

void file_init(struct test_file *file, uint64_t size_bytes)
{
    file_init_in(file, "/tmp", size_bytes);
}

void file_finish(struct test_file *file)
{
    fd_close(&file->fd);
    assert_int_equal(unlink(file->path), 0);
}

void file_read(const struct test_file *file, void *bytes)
{
    assert_int_equal(fd_read_at(file->fd, 0, bytes, file->size_bytes), 0);
}

static bool repair_nothing(void *context, uintptr_t address)
{
    (void)context;
    (void)address;
    return false;
}

void put_handler_back(void)
{
    static struct sigaction ours;

    if (ours.sa_sigaction == NULL) {
        struct map_guard guard = {.repair = repair_nothing};
        struct error err = ERROR_NONE;

        assert_int_equal(map_guard_register(&guard, &err), 0);
        map_guard_unregister(&guard);
        (void)sigaction(SIGBUS, NULL, &ours);
    }
    (void)sigaction(SIGBUS, &ours, NULL);
}

struct disk *open_or_fail(const struct disk_options *options)
{
    struct error err = ERROR_NONE;
    struct disk *disk = NULL;

    put_handler_back();
    if (disk_open(options, &disk, &err) < 0)
        fail_msg("%s", err.text);
    return disk;
}

void assert_refused(const struct disk_options *options, const char *sentence)
{
    struct error err = ERROR_NONE;
    struct disk *disk = NULL;

    assert_true(disk_open(options, &disk, &err) < 0);
    assert_null(disk);
    assert_string_equal(err.text, sentence);
}

void reap_all(struct disk *disk, struct disk_request *done[], unsigned count)
{
    unsigned reaped = 0;

    while (reaped < count) {
        struct pollfd waiting = {.fd = disk_completion_fd(disk), .events = POLLIN};

        (void)poll(&waiting, 1, -1);
        reaped += disk_reap(disk, done + reaped, count - reaped);
    }
}

int do_request(struct disk *disk, enum disk_operation operation, uint64_t offset_bytes,
               void *buffer, uint64_t size_bytes)
{
    bool has_buffer = operation == DISK_READ || operation == DISK_WRITE;
    struct iovec whole = {.iov_base = buffer, .iov_len = size_bytes};
    struct disk_request request = {
        .operation = operation,
        .offset_bytes = offset_bytes,
        .size_bytes = size_bytes,
        .buffers = &whole,
        .buffer_count = has_buffer ? 1 : 0,
        .result = 1,
    };
    struct disk_request *submitted = &request;
    struct disk_request *done = NULL;

    disk_submit(disk, &submitted, 1);
    reap_all(disk, &done, 1);
    assert_ptr_equal(done, &request);
    return request.result;
}

void capture_log(void (*act)(void *context), void *context, char *text, size_t size)
{
    int log = memfd_create("log", MFD_CLOEXEC);
    int standard_error = dup(STDERR_FILENO);
    ssize_t length;

    assert_true(dup2(log, STDERR_FILENO) >= 0);
    act(context);
    assert_true(dup2(standard_error, STDERR_FILENO) >= 0);
    length = pread(log, text, size - 1, 0);
    assert_true(length >= 0);
    text[length] = '\0';
    fd_close(&log);
    fd_close(&standard_error);
}

static int64_t replace_outcome(void *context, const struct disk_request *request,
                               int64_t result)
{
    struct host_faults *faults = context;

    atomic_fetch_add(&faults->seen[request->operation], 1);
    if (request->operation != faults->operation ||
        atomic_fetch_sub(&faults->passes, 1) > 0 ||
        atomic_fetch_sub(&faults->count, 1) <= 0)
        return result;
    return faults->outcome;
}

void inject(struct disk *disk, struct host_faults *faults)
{
    disk->faults = (struct disk_faults){.outcome = replace_outcome, .context = faults};
}
