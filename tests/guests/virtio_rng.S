# SPDX-License-Identifier: Apache-2.0
# A driver of virtio-rng: how it finds the device, how interrupts come and do not come, what
# happens when its registers move, and when it breaks the rules.
# Sources: virtio 1.2, 2.1 to 2.7, 4.1, 5.4; PCI Local Bus 3.0, 6.2, 6.8.2.
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"
    .include "apic.inc"
    .include "virtio.inc"

.set VIRTIO_RNG, 0x10441af4
.set DEVICE, 2                  # its place on the bus, by which its wire is known
.set LINE, 16 + DEVICE
.set VECTOR_LINE, 0x32
.set OTHER_PLACE, 0xd0000000
.set BUFFER_BYTES, 64
.set PATTERN, 0xa5

    .bss
    .balign 16
buffer: .skip BUFFER_BYTES
old_common: .skip 8

# ZF: all of the buffer is `value`.
.macro is_filled_with value:req
    mov $buffer, %edi
    mov $BUFFER_BYTES, %ecx
    mov $\value, %al
    cld
    repe scasb
.endm

.macro fill_with value:req
    mov $buffer, %edi
    mov $BUFFER_BYTES, %ecx
    mov $\value, %al
    cld
    rep stosb
.endm

# Lets interrupts come; ZF: none has.
.macro take_interrupts
    sti
    call wait_a_while
    cli
    cmpl $0, caught_count
.endm

    .text
    .code32
pvh_main:
    jmp enter_long_mode

    .code64
long_mode_main:
    enable_local_apic
    mov $VIRTIO_RNG, %eax
    call find_device

    # ---- what it is ----
    mov msix, %rdi
    movzwl MSIX_CONTROL(%rdi), %eax
    cmp $1, %eax
    ok_if e, "MSI-X has two vectors and is off"
    call reset_device
    mov common, %rdi
    cmpw $1, QUEUE_COUNT(%rdi)
    ok_if e, "one queue"
    movl $1, DEVICE_FEATURE_SELECT(%rdi)
    testl $VERSION_1_UPPER, DEVICE_FEATURE(%rdi)
    ok_if nz, "version 1 is offered"
    movl $2, DEVICE_FEATURE_SELECT(%rdi)
    cmpl $0, DEVICE_FEATURE(%rdi)
    ok_if e, "no features above bit 63"
    movw $1, QUEUE_SELECT(%rdi)
    cmpw $0, QUEUE_SIZE(%rdi)
    ok_if e, "a queue that is not there has no entries"
    movw $-1, QUEUE_SELECT(%rdi)
    movw $1, QUEUE_ENABLE(%rdi)
    cmpw $0, QUEUE_ENABLE(%rdi)
    ok_if e, "it cannot be enabled"
    movw $0, QUEUE_SELECT(%rdi)
    movw $2, QUEUE_VECTOR(%rdi)
    cmpw $NO_VECTOR, QUEUE_VECTOR(%rdi)
    ok_if e, "a vector that is not there reads back as none"

    # ---- negotiation ----
    mov $0x1000000, %eax        # bit 24 means nothing to this device
    call negotiate
    mov common, %rdi
    cmpb $STATUS_DRIVER, STATUS(%rdi)
    ok_if e, "features that are not offered are refused"
    call reset_device
    xor %eax, %eax
    call negotiate
    mov common, %rdi
    cmpb $STATUS_FEATURES_OK, STATUS(%rdi)
    ok_if e, "version 1 alone is accepted"
    call start_msix
    call start_queue
    cmpw $0, QUEUE_VECTOR(%rdi)
    ok_if e, "vector 0 reads back"
    cmpb $STATUS_RUNNING, STATUS(%rdi)
    ok_if e, "the device runs"

    # ---- requests and interrupts ----
    describe 0, buffer, BUFFER_BYTES, DESCRIPTOR_WRITE
    offer_chain 0
    kick
    call wait_for_answer
    cmpl $VIRTIO_VECTOR, caught_vector
    ok_if e, "a request is answered by MSI-X"
    cmpl $BUFFER_BYTES, used + 8
    ok_if e, "all of it is written"
    is_filled_with 0
    ok_if ne, "there is something in it"
    start_device
    movw $1, available          # no interrupts, please
    offer_chain 0
    offer_chain 0
    kick
    expect_used 2
    ok_if e, "one notification is enough for two requests"
    call reset_device
    take_interrupts
    ok_if e, "an interrupt that the driver does not want does not come"

    # ---- interrupts that have to wait ----
    start_device
    mov msix_table, %rdi
    movl $1, ENTRY_CONTROL(%rdi)
    offer_chain 0
    kick
    expect_used 1
    wait_for_pending 1
    ok_if e, "an interrupt of a masked entry is pending"
    take_interrupts
    ok_if e, "and does not come"
    mov msix_table, %rdi
    movl $VIRTIO_VECTOR + 1, ENTRY_DATA(%rdi)
    movl $0, ENTRY_CONTROL(%rdi)
    call wait_for_answer
    cmpl $VIRTIO_VECTOR + 1, caught_vector
    ok_if e, "it comes with what the entry says when it is unmasked"
    mov msix_pending, %rdi
    cmpl $0, (%rdi)
    ok_if e, "and is not pending any more"
    call start_msix
    start_device
    mov msix, %rdi
    movw $MSIX_ENABLE + MSIX_MASK, MSIX_CONTROL(%rdi)
    offer_chain 0
    kick
    expect_used 1
    wait_for_pending 1
    ok_if e, "an interrupt of a masked function is pending"
    mov msix, %rdi
    movw $MSIX_ENABLE, MSIX_CONTROL(%rdi)
    call wait_for_answer
    cmpl $VIRTIO_VECTOR, caught_vector
    ok_if e, "it comes when the function is unmasked"

    # ---- the wire ----
    start_device
    mov msix, %rdi
    movw $0, MSIX_CONTROL(%rdi)
    set_ioapic_entry LINE, VECTOR_LINE
    offer_chain 0
    kick
    call wait_for_answer
    cmpl $VECTOR_LINE, caught_vector
    ok_if e, "the wire interrupts when MSI-X is off"
    mov interrupt_status, %rdi
    movzbl (%rdi), %eax
    cmp $1, %eax
    ok_if e, "the interrupt status says it was the queue"
    mov interrupt_status, %rdi
    cmpb $0, (%rdi)
    ok_if e, "reading it clears it"
    call start_msix

    # ---- its registers move ----
    start_device
    mov function, %rdi
    movw $PCI_COMMAND_MASTER, PCI_COMMAND(%rdi)
    mov common, %rsi
    cmpb $-1, STATUS(%rsi)
    ok_if e, "registers that are switched off read as ones"
    mov function, %rdi
    movl $-1, PCI_BAR(%rdi)
    cmpl $-0x4000, PCI_BAR(%rdi)
    ok_if e, "their size is 16 KiB"
    mov common, %rax
    mov %rax, old_common
    mov $OTHER_PLACE, %eax
    call move_registers
    cmpb $STATUS_RUNNING, STATUS(%rdi)
    ok_if e, "they are at their new place, and the device runs"
    mov old_common, %rdi
    cmpb $-1, STATUS(%rdi)
    ok_if e, "nobody is at the old one"
    offer_chain 0
    kick
    call wait_for_answer
    cmpw $1, used + 2
    ok_if e, "a notification at the new place is heard"
    offer_chain 0
    kick
    call wait_for_answer
    cmpw $2, used + 2
    ok_if e, "and the next one, too"

    # ---- reset while it works ----
    offer_chain 0
    offer_chain 0
    kick
    call reset_device
    fill_with PATTERN
    call wait_a_while
    is_filled_with PATTERN
    ok_if e, "after a reset the device writes nothing"
    cmpw $0, used + 2
    ok_if e, "and uses nothing"
    kick
    start_device
    offer_chain 0
    kick
    expect_used 1
    ok_if e, "it works again"

    # ---- rules that are broken ----
    movw $RING_SIZE + 2, available + 2
    kick
    wait_for_needs_reset
    ok_if nz, "more chains than the ring has: the device needs a reset"
    cmpw $1, used + 2
    ok_if e, "none of them is used"
    start_device
    offer_chain RING_SIZE
    kick
    wait_for_needs_reset
    ok_if nz, "a descriptor that is not there: the device needs a reset"
    start_device
    describe 0, buffer, BUFFER_BYTES, DESCRIPTOR_WRITE + DESCRIPTOR_NEXT, 0
    offer_chain 0
    kick
    wait_for_needs_reset
    ok_if nz, "a chain that is a loop: the device needs a reset"
    start_device
    describe 0, buffer, BUFFER_BYTES, DESCRIPTOR_WRITE
    offer_chain 0
    kick
    expect_used 1
    ok_if e, "it works again after each"
    tap_done
