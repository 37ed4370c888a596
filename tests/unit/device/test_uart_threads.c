/* SPDX-License-Identifier: Apache-2.0 */
/* Two vCPUs and the console's thread at one serial port: nothing lost, none stuck. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/virtual_clock.h"
#include "device/chipset.h"
#include "uart_ports.h"

#define BYTES_EACH 2000
#define SENDERS 2

struct crowd {
    struct bus ports;
    struct bus mmio;
    struct chipset *chipset;
    _Atomic unsigned sent;
    _Atomic bool irq_level;
    _Atomic bool room;
    unsigned received;
    unsigned out_of_order;
};

static void count_sent(void *context, const uint8_t *bytes, size_t size)
{
    struct crowd *crowd = context;

    (void)bytes;
    atomic_fetch_add(&crowd->sent, (unsigned)size);
}

static void note_irq(void *context, uint32_t line, bool level)
{
    struct crowd *crowd = context;

    if (line == COM1_IRQ)
        atomic_store(&crowd->irq_level, level);
}

/* Room is noted and acted on by the feeding thread; calling back from here at once must
 * not deadlock either, so do that too. */
static void note_room(void *context)
{
    struct crowd *crowd = context;

    (void)chipset_console_input(crowd->chipset, NULL, 0);
    atomic_store(&crowd->room, true);
}

static void ignore_request(void *context, enum machine_request request)
{
    (void)context;
    (void)request;
}

static void ignore_exit(void *context, uint32_t value)
{
    (void)context;
    (void)value;
}

/* A vCPU that prints. */
static void *send_all(void *context)
{
    struct crowd *crowd = context;

    for (unsigned i = 0; i < BYTES_EACH; i++) {
        while (!(bus_read(&crowd->ports, COM1_LSR, 1) & 0x20))
            continue;
        bus_write(&crowd->ports, COM1_DATA, 1, 'x');
    }
    return NULL;
}

/* The console: feeds numbers, waits for room when it came away short. */
static void *feed_all(void *context)
{
    struct crowd *crowd = context;
    unsigned fed = 0;

    while (fed < BYTES_EACH) {
        uint8_t bytes[24];
        size_t count = 0;

        while (count < sizeof(bytes) && fed + count < BYTES_EACH) {
            bytes[count] = (uint8_t)(fed + count);
            count++;
        }
        size_t taken = chipset_console_input(crowd->chipset, bytes, count);
        fed += (unsigned)taken;
        while (taken < count && !atomic_exchange(&crowd->room, false))
            sched_yield();
    }
    return NULL;
}

/* A vCPU that serves receive interrupts. */
static void receive_all(struct crowd *crowd)
{
    while (crowd->received < BYTES_EACH) {
        if (!(bus_read(&crowd->ports, COM1_LSR, 1) & 0x01)) {
            sched_yield();
            continue;
        }
        if (bus_read(&crowd->ports, COM1_DATA, 1) != (uint8_t)crowd->received)
            crowd->out_of_order++;
        crowd->received++;
    }
}

static void loses_nothing_and_keeps_order(void **state)
{
    static struct crowd crowd;
    struct virtual_clock clock;
    struct chipset_options options = {
        .clock = &clock.clock,
        .memory_bytes = UINT64_C(1) << 26,
        .memory_end = UINT64_C(1) << 26,
        .serial = true,
        .console = {.write = count_sent, .context = &crowd},
        .set_irq = note_irq,
        .irq_context = &crowd,
        .requests = {.request = ignore_request, .debug_exit = ignore_exit},
    };
    struct error err = ERROR_NONE;
    pthread_t senders[SENDERS];
    pthread_t feeder;

    (void)state;
    virtual_clock_init(&clock);
    bus_init(&crowd.ports, "port");
    bus_init(&crowd.mmio, "MMIO");
    assert_int_equal(
        chipset_create(&options, &crowd.ports, &crowd.mmio, &crowd.chipset, &err), 0);
    chipset_on_console_room(crowd.chipset, note_room, &crowd);
    bus_write(&crowd.ports, COM1_FCR, 1, FCR_ENABLE);
    bus_write(&crowd.ports, COM1_MCR, 1, MCR_OUT2);
    bus_write(&crowd.ports, COM1_IER, 1, IER_RECEIVED);

    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_create(&senders[i], NULL, send_all, &crowd), 0);
    assert_int_equal(pthread_create(&feeder, NULL, feed_all, &crowd), 0);
    receive_all(&crowd);
    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_join(senders[i], NULL), 0);
    assert_int_equal(pthread_join(feeder, NULL), 0);

    assert_int_equal(atomic_load(&crowd.sent), SENDERS * BYTES_EACH);
    assert_int_equal(crowd.received, BYTES_EACH);
    assert_int_equal(crowd.out_of_order, 0);
    assert_false(atomic_load(&crowd.irq_level)); /* all read: the last level is down */
    chipset_destroy(crowd.chipset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loses_nothing_and_keeps_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
