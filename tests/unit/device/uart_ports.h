/* SPDX-License-Identifier: Apache-2.0 */
/* COM1's registers and bits as a guest names them (National PC16550D, section 8). */
#ifndef HUSK_TESTS_DEVICE_UART_PORTS_H
#define HUSK_TESTS_DEVICE_UART_PORTS_H

#define COM1_DATA 0x3f8
#define COM1_IER 0x3f9
#define COM1_IIR 0x3fa
#define COM1_FCR 0x3fa
#define COM1_LCR 0x3fb
#define COM1_MCR 0x3fc
#define COM1_LSR 0x3fd
#define COM1_MSR 0x3fe
#define COM1_SCR 0x3ff
#define COM1_IRQ 4

#define LCR_DLAB 0x80

#define MCR_DTR 0x01
#define MCR_RTS 0x02
#define MCR_OUT1 0x04
#define MCR_OUT2 0x08
#define MCR_LOOP 0x10

#define IER_RECEIVED 0x01
#define IER_TRANSMITTED 0x02
#define IER_LINE 0x04
#define IER_MODEM 0x08

#define FCR_ENABLE 0x01
#define FCR_CLEAR_RECEIVED 0x02
#define FCR_CLEAR_TRANSMITTED 0x04
#define FCR_TRIGGER_1 0x00
#define FCR_TRIGGER_4 0x40
#define FCR_TRIGGER_8 0x80
#define FCR_TRIGGER_14 0xc0

#endif
