# SPDX-License-Identifier: Apache-2.0
# Many small requests, each with a notification and an interrupt, before and after the
# device's registers move, and all of it again after a reset of the machine: for those who
# count exits.
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"
    .include "apic.inc"
    .include "virtio.inc"

.set VIRTIO_RNG, 0x10441af4
.set OTHER_PLACE, 0xd0000000
.set BUFFER_BYTES, 4
.set ROUNDS, 100                # test_guests.py knows it, too

.set CMOS_INDEX, 0x70
.set CMOS_DATA, 0x71
.set CMOS_STARTS, 0x60          # a byte that no PC uses, and that a reset leaves alone
.set RESET_PORT, 0xcf9
.set RESET_CPU_AND_SYSTEM, 0x06

    .bss
buffer: .skip BUFFER_BYTES
old_doorbell: .skip 8

    .text
    .code32
pvh_main:
    jmp enter_long_mode

ask_many_times:
    .code64
    mov $ROUNDS, %ebx
1:  offer_chain 0
    kick
    call wait_for_answer
    dec %ebx
    jnz 1b
    ret

long_mode_main:
    enable_local_apic
    mov $VIRTIO_RNG, %eax
    call find_device
    call start_msix
    start_device
    describe 0, buffer, BUFFER_BYTES, DESCRIPTOR_WRITE
    call ask_many_times
    mov doorbell, %rax
    mov %rax, old_doorbell
    mov $OTHER_PLACE, %eax
    call move_registers
    mov $ROUNDS, %ebx
    mov old_doorbell, %rdi
1:  movw $0, (%rdi)
    dec %ebx
    jnz 1b
    call ask_many_times

    mov $CMOS_STARTS, %al
    out %al, $CMOS_INDEX
    in $CMOS_DATA, %al
    test %al, %al
    jnz 2f
    inc %al
    out %al, $CMOS_DATA
    mov $RESET_PORT, %dx
    mov $RESET_CPU_AND_SYSTEM, %al
    out %al, %dx
    stop
2:  debug_exit EXIT_DONE
