# SPDX-License-Identifier: Apache-2.0
# The kernel of `husk bench multiboot`: says one line on the serial port, with a sum over
# its own bytes and those of a module, and ends. It is data to the program that holds it;
# so its addresses are written as distances from its first byte.
#
# Sources: Multiboot 0.6.96, 3.1.1 and 3.3; 16550 data sheet, line status register.
#include "bench/multiboot_guest_private.h"

.set MULTIBOOT_MAGIC, 0x1badb002
.set MULTIBOOT_FLAGS, 1             # modules are aligned on pages
.set INFO_FLAGS, 0
.set INFO_HAS_MODULES, 1 << 3
.set INFO_MODULE_COUNT, 20
.set INFO_MODULES, 24
.set MODULE_START, 0
.set MODULE_END, 4

.set SERIAL_DATA, 0x3f8
.set SERIAL_LINE_STATUS, 0x3fd
.set TRANSMITTER_EMPTY, 1 << 5

    .section .rodata
    .balign 16
    .globl bench_multiboot_guest, bench_multiboot_guest_bytes
    .hidden bench_multiboot_guest, bench_multiboot_guest_bytes
    .code32
bench_multiboot_guest:
    .long MULTIBOOT_MAGIC
    .long MULTIBOOT_FLAGS
    .long -(MULTIBOOT_MAGIC + MULTIBOOT_FLAGS)
    .long 0                         # at GUEST_END_OFFSET

    # EBX = information; EDX collects the sum.
    cld
    mov GUEST_ADDRESS + GUEST_END_OFFSET, %edi
    lea GUEST_STACK_BYTES(%edi), %esp
    xor %edx, %edx
    mov $GUEST_ADDRESS, %esi
    call add_both_ends
    testl $INFO_HAS_MODULES, INFO_FLAGS(%ebx)
    jz say_line
    cmpl $0, INFO_MODULE_COUNT(%ebx)
    je say_line
    mov INFO_MODULES(%ebx), %eax
    mov MODULE_START(%eax), %esi
    mov MODULE_END(%eax), %edi
    call add_both_ends

say_line:
    mov %edx, %ebp
    mov $(GUEST_ADDRESS + greeting - bench_multiboot_guest), %esi
next_letter:
    lodsb
    test %al, %al
    jz say_sum
    call say
    jmp next_letter
say_sum:
    mov $GUEST_SUM_DIGITS, %ecx
next_digit:
    rol $4, %ebp
    mov %ebp, %eax
    and $0xf, %eax
    movb GUEST_ADDRESS + digits - bench_multiboot_guest(%eax), %al
    call say
    dec %ecx
    jnz next_digit
    mov $'\n', %al
    call say
    mov $GUEST_EXIT_VALUE, %al
    out %al, $GUEST_EXIT_PORT
stop:
    hlt
    jmp stop

# Adds what ESI points at, and what ends at EDI.
add_both_ends:
    call add_words
    lea -GUEST_SUM_BYTES(%edi), %esi
add_words:
    mov $(GUEST_SUM_BYTES / 4), %ecx
next_word:
    add (%esi), %edx
    add $4, %esi
    dec %ecx
    jnz next_word
    ret

# Sends AL when there is room for it; changes AH and DX.
say:
    mov %al, %ah
    mov $SERIAL_LINE_STATUS, %dx
wait_for_room:
    in %dx, %al
    test $TRANSMITTER_EMPTY, %al
    jz wait_for_room
    mov %ah, %al
    mov $SERIAL_DATA, %dx
    out %al, %dx
    ret

greeting:
    .asciz GUEST_GREETING
digits:
    .ascii "0123456789abcdef"
end:

    .balign 4
bench_multiboot_guest_bytes:
    .long end - bench_multiboot_guest

    .section .note.GNU-stack, "", @progbits
