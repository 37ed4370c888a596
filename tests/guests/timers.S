# SPDX-License-Identifier: Apache-2.0
# Timer interrupts in long mode: the 8254 through the IOAPIC and through the 8259, and the
# local APIC's own timer.
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"
    .include "apic.inc"

.set VECTOR_8259, 0x20
.set VECTOR_IOAPIC, 0x30
.set VECTOR_APIC_TIMER, 0x31

    .text
    .code32
pvh_main:
    jmp enter_long_mode

    .code64
long_mode_main:
    enable_local_apic
    start_8259 VECTOR_8259, 0xff

    # ISA line 0 comes in at pin 2, as the MADT's override says.
    set_ioapic_entry 2, VECTOR_IOAPIC
    start_8254_shot
    wait_for_interrupt
    cmpl $VECTOR_IOAPIC, caught_vector
    ok_if e, "8254 interrupts through IOAPIC pin 2"
    cmpl $1, caught_count
    ok_if e, "one shot is one interrupt"

    set_ioapic_entry 2, APIC_MASKED
    start_8259 VECTOR_8259, 0xfe
    start_8254_shot
    wait_for_interrupt
    mov $PIC_END_OF_INTERRUPT, %al
    out %al, $PIC1
    cmpl $VECTOR_8259, caught_vector
    ok_if e, "8254 interrupts through 8259 and LINT0"
    cmpl $2, caught_count
    ok_if e, "a masked IOAPIC pin stays silent"
    start_8259 VECTOR_8259, 0xff

    movl $APIC_DIVIDE_BY_1, APIC_TIMER_DIVIDE
    movl $VECTOR_APIC_TIMER, APIC_TIMER_ENTRY
    movl $100000, APIC_TIMER_INITIAL
    wait_for_interrupt
    cmpl $VECTOR_APIC_TIMER, caught_vector
    ok_if e, "local APIC timer interrupts"
    cmpl $3, caught_count
    ok_if e, "once"
    cmpl $0, APIC_TIMER_CURRENT
    ok_if e, "it has counted down to 0"

    # Both timers end, the masked one first: only the other's interrupt comes.
    movl $VECTOR_APIC_TIMER + APIC_MASKED, APIC_TIMER_ENTRY
    movl $1000, APIC_TIMER_INITIAL
    set_ioapic_entry 2, VECTOR_IOAPIC
    start_8254_shot
    wait_for_interrupt
    cmpl $VECTOR_IOAPIC, caught_vector
    ok_if e, "a masked local APIC timer stays silent"
    cmpl $4, caught_count
    ok_if e, "four interrupts in all"
    tap_done
