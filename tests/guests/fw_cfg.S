# SPDX-License-Identifier: Apache-2.0
# QEMU's firmware configuration interface as a guest uses it: the same item by single
# bytes, by a string instruction and by DMA, and the directory of all files.
# Sources: QEMU docs/specs/fw_cfg.rst; Linux include/uapi/linux/qemu_fw_cfg.h.
    .include "tap.inc"
    .include "pvh.inc"
    .include "report.inc"

.set SELECTOR, 0x510
.set DATA, 0x511
.set DMA_HIGH, 0x514
.set DMA_LOW, 0x518

.set KEY_SIGNATURE, 0x00
.set KEY_FEATURES, 0x01
.set KEY_RAM_SIZE, 0x03
.set KEY_NB_CPUS, 0x05
.set KEY_MAX_CPUS, 0x0f
.set KEY_KERNEL_DATA, 0x11
.set KEY_DIRECTORY, 0x19
.set KEY_FILE_FIRST, 0x20

.set FEATURE_DMA, 2

.set DMA_ERROR, 1
.set DMA_READ, 2
.set DMA_SKIP, 4
.set DMA_SELECT, 8
.set DMA_WRITE, 16
.set SELECT_DIRECTORY, KEY_DIRECTORY << 16 | DMA_SELECT

.set ENTRY_BYTES, 64
.set ENTRY_SIZE, 0
.set ENTRY_KEY, 4
.set ENTRY_NAME, 8
.set SAMPLE_BYTES, 60           # three entries of "etc/e820"

.macro select key:req
    mov $SELECTOR, %dx
    mov $\key, %ax
    out %ax, %dx
.endm

# `size` bytes of the selected item to `to`, one by one.
.macro read_bytes to:req, size:req
    mov $DATA, %dx
    mov $\to, %edi
    mov $\size, %ecx
1:  in %dx, %al
    mov %al, (%edi)
    inc %edi
    dec %ecx
    jnz 1b
.endm

.macro read_string to:req, size:req
    mov $DATA, %dx
    mov $\to, %edi
    mov $\size, %ecx
    cld
    rep insb
.endm

# EAX = the control field afterwards.
.macro dma control:req, size:req, to:req
    movl $\control, %eax
    bswap %eax
    movl %eax, dma_control
    movl $\size, %eax
    bswap %eax
    movl %eax, dma_size
    movl $0, dma_to
    movl $\to, %eax
    bswap %eax
    movl %eax, dma_to + 4
    xor %eax, %eax
    mov $DMA_HIGH, %dx
    out %eax, %dx
    mov $dma_control, %eax
    bswap %eax
    mov $DMA_LOW, %dx
    out %eax, %dx
    mov dma_control, %eax
    bswap %eax
.endm

# Sets ZF if `size` bytes are the same.
.macro compare left:req, right:req, size:req
    mov $\left, %esi
    mov $\right, %edi
    mov $\size, %ecx
    cld
    repe cmpsb
.endm

    .bss
    .balign 16
dma_control: .skip 4
dma_size: .skip 4
dma_to: .skip 8
by_bytes: .skip SAMPLE_BYTES
by_string: .skip SAMPLE_BYTES
by_dma: .skip SAMPLE_BYTES
directory: .skip 4 + 32 * ENTRY_BYTES
number: .skip 8

    define_report

    .text
    .code32
pvh_main:
    select KEY_SIGNATURE
    read_bytes number, 8
    cmpl $0x554d4551, number
    ok_if e, "the signature is QEMU"
    cmpl $0, number + 4
    ok_if e, "behind an item there are zeros"
    select KEY_FEATURES
    read_bytes number, 4
    testl $FEATURE_DMA, number
    ok_if nz, "DMA is a feature"
    mov $DMA_HIGH, %dx
    in %dx, %eax
    cmp $0x554d4551, %eax
    ok_if e, "the DMA register begins with QEMU"
    mov $DMA_LOW, %dx
    in %dx, %eax
    cmp $0x47464320, %eax
    ok_if e, "and ends with CFG"

    select KEY_KERNEL_DATA
    read_bytes number, 4
    cmpl $0, number
    ok_if e, "no kernel is handed over"
    select KEY_NB_CPUS
    read_bytes number, 2
    say "# CPUs "
    movzwl number, %eax
    say_decimal %eax
    select KEY_MAX_CPUS
    read_bytes number, 2
    say " of "
    movzwl number, %eax
    say_decimal %eax
    select KEY_RAM_SIZE
    read_bytes number, 8
    say ", bytes of RAM "
    say_hex64 number
    say "\n"

    # The directory, by two blocks: the second goes on where the first has stopped.
    dma SELECT_DIRECTORY+DMA_READ, 4, directory
    test %eax, %eax
    ok_if z, "DMA reads the number of files"
    dma DMA_READ, 32*ENTRY_BYTES, directory+4
    test %eax, %eax
    ok_if z, "DMA goes on with their entries"
    call list_files

    call select_sample
    read_bytes by_bytes, SAMPLE_BYTES
    call select_sample
    read_string by_string, SAMPLE_BYTES
    compare by_bytes, by_string, SAMPLE_BYTES
    ok_if e, "a string instruction reads what single bytes read"
    call select_sample
    dma DMA_READ, SAMPLE_BYTES, by_dma
    test %eax, %eax
    ok_if z, "DMA of the same bytes succeeds"
    compare by_bytes, by_dma, SAMPLE_BYTES
    ok_if e, "DMA reads what single bytes read"
    call select_sample
    dma DMA_SKIP, 20, 0
    test %eax, %eax
    ok_if z, "DMA skips bytes"
    read_string by_string, 20
    compare by_bytes+20, by_string, 20
    ok_if e, "and the port goes on behind them"
    say "# sum of the memory map "
    sum_of $by_bytes, $SAMPLE_BYTES
    say_hex %eax
    say "\n"

    call select_sample
    dma DMA_WRITE, 4, by_bytes
    cmp $DMA_ERROR, %eax
    ok_if e, "what is read-only cannot be written"
    dma DMA_READ, 4, 0xfffffffe
    cmp $DMA_ERROR, %eax
    ok_if e, "DMA to where no RAM is fails"
    mov $DATA, %dx
    in %dx, %al
    cmp by_bytes, %al
    ok_if e, "and takes no byte"

    # The second call runs what DMA has put over the first one's constant.
    call constant
    dma KEY_SIGNATURE<<16+DMA_SELECT+DMA_READ, 1, constant+1
    call constant
    cmp $'Q', %al
    ok_if e, "code that DMA has replaced is what runs"
    tap_done

constant:
    mov $0, %al
    ret

# Selects the file "etc/e820".
select_sample:
    mov sample_key, %ax
    mov $SELECTOR, %dx
    out %ax, %dx
    ret

# Prints the directory, and finds the key of "etc/e820".
list_files:
    mov directory, %ebp
    bswap %ebp
    mov $directory + 4, %ebx
1:  test %ebp, %ebp
    jz 3f
    say "# file "
    mov ENTRY_KEY(%ebx), %ax
    xchg %al, %ah
    movzwl %ax, %eax
    push %eax
    say_hex %eax
    say ", "
    mov ENTRY_SIZE(%ebx), %eax
    bswap %eax
    say_decimal %eax
    say " bytes: "
    lea ENTRY_NAME(%ebx), %eax
    say_string %eax
    say "\n"
    pop %eax
    cmpl $0x2f637465, ENTRY_NAME(%ebx)      # "etc/"
    jne 2f
    cmpl $0x30323865, ENTRY_NAME + 4(%ebx)  # "e820"
    jne 2f
    mov %ax, sample_key
2:  add $ENTRY_BYTES, %ebx
    dec %ebp
    jmp 1b
3:  ret

    .data
sample_key: .word 0
