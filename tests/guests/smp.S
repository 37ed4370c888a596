# SPDX-License-Identifier: Apache-2.0
# Two processors: the second waits for INIT and SIPI, starts in real mode at the page that
# SIPI names, comes to long mode, and both send each other interrupts.
# Sources: SDM vol. 3, 8.4.4 (start-up of a second processor), 10.6 (interprocessor
# interrupts).
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"
    .include "apic.inc"

.set OTHERS, 1
    .include "processors.inc"

.set OTHER_PROCESSOR, 1 << 24
.set FIRST_PROCESSOR, 0 << 24
.set VECTOR_SELF, 0x30
.set VECTOR_TO_OTHER, 0x31
.set VECTOR_TO_FIRST, 0x32
.set PATIENCE, 1000000          # turns of a waiting loop

    .bss
    .balign 8
other_apic_id: .skip 4
other_caught: .skip 4           # its latest vector
other_is_up: .skip 4

# Waits until `variable` is no longer 0.
.macro wait_for variable:req, text:req
    mov $PATIENCE, %ecx
.Lwait_\@:
    cmpl $0, \variable
    jne .Lcame_\@
    pause
    dec %ecx
    jnz .Lwait_\@
    give_up "\text"
.Lcame_\@:
.endm

    .text
    .code32
pvh_main:
    place_start_code
    jmp enter_long_mode

    .code64
long_mode_main:
    enable_local_apic
    mov APIC_ID, %eax
    shr $24, %eax
    cmp $0, %eax
    ok_if e, "the first processor has APIC id 0"

    movl $APIC_FIXED + APIC_TO_SELF + VECTOR_SELF, APIC_COMMAND_LOW
    wait_for_interrupt
    cmpl $VECTOR_SELF, caught_vector
    ok_if e, "an interrupt to oneself comes"

    cmpl $0, other_is_up
    ok_if e, "the second processor waits"
    movl $OTHER_PROCESSOR, APIC_COMMAND_HIGH
    movl $APIC_INIT_ASSERT, APIC_COMMAND_LOW
    movl $OTHER_PROCESSOR, APIC_COMMAND_HIGH
    movl $APIC_STARTUP + START_PAGE, APIC_COMMAND_LOW
    wait_for other_is_up, "the second processor does not start"
    cmpl $START_ADDRESS >> 4, other_cs
    ok_if e, "it starts at SIPI's page"
    testl $1, other_cr0
    ok_if z, "it starts in real mode"
    cmpl $1, other_apic_id
    ok_if e, "it has APIC id 1"

    movl $OTHER_PROCESSOR, APIC_COMMAND_HIGH
    movl $APIC_FIXED + VECTOR_TO_OTHER, APIC_COMMAND_LOW
    wait_for other_caught, "no interrupt reaches the second processor"
    cmpl $VECTOR_TO_OTHER, other_caught
    ok_if e, "an interrupt reaches the second processor"

    # Its answer may be here already, or come while this one halts.
    wait_for_interrupt
    cmpl $VECTOR_TO_FIRST, caught_vector
    ok_if e, "its answer reaches the first"
    cmpl $3, caught_count
    ok_if e, "three interrupts in all"
    tap_done

# ---- the second processor ----

other_main:
    mov APIC_ID, %eax
    shr $24, %eax
    mov %eax, other_apic_id
    movl $1, other_is_up
    wait_for_interrupt
    movl $FIRST_PROCESSOR, APIC_COMMAND_HIGH
    movl $APIC_FIXED + VECTOR_TO_FIRST, APIC_COMMAND_LOW
    mov caught_vector, %eax
    mov %eax, other_caught
    stop
