/* SPDX-License-Identifier: Apache-2.0 */
/* Disks on a block device: a loop device on a file. Needs the right to make one. */
#include "disk_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define DEVICE_BYTES (256 * KIB)

struct loop_device {
    char path[32];
    int fd;
    struct test_file file;
};

/* 0 or a negative errno. */
static int loop_init(struct loop_device *device)
{
    struct loop_config config = {.block_size = 4096};
    CLEANUP_FD int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    int number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);

    *device = (struct loop_device){.fd = -1};
    if (number < 0)
        return -errno;
    (void)snprintf(device->path, sizeof(device->path), "/dev/loop%d", number);
    device->fd = open(device->path, O_RDWR | O_CLOEXEC);
    if (device->fd < 0)
        return -errno;
    file_init(&device->file, DEVICE_BYTES);
    config.fd = (uint32_t)device->file.fd;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (ioctl(device->fd, LOOP_CONFIGURE, &config) == 0)
        return 0;
    fd_close(&device->fd);
    file_finish(&device->file);
    return -errno;
}

static void loop_finish(struct loop_device *device)
{
    fd_close(&device->fd);
    file_finish(&device->file);
}

static void loop_init_or_fail(struct loop_device *device)
{
    assert_int_equal(loop_init(device), 0);
}

static void device_is_measured_and_described(void **state)
{
    struct loop_device device;
    struct disk_options options = {.engine = "sync"};
    struct disk *disk;

    (void)state;
    loop_init_or_fail(&device);
    options.path = device.path;
    disk = open_or_fail(&options);
    assert_true(disk_size_bytes(disk) == DEVICE_BYTES);
    assert_int_equal(disk_topology(disk).logical_block_bytes, 4096);
    assert_int_equal(disk_topology(disk).physical_block_bytes, 4096);
    assert_refused(&options, "is in use by another writer: give each guest a copy, or "
                             "open it read-only or ephemeral in all");
    disk_close(disk);
    loop_finish(&device);
}

static void device_that_grows_is_a_larger_disk(void **state)
{
    struct loop_device device;
    struct disk_options options = {.engine = "sync"};
    struct disk *disk;

    (void)state;
    loop_init_or_fail(&device);
    options.path = device.path;
    disk = open_or_fail(&options);
    assert_int_equal(ftruncate(device.file.fd, 2 * DEVICE_BYTES), 0);
    assert_false(disk_update_size(disk));
    assert_int_equal(ioctl(device.fd, LOOP_SET_CAPACITY), 0);
    assert_true(disk_update_size(disk));
    assert_true(disk_size_bytes(disk) == 2 * DEVICE_BYTES);
    disk_close(disk);
    loop_finish(&device);
}

/* Offsets that are sectors and no blocks of the device. */
static void use_device(struct disk *disk)
{
    uint8_t written[5 * 512];
    uint8_t seen[5 * 512] = {0};

    memset(written, 'b', sizeof(written));
    assert_int_equal(do_request(disk, DISK_READ, 512, seen, sizeof(seen)), 0);
    for (uint64_t i = 0; i < sizeof(seen); i++)
        assert_int_equal(seen[i], pattern_at(512 + i));
    assert_int_equal(
        do_request(disk, DISK_WRITE, 7 * DISK_SECTOR_BYTES, written, sizeof(written)), 0);
    assert_int_equal(do_request(disk, DISK_FLUSH, 0, NULL, 0), 0);
    assert_int_equal(
        do_request(disk, DISK_READ, 7 * DISK_SECTOR_BYTES, seen, sizeof(seen)), 0);
    assert_memory_equal(seen, written, sizeof(seen));
    assert_int_equal(
        do_request(disk, DISK_WRITE_ZEROES, 8 * DISK_SECTOR_BYTES, NULL, 512), 0);
    memset(written + 512, 0, 512);
    assert_int_equal(
        do_request(disk, DISK_READ, 7 * DISK_SECTOR_BYTES, seen, sizeof(seen)), 0);
    assert_memory_equal(seen, written, sizeof(seen));
    assert_int_equal(do_request(disk, DISK_DISCARD, 64 * KIB, NULL, 64 * KIB), 0);
}

static void every_engine_works_on_a_device(void **state)
{
    (void)state;
    for (size_t i = 0; disk_engines[i] != NULL; i++)
        for (int direct = 0; direct < (disk_engines[i]->maps ? 1 : 2); direct++) {
            struct loop_device device;
            struct disk_options options = {.engine = disk_engines[i]->name,
                                           .direct = direct == 1};
            struct disk *disk;

            loop_init_or_fail(&device);
            options.path = device.path;
            disk = open_or_fail(&options);
            use_device(disk);
            disk_close(disk);
            loop_finish(&device);
        }
}

static uint64_t allocated_bytes(const struct test_file *file)
{
    struct stat status;

    assert_int_equal(fsync(file->fd), 0);
    assert_int_equal(fstat(file->fd, &status), 0);
    return (uint64_t)status.st_blocks * 512;
}

static void discard_reaches_the_device(void **state)
{
    struct loop_device device;
    struct disk_options options = {.engine = "threads"};
    struct disk *disk;
    uint64_t before;

    (void)state;
    loop_init_or_fail(&device);
    before = allocated_bytes(&device.file);
    options.path = device.path;
    disk = open_or_fail(&options);
    assert_int_equal(do_request(disk, DISK_DISCARD, 64 * KIB, NULL, 64 * KIB), 0);
    assert_true(allocated_bytes(&device.file) == before - 64 * KIB);
    disk_close(disk);
    loop_finish(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_is_measured_and_described),
        cmocka_unit_test(device_that_grows_is_a_larger_disk),
        cmocka_unit_test(every_engine_works_on_a_device),
        cmocka_unit_test(discard_reaches_the_device),
    };
    struct loop_device device;
    int status = loop_init(&device);

    if (status < 0) {
        print_message("no loop device is to be had: %s\n", strerror(-status));
        return EXIT_SKIP;
    }
    loop_finish(&device);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
