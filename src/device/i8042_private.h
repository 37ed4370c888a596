/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PC's keyboard controller (ports 0x60 and 0x64) with nothing plugged in, and port
 * 0x92, the PS/2 short cut to two of its outputs: A20 and the processor reset.
 * Sources: IBM PS/2 Hardware Interface Technical Reference (1988), "Keyboard and
 * Auxiliary Device Controller" and "System Control Port A"; Intel UPI-41/42 manual.
 *
 * Guests need it to reset the machine. It answers the commands by which drivers look for
 * keyboards, saying that there is none, so that nobody waits for a time-out. A20 is
 * always open: the bit is kept and read back, no address is masked.
 */
#ifndef HUSK_DEVICE_I8042_PRIVATE_H
#define HUSK_DEVICE_I8042_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/bus.h"

struct i8042 {
    struct irq_line irq; /* of the keyboard; set before the first vCPU runs */
    struct machine_requests requests;

    pthread_mutex_t lock; /* guards what follows */
    uint8_t configuration;
    uint8_t outputs; /* the output port: reset line, A20 */
    uint8_t status;
    uint8_t answer;          /* the output buffer */
    uint8_t pending_command; /* takes its operand from port 0x60; 0: none */
    bool irq_level;
};

void i8042_init(struct i8042 *i8042, struct irq_line irq,
                const struct machine_requests *requests);
int i8042_attach(struct i8042 *i8042, struct bus *ports, struct error *err) MUST_CHECK;
void i8042_reset(struct i8042 *i8042); /* no vCPU runs */

#endif
