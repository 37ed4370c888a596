# SPDX-License-Identifier: Apache-2.0
# Time under --deterministic: an instruction is a nanosecond and a tick of the time-stamp
# counter, and all clocks and timers agree with it to the instruction.
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"
    .include "apic.inc"

.set VECTOR_TIMER, 0x31
.set VECTOR_SELF, 0x32
.set APIC_TIMER_DEADLINE, 0x40000
.set MSR_TSC_DEADLINE, 0x6e0
.set SLEEP_TICKS_HIGH, 1        # 2^32 ns: 4.29 s
.set WAKING_TICKS, 64           # more than a wake-up executes

.set CMOS_INDEX, 0x70
.set CMOS_DATA, 0x71
.set CMOS_SECONDS, 0
.set CMOS_DAY, 7
.set CMOS_MONTH, 8
.set CMOS_YEAR, 9

# The first number of SplitMix64 from 0.
.set RANDOM_LOW, 0x7b1dcdaf
.set RANDOM_HIGH, 0xe220a839

    .bss
buffer: .skip 8192

# EBX to the counter's lower half; ticks go on from this RDTSC.
.macro start_ticks
    rdtsc
    mov %eax, %ebx
.endm

# Compares the ticks since the RDTSC of start_ticks.
.macro compare_ticks count:req
    rdtsc
    sub %ebx, %eax
    cmp $\count, %eax
.endm

.macro compare_cmos index:req, value:req
    mov $\index, %al
    out %al, $CMOS_INDEX
    in $CMOS_DATA, %al
    cmp $\value, %al
.endm

    .text
    .code32
pvh_main:
    jmp enter_long_mode

    .code64
long_mode_main:
    enable_local_apic
    movl $APIC_DIVIDE_BY_1, APIC_TIMER_DIVIDE

    start_ticks
    .rept 98
    nop
    .endr
    compare_ticks 100
    ok_if e, "each instruction is a tick"

    start_ticks
    mov $buffer, %edi
    mov $8192, %ecx
    rep stosb
    compare_ticks 5
    ok_if e, "a repeated one is one"

    compare_cmos CMOS_YEAR, 0x26
    ok_if e, "the year is 2026"
    compare_cmos CMOS_MONTH, 0x01
    ok_if e, "the month is January"
    compare_cmos CMOS_DAY, 0x01
    ok_if e, "the day is the first"

    # A deadline in the middle of code without a branch.
    movl $APIC_TIMER_DEADLINE + VECTOR_TIMER, APIC_TIMER_ENTRY
    mov $MSR_TSC_DEADLINE, %ecx
    sti
    rdtsc
    add $1000, %eax
    adc $0, %edx
    wrmsr
straight:                       # 4 ticks after the RDTSC
    .rept 2000
    nop
    .endr
    cli
    cmpl $1, caught_count
    ok_if e, "a deadline is one interrupt"
    cmpq $straight + 996, caught_rip
    ok_if e, "to the instruction"

    mov $MSR_TSC_DEADLINE, %ecx
    rdtsc
    add $SLEEP_TICKS_HIGH, %edx
    mov %eax, %ebx
    mov %edx, %edi
    wrmsr
    wait_for_interrupt
    rdtsc
    sub %edi, %edx
    ok_if e, "HLT goes on to the deadline"
    rdtsc
    sub %ebx, %eax
    cmp $WAKING_TICKS, %eax
    ok_if b, "and not beyond it"
    compare_cmos CMOS_SECONDS, 0x04
    ok_if e, "the time of day goes with it"

    # The local APIC's count, read from memory in the middle of a block.
    movl $VECTOR_TIMER + APIC_MASKED, APIC_TIMER_ENTRY
    movl $1000000, APIC_TIMER_INITIAL
    nop
    mov APIC_TIMER_CURRENT, %eax
    .rept 49
    nop
    .endr
    sub APIC_TIMER_CURRENT, %eax
    cmp $50, %eax
    ok_if e, "the APIC timer counts them"

    # An interrupt that a store to the local APIC raises comes right behind it.
    sti
    nop
    movl $APIC_TO_SELF + APIC_FIXED + VECTOR_SELF, APIC_COMMAND_LOW
behind:
    .rept 8
    nop
    .endr
    cli
    cmpl $VECTOR_SELF, caught_vector
    ok_if e, "an interrupt to itself"
    cmpq $behind, caught_rip
    ok_if e, "comes right behind its store"

    rdrand %rax
    mov $RANDOM_HIGH << 32 | RANDOM_LOW, %rbx
    cmp %rbx, %rax
    ok_if e, "random numbers are the same each time"
    tap_done
