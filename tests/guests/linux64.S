# SPDX-License-Identifier: Apache-2.0
# An ELF64 without PVH note, entered by the Linux boot protocol's 64-bit entry.
    .include "tap.inc"
    .include "linux.inc"

    .text
    .code64
    .globl linux64_start
linux64_start:
    mov %rsi, %rbp
    mov $stack_top, %esp
    pushf
    popq entry_rflags
    testl $EFLAGS_IF, entry_rflags
    ok_if z, "interrupts are off"
    check_long_mode
    check_boot_segments
    mov %rbp, %rax
    shr $32, %rax
    ok_if z, "RSI points below 4 GiB"
    check_boot_params find_ram
    tap_done

    define_find_ram find_ram, E820_ENTRY_BYTES

    .bss
    .balign 16
entry_rflags: .skip 8
    .balign 16
    .skip 256
stack_top:
