/* SPDX-License-Identifier: Apache-2.0 */
/* COM1, polled; see console.h. */
#include "console.h"

#include "ports.h"

/* Data, and the line status with two of its bits (16550, 8.6). */
#define SERIAL_DATA 0x3f8
#define SERIAL_STATUS 0x3fd
#define SERIAL_HAS_DATA 0x01
#define SERIAL_CAN_TRANSMIT 0x20

static void wait_for(uint8_t status)
{
    while ((port_read_8(SERIAL_STATUS) & status) == 0)
        __builtin_ia32_pause();
}

void console_print(const char *text)
{
    for (; *text != '\0'; text++) {
        wait_for(SERIAL_CAN_TRANSMIT);
        port_write_8(SERIAL_DATA, (uint8_t)*text);
    }
}

void console_print_number(uint64_t number)
{
    char digits[21]; /* 2^64 has 20 */
    char *first = &digits[20];

    *first = '\0';
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    console_print(first);
}

void console_wait(void)
{
    wait_for(SERIAL_HAS_DATA);
    (void)port_read_8(SERIAL_DATA);
}
