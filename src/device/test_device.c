/* SPDX-License-Identifier: Apache-2.0 */
/* Ports and memory for test suites; see test_device_private.h. */
#include "device/test_device_private.h"

#include <string.h>

#include "base/bytes.h"

#define LATCH_BYTES 4
#define FLUSH_BYTES 4
#define LINE_LEVEL 0x1

/* ---- memory that is written and read back
 * ------------------------------------------------------- */

static uint64_t load(struct test_device *test, const uint8_t *bytes, unsigned size)
{
    uint8_t value[sizeof(uint64_t)] = {0};

    pthread_mutex_lock(&test->lock);
    memcpy(value, bytes, size);
    pthread_mutex_unlock(&test->lock);
    return load_le64(value);
}

static void store(struct test_device *test, uint8_t *bytes, unsigned size, uint64_t value)
{
    uint8_t image[sizeof(uint64_t)];

    store_le64(image, value);
    pthread_mutex_lock(&test->lock);
    memcpy(bytes, image, size);
    pthread_mutex_unlock(&test->lock);
}

static uint64_t read_latch(void *device, uint64_t offset, unsigned size)
{
    struct test_device *test = device;

    return load(test, test->latch + offset, size);
}

static void write_latch(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct test_device *test = device;

    store(test, test->latch + offset, size, value);
}

static uint64_t read_byte_latch(void *device, uint64_t offset, unsigned size)
{
    struct test_device *test = device;

    (void)offset;
    return load(test, &test->byte_latch, size);
}

static void write_byte_latch(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct test_device *test = device;

    (void)offset;
    store(test, &test->byte_latch, size, value);
}

static uint64_t read_window(void *device, uint64_t offset, unsigned size)
{
    struct test_device *test = device;

    return load(test, test->window + offset, size);
}

static void write_window(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct test_device *test = device;

    store(test, test->window + offset, size, value);
}

/* ---- ports that only take
 * ----------------------------------------------------------------------- */

static uint64_t read_nothing(void *device, uint64_t offset, unsigned size)
{
    (void)device;
    (void)offset;
    (void)size;
    return UINT64_MAX;
}

/* The page would be gone and back before the guest's next instruction. */
static void write_flush(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    (void)device;
    (void)offset;
    (void)size;
    (void)value;
}

static void set_line(struct test_device *test, uint32_t line, bool level)
{
    uint32_t bit = UINT32_C(1) << line;

    test->raised = level ? test->raised | bit : test->raised & ~bit;
    test->set_irq(test->irq_context, line, level);
}

static void write_line(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct test_device *test = device;

    (void)size;
    pthread_mutex_lock(&test->lock);
    set_line(test, (uint32_t)offset, (value & LINE_LEVEL) != 0);
    pthread_mutex_unlock(&test->lock);
}

/* ---- life
 * ------------------------------------------------------------------------------------ */

static const struct bus_ops latch_ops = {
    .name = "test device's latch",
    .width_bytes = LATCH_BYTES,
    .read = read_latch,
    .write = write_latch,
};

static const struct bus_ops flush_ops = {
    .name = "test device's flush port",
    .width_bytes = FLUSH_BYTES,
    .read = read_nothing,
    .write = write_flush,
};

static const struct bus_ops byte_latch_ops = {
    .name = "test device's byte latch",
    .width_bytes = 1,
    .read = read_byte_latch,
    .write = write_byte_latch,
};

static const struct bus_ops lines_ops = {
    .name = "test device's interrupt lines",
    .width_bytes = 1,
    .read = read_nothing,
    .write = write_line,
};

static const struct bus_ops window_ops = {
    .name = "test device's memory",
    .width_bytes = sizeof(uint64_t),
    .read = read_window,
    .write = write_window,
};

void test_device_init(struct test_device *test,
                      void (*set_irq)(void *context, uint32_t line, bool level),
                      void *irq_context)
{
    *test = (struct test_device){
        .set_irq = set_irq,
        .irq_context = irq_context,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
}

int test_device_attach(struct test_device *test, struct bus *ports, struct bus *mmio,
                       struct error *err)
{
    int code =
        bus_attach(ports, LAYOUT_PORT_TEST_LATCH, LATCH_BYTES, &latch_ops, test, err);

    if (code == 0)
        code =
            bus_attach(ports, LAYOUT_PORT_TEST_FLUSH, FLUSH_BYTES, &flush_ops, test, err);
    if (code == 0)
        code = bus_attach(ports, LAYOUT_PORT_TEST_BYTE, 1, &byte_latch_ops, test, err);
    if (code == 0)
        code = bus_attach(ports, LAYOUT_PORT_TEST_LINES, LAYOUT_IOAPIC_PINS, &lines_ops,
                          test, err);
    if (code == 0)
        code = bus_attach(mmio, LAYOUT_TEST_WINDOW, LAYOUT_TEST_WINDOW_BYTES, &window_ops,
                          test, err);
    return code;
}

void test_device_reset(struct test_device *test)
{
    pthread_mutex_lock(&test->lock);
    memset(test->latch, 0, sizeof(test->latch));
    test->byte_latch = 0;
    memset(test->window, 0, sizeof(test->window));
    for (uint32_t line = 0; line < LAYOUT_IOAPIC_PINS; line++)
        if ((test->raised >> line & 1) != 0)
            set_line(test, line, false);
    pthread_mutex_unlock(&test->lock);
}
