/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bus: address ranges and who answers there. A machine has two, ports and MMIO.
 *
 * Devices speak this and interrupt lines only; they know no accelerator and no VM.
 *
 * Threads: devices are attached before the first vCPU runs and detached after the last;
 * bus_read and bus_write come from any vCPU thread, so each device takes its own lock.
 */
#ifndef HUSK_DEVICE_BUS_H
#define HUSK_DEVICE_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* `offset` is from the range's start. `size` is 1, 2, 4 or 8, no more than `width_bytes`,
 * and the access lies wholly inside the range. Reads return the value in the low bits. */
struct bus_ops {
    const char *name;     /* for messages: "serial port" */
    unsigned width_bytes; /* widest access the device takes: 1, 2, 4, 8 */
    uint64_t (*read)(void *device, uint64_t offset, unsigned size);
    void (*write)(void *device, uint64_t offset, unsigned size, uint64_t value);
    /* Optional: fills `data` with what `count` calls of `read` would give. */
    void (*read_string)(void *device, uint64_t offset, unsigned size, uint32_t count,
                        uint8_t *data);
};

#define BUS_MAX_RANGES 64

struct bus_range {
    uint64_t start;
    uint64_t size;
    const struct bus_ops *ops;
    void *device;
};

struct bus {
    const char *name; /* "port", "MMIO": for messages */
    size_t count;
    struct bus_range ranges[BUS_MAX_RANGES]; /* sorted by start */
};

void bus_init(struct bus *bus, const char *name);

/* Overlap with another range (-EADDRNOTAVAIL, naming both: as all other addresses are
 * fixed, one that the user has chosen), a range that wraps, or a full bus. */
int bus_attach(struct bus *bus, uint64_t start, uint64_t size, const struct bus_ops *ops,
               void *device, struct error *err) MUST_CHECK;

/* `size` is 1 to 8. Where nobody answers, reads give all ones (as on a PC) and writes
 * vanish. An access wider than the device is split, lowest address first, as the ISA bus
 * does; one that crosses the end of a range, or whose size is no power of two (the part
 * of an access behind a page boundary), is done byte by byte. */
uint64_t bus_read(const struct bus *bus, uint64_t address, unsigned size);
void bus_write(const struct bus *bus, uint64_t address, unsigned size, uint64_t value);

/* `count` reads at the same address, one after the other, as a string instruction does
 * them; `data` gets `size` bytes of each. One call of the device where it offers that. */
void bus_read_string(const struct bus *bus, uint64_t address, unsigned size,
                     uint32_t count, uint8_t *data);

/* An interrupt output of a device. Any thread.
 *
 * Lock order: a device calls `set` with its own lock held, so that levels arrive in the
 * order in which they arose. `set` may take the interrupt controller's locks but must
 * never call into a device or a bus. All other callbacks of devices (characters, room,
 * machine requests) are called with no lock held. */
struct irq_line {
    void (*set)(void *context, uint32_t line, bool level);
    void *context;
    uint32_t line;
};

static inline void irq_line_set(const struct irq_line *line, bool level)
{
    line->set(line->context, line->line, level);
}

/* What the chipset asks of the machine. Any thread; must not block. */
enum machine_request {
    MACHINE_RESET,
    MACHINE_POWER_OFF,
};

struct machine_requests {
    void (*request)(void *context, enum machine_request request);
    void (*debug_exit)(void *context, uint32_t value); /* isa-debug-exit */
    void *context;
};

#endif
