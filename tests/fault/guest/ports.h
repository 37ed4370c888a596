/* SPDX-License-Identifier: Apache-2.0 */
/* I/O ports, for guests written in C. */
#ifndef HUSK_TESTS_FAULT_PORTS_H
#define HUSK_TESTS_FAULT_PORTS_H

#include <stdint.h>

static inline void port_write_8(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint8_t port_read_8(uint16_t port)
{
    uint8_t value;

    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static inline void port_write_32(uint16_t port, uint32_t value)
{
    __asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint32_t port_read_32(uint16_t port)
{
    uint32_t value;

    __asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

#endif
