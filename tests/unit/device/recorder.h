/* SPDX-License-Identifier: Apache-2.0 */
/* A chipset on two buses whose every effect on the outside is written down. */
#ifndef HUSK_TESTS_DEVICE_RECORDER_H
#define HUSK_TESTS_DEVICE_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/virtual_clock.h"
#include "device/bus.h"
#include "device/chipset.h"

#define RECORDER_TEXT_BYTES 256
#define RECORDER_LINES 24

struct recorder {
    struct virtual_clock clock;
    struct bus ports;
    struct bus mmio;
    struct chipset *chipset;

    char console[RECORDER_TEXT_BYTES]; /* NUL-terminated */
    size_t console_size;
    char debug_console[RECORDER_TEXT_BYTES];
    size_t debug_console_size;
    bool irq_levels[RECORDER_LINES];
    unsigned irq_changes[RECORDER_LINES];
    unsigned resets;
    unsigned power_offs;
    unsigned debug_exits;
    uint32_t debug_exit_value;
    unsigned rooms;
};

/* 64 MiB, serial, debug console, debug exit at 0x501. */
struct chipset_options recorder_options(struct recorder *recorder);

/* Buses and a chipset with these options, or those above. */
void recorder_create_with(struct recorder *recorder,
                          const struct chipset_options *options);
void recorder_create(struct recorder *recorder);
void recorder_destroy(struct recorder *recorder);

/* For devices that a test makes by itself. */
struct irq_line recorder_irq_line(struct recorder *recorder, uint32_t line);
struct machine_requests recorder_requests(struct recorder *recorder);

uint8_t port_in(struct recorder *recorder, uint16_t port);
void port_out(struct recorder *recorder, uint16_t port, uint8_t value);

/* cmocka fixtures: *state is a struct recorder. */
int recorder_setup(void **state);
int recorder_teardown(void **state);

#define RECORDED_TEST(function)                                                          \
    cmocka_unit_test_setup_teardown(function, recorder_setup, recorder_teardown)

#endif
