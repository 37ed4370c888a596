# SPDX-License-Identifier: Apache-2.0
# Four processors change the same memory by locked instructions: no change may get lost,
# whether the memory shares a page with code or not. Then the first one changes code that
# the others run.
# Sources: SDM vol. 3, 8.1.2.2 (LOCK), 8.1.3 (cross-modifying code).
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"
    .include "apic.inc"

.set OTHERS, 3
    .include "processors.inc"

.set PROCESSORS, OTHERS + 1
.ifndef ROUNDS
.set ROUNDS, 300                # of all locked instructions, on each processor
.endif
.set CHANGES, 200               # of code
.set TO_ALL_OTHERS, 0xc0000     # APIC_COMMAND_LOW
.set PATIENCE, 100000000        # turns of a waiting loop

# What is counted. CMPXCHG8B wants its operand aligned.
.macro counters prefix:req
    .balign 8
\prefix\()_by_eight: .quad 0    # CMPXCHG8B
\prefix\()_by_add: .long 0      # XADD
\prefix\()_by_compare: .long 0  # CMPXCHG
\prefix\()_by_exchange: .long 0 # an INC under a lock that XCHG takes
\prefix\()_by_bit: .long 0      # an INC under a lock that BTS takes
\prefix\()_by_byte: .byte 0     # INC, modulo 256
\prefix\()_exchange_lock: .byte 0
    .balign 4
\prefix\()_bit_lock: .long 0
.endm

    .data
    counters data
ready: .long 0                  # processors that wait for the start
started: .long 0
finished: .long 0               # with all rounds
published: .long 0              # what `changing` returns
confirmed: .long 0              # processors that have seen that, over all changes
wrong: .long 0                  # that have seen something else

    .text
    .code64
    .balign 4096                # counters and the code that changes them, in one page
    counters code

# One round on each of the counters.
.macro round prefix:req
    mov $1, %eax
    lock xadd %eax, \prefix\()_by_add

    mov \prefix\()_by_compare, %eax
1:  lea 1(%rax), %edx
    lock cmpxchg %edx, \prefix\()_by_compare
    jne 1b

    mov \prefix\()_by_eight, %eax
    mov \prefix\()_by_eight + 4, %edx
1:  mov %eax, %ebx
    mov %edx, %ecx
    add $1, %ebx
    adc $0, %ecx
    lock cmpxchg8b \prefix\()_by_eight
    jne 1b

1:  mov $1, %al
    xchg %al, \prefix\()_exchange_lock
    test %al, %al
    jz 2f
    pause
    jmp 1b
2:  incl \prefix\()_by_exchange
    movb $0, \prefix\()_exchange_lock

1:  lock btsl $5, \prefix\()_bit_lock
    jnc 2f
    pause
    jmp 1b
2:  incl \prefix\()_by_bit
    lock btrl $5, \prefix\()_bit_lock

    lock incb \prefix\()_by_byte
.endm

# All rounds, together with the others.
work:
    lock incl ready
1:  pause
    cmpl $PROCESSORS, ready
    jne 1b
    mov $ROUNDS, %r12d
next_round:
    round data
    round code
    dec %r12d
    jnz next_round
    lock incl finished
    ret

    .balign 8
    .skip 3                     # so that the constant is aligned
changing:
    mov $0, %eax
    ret

other_main:
    call work
    xor %r12d, %r12d
1:  inc %r12d
2:  pause
    cmp published, %r12d
    jne 2b
    xor %eax, %eax
    cpuid                       # serialises
    call changing
    cmp %eax, %r12d
    je 3f
    lock incl wrong
3:  lock incl confirmed
    cmp $CHANGES, %r12d
    jne 1b
    stop

# Waits until `variable` has the value in `register`.
.macro wait_until variable:req, register:req, text:req
    mov $PATIENCE, %ecx
1:  cmp \register, \variable
    je 2f
    pause
    dec %ecx
    jnz 1b
    give_up "\text"
2:
.endm

.macro check prefix:req, where:req
    cmpl $PROCESSORS * ROUNDS, \prefix\()_by_add
    ok_if e, "XADD beside \where"
    cmpl $PROCESSORS * ROUNDS, \prefix\()_by_compare
    ok_if e, "CMPXCHG beside \where"
    cmpl $PROCESSORS * ROUNDS, \prefix\()_by_eight
    ok_if e, "CMPXCHG8B beside \where"
    cmpl $PROCESSORS * ROUNDS, \prefix\()_by_exchange
    ok_if e, "a lock by XCHG beside \where"
    cmpl $PROCESSORS * ROUNDS, \prefix\()_by_bit
    ok_if e, "a lock by BTS beside \where"
    cmpb $(PROCESSORS * ROUNDS) & 0xff, \prefix\()_by_byte
    ok_if e, "INC of a byte beside \where"
.endm

    .code32
pvh_main:
    place_start_code
    jmp enter_long_mode

    .code64
long_mode_main:
    enable_local_apic
    movl $APIC_INIT_ASSERT + TO_ALL_OTHERS, APIC_COMMAND_LOW
    movl $APIC_STARTUP + START_PAGE + TO_ALL_OTHERS, APIC_COMMAND_LOW
    call work
    mov $PROCESSORS, %eax
    wait_until finished, %eax, "not all processors come to an end"
    check data, "data"
    check code, "code"

    xor %r12d, %r12d
    xor %r13d, %r13d
change:
    inc %r12d
    add $OTHERS, %r13d
    mov %r12d, changing + 1
    mov %r12d, published
    wait_until confirmed, %r13d, "a processor does not see a change of code"
    cmp $CHANGES, %r12d
    jne change
    cmpl $0, wrong
    ok_if e, "each processor runs code as another has changed it"
    tap_done
