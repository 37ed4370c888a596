/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports for test guests: the debug console of Bochs and QEMU (0xe9), which takes
 * characters and reads 0xe9 so that a guest can find it, the same where SeaBIOS and OVMF
 * look for it (0x402), and QEMU's isa-debug-exit (four ports from a chosen one), where a
 * write of any width ends the machine with the value.
 */
#ifndef HUSK_DEVICE_DEBUG_PORTS_PRIVATE_H
#define HUSK_DEVICE_DEBUG_PORTS_PRIVATE_H

#include <stdint.h>

#include "device/bus.h"
#include "device/chipset.h"

/* Nothing here changes while vCPUs run, so there is no lock. */
struct debug_ports {
    struct byte_sink console;
    struct machine_requests requests;
};

void debug_ports_init(struct debug_ports *debug, const struct byte_sink *console,
                      const struct machine_requests *requests);
/* Attaches what is wanted: the console if it has a sink, the exit if its port is not 0.
 */
int debug_ports_attach(struct debug_ports *debug, struct bus *ports, uint16_t exit_port,
                       struct error *err) MUST_CHECK;

#endif
