/* SPDX-License-Identifier: Apache-2.0 */
/* Local APICs, an IOAPIC and the 8259 pair without a loop: time stands until a test moves
 * it, and what processors are told is written down. */
#ifndef HUSK_TESTS_DEVICE_APIC_FIXTURE_H
#define HUSK_TESTS_DEVICE_APIC_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/virtual_clock.h"
#include "device/ioapic_private.h"
#include "device/lapic_private.h"
#include "device/pic_private.h"

#define FIXTURE_CPUS 4
#define FIXTURE_EVENTS 4 /* kinds */

struct apic_fixture {
    struct virtual_clock clock;
    struct apic_bus apic_bus;
    struct lapic lapics[FIXTURE_CPUS];
    struct ioapic ioapic;
    struct pic pic;
    struct bus ports;
    struct bus mmio;

    unsigned events[FIXTURE_CPUS][FIXTURE_EVENTS];
    uint8_t startup_vector[FIXTURE_CPUS];
    uint64_t ns_until_tsc; /* what the processors answer */
    uint64_t asked_tsc;
};

/* cmocka fixtures: *state is a struct apic_fixture. All lapics but the first are as at
 * power-on; the first is enabled by software. */
int apic_setup(void **state);
int apic_teardown(void **state);

#define APIC_TEST(function)                                                              \
    cmocka_unit_test_setup_teardown(function, apic_setup, apic_teardown)

/* Offsets in the register page. */
enum {
    APIC_REG_ID = 0x20,
    APIC_REG_VERSION = 0x30,
    APIC_REG_TPR = 0x80,
    APIC_REG_APR = 0x90,
    APIC_REG_PPR = 0xa0,
    APIC_REG_EOI = 0xb0,
    APIC_REG_LDR = 0xd0,
    APIC_REG_DFR = 0xe0,
    APIC_REG_SVR = 0xf0,
    APIC_REG_ISR = 0x100,
    APIC_REG_TMR = 0x180,
    APIC_REG_IRR = 0x200,
    APIC_REG_ESR = 0x280,
    APIC_REG_ICR = 0x300,
    APIC_REG_ICR_HIGH = 0x310,
    APIC_REG_LVT_TIMER = 0x320,
    APIC_REG_LVT_THERMAL = 0x330,
    APIC_REG_LVT_PERFORMANCE = 0x340,
    APIC_REG_LVT_LINT0 = 0x350,
    APIC_REG_LVT_LINT1 = 0x360,
    APIC_REG_LVT_ERROR = 0x370,
    APIC_REG_TIMER_INITIAL = 0x380,
    APIC_REG_TIMER_CURRENT = 0x390,
    APIC_REG_TIMER_DIVIDE = 0x3e0,
};

/* Registers of vCPU `cpu`, in xAPIC mode; the access must be answered. */
uint32_t apic_read(struct apic_fixture *fixture, unsigned cpu, uint32_t offset);
void apic_write(struct apic_fixture *fixture, unsigned cpu, uint32_t offset,
                uint32_t value);

/* MSRs; false is #GP. */
bool apic_read_msr(struct apic_fixture *fixture, unsigned cpu, uint32_t index,
                   uint64_t *value);
bool apic_write_msr(struct apic_fixture *fixture, unsigned cpu, uint32_t index,
                    uint64_t value);
#define MSR_APIC_BASE 0x1b
#define MSR_TSC_DEADLINE 0x6e0
#define MSR_X2APIC(offset) (0x800 + (offset) / 16)

void apic_enable(struct apic_fixture *fixture, unsigned cpu);
void apic_enter_x2apic(struct apic_fixture *fixture, unsigned cpu);
int apic_acknowledge(struct apic_fixture *fixture, unsigned cpu);

/* Lets time pass and the timers that are due go off. */
void apic_pass_ns(struct apic_fixture *fixture, uint64_t ns);

/* Devices' ends, with the lock taken as irqchip.c does. */
void apic_set_ioapic_pin(struct apic_fixture *fixture, unsigned pin, bool level);
void apic_set_pic_line(struct apic_fixture *fixture, unsigned line, bool level);

#endif
