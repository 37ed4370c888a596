/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address map of husk's PC: which guest-physical addresses and ports belong to what.
 * One place, because ACPI tables, e820, devices and accelerators must agree on it.
 *
 *   0          .. RAM (at most 3 GiB here; the rest from 4 GiB on)
 *   0x9fc00    .. 0x100000  reserved in e820 as on every PC, but backed by RAM
 *   0xe0000    .. 0xf0000   ACPI tables, RSDP first (the BIOS area that kernels scan)
 *   0xf0000    .. 0x100000  MP table, its floating pointer first
 *   0xc0000000 .. 32-bit PCI window
 *   0xe0000000 .. PCI ECAM, one bus
 *   0xf0000000 .. 32-bit PCI window of firmware
 *   0xfec00000 .. IOAPIC     0xfed00000 HPET (--hpet)     0xfee00000 local APIC
 *   0xfeffc000 .. KVM's identity map page and TSS pages (Intel hosts)
 *   ...4 GiB      firmware, if any, ends here
 *   above RAM     persistent memory (--pmem), each file at a multiple of 1 GiB
 *   above that    64-bit PCI window, 32 GiB at a multiple of 32 GiB
 */
#ifndef HUSK_X86_LAYOUT_H
#define HUSK_X86_LAYOUT_H

#define LAYOUT_LOW_RAM_LIMIT UINT64_C(0xc0000000)
#define LAYOUT_HIGH_RAM_START UINT64_C(0x100000000)

/* Where a pmem may begin: where it can have pages of any size. Its size is a multiple of
 * 2 MiB, or Linux does not map it (SUBSECTION_SIZE in include/linux/mmzone.h). */
#define LAYOUT_PMEM_ALIGNMENT UINT64_C(0x40000000)
#define LAYOUT_PMEM_UNIT UINT64_C(0x200000)

#define LAYOUT_EBDA_START UINT64_C(0x9fc00)

/* Where a VGA has its text: rows of cells, a character and its colours each (IBM PS/2
 * Hardware Interface Technical Reference, video subsystem). Here it is RAM, which nobody
 * shows. */
#define LAYOUT_TEXT_SCREEN UINT64_C(0xb8000)
#define LAYOUT_TEXT_COLUMNS 80
#define LAYOUT_TEXT_ROWS 25
#define LAYOUT_TEXT_CELL_BYTES 2

#define LAYOUT_ACPI_START UINT64_C(0xe0000)
#define LAYOUT_ACPI_LIMIT UINT64_C(0xf0000)
#define LAYOUT_MP_TABLE_START UINT64_C(0xf0000)
#define LAYOUT_MP_TABLE_LIMIT UINT64_C(0x100000)
#define LAYOUT_KERNEL_START UINT64_C(0x100000)

#define LAYOUT_PCI_WINDOW_START UINT64_C(0xc0000000)
#define LAYOUT_PCI_WINDOW_LIMIT UINT64_C(0xe0000000)
/* Where SeaBIOS puts BARs: from the IOAPIC downwards (its pciinit.c, pcimem_end). */
#define LAYOUT_PCI_FIRMWARE_WINDOW_START UINT64_C(0xf0000000)
#define LAYOUT_PCI_FIRMWARE_WINDOW_LIMIT UINT64_C(0xfec00000)
/* For 64-bit BARs: the first multiple of its own size above all memory, which is where
 * OVMF looks, too, and within the 36 address bits of the smallest host. */
#define LAYOUT_PCI_HIGH_WINDOW_BYTES (UINT64_C(32) << 30)
#define LAYOUT_PCI_HIGH_WINDOW_START(memory_end)                                         \
    (((memory_end) + LAYOUT_PCI_HIGH_WINDOW_BYTES - 1) / LAYOUT_PCI_HIGH_WINDOW_BYTES *  \
     LAYOUT_PCI_HIGH_WINDOW_BYTES)
#define LAYOUT_ECAM_START UINT64_C(0xe0000000)
#define LAYOUT_ECAM_BYTES UINT64_C(0x100000)
#define LAYOUT_IOAPIC UINT64_C(0xfec00000)
#define LAYOUT_HPET UINT64_C(0xfed00000)
#define LAYOUT_HPET_BYTES UINT64_C(0x400)
#define LAYOUT_LOCAL_APIC UINT64_C(0xfee00000)
#define LAYOUT_TEST_WINDOW UINT64_C(0xff000000) /* test device's memory */
#define LAYOUT_TEST_WINDOW_BYTES UINT64_C(0x10000)
#define LAYOUT_KVM_IDENTITY_MAP UINT64_C(0xfeffc000)
#define LAYOUT_KVM_BYTES UINT64_C(0x4000) /* one page and the three of the TSS */
#define LAYOUT_KVM_TSS UINT64_C(0xfeffd000)

/* Largest firmware that leaves KVM's pages and the local APICs alone. */
#define LAYOUT_FIRMWARE_LIMIT UINT64_C(0x1000000)

/* Ports. Serial, RTC, i8042 and PCI are the PC's own; the ACPI block follows QEMU's PIIX4
 * so that kernels that hard-code its power-off port work. */
#define LAYOUT_PORT_PIC_MASTER 0x20
#define LAYOUT_PORT_PIC_SLAVE 0xa0
#define LAYOUT_PORT_PIC_EDGE_LEVEL 0x4d0 /* ELCR, 2 bytes */
#define LAYOUT_PORT_PIT 0x40
#define LAYOUT_PORT_SYSTEM_CONTROL 0x61 /* gate and output of the 8254's channel 2 */
#define LAYOUT_PORT_RTC 0x70
#define LAYOUT_PORT_I8042 0x60
#define LAYOUT_PORT_TEST_LATCH 0xe0 /* test device, as QEMU's pc-testdev: 4 bytes */
#define LAYOUT_PORT_TEST_FLUSH 0xe4 /* 4 bytes */
#define LAYOUT_PORT_TEST_BYTE 0xe8
#define LAYOUT_PORT_DEBUG_CONSOLE 0xe9
#define LAYOUT_PORT_TEST_EXIT 0xf4 /* debug exit, where test suites expect it */
#define LAYOUT_PORT_COM1 0x3f8
#define LAYOUT_PORT_FIRMWARE_DEBUG 0x402 /* what firmware tells of itself */
#define LAYOUT_PORT_FW_CFG 0x510       /* selector and data, DMA address from 0x514 on */
#define LAYOUT_PORT_FW_CFG_DMA 0x514   /* 8 bytes */
#define LAYOUT_PORT_ACPI_EVENT 0x600   /* PM1a event block, 4 bytes */
#define LAYOUT_PORT_ACPI_CONTROL 0x604 /* PM1a control block, 2 bytes */
#define LAYOUT_PORT_ACPI_TIMER 0x608   /* PM timer, 4 bytes */
#define LAYOUT_PORT_PCI_ADDRESS 0xcf8
#define LAYOUT_PORT_RESET 0xcf9
#define LAYOUT_PORT_PCI_DATA 0xcfc
#define LAYOUT_PORT_TEST_LINES 0x2000 /* test device: one port an interrupt line */

/* Interrupt lines (GSI). ISA lines are identity-mapped, timer override 0 -> 2. */
#define LAYOUT_IRQ_TIMER 0
#define LAYOUT_IRQ_KEYBOARD 1
#define LAYOUT_IRQ_CASCADE 2 /* the second 8259: no device can raise it */
#define LAYOUT_IRQ_COM1 4
#define LAYOUT_IRQ_RTC 8
#define LAYOUT_IRQ_ACPI 9
#define LAYOUT_HPET_LINES 0x0c00u /* 10 and 11, a bit each: no other device has them */
#define LAYOUT_ISA_LINES 16       /* those that reach the 8259 as well as the IOAPIC */
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

/* What an HPET says it is, in its capabilities and in its ACPI table (IA-PC HPET
 * Specification 1.0a, 2.3.4 and 3.2.4): Intel's vendor id, a 64-bit counter, three
 * comparators, revision 1. Only its capabilities say whether it can replace the 8254:
 * that depends on the accelerator. */
#define LAYOUT_HPET_ID 0x80862201u

/* The local APIC's timer before its divider: what CPUID leaf 0x15 calls the crystal. */
#define LAYOUT_APIC_TIMER_HZ UINT64_C(1000000000)

/* Most vCPUs that xAPIC ids below the broadcast id 0xff can address. */
#define LAYOUT_MAX_CPUS 255

#endif
