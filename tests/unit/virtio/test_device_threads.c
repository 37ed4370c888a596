/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every device with two vCPUs on it: one starts it, moves its registers and resets it
 * again and again, the other notifies it and masks its interrupts all the while, and its
 * own thread works. For the thread sanitizer; besides, a reset device must leave memory
 * alone.
 */
#include "pci_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loop.h"
#include "virtio/balloon.h"
#include "virtio/blk.h"
#include "virtio/console.h"
#include "virtio/pmem.h"
#include "virtio/rng.h"

#define ROUNDS 100
#define CHAINS 2
#define CHAIN_PIECES 3
#define BUFFER(chain) (0x10000 + 0x1000u * (chain))
#define BUFFERS_BYTES 0x2000
#define HEAD_BYTES 16
#define DATA_BYTES 512
#define FILE_BYTES (64 * KIB)

#define BAR0 0x10
#define OTHER_PLACE 0xd0000000
#define MSIX_ENABLE 0x8000
#define MSIX_MASK 0x4000

struct fixture {
    struct guest guest;
    unsigned msix_control; /* offset in configuration space */
    atomic_bool is_over;   /* set by the driver, read by the other vCPU */
};

/* ---- the vCPUs ---- */

/* A request to read a disk, which is output to a console and a flush to a pmem. Written
 * before the device starts, since the thread sanitizer takes a driver's plain writes
 * beside the device's reads for a race. */
static void fill_ring(struct guest *guest)
{
    void *buffers = memory_slice(guest->memory, BUFFER(0), BUFFERS_BYTES);

    memset(buffers, 0, BUFFERS_BYTES);
    put16(guest->memory, RING_AVAILABLE + 2, 0);
    put16(guest->memory, RING_USED + 2, 0);
    for (uint16_t i = 0; i < CHAINS; i++) {
        unsigned head = CHAIN_PIECES * i;

        put_descriptor(guest->memory, RING_DESCRIPTORS, head, BUFFER(i), HEAD_BYTES, NEXT,
                       (uint16_t)(head + 1));
        put_descriptor(guest->memory, RING_DESCRIPTORS, head + 1, BUFFER(i) + 0x100,
                       DATA_BYTES, NEXT | WRITE, (uint16_t)(head + 2));
        put_descriptor(guest->memory, RING_DESCRIPTORS, head + 2, BUFFER(i) + 0x800, 1,
                       WRITE, 0);
        make_available(guest->memory, (uint16_t)head);
    }
}

static void reset_device(struct guest *guest)
{
    guest_write(guest, STATUS, 1, 0);
    while (guest_read(guest, STATUS, 1) != 0)
        (void)sched_yield();
}

/* What a driver does with memory that is its own again. */
static void assert_left_alone(struct guest *guest)
{
    const uint8_t *buffers = memory_slice(guest->memory, BUFFER(0), BUFFERS_BYTES);
    uint16_t used = get16(guest->memory, RING_USED + 2);
    uint8_t before[BUFFERS_BYTES];

    assert_in_range(used, 0, CHAINS);
    memcpy(before, buffers, sizeof(before));
    (void)sched_yield();
    assert_memory_equal(before, buffers, sizeof(before));
    assert_int_equal(get16(guest->memory, RING_USED + 2), used);
}

static void drive(struct guest *guest)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        fill_ring(guest);
        guest_start_driver(guest, VIRTIO_F_VERSION_1 | VIRTIO_F_EVENT_IDX);
        guest_write(guest, QUEUE_VECTOR, 2, 0);
        guest_write(guest, NOTIFY, 2, 0);
        guest_config_write(guest, BAR0, 4, OTHER_PLACE);
        guest_write(guest, OTHER_PLACE + (NOTIFY - BAR), 2, 0);
        guest_config_write(guest, BAR0, 4, BAR);
        if (round % 2 != 0)
            (void)sched_yield();
        reset_device(guest);
        assert_left_alone(guest);
    }
}

static void *disturb(void *context)
{
    static const uint16_t controls[] = {MSIX_ENABLE, MSIX_ENABLE | MSIX_MASK, 0};
    struct fixture *fixture = context;
    struct guest *guest = &fixture->guest;

    for (unsigned i = 0; !atomic_load(&fixture->is_over); i++) {
        guest_config_write(guest, fixture->msix_control, 2,
                           controls[i % ARRAY_SIZE(controls)]);
        guest_write(guest, MSIX + 12, 4, i / 2 % 2); /* the first entry's mask */
        guest_write(guest, NOTIFY, 2, 0);
        (void)guest_read(guest, ISR, 1);
        (void)guest_read(guest, GENERATION, 1);
        (void)guest_read(guest, CONFIG, 4);
        guest_write(guest, OTHER_PLACE + (NOTIFY - BAR), 2, 0);
        (void)virtio_device_foreign_notifications(guest->pci.device);
    }
    return NULL;
}

/* ---- any device ---- */

static bool attach_doorbell(void *context, uint64_t address, int fd)
{
    (void)context;
    (void)address;
    (void)fd;
    return true;
}

static void detach_doorbell(void *context, uint64_t address, int fd)
{
    (void)context;
    (void)address;
    (void)fd;
}

static void begin(struct fixture *fixture)
{
    guest_init(&fixture->guest);
    fixture->guest.bus.wires.attach_doorbell = attach_doorbell;
    fixture->guest.bus.wires.detach_doorbell = detach_doorbell;
    atomic_store(&fixture->is_over, false);
}

static void race(struct fixture *fixture, struct virtio_device *device)
{
    struct guest *guest = &fixture->guest;
    pthread_t other;

    guest_attach(guest, device, 0);
    fixture->msix_control = guest->pci.function.msix.capability + 2;
    guest_write(guest, MSIX, 4, 0xfee00000);
    assert_int_equal(pthread_create(&other, NULL, disturb, fixture), 0);
    drive(guest);
    atomic_store(&fixture->is_over, true);
    assert_int_equal(pthread_join(other, NULL), 0);
}

static int make_file(void)
{
    int fd = memfd_create("disk", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, FILE_BYTES), 0);
    return fd;
}

/* ---- each device ---- */

static void *run_loop(void *context)
{
    struct error err = ERROR_NONE;

    return loop_run(context, &err) == 0 ? context : NULL;
}

static void stop_loop(void *context)
{
    loop_stop(context);
}

/* A device that is served on the main loop, which is a thread of its own here. */
static void race_with_loop(struct fixture *fixture, struct loop *loop,
                           struct virtio_device *device)
{
    struct error err = ERROR_NONE;
    struct loop_post stop;
    pthread_t thread;

    assert_int_equal(loop_post_init(&stop, loop, stop_loop, loop, &err), 0);
    assert_int_equal(pthread_create(&thread, NULL, run_loop, loop), 0);
    race(fixture, device);
    loop_post(&stop);
    assert_int_equal(pthread_join(thread, NULL), 0);
    loop_post_finish(&stop);
    guest_finish(&fixture->guest);
}

static void rng(void **state)
{
    static struct fixture fixture;
    struct virtio_rng *rng = NULL;
    struct loop *loop = NULL;
    struct error err = ERROR_NONE;

    (void)state;
    begin(&fixture);
    assert_int_equal(loop_create(&loop, &err), 0);
    assert_int_equal(virtio_rng_create(loop, fixture.guest.memory, &rng, &err), 0);
    race_with_loop(&fixture, loop, virtio_rng_device(rng));
    virtio_rng_destroy(rng);
    loop_destroy(loop);
}

static void drop_output(void *context, const uint8_t *bytes, size_t size)
{
    (void)context;
    (void)bytes;
    (void)size;
}

static void ask_nobody(void *context)
{
    (void)context;
}

static void console(void **state)
{
    static struct fixture fixture;
    const struct virtio_console_options options = {.output = drop_output,
                                                   .room = ask_nobody};
    struct virtio_console *console = NULL;
    struct loop *loop = NULL;
    struct error err = ERROR_NONE;

    (void)state;
    begin(&fixture);
    assert_int_equal(loop_create(&loop, &err), 0);
    assert_int_equal(
        virtio_console_create(&options, loop, fixture.guest.memory, &console, &err), 0);
    race_with_loop(&fixture, loop, virtio_console_device(console));
    virtio_console_destroy(console);
    loop_destroy(loop);
}

/* Page 0, which its driver names, is none that may be given back. */
static void balloon(void **state)
{
    static struct fixture fixture;
    const struct virtio_balloon_options options = {.spans = {{MIB, MIB}},
                                                   .span_count = 1};
    struct virtio_balloon *balloon = NULL;
    struct loop *loop = NULL;
    struct error err = ERROR_NONE;

    (void)state;
    begin(&fixture);
    assert_int_equal(loop_create(&loop, &err), 0);
    assert_int_equal(
        virtio_balloon_create(&options, loop, fixture.guest.memory, &balloon, &err), 0);
    race_with_loop(&fixture, loop, virtio_balloon_device(balloon));
    virtio_balloon_destroy(balloon);
    loop_destroy(loop);
}

static void blk_with(const char *engine)
{
    static struct fixture fixture;
    const struct virtio_blk_options options = {.queue_count = 2};
    CLEANUP_FD int fd = make_file();
    char path[32];
    const struct disk_options disk_options = {.path = path, .engine = engine};
    struct virtio_blk *blk = NULL;
    struct disk *disk = NULL;
    struct error err = ERROR_NONE;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    begin(&fixture);
    assert_int_equal(disk_open(&disk_options, &disk, &err), 0);
    assert_int_equal(virtio_blk_create(&options, disk, fixture.guest.memory, &blk, &err),
                     0);
    race(&fixture, virtio_blk_device(blk));
    virtio_blk_end(blk);
    assert_true(virtio_blk_has_ended(blk, 60000));
    guest_finish(&fixture.guest);
    virtio_blk_destroy(blk);
}

static void blk_sync(void **state)
{
    (void)state;
    blk_with("sync");
}

static void blk_threads(void **state)
{
    (void)state;
    blk_with("threads");
}

static void pmem(void **state)
{
    static struct fixture fixture;
    CLEANUP_FD int fd = make_file();
    const struct virtio_pmem_options options = {
        .name = "pmem disk", .gpa = GIB, .size_bytes = FILE_BYTES, .fd = fd};
    struct virtio_pmem *pmem = NULL;
    struct error err = ERROR_NONE;

    (void)state;
    begin(&fixture);
    assert_int_equal(virtio_pmem_create(&options, fixture.guest.memory, &pmem, &err), 0);
    race(&fixture, virtio_pmem_device(pmem));
    assert_true(virtio_pmem_end(pmem, 60000));
    guest_finish(&fixture.guest);
    virtio_pmem_destroy(pmem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rng),         cmocka_unit_test(console),
        cmocka_unit_test(balloon),     cmocka_unit_test(blk_sync),
        cmocka_unit_test(blk_threads), cmocka_unit_test(pmem),
    };

    return cmocka_run_group_tests_name("virtio devices and vCPUs", tests, NULL, NULL);
}
