# SPDX-License-Identifier: Apache-2.0
# Firmware: 8 KiB that end at 4 GiB, and again at 1 MiB. Starts in real mode at the reset
# vector, has interrupts there, goes to protected and long mode and all the way back.
# Sources: SDM vol. 3, 9.1.4 (first instruction), table 9-1 (state), 9.8.5 (long mode),
# 9.9 (real mode and back), 20.1 (real mode).
    .include "tap.inc"

.set SEGMENT, 0xf000
.set SEGMENT_BASE, 0xf0000
.set FIRMWARE_BYTES, 0x2000
.set FIRMWARE_HIGH, 0xffffe000
.set FIRMWARE_LOW, 0xfe000

# RAM, none of which is initialised.
.set ENTRY_CR0, 0x600
.set ENTRY_EFLAGS, 0x604
.set ENTRY_CS, 0x608
.set ENTRY_DS, 0x60a
.set INTERRUPT_COUNT, 0x610
.set STACK_TOP, 0x7c00
.set PAGE_MAP, 0x8000
.set PAGE_POINTERS, 0x9000
.set PAGE_DIRECTORY, 0xa000

.set CODE32_SELECTOR, 0x08
.set DATA32_SELECTOR, 0x10
.set CODE64_SELECTOR, 0x18
.set CODE16_SELECTOR, 0x20
.set DATA16_SELECTOR, 0x28

    .text
    .code16
# Right behind the reset vector's jump: CS has the base 0xffff0000, DS the base 0.
start:
    mov %cr0, %eax
    mov %eax, ENTRY_CR0
    mov %cs, ENTRY_CS
    mov %ds, ENTRY_DS
    mov $0, %ax                 # XOR would change the flags
    mov %ax, %ss
    mov $STACK_TOP, %esp
    pushfl
    popl ENTRY_EFLAGS
    ljmp $SEGMENT, $in_shadow - SEGMENT_BASE

# In the copy below 1 MiB, with strings and code in one segment.
in_shadow:
    mov %cs, %ax
    mov %ax, %ds
    .set data_base, SEGMENT_BASE
    xor %ax, %ax
    mov %ax, %es
    cmpl $0x60000010, %es:ENTRY_CR0
    ok_if e, "CR0 has CD, NW and ET"
    cmpl $2, %es:ENTRY_EFLAGS
    ok_if e, "EFLAGS is 2"
    cmpw $SEGMENT, %es:ENTRY_CS
    ok_if e, "CS is 0xf000"
    cmpw $0, %es:ENTRY_DS
    ok_if e, "DS is 0"
    call test_software_interrupt
    call test_divide_error
    call test_timer
    call test_mode_switches
    jmp finish

# ---- real-mode interrupts ----

# Makes vector BX lead to offset AX of this segment.
set_vector:
    shl $2, %bx
    mov %ax, %es:(%bx)
    movw $SEGMENT, %es:2(%bx)
    movw $0, %es:INTERRUPT_COUNT
    ret

count_interrupt:
    incw %es:INTERRUPT_COUNT
    iret

test_software_interrupt:
    mov $0x40, %bx
    mov $(count_interrupt - SEGMENT_BASE), %ax
    call set_vector
    int $0x40
    cmpw $1, %es:INTERRUPT_COUNT
    ok_if e, "INT reaches its handler, IRET returns"
    ret

# Faults return to the instruction that made them: this handler skips it.
skip_division:
    push %bp
    mov %sp, %bp
    addw $after_division - division, 2(%bp)
    pop %bp
    incw %es:INTERRUPT_COUNT
    iret

test_divide_error:
    mov $0, %bx
    mov $(skip_division - SEGMENT_BASE), %ax
    call set_vector
    xor %cx, %cx
division:
    div %cx
after_division:
    cmpw $1, %es:INTERRUPT_COUNT
    ok_if e, "division by zero is vector 0"
    ret

.set PIC, 0x20
.set PIC_END_OF_INTERRUPT, 0x20
.set PIC_VECTORS, 0x20
.set TIMER_CHANNEL0, 0x40
.set TIMER_COMMAND, 0x43
.set TIMER_COUNT, 1193          # 1 ms

handle_timer:
    incw %es:INTERRUPT_COUNT
    mov $PIC_END_OF_INTERRUPT, %al
    out %al, $PIC
    iret

# One shot of the 8254 through the 8259 (ICW1 to ICW4, then all masked but line 0).
test_timer:
    mov $PIC_VECTORS, %bx
    mov $(handle_timer - SEGMENT_BASE), %ax
    call set_vector
    mov $0x11, %al
    out %al, $PIC
    mov $PIC_VECTORS, %al
    out %al, $PIC + 1
    mov $0x04, %al
    out %al, $PIC + 1
    mov $0x01, %al
    out %al, $PIC + 1
    mov $0xfe, %al
    out %al, $PIC + 1
    mov $0x30, %al              # channel 0, both bytes, mode 0
    out %al, $TIMER_COMMAND
    mov $TIMER_COUNT & 0xff, %al
    out %al, $TIMER_CHANNEL0
    mov $TIMER_COUNT >> 8, %al
    out %al, $TIMER_CHANNEL0
    sti
    hlt
    cli
    cmpw $1, %es:INTERRUPT_COUNT
    ok_if e, "8254 interrupts through the 8259"
    mov $0xff, %al
    out %al, $PIC + 1
    ret

# ---- real, protected, long and back ----

    .balign 8
gdt:
    .quad 0
    .quad 0x00cf9b000000ffff    # flat 32-bit code
    .quad 0x00cf93000000ffff    # flat data
    .quad 0x00af9b000000ffff    # 64-bit code
    .quad 0x00009b0f0000ffff    # 16-bit code at 0xf0000
    .quad 0x000093000000ffff    # 16-bit data at 0
gdt_end:
gdt_pointer:
    .word gdt_end - gdt - 1
    .long gdt

test_mode_switches:
    lgdtl gdt_pointer - SEGMENT_BASE
    mov %cr0, %eax
    or $1, %eax
    mov %eax, %cr0
    ljmpl $CODE32_SELECTOR, $in_protected_mode

    .code32
    .set data_base, 0
in_protected_mode:
    mov $DATA32_SELECTOR, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov %cr0, %eax
    test $1, %al
    ok_if nz, "protected mode"
    mov $FIRMWARE_HIGH, %esi
    mov $FIRMWARE_LOW, %edi
    mov $FIRMWARE_BYTES / 4, %ecx
    repe cmpsl
    ok_if e, "both copies of the firmware are equal"
    movl $0x12345678, 0x500
    movl $0x87654321, 0x100500
    cmpl $0x12345678, 0x500
    ok_if e, "address line 20 is on"

    movl $PAGE_POINTERS + 3, PAGE_MAP
    movl $0, PAGE_MAP + 4
    movl $PAGE_DIRECTORY + 3, PAGE_POINTERS
    movl $0, PAGE_POINTERS + 4
    movl $0x83, PAGE_DIRECTORY  # one large page
    movl $0, PAGE_DIRECTORY + 4
    mov $PAGE_MAP, %eax
    mov %eax, %cr3
    mov $0x20, %eax             # PAE
    mov %eax, %cr4
    mov $0xc0000080, %ecx
    mov $0x100, %eax            # LME
    xor %edx, %edx
    wrmsr
    mov %cr0, %eax
    or $0x80000000, %eax
    mov %eax, %cr0
    ljmp $CODE64_SELECTOR, $in_long_mode

    .code64
in_long_mode:
    mov $0xc0000080, %ecx
    rdmsr
    cmp $0x500, %eax
    ok_if e, "long mode: EFER has LME and LMA"
    mov $0x123456789, %rax
    shr $32, %rax
    cmp $1, %rax
    ok_if e, "long mode: registers have 64 bits"
    push $CODE32_SELECTOR
    push $in_compatibility_mode
    lretq

    .code32
in_compatibility_mode:
    mov %cr0, %eax
    and $0x7fffffff, %eax
    mov %eax, %cr0
    mov $0xc0000080, %ecx
    rdmsr
    cmp $0x100, %eax
    ok_if e, "paging off clears LMA"
    mov $0xc0000080, %ecx
    xor %eax, %eax
    xor %edx, %edx
    wrmsr
    ljmp $CODE16_SELECTOR, $in_16bit_protected_mode - SEGMENT_BASE

    .code16
in_16bit_protected_mode:
    mov $DATA16_SELECTOR, %ax
    mov %ax, %ds
    mov %ax, %es
    mov %ax, %ss
    mov %cr0, %eax
    and $0xfe, %al
    mov %eax, %cr0
    ljmp $SEGMENT, $back_in_real_mode - SEGMENT_BASE

    .set data_base, SEGMENT_BASE
back_in_real_mode:
    xor %ax, %ax
    mov %ax, %es
    mov %ax, %ss
    mov %cs, %ax
    mov %ax, %ds
    mov %cr0, %eax
    test $1, %al
    ok_if z, "real mode again"
    movw $0, %es:INTERRUPT_COUNT
    int $0x40
    cmpw $1, %es:INTERRUPT_COUNT
    ok_if e, "and its interrupt vectors with it"
    ret

finish:
    tap_done

    .section .reset, "ax"
    .code16
    jmp start
    .balign 16
