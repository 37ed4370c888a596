# SPDX-License-Identifier: Apache-2.0
# A triple fault: an exception while there is no interrupt table. husk ends with 3.
    .include "tap.inc"
    .include "pvh.inc"

    .section .rodata
no_interrupt_table:
    .word 0
    .long 0

    .text
    .code32
pvh_main:
    cmp %eax, %eax
    ok_if e, "before the fault"
    tap_plan
    lidt no_interrupt_table
    ud2
