# SPDX-License-Identifier: Apache-2.0
# Into the kernel and out of it: SYSCALL, SYSRET, SWAPGS, IRETQ, and what comes at once
# behind them, an interrupt that has waited or a single step; and a kernel's access to what
# is a program's, by STAC and CLAC.
# Sources: SDM vol. 2 (each instruction), vol. 3, 4.6 (SMAP), 5.8.8 (fast system calls),
# 6.8 (masking), 6.14 (IRETQ); for SYSRET to a non-canonical address also AMD APM vol. 3.
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"
    .include "apic.inc"

.set VECTOR_DB, 1
.set VECTOR_UD, 6
.set VECTOR_GP, 13
.set VECTOR_PF, 14

.set MSR_STAR, 0xc0000081
.set MSR_LSTAR, 0xc0000082
.set MSR_FMASK, 0xc0000084
.set MSR_GS_BASE, 0xc0000101
.set MSR_KERNEL_GS_BASE, 0xc0000102
.set EFER_SYSTEM_CALLS, 0x1

# SYSRET takes SS and CS from 8 and 16 behind what STAR says.
.set SYSRET_SELECTOR, 0x20
.set USER_DATA_SELECTOR, 0x2b
.set USER_CODE_SELECTOR, 0x33
.set TASK_SELECTOR, 0x38
.set NO_SELECTOR, 0x60

.set PAGE_USER, 0x4
.set FLAG_CARRY, 0x1
.set FLAG_TRAP, 0x100
.set FLAG_INTERRUPT, 0x200
.set FLAG_DIRECTION, 0x400
.set FLAGS_IOPL, 0x3000
.set FLAG_NESTED, 0x4000
# The program prints, so it may access ports.
.set USER_FLAGS, FLAGS_IOPL + 0x2
.set SYSTEM_CALL_MASK, FLAG_TRAP + FLAG_INTERRUPT + FLAG_DIRECTION + FLAG_CARRY

.set NOT_CANONICAL, 0x800000000000
.set SELF_VECTOR, 0x30
.set APIC_REQUESTS, LOCAL_APIC + 0x210  # of vectors 0x20 to 0x3f

.set CR4_SMAP_BIT, 21
.set FLAG_ACCESS_BIT, 18
.set PROGRAMS_PAGE, 0x600000    # a large one
.set ACCESS_ROUNDS, 20

.set ROUNDS, 1000
.set WILD_ENDS, 0x7fff          # upper bits of what is not canonical

    .section .rodata
    .balign 8
user_gdt:
    .quad 0
    .quad 0x00cf9b000000ffff
    .quad 0x00af9b000000ffff    # 64-bit code
    .quad 0x00cf93000000ffff    # data
    .quad 0x00cffb000000ffff    # 32-bit code of CPL 3
    .quad 0x00cff3000000ffff    # data of CPL 3
    .quad 0x00affb000000ffff    # 64-bit code of CPL 3
    .pushsection .data
    .balign 8
user_gdt_copy: .skip 7 * 8
task_descriptor: .skip 16
    .popsection
user_gdt_pointer:
    .word 7 * 8 + 16 - 1
    .quad user_gdt_copy

    .bss
    .balign 16
task: .skip 104
    .balign 16
    .skip 4096
interrupt_stack:
    .skip 4096
kernel_stack:
    .skip 4096
user_stack:
saved_rsp: .skip 8
saved_rip: .skip 8
saved_flags: .skip 8
kernel_flags: .skip 8
kernel_segments: .skip 8
calls: .skip 8
    .balign 8
area_one: .skip 8
area_two: .skip 8

# Runs `function` at CPL 0; it may change all registers but RBX, RBP and R12 to R15.
.macro call_kernel function:req
    mov $\function, %eax
    syscall
.endm

.macro write_msr number:req, low:req, high:req
    mov $\number, %ecx
    mov $\low, %eax
    mov $\high, %edx
    wrmsr
.endm

# Vector `vector` with error code `error`, at `rip`.
.macro ok_if_caught vector:req, error:req, rip:req, text:req
    cmpl $\vector, caught_vector
    jne .Lother_\@
    cmpl $\error, caught_error
    jne .Lother_\@
    cmpq $\rip, caught_rip
.Lother_\@:
    ok_if e, "\text"
.endm

# An IRETQ that is refused.
.macro refused_return ss:req, cs:req, rip:req, error:req, text:req
    expect_fault .Lafter_\@
    mov %rsp, %rdi
    push $\ss
    push %rdi
    pushfq
    push $\cs
    mov $\rip, %rax
    push %rax
.Lreturn_\@:
    iretq
.Lafter_\@:
    add $40, %rsp
    ok_if_caught VECTOR_GP, \error, .Lreturn_\@, "\text"
.endm

# An interrupt waits from here on; interrupts are off.
.macro interrupt_self
    movq $0, resume_at
    movl $-1, caught_vector
    movl $(APIC_FIXED + APIC_TO_SELF + SELF_VECTOR), APIC_COMMAND_LOW
.Lwait_\@:
    pause
    testl $(1 << (SELF_VECTOR - 0x20)), APIC_REQUESTS
    jz .Lwait_\@
.endm

    .text
    .code32
pvh_main:
    jmp enter_long_mode

    .code64
long_mode_main:
    call access_a_program
    call let_programs_run
    call set_up_system_calls
    enable_local_apic

    mov $in_program, %ecx
    mov $USER_FLAGS, %r11d
    mov $user_stack, %esp
    sysretq

# RDI is what the page holds; R8 and R9 are flags, before CLAC and behind it.
read_page:
    stac
    mov PROGRAMS_PAGE, %rdi
    pushfq
    pop %r8
    clac
    pushfq
    pop %r9
    ret

# Nothing else is a program's yet.
access_a_program:
    orl $PAGE_USER, page_map
    orl $PAGE_USER, page_pointers
    orl $PAGE_USER, page_directory_low + (PROGRAMS_PAGE >> 21) * 8
    mov %cr3, %rax
    mov %rax, %cr3
    movq $7, PROGRAMS_PAGE

    call read_page
    bt $FLAG_ACCESS_BIT, %r8
    ok_if c, "without SMAP STAC sets AC"
    bt $FLAG_ACCESS_BIT, %r9
    ok_if nc, "and CLAC clears it"

    mov %cr4, %rax
    bts $CR4_SMAP_BIT, %rax
    mov %rax, %cr4
    xor %ebx, %ebx
    mov $ACCESS_ROUNDS, %ebp
1:  call read_page
    add %rdi, %rbx
    dec %ebp
    jnz 1b
    cmp $(7 * ACCESS_ROUNDS), %rbx
    ok_if e, "with SMAP a program's page can be read behind STAC"

    expect_fault after_forbidden
forbidden:
    mov PROGRAMS_PAGE, %rdi
after_forbidden:
    ok_if_caught VECTOR_PF, 1, forbidden, "and not behind CLAC"
    clac
    stac
    stac
    mov PROGRAMS_PAGE, %rdi
    clac
    clac
    expect_fault after_forbidden_again
forbidden_again:
    mov PROGRAMS_PAGE, %rdi
after_forbidden_again:
    ok_if_caught VECTOR_PF, 1, forbidden_again, "nor behind a second one"

    mov %cr4, %rax
    btr $CR4_SMAP_BIT, %rax
    mov %rax, %cr4
    call read_page
    cmp $7, %rdi
    ok_if e, "without SMAP it can be read again"
    mov PROGRAMS_PAGE, %rdi
    ret

# Page tables, a GDT with segments of CPL 3, and a stack for who comes from there.
let_programs_run:
    orl $PAGE_USER, page_map
    orl $PAGE_USER, page_pointers
    mov $512, %ecx
    mov $page_directory_low, %edi
1:  orl $PAGE_USER, (%rdi)
    add $8, %edi
    dec %ecx
    jnz 1b
    mov %cr3, %rax
    mov %rax, %cr3

    mov $user_gdt, %esi
    mov $user_gdt_copy, %edi
    mov $7, %ecx
    rep movsq
    movq $interrupt_stack, task + 4
    movw $103, task_descriptor
    mov $task, %eax
    mov %ax, task_descriptor + 2
    shr $16, %eax
    mov %al, task_descriptor + 4
    movb $0x89, task_descriptor + 5
    mov %ah, task_descriptor + 7
    lgdt user_gdt_pointer
    mov $TASK_SELECTOR, %eax
    ltr %ax
    ret

set_up_system_calls:
    mov $MSR_EFER, %ecx
    rdmsr
    or $EFER_SYSTEM_CALLS, %eax
    wrmsr
    write_msr MSR_STAR, 0, (SYSRET_SELECTOR << 16 | CODE64_SELECTOR)
    write_msr MSR_LSTAR, system_call, 0
    write_msr MSR_FMASK, SYSTEM_CALL_MASK, 0
    ret

system_call:
    mov %rsp, saved_rsp
    mov $kernel_stack, %esp
    push %rcx
    push %r11
    mov %rcx, saved_rip
    mov %r11, saved_flags
    pushfq
    pop kernel_flags
    mov %cs, kernel_segments
    mov %ss, kernel_segments + 4
    call *%rax
    pop %r11
    pop %rcx
    mov saved_rsp, %rsp
    sysretq

# ---- the program ----

in_program:
    mov %cs, %eax
    cmp $USER_CODE_SELECTOR, %eax
    ok_if e, "SYSRET loads CS"
    mov %ss, %eax
    cmp $USER_DATA_SELECTOR, %eax
    ok_if e, "and SS"

    push $(USER_FLAGS + FLAG_CARRY + FLAG_DIRECTION)
    popfq
    call_kernel nothing
after_call:
    cmpq $after_call, saved_rip
    ok_if e, "SYSCALL leaves the next address in RCX"
    cmpq $(USER_FLAGS + FLAG_CARRY + FLAG_DIRECTION), saved_flags
    ok_if e, "and the flags in R11"
    cmpq $USER_FLAGS, kernel_flags
    ok_if e, "those of FMASK are 0 then"
    cmpl $CODE64_SELECTOR, kernel_segments
    ok_if e, "it loads CS"
    cmpl $DATA_SELECTOR, kernel_segments + 4
    ok_if e, "and SS"

    mov $ROUNDS, %ebx
1:  call_kernel count_call
    dec %ebx
    jnz 1b
    cmpq $ROUNDS, calls
    ok_if e, "a thousand system calls are a thousand"

# What the kernel has called is not called from here by an address that only resembles its.
    xor %ebx, %ebx
    xor %r8d, %r8d
next_wild_call:
    inc %r8d
    mov %r8, %rax
    shl $48, %rax
    or $count_call, %rax
    expect_fault after_wild_call
    call *%rax
    jmp 1f
after_wild_call:
    cmpl $VECTOR_GP, caught_vector
    jne 1f
    inc %ebx
1:  cmp $WILD_ENDS, %r8d
    jne next_wild_call
    cmp $WILD_ENDS, %ebx
    ok_if e, "nothing is called by an address that is not canonical"
    cmpq $ROUNDS, calls
    ok_if e, "nor done"

    expect_fault after_swap
swap:
    swapgs
after_swap:
    ok_if_caught VECTOR_GP, 0, swap, "SWAPGS is not for programs"

    expect_fault after_access
access:
    stac
after_access:
    ok_if_caught VECTOR_UD, 0, access, "nor is STAC"

    movq $0, resume_at
    movl $0, caught_count
    pushfq
    orq $FLAG_TRAP, (%rsp)
    popfq
    nop
    pushfq
    andq $~FLAG_TRAP, (%rsp)
    popfq
    cmpl $4, caught_count
    ok_if e, "each instruction behind POPF is a single step"
    cmpl $VECTOR_DB, caught_vector
    ok_if e, "which is #DB"

    call_kernel swaps
    call_kernel returns
    call_kernel interrupts
    jmp program_goes_on

# ---- functions of the kernel ----

nothing:
    ret

count_call:
    incq calls
    ret

swaps:
    movq $1, area_one
    movq $2, area_two
    write_msr MSR_GS_BASE, area_one, 0
    write_msr MSR_KERNEL_GS_BASE, area_two, 0
    swapgs
    mov %gs:0, %rdi
    mov $MSR_KERNEL_GS_BASE, %ecx
    rdmsr
    mov %eax, %r8d
    mov $MSR_GS_BASE, %ecx
    rdmsr
    mov %eax, %r9d
    swapgs
    mov %gs:0, %r10
    cmp $2, %rdi
    ok_if e, "SWAPGS takes the other base"
    cmp $area_one, %r8d
    ok_if e, "and leaves the first one in its place"
    cmp $area_two, %r9d
    ok_if e, "the base is GS's"
    cmp $1, %r10
    ok_if e, "a second one takes it back"
    ret

returns:
    refused_return DATA_SELECTOR, NO_SELECTOR, nothing, NO_SELECTOR, "IRETQ beyond the GDT is #GP"
    refused_return DATA_SELECTOR, 0, nothing, 0, "to null #GP of 0"
    refused_return DATA_SELECTOR, DATA_SELECTOR, nothing, DATA_SELECTOR, "to data #GP of it"
    refused_return NO_SELECTOR, USER_CODE_SELECTOR, nothing, NO_SELECTOR, "with such a stack #GP"
    refused_return DATA_SELECTOR, CODE64_SELECTOR, NOT_CANONICAL, 0, "to no address #GP of 0"

    pushfq
    orq $FLAG_NESTED, (%rsp)
    popfq
    refused_return DATA_SELECTOR, CODE64_SELECTOR, nothing, 0, "with NT #GP of 0"
    pushfq
    andq $~FLAG_NESTED, (%rsp)
    popfq

    mov %rsp, %rdi
    lea -256(%rsp), %r8
    push $DATA_SELECTOR
    push %r8
    push $(FLAG_CARRY + 0x2)
    push $CODE64_SELECTOR
    push $1f
    iretq
1:  mov %rsp, %r9
    mov %rdi, %rsp
    ok_if c, "IRETQ loads flags"
    cmp %r8, %r9
    ok_if e, "and the stack pointer"
    ret

interrupts:
    interrupt_self
    sti
    nop
behind_sti:
    cli
    ok_if_caught SELF_VECTOR, 0, behind_sti, "an interrupt waits for one behind STI"

    interrupt_self
    pushfq
    orq $FLAG_INTERRUPT, (%rsp)
    popfq
behind_popf:
    cli
    ok_if_caught SELF_VECTOR, 0, behind_popf, "it comes at once behind POPF"

    interrupt_self
    mov %rsp, %rdi
    push $DATA_SELECTOR
    push %rdi
    push $(FLAG_INTERRUPT + 0x2)
    push $CODE64_SELECTOR
    push $behind_return
    iretq
behind_return:
    cli
    ok_if_caught SELF_VECTOR, 0, behind_return, "and behind IRETQ"
    ret

# ---- the program again ----

program_goes_on:
    call_kernel interrupt_behind_sysret
interrupted_program:
    ok_if_caught SELF_VECTOR, 0, interrupted_program, "and behind SYSRET"

    call_kernel wild_sysret
after_wild_sysret:
    cmpl $VECTOR_GP, caught_vector
    ok_if e, "SYSRET to a non-canonical address is #GP"
    cmpl $0, caught_error
    ok_if e, "its error code is 0"
    call_kernel done

# ---- what it calls ----

# What SYSRET will load has IF.
interrupt_behind_sysret:
    interrupt_self
    orq $FLAG_INTERRUPT, 8(%rsp)
    ret

# AMD's processors raise where the program fetches, and Intel's here.
wild_sysret:
    expect_fault after_wild_sysret
    mov $NOT_CANONICAL, %rcx
    mov $USER_FLAGS, %r11d
    mov $user_stack, %esp
    sysretq

done:
    tap_done
