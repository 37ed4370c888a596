/* SPDX-License-Identifier: Apache-2.0 */
/* Writing down what a chipset does; see recorder.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder.h"

#include <stdlib.h>

#include "base/bytes.h"

static void append(char *text, size_t *text_size, const uint8_t *bytes, size_t size)
{
    assert_true(size < RECORDER_TEXT_BYTES - *text_size);
    memcpy(text + *text_size, bytes, size);
    *text_size += size;
    text[*text_size] = '\0';
}

static void record_console(void *context, const uint8_t *bytes, size_t size)
{
    struct recorder *recorder = context;

    append(recorder->console, &recorder->console_size, bytes, size);
}

static void record_debug_console(void *context, const uint8_t *bytes, size_t size)
{
    struct recorder *recorder = context;

    append(recorder->debug_console, &recorder->debug_console_size, bytes, size);
}

static void record_irq(void *context, uint32_t line, bool level)
{
    struct recorder *recorder = context;

    assert_true(line < RECORDER_LINES);
    recorder->irq_levels[line] = level;
    recorder->irq_changes[line]++;
}

static void record_request(void *context, enum machine_request request)
{
    struct recorder *recorder = context;

    switch (request) {
    case MACHINE_RESET:
        recorder->resets++;
        break;
    case MACHINE_POWER_OFF:
        recorder->power_offs++;
        break;
    }
}

static void record_debug_exit(void *context, uint32_t value)
{
    struct recorder *recorder = context;

    recorder->debug_exits++;
    recorder->debug_exit_value = value;
}

static void record_room(void *context)
{
    struct recorder *recorder = context;

    recorder->rooms++;
}

struct irq_line recorder_irq_line(struct recorder *recorder, uint32_t line)
{
    return (struct irq_line){.set = record_irq, .context = recorder, .line = line};
}

struct machine_requests recorder_requests(struct recorder *recorder)
{
    return (struct machine_requests){
        .request = record_request,
        .debug_exit = record_debug_exit,
        .context = recorder,
    };
}

struct chipset_options recorder_options(struct recorder *recorder)
{
    virtual_clock_init(&recorder->clock);
    return (struct chipset_options){
        .clock = &recorder->clock.clock,
        .memory_bytes = 64 * MIB,
        .memory_end = 64 * MIB,
        .serial = true,
        .console = {.write = record_console, .context = recorder},
        .debug_console = {.write = record_debug_console, .context = recorder},
        .debug_exit_port = 0x501,
        .set_irq = record_irq,
        .irq_context = recorder,
        .requests = recorder_requests(recorder),
    };
}

void recorder_create_with(struct recorder *recorder,
                          const struct chipset_options *options)
{
    struct error err = ERROR_NONE;

    bus_init(&recorder->ports, "port");
    bus_init(&recorder->mmio, "MMIO");
    assert_int_equal(chipset_create(options, &recorder->ports, &recorder->mmio,
                                    &recorder->chipset, &err),
                     0);
    chipset_on_console_room(recorder->chipset, record_room, recorder);
}

void recorder_create(struct recorder *recorder)
{
    struct chipset_options options;

    *recorder = (struct recorder){.chipset = NULL};
    options = recorder_options(recorder);
    recorder_create_with(recorder, &options);
}

void recorder_destroy(struct recorder *recorder)
{
    chipset_destroy(recorder->chipset);
}

uint8_t port_in(struct recorder *recorder, uint16_t port)
{
    return (uint8_t)bus_read(&recorder->ports, port, 1);
}

void port_out(struct recorder *recorder, uint16_t port, uint8_t value)
{
    bus_write(&recorder->ports, port, 1, value);
}

int recorder_setup(void **state)
{
    struct recorder *recorder = malloc(sizeof(*recorder));

    if (!recorder)
        return -1;
    recorder_create(recorder);
    *state = recorder;
    return 0;
}

int recorder_teardown(void **state)
{
    recorder_destroy(*state);
    free(*state);
    return 0;
}
