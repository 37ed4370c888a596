/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what a guest and a console can do to the chipset, in any order.
 *
 * The input is a list of steps of 8 bytes: what to do, the size of the access, which of
 * the bus's ranges and where from a byte before its start, and a value.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/virtual_clock.h"
#include "device/chipset.h"
#include "x86/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEP_BYTES 8
#define LINE_STATUS (LAYOUT_PORT_COM1 + 5)
#define TRANSMITTER_EMPTY 0x60

enum step_kind {
    STEP_PORT_READ,
    STEP_PORT_WRITE,
    STEP_MMIO_READ,
    STEP_MMIO_WRITE,
    STEP_INPUT,
    STEP_BREAK,
    STEP_POWER_BUTTON,
    STEP_RESET,
    STEP_TIME,
    STEP_KINDS,
};

struct machine {
    struct virtual_clock clock;
    struct bus ports;
    struct bus mmio;
    struct chipset *chipset;
    bool levels[LAYOUT_IOAPIC_PINS];
    bool timer_is_replaced;
};

/* Lines are told only when they change. */
static void note_irq(void *context, uint32_t line, bool level)
{
    struct machine *machine = context;

    CHECK(line < LAYOUT_IOAPIC_PINS && machine->levels[line] != level);
    machine->levels[line] = level;
}

/* So are those who are replaced; the line is free when it goes to and fro. */
static void note_replacement(void *context, bool replaced)
{
    struct machine *machine = context;

    CHECK(machine->timer_is_replaced != replaced && !machine->levels[LAYOUT_IRQ_TIMER]);
    machine->timer_is_replaced = replaced;
}

/* No lock is held here: calling back must not deadlock. */
static void call_back(struct machine *machine)
{
    (void)chipset_power_button(machine->chipset);
    (void)chipset_console_input(machine->chipset, NULL, 0);
    (void)bus_read(&machine->ports, LAYOUT_PORT_I8042, 1);
}

static void take_bytes(void *context, const uint8_t *bytes, size_t size)
{
    (void)bytes;
    CHECK(size == 1);
    call_back(context);
}

static void take_room(void *context)
{
    call_back(context);
}

static void take_request(void *context, enum machine_request request)
{
    CHECK(request == MACHINE_RESET || request == MACHINE_POWER_OFF);
    call_back(context);
}

static void take_debug_exit(void *context, uint32_t value)
{
    (void)value;
    call_back(context);
}

static void read_bus(const struct bus *bus, uint64_t address, unsigned size)
{
    uint64_t value = bus_read(bus, address, size);

    CHECK(size == 8 || value >> (8 * size) == 0);
}

static void reset(struct machine *machine)
{
    chipset_reset(machine->chipset);
    for (size_t line = 0; line < LAYOUT_IOAPIC_PINS; line++)
        CHECK(!machine->levels[line]);
    CHECK(!machine->timer_is_replaced);
    CHECK(bus_read(&machine->ports, LINE_STATUS, 1) == TRANSMITTER_EMPTY);
}

static void do_step(struct machine *machine, const uint8_t *step)
{
    enum step_kind kind = step[0] % STEP_KINDS;
    unsigned size = 1 + step[1] % 8;
    bool is_mmio = kind == STEP_MMIO_READ || kind == STEP_MMIO_WRITE;
    const struct bus *bus = is_mmio ? &machine->mmio : &machine->ports;
    uint64_t start = bus->ranges[step[2] % bus->count].start;
    uint64_t address = start - 1 + (is_mmio ? load_le16(step + 3) : step[3] % 16U);
    /* A byte of the MMIO offset is in the value, too: let it not be its lowest. */
    uint32_t word = load_le32(step + 4);
    uint64_t value = is_mmio ? word >> 8 | word << 24 : word;

    switch (kind) {
    case STEP_PORT_READ:
    case STEP_MMIO_READ:
        read_bus(bus, address, size);
        break;
    case STEP_PORT_WRITE:
    case STEP_MMIO_WRITE:
        bus_write(bus, address, size, value << 32 | value);
        break;
    case STEP_INPUT:
        CHECK(chipset_console_input(machine->chipset, step, size) <= size);
        break;
    case STEP_BREAK:
        chipset_console_break(machine->chipset);
        break;
    case STEP_POWER_BUTTON:
        (void)chipset_power_button(machine->chipset);
        break;
    case STEP_RESET:
        reset(machine);
        break;
    case STEP_TIME:
        virtual_clock_advance(&machine->clock, machine->clock.now_ns + value);
        break;
    case STEP_KINDS:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct machine machine = {.chipset = NULL};
    struct chipset_options options = {
        .clock = &machine.clock.clock,
        .memory_bytes = 64 * MIB,
        .memory_end = 64 * MIB,
        .firmware = size / 2 % 2 == 0,
        .serial = size % 2 == 0,
        .console = {.write = take_bytes, .context = &machine},
        .debug_console = {.write = take_bytes, .context = &machine},
        .debug_exit_port = 0x501,
        .hpet = size / 4 % 2 == 0,
        .set_irq = note_irq,
        .replace_timer = note_replacement,
        .irq_context = &machine,
        .requests = {.request = take_request,
                     .debug_exit = take_debug_exit,
                     .context = &machine},
    };
    struct error err = ERROR_NONE;

    virtual_clock_init(&machine.clock);
    bus_init(&machine.ports, "port");
    bus_init(&machine.mmio, "MMIO");
    CHECK(chipset_create(&options, &machine.ports, &machine.mmio, &machine.chipset,
                         &err) == 0);
    chipset_on_console_room(machine.chipset, take_room, &machine);
    for (; size >= STEP_BYTES; data += STEP_BYTES, size -= STEP_BYTES)
        do_step(&machine, data);
    CHECK((bus_read(&machine.ports, LINE_STATUS, 1) & TRANSMITTER_EMPTY) ==
          TRANSMITTER_EMPTY);
    chipset_destroy(machine.chipset);
    return 0;
}
