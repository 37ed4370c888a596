# SPDX-License-Identifier: Apache-2.0
# The chipset as a guest's probes see it: serial port, clock, keyboard controller, PCI,
# ACPI timer, and what answers where no device is.
# Sources: 16550D, MC146818 and i8042 data sheets; PCI 3.0, 3.2.2.3.2 and 6.2; ACPI 6.4,
# 4.8.3.3.
    .include "tap.inc"
    .include "pvh.inc"

.set COM1, 0x3f8
.set COM1_INTERRUPT_ID, COM1 + 2
.set COM1_MODEM_CONTROL, COM1 + 4
.set COM1_LINE_STATUS, COM1 + 5
.set COM1_MODEM_STATUS, COM1 + 6
.set COM1_SCRATCH, COM1 + 7
.set LOOPBACK, 0x10
.set IDLE_LINE, 0x60            # transmitter and holding register empty
.set DATA_READY, 0x01

.set CMOS_INDEX, 0x70
.set CMOS_DATA, 0x71
.set KEYBOARD_DATA, 0x60
.set KEYBOARD_COMMAND, 0x64
.set KEYBOARD_SELF_TEST, 0xaa
.set KEYBOARD_SELF_TEST_PASSED, 0x55

.set PCI_ADDRESS, 0xcf8
.set PCI_DATA, 0xcfc
.set PCI_ENABLE, 0x80000000
.set PCI_DEVICE_31, 31 << 11
.set PCI_CLASS, 8
.set HOST_BRIDGE_CLASS, 0x0600
.set ECAM, 0xe0000000

.set ACPI_TIMER, 0x608
.set NO_PORT, 0x2e0
.set NO_DEVICE, 0xd0000000

.macro out_byte port:req, value:req
    mov $\port, %dx
    mov $\value, %al
    out %al, %dx
.endm

.macro in_byte port:req
    mov $\port, %dx
    in %dx, %al
.endm

.macro in_cmos index:req
    out_byte CMOS_INDEX, \index
    in_byte CMOS_DATA
.endm

# EAX: 32 bits of configuration space of bus 0 at `address`.
.macro in_pci address:req
    mov $PCI_ADDRESS, %dx
    mov $PCI_ENABLE + \address, %eax
    out %eax, %dx
    mov $PCI_DATA, %dx
    in %dx, %eax
.endm

    .text
    .code32
pvh_main:
    in_byte COM1_LINE_STATUS
    cmp $IDLE_LINE, %al
    ok_if e, "COM1: transmitter is empty"
    in_byte COM1_INTERRUPT_ID
    and $0x0f, %al
    cmp $1, %al
    ok_if e, "COM1: no interrupt is pending"
    out_byte COM1_SCRATCH, 0xa5
    in_byte COM1_SCRATCH
    cmp $0xa5, %al
    ok_if e, "COM1: scratch register keeps its value"
    out_byte COM1_MODEM_CONTROL, LOOPBACK
    out_byte COM1, 'x'
    in_byte COM1_LINE_STATUS
    test $DATA_READY, %al
    ok_if nz, "COM1: a byte sent in loopback arrives"
    in_byte COM1
    cmp $'x', %al
    ok_if e, "COM1: it is the same byte"
    in_byte COM1_LINE_STATUS
    cmp $IDLE_LINE, %al
    ok_if e, "COM1: reading it empties the receiver"
    out_byte COM1_MODEM_CONTROL, LOOPBACK + 0x0f
    in_byte COM1_MODEM_STATUS
    and $0xf0, %al
    cmp $0xf0, %al
    ok_if e, "COM1: loopback joins modem control and status"
    out_byte COM1_MODEM_CONTROL, 0

    in_cmos 0x0d
    cmp $0x80, %al
    ok_if e, "RTC: time is valid"
    in_cmos 0x00
    mov %al, %ah
    and $0x0f, %ah
    cmp $0x0a, %ah
    ok_if b, "RTC: seconds are BCD"
    cmp $0x60, %al
    ok_if b, "RTC: seconds are below 60"
    in_cmos 0x32
    cmp $0x20, %al
    ok_if e, "RTC: the century is 20"
    out_byte CMOS_INDEX, 0x60
    out_byte CMOS_DATA, 0x3c
    in_cmos 0x60
    cmp $0x3c, %al
    ok_if e, "CMOS: a byte keeps its value"

    out_byte KEYBOARD_COMMAND, KEYBOARD_SELF_TEST
    in_byte KEYBOARD_COMMAND
    test $DATA_READY, %al
    ok_if nz, "i8042: self-test gives an answer"
    in_byte KEYBOARD_DATA
    cmp $KEYBOARD_SELF_TEST_PASSED, %al
    ok_if e, "i8042: self-test is passed"

    in_pci 0
    mov %eax, %ebx
    cmp $0xffff, %ax
    ok_if ne, "PCI: device 0 has a vendor"
    cmp %ebx, ECAM
    ok_if e, "PCI: ECAM shows the same"
    mov $PCI_ADDRESS, %dx
    in %dx, %eax
    cmp $PCI_ENABLE, %eax
    ok_if e, "PCI: the address register reads back"
    in_pci PCI_CLASS
    shr $16, %eax
    cmp $HOST_BRIDGE_CLASS, %eax
    ok_if e, "PCI: device 0 is a host bridge"
    in_pci PCI_DEVICE_31
    cmp $-1, %eax
    ok_if e, "PCI: an absent device reads as ones"

    mov $ACPI_TIMER, %dx
    in %dx, %eax
    mov %eax, %ebx
    mov $1000, %ecx             # a tick is 279 ns: some processors read faster
1:  in %dx, %eax
    cmp %ebx, %eax
    loope 1b
    ok_if ne, "ACPI: the timer runs"

    in_byte DEBUG_CONSOLE_PORT
    cmp $DEBUG_CONSOLE_PORT, %al
    ok_if e, "debug console: its port reads as its number"
    in_byte NO_PORT
    cmp $0xff, %al
    ok_if e, "a port without device reads as ones"
    movl $0, NO_DEVICE
    cmpl $-1, NO_DEVICE
    ok_if e, "an address without device reads as ones"
    tap_done
