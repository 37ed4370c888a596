# SPDX-License-Identifier: Apache-2.0
# The way into a guest written in C: from PVH to long mode, then guest_main with the
# command line (an address, a C string).
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"

    .text
    .code32
pvh_main:
    jmp enter_long_mode

    .code64
long_mode_main:
    mov entry_ebx, %edi
    mov START_INFO_CMDLINE(%rdi), %rdi
    call guest_main
    stop
    .section .note.GNU-stack, "", @progbits
