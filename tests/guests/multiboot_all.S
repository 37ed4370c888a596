# SPDX-License-Identifier: Apache-2.0
# A kernel that can be entered in three ways: Multiboot 1, Multiboot 2 and PVH. Says which
# one it was.
    .include "tap.inc"
    .include "pvh.inc"

.set MULTIBOOT1_MAGIC, 0x1badb002
.set MULTIBOOT2_MAGIC, 0xe85250d6
.set MULTIBOOT2_ENTRY, 3
.set MULTIBOOT2_END, 0
.set MULTIBOOT1_LOADED, 0x2badb002
.set MULTIBOOT2_LOADED, 0x36d76289

    .section .multiboot, "a"
    .balign 8
multiboot2_header:
    .long MULTIBOOT2_MAGIC
    .long 0                     # i386
    .long multiboot2_end - multiboot2_header
    .long -(MULTIBOOT2_MAGIC + multiboot2_end - multiboot2_header)
    .short MULTIBOOT2_ENTRY, 0
    .long 12
    .long multiboot2_start
    .balign 8
    .short MULTIBOOT2_END, 0
    .long 8
multiboot2_end:
    .long MULTIBOOT1_MAGIC
    .long 0                     # flags
    .long -MULTIBOOT1_MAGIC

    .text
    .code32
    .globl elf_start
elf_start:
    cmp $MULTIBOOT1_LOADED, %eax
    jne wrong
    print "entered as Multiboot 1\n"
    debug_exit EXIT_DONE
multiboot2_start:
    cmp $MULTIBOOT2_LOADED, %eax
    jne wrong
    print "entered as Multiboot 2\n"
    debug_exit EXIT_DONE
pvh_main:
    mov entry_ebx, %ebx
    cmpl $START_INFO_MAGIC, (%ebx)
    jne wrong
    print "entered by PVH\n"
    debug_exit EXIT_DONE
wrong:
    give_up "handed over something else"
