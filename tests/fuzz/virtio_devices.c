/* SPDX-License-Identifier: Apache-2.0 */
/* Making and ending each kind of virtio device; see virtio_devices.h. */
#include "virtio_devices.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fd.h"
#include "virtio/balloon.h"
#include "virtio/blk.h"
#include "virtio/console.h"
#include "virtio/pmem.h"
#include "virtio/rng.h"

#define FILE_BYTES (64 * KIB)

static int make_file(void)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    CHECK(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0);
    return fd;
}

/* ---- rng ---- */

static void create_rng(struct fuzz_device *device, uint8_t variant)
{
    struct virtio_rng *rng;
    struct error err = ERROR_NONE;

    (void)variant;
    CHECK(virtio_rng_create(device->loop, device->memory, &rng, &err) == 0);
    device->implementation = rng;
    device->device = virtio_rng_device(rng);
}

static void destroy_rng(struct fuzz_device *device)
{
    virtio_rng_destroy(device->implementation);
}

/* ---- console ---- */

static void take_output(void *context, const uint8_t *bytes, size_t size)
{
    (void)context;
    for (size_t i = 0; i < size; i++) /* all of them are there */
        __asm__ volatile("" : : "r"(bytes[i]));
}

/* Whoever has input tries again. */
static void give_input(void *context)
{
    struct fuzz_device *device = context;
    static const uint8_t input[100];

    if (device->implementation != NULL)
        CHECK(virtio_console_input(device->implementation, input, sizeof(input)) <=
              sizeof(input));
}

static void create_console(struct fuzz_device *device, uint8_t variant)
{
    const struct virtio_console_options options = {
        .output = take_output, .room = give_input, .context = device};
    struct virtio_console *console;
    struct error err = ERROR_NONE;

    (void)variant;
    CHECK(virtio_console_create(&options, device->loop, device->memory, &console, &err) ==
          0);
    device->implementation = console;
    device->device = virtio_console_device(console);
}

static void resize_console(struct fuzz_device *device, uint64_t bytes)
{
    virtio_console_resize(device->implementation, (uint16_t)(bytes / 512), 25);
    give_input(device);
}

static void destroy_console(struct fuzz_device *device)
{
    virtio_console_destroy(device->implementation);
}

/* ---- balloon ---- */

/* On two spans of memory, or on the first one; with a file's pages in it, or without. */
static void create_balloon(struct fuzz_device *device, uint8_t variant)
{
    const struct memory_region *regions = memory_regions(device->memory);
    struct virtio_balloon_options options = {.span_count = 1 + variant % 2};
    struct virtio_balloon *balloon;
    struct error err = ERROR_NONE;

    for (size_t i = 0; i < options.span_count; i++)
        options.spans[i] = (struct memory_span){regions[i].gpa, regions[i].size_bytes};
    if ((variant & 2) != 0) {
        device->fd = make_file();
        CHECK(memory_map_file(device->memory, regions[0].gpa, device->fd, 0,
                              regions[0].size_bytes / 2, "fuzz", &err) == 0);
    }
    CHECK(virtio_balloon_create(&options, device->loop, device->memory, &balloon, &err) ==
          0);
    device->implementation = balloon;
    device->device = virtio_balloon_device(balloon);
}

static void resize_balloon(struct fuzz_device *device, uint64_t bytes)
{
    struct virtio_balloon_status status;

    virtio_balloon_set_target(device->implementation, bytes);
    virtio_balloon_status(device->implementation, &status);
}

static void destroy_balloon(struct fuzz_device *device)
{
    virtio_balloon_destroy(device->implementation);
    fd_close(&device->fd);
}

/* ---- blk ---- */

static struct disk *open_disk(int fd, uint8_t variant)
{
    static const struct disk_options kinds[] = {
        {.engine = "sync"},
        {.engine = "mmap"},
        {.engine = "sync", .read_only = true},
        {.engine = "mmap", .ephemeral = true},
    };
    struct disk_options options = kinds[variant % ARRAY_SIZE(kinds)];
    char path[32];
    struct disk *disk;
    struct error err = ERROR_NONE;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    options.path = path;
    CHECK(disk_open(&options, &disk, &err) == 0);
    return disk;
}

static void create_blk(struct fuzz_device *device, uint8_t variant)
{
    const struct virtio_blk_options options = {.queue_count = 1 + (variant >> 3) % 2,
                                               .serial = "fuzz"};
    struct virtio_blk *blk;
    struct error err = ERROR_NONE;

    device->fd = make_file();
    CHECK(virtio_blk_create(&options, open_disk(device->fd, variant), device->memory,
                            &blk, &err) == 0);
    device->implementation = blk;
    device->device = virtio_blk_device(blk);
}

static void resize_blk(struct fuzz_device *device, uint64_t bytes)
{
    CHECK(ftruncate(device->fd, (off_t)bytes) == 0);
    virtio_blk_update_size(device->implementation);
}

static void end_blk(struct fuzz_device *device)
{
    virtio_blk_end(device->implementation);
    while (!virtio_blk_has_ended(device->implementation, 60000))
        continue; /* a signal, of the fuzzer's clock */
}

static void destroy_blk(struct fuzz_device *device)
{
    virtio_blk_destroy(device->implementation);
    fd_close(&device->fd);
}

/* ---- pmem ---- */

static void create_pmem(struct fuzz_device *device, uint8_t variant)
{
    struct virtio_pmem_options options = {
        .name = "pmem fuzz",
        .gpa = GIB,
        .size_bytes = FILE_BYTES,
        .flush = (enum virtio_pmem_flush)(variant % (VIRTIO_PMEM_FLUSH_REFUSE + 1)),
    };
    struct virtio_pmem *pmem;
    struct error err = ERROR_NONE;

    options.fd = device->fd = make_file();
    CHECK(virtio_pmem_create(&options, device->memory, &pmem, &err) == 0);
    device->implementation = pmem;
    device->device = virtio_pmem_device(pmem);
}

static void end_pmem(struct fuzz_device *device)
{
    CHECK(virtio_pmem_end(device->implementation, 60000));
}

static void destroy_pmem(struct fuzz_device *device)
{
    virtio_pmem_destroy(device->implementation);
    fd_close(&device->fd);
}

const struct fuzz_device_kind fuzz_device_kinds[] = {
    {.class_code = VIRTIO_RNG_CLASS_CODE, .create = create_rng, .destroy = destroy_rng},
    {.class_code = VIRTIO_BLK_CLASS_CODE,
     .create = create_blk,
     .resize = resize_blk,
     .end = end_blk,
     .destroy = destroy_blk},
    {.class_code = VIRTIO_PMEM_CLASS_CODE,
     .create = create_pmem,
     .end = end_pmem,
     .destroy = destroy_pmem},
    {.class_code = VIRTIO_CONSOLE_CLASS_CODE,
     .create = create_console,
     .resize = resize_console,
     .destroy = destroy_console},
    {.class_code = VIRTIO_BALLOON_CLASS_CODE,
     .create = create_balloon,
     .resize = resize_balloon,
     .destroy = destroy_balloon},
};
const unsigned fuzz_device_kind_count = ARRAY_SIZE(fuzz_device_kinds);
