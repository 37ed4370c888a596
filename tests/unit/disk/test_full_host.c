/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts without room: a file on a file system that is smaller than the file. Needs the
 * right to mount. */
#include "disk_fixture.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>

#define HOST_BYTES (256 * KIB)
#define DISK_BYTES MIB
#define PIECE_BYTES (64 * KIB)

static char directory[] = "/tmp/husk-full-XXXXXX";

/* In a mount namespace of this process, so that nothing is left behind. */
static int mount_small_host(void)
{
    char options[32];

    if (mkdtemp(directory) == NULL)
        return -errno;
    (void)snprintf(options, sizeof(options), "size=%ju", (uintmax_t)HOST_BYTES);
    if (unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("husk", directory, "tmpfs", 0, options) < 0)
        return -errno;
    return 0;
}

static void leave_small_host(void)
{
    (void)umount2(directory, MNT_DETACH);
    (void)rmdir(directory);
}

/* A file that is one hole. */
static void sparse_file_init(struct test_file *file)
{
    file_init_in(file, directory, 0);
    assert_int_equal(ftruncate(file->fd, (off_t)DISK_BYTES), 0);
}

static void fill_host(const char *engine)
{
    uint8_t *piece = malloc(PIECE_BYTES);
    struct test_file file;
    struct disk_options options = {.engine = engine};
    struct disk *disk;
    int written = 0;

    assert_non_null(piece);
    memset(piece, 'f', PIECE_BYTES);
    sparse_file_init(&file);
    options.path = file.path;
    disk = open_or_fail(&options);
    for (uint64_t at = 0; at < DISK_BYTES; at += PIECE_BYTES) {
        int result = do_request(disk, DISK_WRITE, at, piece, PIECE_BYTES);

        if (result == 0)
            written++;
        else
            assert_int_equal(result, -ENOSPC);
    }
    assert_true(written >= 1);
    assert_true(written <= (int)(HOST_BYTES / PIECE_BYTES));

    /* Room again: what was refused can be written. */
    assert_int_equal(do_request(disk, DISK_DISCARD, 0, NULL, DISK_BYTES), 0);
    assert_int_equal(
        do_request(disk, DISK_WRITE, DISK_BYTES - PIECE_BYTES, piece, PIECE_BYTES), 0);
    disk_close(disk);
    file_finish(&file);
    free(piece);
}

static void full_host_is_enospc_for_every_engine(void **state)
{
    (void)state;
    for (size_t i = 0; disk_engines[i] != NULL; i++)
        fill_host(disk_engines[i]->name);
}

/* Between the reservation and the copy somebody else may have taken the room. */
static void page_of_a_map_without_room_is_enospc_and_no_death(void **state)
{
    uint8_t *all = calloc(1, DISK_BYTES);
    struct test_file file;
    struct host_faults lie = {.operation = DISK_WRITE, .outcome = 0, .count = 1};
    struct disk_options options = {.engine = "mmap"};
    struct disk *disk;

    (void)state;
    assert_non_null(all);
    sparse_file_init(&file);
    options.path = file.path;
    disk = open_or_fail(&options);
    inject(disk, &lie);
    assert_int_equal(do_request(disk, DISK_WRITE, 0, all, DISK_BYTES), -ENOSPC);
    assert_true(lie.seen[DISK_WRITE] >= 2); /* the reservation, then system calls */
    assert_int_equal(do_request(disk, DISK_DISCARD, 0, NULL, DISK_BYTES), 0);
    memset(all, 'r', 4096);
    assert_int_equal(do_request(disk, DISK_WRITE, 512 * KIB, all, 4096), 0);
    memset(all, 0, 4096);
    assert_int_equal(fd_read_at(file.fd, 512 * KIB, all, 4096), 0);
    assert_int_equal(all[4095], 'r');
    disk_close(disk);
    file_finish(&file);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_host_is_enospc_for_every_engine),
        cmocka_unit_test(page_of_a_map_without_room_is_enospc_and_no_death),
    };
    int status = mount_small_host();

    if (status == 0)
        status = cmocka_run_group_tests(tests, NULL, NULL);
    else
        print_message("no small file system can be mounted: %s\n", strerror(-status));
    leave_small_host();
    return status < 0 ? EXIT_SKIP : status;
}
