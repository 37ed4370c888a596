/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of configuration space (PCI Local Bus 3.0, 6.1, 6.2, 6.8.2). */
#ifndef HUSK_DEVICE_PCI_REGISTERS_PRIVATE_H
#define HUSK_DEVICE_PCI_REGISTERS_PRIVATE_H

#define PCI_VENDOR 0x00
#define PCI_DEVICE 0x02
#define PCI_COMMAND 0x04
#define PCI_COMMAND_MEMORY 0x0002
#define PCI_COMMAND_MASTER 0x0004
#define PCI_COMMAND_NO_LINE 0x0400
#define PCI_STATUS 0x06
#define PCI_STATUS_LINE 0x08 /* of its first byte */
#define PCI_STATUS_CAPABILITIES 0x10
#define PCI_REVISION 0x08
#define PCI_INTERFACE 0x09 /* three bytes up to the base class */
#define PCI_BAR(index) (0x10 + 4 * (index))
#define PCI_SUBSYSTEM_VENDOR 0x2c
#define PCI_SUBSYSTEM 0x2e
#define PCI_CAPABILITIES 0x34
#define PCI_INTERRUPT_LINE 0x3c
#define PCI_INTERRUPT_LINE_NONE 0xff
#define PCI_INTERRUPT_PIN 0x3d
#define PCI_INTERRUPT_PIN_A 1
#define PCI_HEADER_END 0x40

#define PCI_CAPABILITY_MSIX 0x11
#define PCI_MSIX_CONTROL 2 /* in the capability */
#define PCI_MSIX_CONTROL_MASK 0x4000
#define PCI_MSIX_CONTROL_ENABLE 0x8000
#define PCI_MSIX_ENTRY_MASKED 1 /* of the entry's control */

#endif
