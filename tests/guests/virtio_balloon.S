# SPDX-License-Identifier: Apache-2.0
# A driver of virtio-balloon: pages that it has given back are zeros and can be used, whatever
# was there: the kernel's file, fresh memory, code.
# Sources: virtio 1.2, 2.7, 4.1, 5.5.
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"
    .include "apic.inc"
    .include "virtio.inc"

.set VIRTIO_BALLOON, 0x10451af4
.set PAGE_BYTES, 4096
.set PAGE_SHIFT, 12
.set PATTERN, 0x5a

.set CONFIG_TARGET, 0
.set CONFIG_ACTUAL, 4

.set OLD_CODE, 7
.set NEXT_CODE, 9

    .data
    .balign PAGE_BYTES
before: .fill PAGE_BYTES, 1, PATTERN
given: .fill PAGE_BYTES, 1, PATTERN
after: .fill PAGE_BYTES, 1, PATTERN

# Where there are zeros in place of the first function, the processor gets to the second one.
code:
    mov $OLD_CODE, %ebx
    ret
    .balign PAGE_BYTES
next_code:
    mov $NEXT_CODE, %ebx
    ret
    .balign PAGE_BYTES

    .bss
    .balign PAGE_BYTES
fresh: .skip PAGE_BYTES
byte: .skip 8                   # which zeros add to: ADD [RAX], AL
list: .skip 4 * RING_SIZE

    .text
    .code32
pvh_main:
    jmp enter_long_mode

    .code64
# ZF: all of the page is `value`.
.macro is_filled_with page:req, value:req
    mov $\page, %edi
    mov $PAGE_BYTES, %ecx
    mov $\value, %al
    cld
    repe scasb
.endm

.macro fill_with page:req, value:req
    mov $\page, %edi
    mov $PAGE_BYTES, %ecx
    mov $\value, %al
    cld
    rep stosb
.endm

.macro put_page index:req, page:req
    mov $\page, %eax
    shr $PAGE_SHIFT, %eax
    mov %eax, list + 4 * \index
.endm

# Gives the first `count` pages of the list back.
.macro give_back count:req
    describe 0, list, 4*\count
    offer_chain 0
    kick
    mov available + 2, %ax
    call wait_for_used
.endm

# EBX = what the code says.
.macro call_code
    mov $byte, %eax
    call code
.endm

long_mode_main:
    enable_local_apic
    mov $VIRTIO_BALLOON, %eax
    call find_device
    mov common, %rdi
    cmpw $5, QUEUE_COUNT(%rdi)
    ok_if e, "five queues"
    mov device_config, %rdi
    cmpq $0, CONFIG_TARGET(%rdi)
    ok_if e, "nothing is wanted in the balloon, and nothing is there"
    start_device

    # ---- kinds of pages ----
    call_code
    cmp $OLD_CODE, %ebx
    ok_if e, "there is code"
    fill_with fresh, PATTERN
    put_page 0, given
    put_page 1, fresh
    put_page 2, code
    give_back 3
    cmpl $0, used + 8
    ok_if e, "the device has written no buffer"
    is_filled_with given, 0
    ok_if e, "a page of the kernel's file is zeros"
    is_filled_with before, PATTERN
    ok_if e, "the one before it is as it was"
    is_filled_with after, PATTERN
    ok_if e, "the one behind it is as it was"
    is_filled_with fresh, 0
    ok_if e, "a page of fresh memory is zeros"
    call_code
    cmp $NEXT_CODE, %ebx
    ok_if e, "the code is not there any more"

    # ---- the same again ----
    fill_with given, PATTERN
    is_filled_with given, PATTERN
    ok_if e, "it can be written again"
    give_back 3
    is_filled_with given, 0
    ok_if e, "and given back again"

    # ---- what is not to be given ----
    movl $0, list               # below 1 MiB
    movl $0xffffffff, list + 4  # nowhere
    movl $0xfffff, list + 8     # just below 4 GiB
    put_page 3, after
    give_back 4
    is_filled_with after, 0
    ok_if e, "pages that are no RAM are passed over"
    mov device_config, %rdi
    movl $3, CONFIG_ACTUAL(%rdi)
    cmpl $3, CONFIG_ACTUAL(%rdi)
    ok_if e, "the device remembers what is in the balloon"
    call reset_device
    mov device_config, %rdi
    cmpl $0, CONFIG_ACTUAL(%rdi)
    ok_if e, "until it is reset"
    tap_done
