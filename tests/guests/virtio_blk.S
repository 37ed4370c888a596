# SPDX-License-Identifier: Apache-2.0
# A driver of virtio-blk: reads, writes and the other requests, those that have to fail,
# registers that move, a reset with requests in flight. Its disk is the one that
# test_guests.py makes: 128 sectors, each full of bytes with its number.
# Sources: virtio 1.2, 2.7, 4.1, 5.2.
    .include "tap.inc"
    .include "pvh.inc"
    .include "long_mode.inc"
    .include "apic.inc"
    .include "virtio.inc"

.set VIRTIO_BLK, 0x10421af4
.set SECTORS, 128
.set LAST_SECTOR, SECTORS - 1
.set SECTOR_BYTES, 512
.set PART_OF_A_SECTOR, SECTOR_BYTES - 1
.set OTHER_PLACE, 0xd0000000
.set PATTERN, 0xa5

.set FEATURE_FLUSH, 1 << 9
.set FEATURE_DISCARD, 1 << 13
.set FEATURE_WRITE_ZEROES, 1 << 14
.set FEATURES, FEATURE_FLUSH + FEATURE_DISCARD + FEATURE_WRITE_ZEROES

.set READ, 0
.set WRITE, 1
.set FLUSH, 4
.set GET_ID, 8
.set DISCARD, 11
.set WRITE_ZEROES, 13
.set NO_REQUEST, 99

.set DONE, 0
.set FAILED, 1
.set UNSUPPORTED, 2
.set NO_STATUS, 0xff

    .data
    .balign 16
range: .quad 7                  # the sector
    .long 1, 0                  # how many; flags
serial: .ascii "guest-serial"
.set SERIAL_BYTES, . - serial

    .bss
    .balign 512
buffer: .skip SECTOR_BYTES
header: .skip 16                # type, reserved, sector
status: .skip 1

    .text
    .code32
pvh_main:
    jmp enter_long_mode

    .code64
# ZF: all of the buffer is `value`.
.macro is_filled_with value:req
    mov $buffer, %edi
    mov $SECTOR_BYTES, %ecx
    mov $\value, %al
    cld
    repe scasb
.endm

.macro fill_with value:req
    mov $buffer, %edi
    mov $SECTOR_BYTES, %ecx
    mov $\value, %al
    cld
    rep stosb
.endm

# A request with data, made available.
.macro offer_request type:req, sector:req, data=buffer, size=SECTOR_BYTES, flags=0
    movl $\type, header
    movabs $\sector, %rax
    mov %rax, header + 8
    movb $NO_STATUS, status
    describe 0, header, 16, DESCRIPTOR_NEXT, 1
    describe 1, \data, \size, DESCRIPTOR_NEXT + \flags, 2
    describe 2, status, 1, DESCRIPTOR_WRITE
    offer_chain 0
.endm

# ... and done, with an interrupt. ZF: its status is `expected`.
.macro request expected:req, type:req, sector:req, data=buffer, size=SECTOR_BYTES, flags=0
    offer_request \type, \sector, \data, \size, \flags
    kick
    call wait_for_answer
    cmpb $\expected, status
.endm

.macro read_sector expected:req, sector:req
    request \expected, READ, \sector, buffer, SECTOR_BYTES, DESCRIPTOR_WRITE
.endm

# A request without data.
.macro flush expected:req
    movl $FLUSH, header
    movq $0, header + 8
    movb $NO_STATUS, status
    describe 0, header, 16, DESCRIPTOR_NEXT, 2
    offer_chain 0
    kick
    call wait_for_answer
    cmpb $\expected, status
.endm

long_mode_main:
    enable_local_apic
    mov $VIRTIO_BLK, %eax
    call find_device
    call reset_device
    mov device_config, %rdi
    cmpl $SECTORS, (%rdi)
    ok_if e, "capacity"
    mov common, %rdi
    movl $0, DEVICE_FEATURE_SELECT(%rdi)
    mov DEVICE_FEATURE(%rdi), %eax
    and $FEATURES, %eax
    cmp $FEATURES, %eax
    ok_if e, "FLUSH, DISCARD and WRITE_ZEROES are offered"
    call start_msix
    start_device FEATURES
    mov common, %rdi
    cmpb $STATUS_RUNNING, STATUS(%rdi)
    ok_if e, "the device runs"

    # ---- requests ----
    read_sector DONE, 3
    ok_if e, "a read is done"
    cmpl $VIRTIO_VECTOR, caught_vector
    ok_if e, "and told by MSI-X"
    cmpl $SECTOR_BYTES + 1, used + 8
    ok_if e, "data and status are written"
    is_filled_with 3
    ok_if e, "it is the sector's content"
    fill_with PATTERN
    request DONE, WRITE, 5
    ok_if e, "a write is done"
    flush DONE
    ok_if e, "a flush is done"
    fill_with 0
    read_sector DONE, 5
    is_filled_with PATTERN
    ok_if e, "what was written is read"
    read_sector DONE, 6
    is_filled_with 6
    ok_if e, "its neighbour is as before"
    request DONE, WRITE_ZEROES, 0, range, 16
    ok_if e, "WRITE_ZEROES is done"
    read_sector DONE, 7
    is_filled_with 0
    ok_if e, "the sector is zero"
    movl $8, range
    request DONE, DISCARD, 0, range, 16
    ok_if e, "DISCARD is done"
    request DONE, GET_ID, 0, buffer, 20, DESCRIPTOR_WRITE
    ok_if e, "GET_ID is done"
    mov $buffer, %esi
    mov $serial, %edi
    mov $SERIAL_BYTES, %ecx
    cld
    repe cmpsb
    ok_if e, "it is the serial number"

    # ---- what has to fail ----
    read_sector DONE, LAST_SECTOR
    ok_if e, "the last sector can be read"
    fill_with PATTERN
    read_sector FAILED, SECTORS
    ok_if e, "one that is not there cannot"
    is_filled_with PATTERN
    ok_if e, "and leaves the buffer alone"
    read_sector FAILED, 0xffffffffffffffff
    ok_if e, "nor the last one that has a number"
    read_sector FAILED, 0x0080000000000000
    ok_if e, "nor one whose byte has none"
    request FAILED, WRITE, SECTORS
    ok_if e, "a write behind the end fails"
    request FAILED, WRITE, 5, buffer, PART_OF_A_SECTOR
    ok_if e, "so does one of a part of a sector"
    request UNSUPPORTED, NO_REQUEST, 0
    ok_if e, "a request of no kind is not supported"
    movl $1, range + 12
    request UNSUPPORTED, DISCARD, 0, range, 16
    ok_if e, "DISCARD knows no flag"
    movl $0, range + 12
    movl $SECTORS, range
    request FAILED, WRITE_ZEROES, 0, range, 16
    ok_if e, "WRITE_ZEROES behind the end fails"
    read_sector DONE, 9
    is_filled_with 9
    ok_if e, "the next request is none the worse for it"

    # ---- registers move, and a reset ----
    mov $OTHER_PLACE, %eax
    call move_registers
    read_sector DONE, 10
    is_filled_with 10
    ok_if e, "it works where its registers are now"
    offer_request READ, 11, buffer, SECTOR_BYTES, DESCRIPTOR_WRITE
    offer_chain 0
    offer_chain 0
    kick
    call reset_device
    fill_with PATTERN
    movb $NO_STATUS, status
    call wait_a_while
    is_filled_with PATTERN
    ok_if e, "after a reset the device writes no data"
    cmpb $NO_STATUS, status
    ok_if e, "and no status"
    cmpw $0, used + 2
    ok_if e, "and uses nothing"
    start_device FEATURES
    read_sector DONE, 12
    is_filled_with 12
    ok_if e, "it works again"

    # ---- rules that are broken ----
    describe 0, header, 16, 0
    offer_chain 0
    kick
    wait_for_needs_reset
    ok_if nz, "a request without room for a status: the device needs a reset"
    start_device FEATURES
    movw $RING_SIZE + 1, available + 2
    kick
    wait_for_needs_reset
    ok_if nz, "more chains than the ring has: the device needs a reset"
    start_device FEATURES
    read_sector DONE, 13
    is_filled_with 13
    ok_if e, "it works again after each"
    tap_done
