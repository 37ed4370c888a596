# SPDX-License-Identifier: Apache-2.0
# Resets: a guest ruins its own memory and resets the machine, by port 0xcf9 and by the
# keyboard controller. Each time it must find memory as the plan makes it. CMOS, which is
# no memory and has its battery, counts the starts.
    .include "tap.inc"
    .include "pvh.inc"

.set CMOS_INDEX, 0x70
.set CMOS_DATA, 0x71
.set CMOS_STARTS, 0x60          # a byte that no PC uses
.set RESET_PORT, 0xcf9
.set RESET_CPU_AND_SYSTEM, 0x06
.set KEYBOARD_COMMAND, 0x64
.set KEYBOARD_PULSE_RESET, 0xfe

.set VICTIM_LONGS, 2048         # two pages

    .section .rodata
    .balign 4096
victim_text:
    .fill VICTIM_LONGS, 4, 0x90909090
    .data
    .balign 4
victim_data:
    .fill VICTIM_LONGS, 4, 0x12345678
    .bss
    .balign 4
victim_bss:
    .skip VICTIM_LONGS * 4

# Zero flag set if the victim at `start` consists of `value` only.
.macro compare_victim start:req, value:req
    mov $\start, %edi
    mov $\value, %eax
    mov $VICTIM_LONGS, %ecx
    cld
    repe scasl
.endm

.macro ruin_victim start:req
    mov $\start, %edi
    mov $0xdeadbeef, %eax
    mov $VICTIM_LONGS, %ecx
    cld
    rep stosl
.endm

.macro check_memory start:req
    compare_victim victim_text, 0x90909090
    ok_if e, "\start start: pages of the file are the file's"
    compare_victim victim_data, 0x12345678
    ok_if e, "\start start: data is the file's"
    compare_victim victim_bss, 0
    ok_if e, "\start start: bss is zero"
    mov entry_ebx, %eax
    mov START_INFO_MODULES(%eax), %eax
    mov (%eax), %eax
    cmpl $0x74696e69, (%eax)    # "init"
    ok_if e, "\start start: initrd is the file's"
.endm

.macro ruin_memory
    mov entry_ebx, %eax
    mov START_INFO_MODULES(%eax), %eax
    mov (%eax), %eax
    movl $0xdeadbeef, (%eax)
    ruin_victim victim_text
    ruin_victim victim_data
    ruin_victim victim_bss
    compare_victim victim_text, 0xdeadbeef
.endm

.macro count_start number:req
    mov $CMOS_STARTS, %al
    out %al, $CMOS_INDEX
    mov $\number, %al
    out %al, $CMOS_DATA
.endm

    .text
    .code32
pvh_main:
    mov $CMOS_STARTS, %al
    out %al, $CMOS_INDEX
    in $CMOS_DATA, %al
    cmp $1, %al
    je second_start
    cmp $2, %al
    je third_start

first_start:
    check_memory "first"
    ruin_memory
    ok_if e, "the file's pages can be overwritten"
    count_start 1
    mov $RESET_PORT, %dx
    mov $RESET_CPU_AND_SYSTEM, %al
    out %al, %dx
    stop

second_start:
    check_memory "second"
    ruin_memory
    count_start 2
    mov $KEYBOARD_PULSE_RESET, %al
    out %al, $KEYBOARD_COMMAND
    stop

third_start:
    check_memory "third"
    tap_done
