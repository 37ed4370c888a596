/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way into code under test and back: everything goes through `native_state`, whose
 * layout is struct isa_state, and instructions that change no flags.
 */
#define WINDOW_DATA_SELECTOR 0x2b /* window.h */
#define WINDOW_CODE32_SELECTOR 0x23

#define FX 0
#define REGISTER(number) (512 + 8 * (number))
#define RIP REGISTER(16)
#define RFLAGS REGISTER(17)
#define EXIT REGISTER(18)

    .macro each_register_but_rsp operation
    \operation %rax, 0
    \operation %rcx, 1
    \operation %rdx, 2
    \operation %rbx, 3
    \operation %rbp, 5
    \operation %rsi, 6
    \operation %rdi, 7
    \operation %r8, 8
    \operation %r9, 9
    \operation %r10, 10
    \operation %r11, 11
    \operation %r12, 12
    \operation %r13, 13
    \operation %r14, 14
    \operation %r15, 15
    .endm
    .macro load register, number
    mov native_state + REGISTER(\number)(%rip), \register
    .endm
    .macro save register, number
    mov \register, native_state + REGISTER(\number)(%rip)
    .endm

    .macro begin name
    .globl \name
    .hidden \name
    .type \name, @function
\name:
    .endm

    /* The host's own registers, and the state's floating point. */
    .macro prepare
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    sub $8, %rsp
    stmxcsr (%rsp)
    mov %rsp, native_host_rsp(%rip)
    fxrstor64 native_state + FX(%rip)
    .endm

    .text
begin native_enter
    prepare
    push native_state + RFLAGS(%rip)
    popfq
    each_register_but_rsp load
    load %rsp, 4
    jmp *native_state + RIP(%rip)

begin native_enter32
    prepare
    pushq $WINDOW_DATA_SELECTOR
    push native_state + REGISTER(4)(%rip)
    push native_state + RFLAGS(%rip)
    pushq $WINDOW_CODE32_SELECTOR
    push native_state + RIP(%rip)
    each_register_but_rsp load
    iretq

begin native_exit_behind
    movq $0, native_state + EXIT(%rip)
    jmp 1f
begin native_exit_target
    movq $1, native_state + EXIT(%rip)
1:
    save %rsp, 4
    mov native_host_rsp(%rip), %rsp
    each_register_but_rsp save
    pushfq
    pop native_state + RFLAGS(%rip)
    fxsave64 native_state + FX(%rip)

/* From a signal, too, with the host's stack pointer. */
begin native_leave
    pushq $2
    popfq
    fninit
    ldmxcsr (%rsp)
    add $8, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret

    .section .note.GNU-stack, "", @progbits
