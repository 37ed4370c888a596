/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address map of husk's PC: which guest-physical addresses and ports belong to what.
 * One place, because ACPI tables, e820, devices and accelerators must agree on it.
 *
 *   0          .. RAM (at most 3 GiB here; the rest from 4 GiB on)
 *   0x9fc00    .. 0x100000  reserved in e820 as on every PC, but backed by RAM
 *   0xe0000    .. 0x100000  ACPI tables, RSDP first (the BIOS area that kernels scan)
 *   0xc0000000 .. 32-bit PCI window
 *   0xe0000000 .. PCI ECAM, one bus
 *   0xfec00000 .. IOAPIC     0xfee00000 local APIC
 *   0xfffbc000 .. KVM's identity map page and TSS pages (Intel hosts)
 *   ...4 GiB      firmware, if any, ends here
 */
#ifndef HUSK_X86_LAYOUT_H
#define HUSK_X86_LAYOUT_H

#define LAYOUT_LOW_RAM_LIMIT UINT64_C(0xc0000000)
#define LAYOUT_HIGH_RAM_START UINT64_C(0x100000000)

#define LAYOUT_EBDA_START UINT64_C(0x9fc00)
#define LAYOUT_ACPI_START UINT64_C(0xe0000)
#define LAYOUT_ACPI_LIMIT UINT64_C(0x100000)
#define LAYOUT_KERNEL_START UINT64_C(0x100000)

#define LAYOUT_PCI_WINDOW_START UINT64_C(0xc0000000)
#define LAYOUT_PCI_WINDOW_LIMIT UINT64_C(0xe0000000)
#define LAYOUT_ECAM_START UINT64_C(0xe0000000)
#define LAYOUT_ECAM_BYTES UINT64_C(0x100000)
#define LAYOUT_IOAPIC UINT64_C(0xfec00000)
#define LAYOUT_LOCAL_APIC UINT64_C(0xfee00000)
#define LAYOUT_KVM_IDENTITY_MAP UINT64_C(0xfffbc000)
#define LAYOUT_KVM_TSS UINT64_C(0xfffbd000)

/* Largest firmware that leaves KVM's pages alone. */
#define LAYOUT_FIRMWARE_LIMIT UINT64_C(0x40000)

/* Ports. Serial, RTC, i8042 and PCI are the PC's own; the ACPI block follows QEMU's PIIX4
 * so that kernels that hard-code its power-off port work. */
#define LAYOUT_PORT_PIC_MASTER 0x20
#define LAYOUT_PORT_PIC_SLAVE 0xa0
#define LAYOUT_PORT_PIC_EDGE_LEVEL 0x4d0 /* ELCR, 2 bytes */
#define LAYOUT_PORT_PIT 0x40
#define LAYOUT_PORT_SYSTEM_CONTROL 0x61 /* gate and output of the 8254's channel 2 */
#define LAYOUT_PORT_RTC 0x70
#define LAYOUT_PORT_I8042 0x60
#define LAYOUT_PORT_DEBUG_CONSOLE 0xe9
#define LAYOUT_PORT_COM1 0x3f8
#define LAYOUT_PORT_ACPI_EVENT 0x600   /* PM1a event block, 4 bytes */
#define LAYOUT_PORT_ACPI_CONTROL 0x604 /* PM1a control block, 2 bytes */
#define LAYOUT_PORT_ACPI_TIMER 0x608   /* PM timer, 4 bytes */
#define LAYOUT_PORT_PCI_ADDRESS 0xcf8
#define LAYOUT_PORT_RESET 0xcf9
#define LAYOUT_PORT_PCI_DATA 0xcfc

/* Interrupt lines (GSI). ISA lines are identity-mapped, timer override 0 -> 2. */
#define LAYOUT_IRQ_TIMER 0
#define LAYOUT_IRQ_KEYBOARD 1
#define LAYOUT_IRQ_CASCADE 2 /* the second 8259: no device can raise it */
#define LAYOUT_IRQ_COM1 4
#define LAYOUT_IRQ_RTC 8
#define LAYOUT_IRQ_ACPI 9
#define LAYOUT_ISA_LINES 16 /* those that reach the 8259 as well as the IOAPIC */
#define LAYOUT_IOAPIC_PINS 24
#define LAYOUT_IOAPIC_TIMER_PIN 2

/* Legacy PCI interrupts: pin 0 to 3 (INTA to INTD) of a slot goes to one of the eight
 * lines that no ISA device has; neighbouring slots take different ones. */
#define LAYOUT_PCI_SLOTS 32
#define LAYOUT_PCI_GSI(slot, pin) (16 + ((slot) + (pin)) % 8)

/* ACPI sleep type of S5 as the DSDT states it and the PM1a control block understands it.
 */
#define LAYOUT_ACPI_S5_TYPE 5

/* PM1a status and enable bit of the power button (ACPI 6.4, 4.8.3.1). */
#define LAYOUT_ACPI_POWER_BUTTON 0x100

/* The local APIC's timer before its divider: what CPUID leaf 0x15 calls the crystal. */
#define LAYOUT_APIC_TIMER_HZ UINT64_C(1000000000)

/* Most vCPUs that xAPIC ids below the broadcast id 0xff can address. */
#define LAYOUT_MAX_CPUS 255

#endif
