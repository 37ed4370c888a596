/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 16550A serial port: 8 byte registers, FIFOs of 16 bytes, one interrupt line.
 * Source: National Semiconductor, PC16550D data sheet (June 1995), section 8.
 *
 * The wire has no speed. A character leaves in the moment it is written, so the
 * transmitter is always empty and there is no transmit FIFO to speak of. Four character
 * times after a reception are over at once too, so the "character timeout" interrupt is
 * due whenever the receive FIFO holds something below its trigger level.
 *
 * A modem is always there: CTS, DSR and DCD are on.
 */
#ifndef HUSK_DEVICE_UART_PRIVATE_H
#define HUSK_DEVICE_UART_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/bus.h"
#include "device/chipset.h"

#define UART_PORTS 8
#define UART_FIFO_BYTES 16

struct uart_character {
    uint8_t byte;
    uint8_t errors; /* line status bits that come with it */
};

struct uart {
    /* Set before the first vCPU runs. */
    struct irq_line irq;
    bool connected; /* false: what is sent and what comes in is dropped */
    struct byte_sink output;
    void (*drained)(void *context); /* or NULL */
    void *drained_context;

    pthread_mutex_t lock; /* guards what follows, up to the counters */
    uint8_t interrupt_enable;
    uint8_t fifo_control;
    uint8_t line_control;
    uint8_t modem_control;
    uint8_t scratch;
    uint8_t divisor_low;
    uint8_t divisor_high;
    uint8_t line_errors;     /* overrun, break: until line status is read */
    uint8_t modem_changes;   /* delta bits: until modem status is read */
    bool transmit_interrupt; /* "transmitter empty" not yet acknowledged */
    bool irq_level;
    struct uart_character received[UART_FIFO_BYTES]; /* a ring */
    unsigned received_first;
    unsigned received_count;
    unsigned status_polls; /* line status reads since the last register write */
    bool sender_waits;     /* an input was short and `drained` not yet called */

    _Atomic uint64_t bytes_out; /* statistics, relaxed */
    _Atomic uint64_t bytes_in;
};

/* `output` NULL: the port is connected to nothing. */
void uart_init(struct uart *uart, struct irq_line irq, const struct byte_sink *output);
int uart_attach(struct uart *uart, struct bus *ports, uint16_t port,
                struct error *err) MUST_CHECK;
void uart_reset(struct uart *uart); /* no vCPU runs */

/* Any thread. Takes what there is room for. Until the guest listens there is none, since
 * drivers empty the FIFO while they set the port up and early input would be lost. A
 * guest listens when receive interrupts can reach a processor, or when it polls the line
 * status without sending. */
size_t uart_input(struct uart *uart, const uint8_t *bytes, size_t size);

/* A break condition arrives, whether or not the guest listens. Any thread. */
void uart_input_break(struct uart *uart);

#endif
