/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PCI functions by which PC firmware made for QEMU's "pc" machine finds its way:
 * host bridge (82441FX, 00:00.0), PCI-to-ISA bridge (PIIX3, 00:01.0) and power management
 * (PIIX4, 00:01.3). Only a machine that starts firmware has them: kernels know all three
 * and would look for more of that chipset than there is.
 *
 * They are registers that keep what is written and do nothing. RAM below 1 MiB can always
 * be read and written, whatever the attribute map (PAM) says; firmware copies itself
 * there because the map says at reset, as the chip's, that there is none. The ACPI block
 * never moves (acpi_power_private.h), and interrupts of PCI never reach the 8259. System
 * management mode is said to be set up already, so that firmware leaves it out.
 *
 * Sources: Intel 82441FX data sheet (290549), chapter 3; Intel 82371AB (PIIX4) data sheet
 * (290562), chapters 4 and 7; QEMU docs/specs/pci-ids.rst for the subsystem.
 */
#ifndef HUSK_DEVICE_I440FX_PRIVATE_H
#define HUSK_DEVICE_I440FX_PRIVATE_H

#include <pthread.h>
#include <stdint.h>

#include "device/pci.h"

#define I440FX_REGISTER_BYTES 256

struct i440fx_model;

struct i440fx_function {
    const struct i440fx_model *model;
    pthread_mutex_t lock; /* guards what follows */
    uint8_t registers[I440FX_REGISTER_BYTES];
};

enum i440fx_number { I440FX_HOST, I440FX_ISA, I440FX_POWER, I440FX_FUNCTIONS };

struct i440fx {
    struct i440fx_function functions[I440FX_FUNCTIONS];
};

/* Puts the functions on bus 0, whose first two devices are free. */
void i440fx_init(struct i440fx *i440fx, struct pci_bus *bus);
void i440fx_reset(struct i440fx *i440fx); /* no vCPU runs */

#endif
