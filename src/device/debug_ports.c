/* SPDX-License-Identifier: Apache-2.0 */
/* Debug console and debug exit; see debug_ports_private.h. */
#include "device/debug_ports_private.h"

#include "x86/layout.h"

#define DEBUG_EXIT_BYTES 4

static uint64_t debug_console_read(void *device, uint64_t offset, unsigned size)
{
    (void)device;
    (void)offset;
    (void)size;
    return LAYOUT_PORT_DEBUG_CONSOLE; /* by which both ports are found */
}

static void debug_console_write(void *device, uint64_t offset, unsigned size,
                                uint64_t value)
{
    struct debug_ports *debug = device;
    uint8_t byte = (uint8_t)value;

    (void)offset;
    (void)size;
    debug->console.write(debug->console.context, &byte, 1);
}

static uint64_t debug_exit_read(void *device, uint64_t offset, unsigned size)
{
    (void)device;
    (void)offset;
    (void)size;
    return 0;
}

static void debug_exit_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct debug_ports *debug = device;

    (void)offset;
    (void)size;
    debug->requests.debug_exit(debug->requests.context, (uint32_t)value);
}

static const struct bus_ops debug_console_ops = {
    .name = "debug console",
    .width_bytes = 1,
    .read = debug_console_read,
    .write = debug_console_write,
};

static const struct bus_ops debug_exit_ops = {
    .name = "debug exit",
    .width_bytes = DEBUG_EXIT_BYTES,
    .read = debug_exit_read,
    .write = debug_exit_write,
};

void debug_ports_init(struct debug_ports *debug, const struct byte_sink *console,
                      const struct machine_requests *requests)
{
    *debug = (struct debug_ports){.console = *console, .requests = *requests};
}

int debug_ports_attach(struct debug_ports *debug, struct bus *ports, uint16_t exit_port,
                       struct error *err)
{
    int code = 0;

    if (debug->console.write)
        code = bus_attach(ports, LAYOUT_PORT_DEBUG_CONSOLE, 1, &debug_console_ops, debug,
                          err);
    if (code == 0 && debug->console.write)
        code = bus_attach(ports, LAYOUT_PORT_FIRMWARE_DEBUG, 1, &debug_console_ops, debug,
                          err);
    if (code == 0 && exit_port != 0)
        code =
            bus_attach(ports, exit_port, DEBUG_EXIT_BYTES, &debug_exit_ops, debug, err);
    return code;
}
