/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What test suites for x86 expect of a machine besides its debug exit, where QEMU's
 * pc-testdev has it (kvm-unit-tests: x86/emulator.c, realmode.c, ioapic.c, eventinj.c):
 *
 *   port 0xe0, 4 bytes      what was written is read back, in any width
 *   port 0xe4, 4 bytes      takes a page out of the guest for a moment; nothing to see
 *   port 0xe8, 1 byte       what was written is read back
 *   port 0x2000 + n         bit 0 is the level of interrupt line n
 *   MMIO 0xff000000, 64 KiB memory that no processor may access by itself
 */
#ifndef HUSK_DEVICE_TEST_DEVICE_PRIVATE_H
#define HUSK_DEVICE_TEST_DEVICE_PRIVATE_H

#include <pthread.h>
#include <stdint.h>

#include "device/bus.h"
#include "x86/layout.h"

struct test_device {
    void (*set_irq)(void *context, uint32_t line, bool level);
    void *irq_context;

    pthread_mutex_t lock; /* of all below */
    uint8_t latch[4];
    uint8_t byte_latch;
    uint32_t raised; /* lines that are up because of us */
    uint8_t window[LAYOUT_TEST_WINDOW_BYTES];
};

void test_device_init(struct test_device *test,
                      void (*set_irq)(void *context, uint32_t line, bool level),
                      void *irq_context);
int test_device_attach(struct test_device *test, struct bus *ports, struct bus *mmio,
                       struct error *err) MUST_CHECK;
void test_device_reset(struct test_device *test);

#endif
