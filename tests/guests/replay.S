# SPDX-License-Identifier: Apache-2.0
# A failure that depends on everything that could differ between two runs: two timers
# interrupt work that looks at the clock, changes its own code, moves memory, draws random
# numbers and sleeps. After INTERRUPTS of them it crashes, with a hash of all in R8 and R9.
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"
    .include "apic.inc"

.set VECTOR_8254, 0x30
.set VECTOR_TIMER, 0x31
.set APIC_TIMER_PERIODIC, 0x20000
.set APIC_TIMER_PERIOD, 700001  # ns
.set PERIODIC_8254, 0x34        # channel 0, both bytes, mode 2
.set INTERRUPTS, 400
.set SLEEPS, 0x0f               # each 16th round
.set MOVED, 3000                # bytes

    .bss
source: .skip MOVED
target: .skip MOVED

    .section .rodata
no_interrupt_table:
    .word 0
    .quad 0

    .text
    .code32
pvh_main:
    jmp enter_long_mode

    .code64
long_mode_main:
    cmp %eax, %eax
    ok_if e, "before the fault"
    tap_plan
    enable_local_apic
    set_ioapic_entry 2, VECTOR_8254
    movl $APIC_DIVIDE_BY_1, APIC_TIMER_DIVIDE
    movl $APIC_TIMER_PERIODIC + VECTOR_TIMER, APIC_TIMER_ENTRY
    movl $APIC_TIMER_PERIOD, APIC_TIMER_INITIAL
    mov $PERIODIC_8254, %al
    out %al, $TIMER_COMMAND
    mov $TIMER_COUNT & 0xff, %al
    out %al, $TIMER_CHANNEL0
    mov $TIMER_COUNT >> 8, %al
    out %al, $TIMER_CHANNEL0
    xor %r8d, %r8d
    xor %r9d, %r9d
    xor %r10d, %r10d
    mov $0x9e3779b97f4a7c15, %r11
    sti

round:
    rdtsc
    add %rax, %r8
    imul %r11, %r8
    add caught_rip, %r8
    incl changed + 3            # the immediate there
    rdrand %rax
    xor %rax, %r9
    mov $source, %esi
    mov $target, %edi
    mov $MOVED, %ecx
    rep movsb
changed:
    .byte 0x49, 0x81, 0xc1      # add $7, %r9 at first
    .long 7
    add APIC_TIMER_CURRENT, %r9d
    rol $7, %r9
    mov $200, %ecx
1:  imul %r11, %r9
    add $0x1234567, %r9
    dec %ecx
    jnz 1b
    cli
    mov caught_vector, %rax
    add %rax, %r9
    sti
    inc %r10d
    test $SLEEPS, %r10d
    jnz 2f
    hlt
2:  cmpl $INTERRUPTS, caught_count
    jb round
    cli
    lidt no_interrupt_table
    ud2
