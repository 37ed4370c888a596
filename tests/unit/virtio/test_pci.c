/* SPDX-License-Identifier: Apache-2.0 */
/* The modern PCI transport, and the life of a device as a driver sees it, with a device
 * that does nothing but note what it is told. */
#include "pci_fixture.h"

#include <poll.h>
#include <sys/eventfd.h>

#define QUEUES 2
#define FEATURE_OWN (UINT64_C(1) << 5)
#define MODERN VIRTIO_F_VERSION_1

struct fixture {
    struct guest guest;
    struct virtio_device device;
    struct virtio_chain chain;
    unsigned starts;
    unsigned stops;
    unsigned stopped_queue;
    uint8_t config[8];
};

static void note_start(void *context)
{
    struct fixture *fixture = context;

    fixture->starts++;
}

static void note_stop(void *context, unsigned queue)
{
    struct fixture *fixture = context;

    fixture->stops++;
    fixture->stopped_queue = queue;
}

static uint32_t config_read(void *context, uint32_t offset, unsigned size)
{
    struct fixture *fixture = context;
    uint32_t value = 0;

    memcpy(&value, fixture->config + offset, size);
    return value;
}

static void config_write(void *context, uint32_t offset, unsigned size, uint32_t value)
{
    struct fixture *fixture = context;

    memcpy(fixture->config + offset, &value, size);
}

static const struct virtio_ops ops = {
    .name = "test device",
    .device_id = 42,
    .features = FEATURE_OWN,
    .queue_count = QUEUES,
    .config_bytes = 8,
    .start = note_start,
    .stop = note_stop,
    .config_read = config_read,
    .config_write = config_write,
};

static int setup(void **state)
{
    static struct fixture fixture;
    struct error err = ERROR_NONE;

    fixture = (struct fixture){.config = {1, 2, 3, 4, 5, 6, 7, 8}};
    guest_init(&fixture.guest);
    assert_int_equal(
        virtio_device_init(&fixture.device, &ops, &fixture, fixture.guest.memory, &err),
        0);
    guest_attach(&fixture.guest, &fixture.device, 0x010000);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    guest_finish(&fixture->guest);
    virtio_device_finish(&fixture->device);
    return 0;
}

static bool is_notified(struct fixture *fixture, unsigned queue)
{
    struct pollfd fd = {.fd = fixture->device.queues[queue].notify_fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

/* One chain through queue 0, as a worker would do it. */
static void serve_one(struct fixture *fixture)
{
    put_descriptor(fixture->guest.memory, RING_DESCRIPTORS, 0, 0x10000, 4, WRITE, 0);
    make_available(fixture->guest.memory, 0);
    assert_true(virtio_queue_take(&fixture->device.queues[0].ring, &fixture->chain));
    virtio_queue_give(&fixture->device.queues[0].ring, &(struct virtio_chain){.head = 0},
                      4);
    virtio_device_interrupt(&fixture->device, 0);
}

/* ---- what there is ---- */

static void function_says_what_it_is(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    assert_int_equal(guest_config_read(guest, 0x00, 4), 0x106a1af4);
    assert_int_equal(guest_config_read(guest, 0x08, 4), 0x01000001);
    assert_int_equal(guest_config_read(guest, 0x2c, 4), 0x11001af4);
    assert_int_equal(guest_config_read(guest, 0x3d, 1), 1);
}

static void capabilities_say_where_the_parts_are(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;
    uint32_t at = guest_config_read(guest, 0x34, 1);
    unsigned types = 0;

    assert_int_equal(at, 0x40);
    assert_int_equal(guest_config_read(guest, at, 4) & 0xff, 0x11); /* MSI-X */
    assert_int_equal(guest_config_read(guest, at + 2, 2), QUEUES);  /* and one more */
    for (at = guest_config_read(guest, at + 1, 1); at != 0;
         at = guest_config_read(guest, at + 1, 1)) {
        static const struct {
            uint32_t offset, length, size;
        } parts[] = {
            [1] = {0x0000, 0x3c, 16}, [2] = {0x3000, 4 * QUEUES, 20},
            [3] = {0x1000, 1, 16},    [4] = {0x2000, 8, 16},
            [5] = {0, 0, 20},
        };
        uint32_t type = guest_config_read(guest, at + 3, 1);

        assert_in_range(type, 1, 5);
        types |= 1u << type;
        assert_int_equal(guest_config_read(guest, at, 1), 0x09);
        assert_int_equal(guest_config_read(guest, at + 2, 1), parts[type].size);
        assert_int_equal(guest_config_read(guest, at + 4, 4), 0); /* BAR 0 */
        assert_int_equal(guest_config_read(guest, at + 8, 4), parts[type].offset);
        assert_int_equal(guest_config_read(guest, at + 12, 4), parts[type].length);
        if (type == 2)
            assert_int_equal(guest_config_read(guest, at + 16, 4), 4); /* multiplier */
    }
    assert_int_equal(types, 0x3e);
}

static void registers_have_one_width(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    assert_int_equal(guest_read(guest, QUEUE_COUNT, 2), QUEUES);
    assert_int_equal(guest_read(guest, QUEUE_COUNT, 1), 0xff);
    assert_int_equal(guest_read(guest, CONFIG_VECTOR, 4), 0xffffffff);
    guest_write(guest, QUEUE_SELECT, 1, 1);
    assert_int_equal(guest_read(guest, QUEUE_SELECT, 2), 0);
    assert_int_equal(guest_read(guest, BAR + 0x3c, 4), 0xffffffff); /* behind the last */
    assert_int_equal(guest_read(guest, BAR + 0x3fc, 4), 0xffffffff);
    assert_int_equal(guest_read(guest, NOTIFY, 2), 0);
}

static void queue_that_is_not_there_has_no_size(void **state)
{
    static const uint16_t queues[] = {QUEUES, 16, 0xffff};
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
        guest_place_queue(guest, queues[i]);
        assert_int_equal(guest_read(guest, QUEUE_SIZE, 2), 0);
        assert_int_equal(guest_read(guest, QUEUE_ENABLE, 2), 0);
        assert_int_equal(guest_read(guest, QUEUE_DESCRIPTORS, 4), 0);
        guest_write(guest, QUEUE_VECTOR, 2, 0);
        assert_int_equal(guest_read(guest, QUEUE_VECTOR, 2), 0xffff);
        guest_write(guest, QUEUE_RESET, 2, 1);
        guest_write(guest, NOTIFY + 4u * queues[i] % 0x1000, 2, queues[i]);
    }
    assert_int_equal(fixture->stops, 0);
    guest_write(guest, NOTIFY + 0xffc, 2, 0);
}

/* ---- features and status ---- */

static void features_are_offered_in_two_halves(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    assert_int_equal(guest_read(guest, DEVICE_FEATURE, 4), 0x30000020);
    guest_write(guest, DEVICE_FEATURE_SELECT, 4, 1);
    assert_int_equal(guest_read(guest, DEVICE_FEATURE, 4), 0x00000101);
    guest_write(guest, DEVICE_FEATURE_SELECT, 4, 2);
    assert_int_equal(guest_read(guest, DEVICE_FEATURE, 4), 0);
    guest_write(guest, DEVICE_FEATURE_SELECT, 4, 0xffffffff);
    assert_int_equal(guest_read(guest, DEVICE_FEATURE, 4), 0);
}

static void features_that_are_not_offered_are_refused(void **state)
{
    static const uint64_t wrong[] = {0, FEATURE_OWN, MODERN | 1,
                                     MODERN | UINT64_C(1) << 63};
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        guest_set_features(guest, wrong[i]);
        assert_int_equal(guest_read(guest, STATUS, 1), 0x03);
        guest_write(guest, STATUS, 1, 0x07); /* nor does it start without */
        assert_int_equal(guest_read(guest, STATUS, 1), 0x03);
    }
    assert_int_equal(fixture->starts, 0);
    guest_set_features(guest, MODERN | FEATURE_OWN);
    assert_int_equal(guest_read(guest, STATUS, 1), 0x0b);
    assert_true(virtio_device_has_feature(&fixture->device, FEATURE_OWN));
}

static void features_are_fixed_once_they_are_agreed_on(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    guest_set_features(guest, MODERN);
    guest_write(guest, DRIVER_FEATURE_SELECT, 4, 0);
    guest_write(guest, DRIVER_FEATURE, 4, 0x20);
    assert_int_equal(guest_read(guest, DRIVER_FEATURE, 4), 0);
    guest_write(guest, DRIVER_FEATURE_SELECT, 4, 2);
    guest_write(guest, DRIVER_FEATURE, 4, 0x20);
    assert_int_equal(guest_read(guest, DRIVER_FEATURE, 4), 0);
}

static void driver_starts_and_resets_the_device(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    assert_false(virtio_device_is_live(&fixture->device));
    guest_start_driver(guest, MODERN);
    assert_int_equal(fixture->starts, 1);
    assert_true(virtio_device_is_live(&fixture->device));
    guest_write(guest, STATUS, 1, 0x0f);
    assert_int_equal(fixture->starts, 1);
    fixture->stops = 0;
    guest_write(guest, NOTIFY, 2, 0);
    guest_write(guest, STATUS, 1, 0);
    assert_int_equal(fixture->stops, 1);
    assert_int_equal(fixture->stopped_queue, VIRTIO_ALL_QUEUES);
    assert_int_equal(guest_read(guest, STATUS, 1), 0);
    assert_int_equal(guest_read(guest, QUEUE_ENABLE, 2), 0);
    assert_int_equal(guest_read(guest, QUEUE_SIZE, 2), VIRTIO_QUEUE_MAX_SIZE);
    assert_int_equal(guest_read(guest, QUEUE_DESCRIPTORS, 4), 0);
    assert_false(is_notified(fixture, 0));
    assert_false(virtio_device_is_live(&fixture->device));
}

static void device_without_access_to_memory_is_not_live(void **state)
{
    struct fixture *fixture = *state;

    guest_start_driver(&fixture->guest, MODERN);
    guest_config_write(&fixture->guest, 0x04, 2, 0x0002);
    assert_false(virtio_device_is_live(&fixture->device));
}

static void reset_of_the_machine_resets_all(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    guest_start_driver(guest, MODERN);
    serve_one(fixture);
    assert_true(guest->level);
    pci_bus_reset(&guest->bus);
    assert_false(guest->level);
    assert_int_equal(guest_config_read(guest, 0x04, 2), 0x0002);
    assert_int_equal(guest_read(guest, STATUS, 1), 0);
    assert_int_equal(guest_read(guest, ISR, 1), 0);
}

/* ---- queues ---- */

static void queue_cannot_be_moved_while_it_is_enabled(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    guest_start_driver(guest, MODERN);
    assert_int_equal(guest_read(guest, QUEUE_ENABLE, 2), 1);
    guest_write(guest, QUEUE_SIZE, 2, 4);
    guest_write(guest, QUEUE_USED + 4, 4, 1);
    assert_int_equal(guest_read(guest, QUEUE_SIZE, 2), RING_SIZE);
    assert_int_equal(guest_read(guest, QUEUE_USED + 4, 4), 0);
    assert_int_equal(guest_read(guest, QUEUE_USED, 4), RING_USED);
    guest_write(guest, QUEUE_SELECT, 2, 1);
    assert_int_equal(guest_read(guest, QUEUE_ENABLE, 2), 0);
    assert_int_equal(guest_read(guest, QUEUE_NOTIFY_OFFSET, 2), 1);
}

static void queue_needs_features_first(void **state)
{
    struct fixture *fixture = *state;

    guest_place_queue(&fixture->guest, 0);
    assert_int_equal(guest_read(&fixture->guest, QUEUE_ENABLE, 2), 0);
}

static void notification_reaches_its_queue_only(void **state)
{
    struct fixture *fixture = *state;

    guest_write(&fixture->guest, NOTIFY + 4, 2, 1);
    assert_false(is_notified(fixture, 0));
    assert_true(is_notified(fixture, 1));
    virtio_device_accept_notification(&fixture->device, 1);
    assert_false(is_notified(fixture, 1));
    virtio_device_accept_notification(&fixture->device, 1); /* none: does not wait */
}

/* Where the doorbell that was attached last is, and what it rings. */
static struct {
    uint64_t address;
    int fd;
} doorbell;

static bool note_doorbell(void *context, uint64_t address, int fd)
{
    (void)context;
    doorbell.address = address;
    doorbell.fd = fd;
    return true;
}

static void ignore_doorbell(void *context, uint64_t address, int fd)
{
    (void)context;
    (void)address;
    (void)fd;
}

static void notification_has_an_address_that_others_may_ring(void **state)
{
    struct fixture *fixture = *state;

    fixture->guest.bus.wires.attach_doorbell = note_doorbell;
    fixture->guest.bus.wires.detach_doorbell = ignore_doorbell;
    guest_write(&fixture->guest, NOTIFY + 4, 2, 1);
    assert_int_equal(doorbell.address, NOTIFY + 4);
    assert_int_equal(doorbell.fd, fixture->device.queues[1].notify_fd);
    doorbell.address = 0;
    guest_write(&fixture->guest, NOTIFY + 8, 2, 2); /* there is no third queue */
    assert_int_equal(doorbell.address, 0);
}

static void notifications_of_others_are_counted(void **state)
{
    struct fixture *fixture = *state;
    struct virtio_device *device = &fixture->device;

    guest_write(&fixture->guest, NOTIFY, 2, 0);
    virtio_device_accept_notification(device, 0);
    assert_int_equal(virtio_device_foreign_notifications(device), 0);
    assert_int_equal(eventfd_write(device->queues[0].notify_fd, 1), 0);
    assert_int_equal(eventfd_write(device->queues[0].notify_fd, 1), 0);
    guest_write(&fixture->guest, NOTIFY, 2, 0);
    virtio_device_accept_notification(device, 0);
    assert_int_equal(virtio_device_foreign_notifications(device), 2);
    guest_write(&fixture->guest, NOTIFY, 2, 0); /* on its way */
    assert_true(virtio_device_foreign_notifications(device) <= 2);
}

static void queue_can_be_reset_alone(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    guest_start_driver(guest, MODERN | VIRTIO_F_RING_RESET);
    fixture->stops = 0;
    guest_write(guest, QUEUE_RESET, 2, 1);
    assert_int_equal(fixture->stops, 1);
    assert_int_equal(fixture->stopped_queue, 0);
    assert_int_equal(guest_read(guest, QUEUE_RESET, 2), 0);
    assert_int_equal(guest_read(guest, QUEUE_ENABLE, 2), 0);
    assert_int_equal(guest_read(guest, STATUS, 1), 0x0f);
    guest_place_queue(guest, 0);
    assert_int_equal(guest_read(guest, QUEUE_ENABLE, 2), 1);
    assert_int_equal(fixture->starts, 2);
}

static void queue_reset_must_be_negotiated(void **state)
{
    struct fixture *fixture = *state;

    guest_start_driver(&fixture->guest, MODERN);
    fixture->stops = 0;
    guest_write(&fixture->guest, QUEUE_RESET, 2, 1);
    assert_int_equal(fixture->stops, 0);
    assert_int_equal(guest_read(&fixture->guest, QUEUE_ENABLE, 2), 1);
}

static void broken_ring_wants_a_reset(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    guest_start_driver(guest, MODERN);
    make_available(guest->memory, RING_SIZE);
    assert_false(virtio_queue_take(&fixture->device.queues[0].ring, &fixture->chain));
    virtio_device_check_queue(&fixture->device, 0);
    virtio_device_check_queue(&fixture->device, 0);
    assert_int_equal(fixture->device.broken_rings, 1);
    assert_int_equal(guest_read(guest, STATUS, 1), 0x4f);
    assert_false(virtio_device_is_live(&fixture->device));
    assert_true(guest->level);
    assert_int_equal(guest_read(guest, ISR, 1), 2); /* a change of configuration */
    guest_write(guest, STATUS, 1, 0x0f);
    assert_int_equal(guest_read(guest, STATUS, 1), 0x4f);
    put16(guest->memory, RING_AVAILABLE + 2, 0);
    guest_start_driver(guest, MODERN);
    assert_true(virtio_device_is_live(&fixture->device));
    serve_one(fixture);
}

static void ring_outside_memory_wants_a_reset(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    guest_set_features(guest, MODERN);
    guest_write(guest, QUEUE_USED, 4, 0x80000000);
    guest_write(guest, QUEUE_ENABLE, 2, 1);
    assert_int_equal(guest_read(guest, QUEUE_ENABLE, 2), 0);
    assert_int_equal(guest_read(guest, STATUS, 1), 0x4b);
    assert_false(guest->level); /* the driver is not ready to be told */
    assert_int_equal(fixture->device.broken_rings, 1);
}

/* ---- interrupts ---- */

static void reading_the_isr_takes_the_line_down(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    guest_start_driver(guest, MODERN);
    serve_one(fixture);
    assert_true(guest->level);
    virtio_device_config_changed(&fixture->device);
    assert_int_equal(guest_read(guest, ISR, 1), 3);
    assert_false(guest->level);
    assert_int_equal(guest_read(guest, ISR, 1), 0);
}

static void enable_msix(struct guest *guest)
{
    guest_config_write(guest, 0x42, 2, 0x8000);
    for (uint32_t vector = 0; vector < QUEUES + 1; vector++) {
        const uint64_t entry = MSIX + UINT64_C(16) * vector;

        guest_write(guest, entry, 4, 0xfee00000);
        guest_write(guest, entry + 8, 4, 0x30 + vector);
        guest_write(guest, entry + 12, 4, 0);
    }
}

static void each_queue_has_the_vector_that_it_was_given(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    guest_start_driver(guest, MODERN);
    enable_msix(guest);
    guest_write(guest, CONFIG_VECTOR, 2, 0);
    guest_write(guest, QUEUE_VECTOR, 2, 2);
    serve_one(fixture);
    assert_int_equal(guest->messages, 1);
    assert_int_equal(guest->message_data, 0x32);
    virtio_device_config_changed(&fixture->device);
    assert_int_equal(guest->messages, 2);
    assert_int_equal(guest->message_data, 0x30);
    assert_false(guest->level);
    assert_int_equal(guest_read(guest, ISR, 1), 0);
}

static void vector_that_is_not_there_reads_back_as_none(void **state)
{
    static const uint16_t vectors[] = {QUEUES + 1, 0x7ff, 0xfffe, 0xffff};
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    guest_start_driver(guest, MODERN);
    enable_msix(guest);
    assert_int_equal(guest_read(guest, CONFIG_VECTOR, 2), 0xffff);
    assert_int_equal(guest_read(guest, QUEUE_VECTOR, 2), 0xffff);
    for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
        guest_write(guest, CONFIG_VECTOR, 2, QUEUES);
        assert_int_equal(guest_read(guest, CONFIG_VECTOR, 2), QUEUES);
        guest_write(guest, CONFIG_VECTOR, 2, vectors[i]);
        assert_int_equal(guest_read(guest, CONFIG_VECTOR, 2), 0xffff);
        guest_write(guest, QUEUE_VECTOR, 2, QUEUES);
        guest_write(guest, QUEUE_VECTOR, 2, vectors[i]);
        assert_int_equal(guest_read(guest, QUEUE_VECTOR, 2), 0xffff);
    }
    serve_one(fixture);
    assert_int_equal(guest->messages, 0);
    assert_false(guest->level);
}

/* ---- configuration space ---- */

static void configuration_has_its_bytes_and_no_more(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    assert_int_equal(guest_read(guest, CONFIG, 4), 0x04030201);
    assert_int_equal(guest_read(guest, CONFIG + 7, 1), 0x08);
    assert_int_equal(guest_read(guest, CONFIG + 7, 2), 0xffff);
    assert_int_equal(guest_read(guest, CONFIG + 8, 4), 0xffffffff);
    guest_write(guest, CONFIG + 2, 2, 0x1122);
    assert_int_equal(guest_read(guest, CONFIG, 4), 0x11220201);
    guest_write(guest, CONFIG + 8, 1, 0xff);
}

static void generation_counts_changes(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;

    assert_int_equal(guest_read(guest, GENERATION, 1), 0);
    virtio_device_config_changed(&fixture->device);
    assert_int_equal(guest_read(guest, GENERATION, 1), 1);
    assert_false(guest->level); /* nobody listens yet */
}

static uint32_t find_window(struct guest *guest)
{
    uint32_t at = guest_config_read(guest, 0x34, 1);

    while (guest_config_read(guest, at, 1) != 0x09 ||
           guest_config_read(guest, at + 3, 1) != 5)
        at = guest_config_read(guest, at + 1, 1);
    return at;
}

static void aim(struct guest *guest, uint8_t bar, uint32_t offset, uint32_t length)
{
    uint32_t window = find_window(guest);

    guest_config_write(guest, window + 4, 1, bar);
    guest_config_write(guest, window + 8, 4, offset);
    guest_config_write(guest, window + 12, 4, length);
}

static void window_in_configuration_space_shows_the_bars(void **state)
{
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;
    uint32_t data = find_window(guest) + 16;

    guest_config_write(guest, 0x04, 2, 0); /* works without memory decoding */
    aim(guest, 0, 0x12, 2);
    assert_int_equal(guest_config_read(guest, data, 2), QUEUES);
    aim(guest, 0, 0x14, 1);
    guest_config_write(guest, data, 1, 0x01);
    assert_int_equal(guest_config_read(guest, data, 1), 0x01);
    aim(guest, 1, 8, 4);
    guest_config_write(guest, data, 4, 0x12345678);
    assert_int_equal(guest_config_read(guest, data, 4), 0x12345678);
}

static void window_that_is_set_badly_shows_nothing(void **state)
{
    static const struct {
        uint8_t bar;
        uint32_t offset;
        uint32_t length;
    } cases[] = {{2, 0, 4},      {6, 0, 4},          {0xff, 0, 4},      {0, 0, 0},
                 {0, 0, 3},      {0, 0, 8},          {0, 0x2001, 2},    {0, 0x4000, 4},
                 {1, 0x1000, 1}, {0, 0xfffffffc, 4}, {0, 0, 0xffffffff}};
    struct fixture *fixture = *state;
    struct guest *guest = &fixture->guest;
    uint32_t data = find_window(guest) + 16;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        aim(guest, cases[i].bar, cases[i].offset, cases[i].length);
        assert_int_equal(guest_config_read(guest, data, 4), 0xffffffff);
        guest_config_write(guest, data, 4, 1);
    }
}

#define DEVICE_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(function_says_what_it_is),
        DEVICE_TEST(capabilities_say_where_the_parts_are),
        DEVICE_TEST(registers_have_one_width),
        DEVICE_TEST(queue_that_is_not_there_has_no_size),
        DEVICE_TEST(features_are_offered_in_two_halves),
        DEVICE_TEST(features_that_are_not_offered_are_refused),
        DEVICE_TEST(features_are_fixed_once_they_are_agreed_on),
        DEVICE_TEST(driver_starts_and_resets_the_device),
        DEVICE_TEST(device_without_access_to_memory_is_not_live),
        DEVICE_TEST(reset_of_the_machine_resets_all),
        DEVICE_TEST(queue_cannot_be_moved_while_it_is_enabled),
        DEVICE_TEST(queue_needs_features_first),
        DEVICE_TEST(notification_reaches_its_queue_only),
        DEVICE_TEST(notification_has_an_address_that_others_may_ring),
        DEVICE_TEST(notifications_of_others_are_counted),
        DEVICE_TEST(queue_can_be_reset_alone),
        DEVICE_TEST(queue_reset_must_be_negotiated),
        DEVICE_TEST(broken_ring_wants_a_reset),
        DEVICE_TEST(ring_outside_memory_wants_a_reset),
        DEVICE_TEST(reading_the_isr_takes_the_line_down),
        DEVICE_TEST(each_queue_has_the_vector_that_it_was_given),
        DEVICE_TEST(vector_that_is_not_there_reads_back_as_none),
        DEVICE_TEST(configuration_has_its_bytes_and_no_more),
        DEVICE_TEST(generation_counts_changes),
        DEVICE_TEST(window_in_configuration_space_shows_the_bars),
        DEVICE_TEST(window_that_is_set_badly_shows_nothing),
    };

    return cmocka_run_group_tests_name("virtio over PCI", tests, NULL, NULL);
}
