/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of disk/ share: files with known bytes, disks on them, and a host that
 * fails when it is told to. */
#ifndef HUSK_TESTS_DISK_FIXTURE_H
#define HUSK_TESTS_DISK_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "disk/disk_private.h"

/* Meson's exit code for a test that cannot run here. */
#define EXIT_SKIP 77

/* A file that is gone at file_finish. Its bytes are those of pattern_at. */
struct test_file {
    char path[64];
    int fd;
    uint64_t size_bytes;
};
void file_init(struct test_file *file, uint64_t size_bytes);
void file_init_in(struct test_file *file, const char *directory, uint64_t size_bytes);
void file_finish(struct test_file *file);
uint8_t pattern_at(uint64_t offset);
void file_read(const struct test_file *file, void *bytes); /* all of it, from the host */

/* cmocka puts a SIGBUS handler of its own in place for each test. Before the first disk
 * of a process, and of each test; open_or_fail does it. */
void put_handler_back(void);

/* Fails the test if it does not open. */
struct disk *open_or_fail(const struct disk_options *options);

/* Opens, fails as it should, and compares the sentence. */
void assert_refused(const struct disk_options *options, const char *sentence);

/* Waits until `count` requests have been reaped. */
void reap_all(struct disk *disk, struct disk_request *done[], unsigned count);

/* One request, carried out to its end; returns its result. */
int do_request(struct disk *disk, enum disk_operation operation, uint64_t offset_bytes,
               void *buffer, uint64_t size_bytes);

/* What the log says while `act` runs. */
void capture_log(void (*act)(void *context), void *context, char *text, size_t size);

/* A host that fails. The first `passes` results of `operation` are left alone, then
 * `count` are replaced. */
struct host_faults {
    enum disk_operation operation;
    int64_t outcome;
    _Atomic int passes;
    _Atomic int count;
    _Atomic int seen[DISK_OPERATIONS]; /* results that went by */
};
void inject(struct disk *disk, struct host_faults *faults);

#endif
