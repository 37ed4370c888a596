# SPDX-License-Identifier: Apache-2.0
# Exceptions in long mode: vector, error code, CR2 and the address they return to.
# Sources: SDM vol. 3, 6.15 (each exception), 4.7 (page-fault error codes).
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"

.set NOT_MAPPED, 0x40000000     # the second GiB has no page directory
.set READ_ONLY_PAGE, 0x400000
.set PAGE_NOT_WRITABLE, 0x400081
.set CR0_WRITE_PROTECT_BIT, 16
.set MSR_NONE, 0x12345678
.set WILD_ENDS, 0x7fff          # upper bits of what is not canonical

.set VECTOR_DE, 0
.set VECTOR_UD, 6
.set VECTOR_GP, 13
.set VECTOR_PF, 14

    .text
    .code32
pvh_main:
    jmp enter_long_mode

    .code64
long_mode_main:
    mov $0xc0000080, %ecx
    rdmsr
    bt $EFER_LONG_MODE_ACTIVE_BIT, %eax
    ok_if c, "long mode is active"

    xor %ecx, %ecx
    mov $1, %eax
    xor %edx, %edx
    expect_fault after_division
division:
    div %ecx
after_division:
    cmpl $VECTOR_DE, caught_vector
    ok_if e, "division by zero is #DE"
    cmpq $division, caught_rip
    ok_if e, "#DE returns to the division"

    expect_fault after_undefined
undefined:
    ud2
after_undefined:
    cmpl $VECTOR_UD, caught_vector
    ok_if e, "UD2 is #UD"
    cmpq $undefined, caught_rip
    ok_if e, "#UD returns to the instruction"

    movabs $0x8000000000000000, %rbx
    expect_fault after_wild_read
    mov (%rbx), %eax
after_wild_read:
    cmpl $VECTOR_GP, caught_vector
    ok_if e, "non-canonical address is #GP"
    cmpl $0, caught_error
    ok_if e, "its error code is 0"

    mov $0x40, %eax
    expect_fault after_wild_selector
    mov %eax, %ds
after_wild_selector:
    cmpl $VECTOR_GP, caught_vector
    ok_if e, "selector outside the GDT is #GP"
    cmpl $0x40, caught_error
    ok_if e, "its error code is the selector"

    mov $MSR_NONE, %ecx
    expect_fault after_wild_msr
    rdmsr
after_wild_msr:
    cmpl $VECTOR_GP, caught_vector
    ok_if e, "reading an MSR that does not exist is #GP"

    expect_fault after_read
    mov NOT_MAPPED + 8, %eax
after_read:
    cmpl $VECTOR_PF, caught_vector
    ok_if e, "reading an absent page is #PF"
    cmpl $0, caught_error
    ok_if e, "its error code is 0"
    mov %cr2, %rax
    cmp $NOT_MAPPED + 8, %rax
    ok_if e, "CR2 has the address read"

    expect_fault after_write
    movl $1, NOT_MAPPED + 0x1234
after_write:
    cmpl $VECTOR_PF, caught_vector
    ok_if e, "writing an absent page is #PF"
    cmpl $2, caught_error
    ok_if e, "its error code says write"
    mov %cr2, %rax
    cmp $NOT_MAPPED + 0x1234, %rax
    ok_if e, "CR2 has the address written"

    movl $PAGE_NOT_WRITABLE, page_directory_low + 2 * 8
    invlpg READ_ONLY_PAGE
    mov %cr0, %rax
    bts $CR0_WRITE_PROTECT_BIT, %rax
    mov %rax, %cr0
    expect_fault after_protected_write
    movl $1, READ_ONLY_PAGE
after_protected_write:
    cmpl $VECTOR_PF, caught_vector
    ok_if e, "writing a read-only page is #PF"
    cmpl $3, caught_error
    ok_if e, "its error code says write and present"

    mov %rsp, %rbp
    mov $NOT_MAPPED, %ebx
    expect_fault after_call
    jmp *%rbx
after_call:
    cmpl $VECTOR_PF, caught_vector
    ok_if e, "executing an absent page is #PF"
    cmpq $NOT_MAPPED, caught_rip
    ok_if e, "it returns to the absent page"

# An address that is not canonical is the jump's fault, whatever its upper bits are.
    xor %ebx, %ebx
    xor %r8d, %r8d
next_wild_jump:
    inc %r8d
    mov %r8, %rax
    shl $48, %rax
    expect_fault after_wild_jump
wild_jump:
    jmp *%rax
after_wild_jump:
    cmpl $VECTOR_GP, caught_vector
    jne 1f
    cmpq $wild_jump, caught_rip
    jne 1f
    inc %ebx
1:
    cmp $WILD_ENDS, %r8d
    jne next_wild_jump
    cmp $WILD_ENDS, %ebx
    ok_if e, "jumps to addresses that are not canonical are #GP"

    cmp %rsp, %rbp
    ok_if e, "the stack is balanced"
    tap_done
