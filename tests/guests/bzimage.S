# SPDX-License-Identifier: Apache-2.0
# A bzImage with both entries: 32-bit at its start, 64-bit at 0x200. Its header is written
# out field by field after linux Documentation/arch/x86/boot.rst.
    .include "tap.inc"
    .include "linux.inc"

.set SETUP_SECTORS, 7           # behind the boot sector: the kernel starts at a page
.set PREFERRED_ADDRESS, 0x200000
.set INIT_BYTES, 0x10000
.set JUNK, 0xcc                 # what follows the header must not reach boot_params
.set HEADER_END, 0x26c

    .section .setup, "ax"
setup_start:
    .fill 0x1f1, 1, JUNK
    .byte SETUP_SECTORS
    .word 0                     # root_flags
    .long kernel_paragraphs     # syssize
    .word 0                     # ram_size
    .word 0xffff                # vid_mode
    .word 0                     # root_dev
    .word 0xaa55                # boot_flag
    .byte 0xeb, HEADER_END - 0x202
    .ascii "HdrS"
    .word 0x020f                # version
    .long 0                     # realmode_swtch
    .word 0x1000                # start_sys_seg
    .word 0                     # kernel_version
    .byte 0                     # type_of_loader
    .byte 0x01                  # loadflags: LOADED_HIGH
    .word 0                     # setup_move_size
    .long PREFERRED_ADDRESS     # code32_start
    .long 0, 0                  # ramdisk_image, ramdisk_size
    .long 0                     # bootsect_kludge
    .word 0                     # heap_end_ptr
    .byte 0, 0                  # ext_loader_ver, ext_loader_type
    .long 0                     # cmd_line_ptr
    .long 0x7fffffff            # initrd_addr_max
    .long 0x200000              # kernel_alignment
    .byte 1                     # relocatable_kernel: goes to pref_address
    .byte 21                    # min_alignment
    .word 0x01                  # xloadflags: XLF_KERNEL_64
    .long 255                   # cmdline_size
    .long 0                     # hardware_subarch
    .quad 0                     # hardware_subarch_data
    .long 0, 0                  # payload_offset, payload_length: nothing is packed
    .quad 0                     # setup_data
    .quad PREFERRED_ADDRESS
    .long INIT_BYTES
    .long 0                     # handover_offset
    .long 0                     # kernel_info_offset
    .if . - setup_start != HEADER_END
    .error "the setup header has the wrong size"
    .endif
    .fill (SETUP_SECTORS + 1) * 512 - HEADER_END, 1, JUNK

.macro check_header_bounds
    mov HEADER_END(%ebp), %eax
    or 0x28c(%ebp), %eax
    ok_if z, "boot_params is zero behind the header"
.endm

    .text
    .code32
start32:
    mov %ebx, %eax
    or %ebp, %eax
    or %edi, %eax
    mov %esi, %ebp
    mov %eax, entry_registers
    mov $stack_top, %esp
    pushf
    popl entry_flags
    cmpl $0, entry_registers
    ok_if e, "EBX, EBP and EDI are 0"
    testl $EFLAGS_IF, entry_flags
    ok_if z, "interrupts are off"
    mov %cr0, %eax
    and $0x80000001, %eax
    cmp $1, %eax
    ok_if e, "CR0 has PE, not PG"
    check_boot_segments
    check_boot_params find_ram32
    check_header_bounds
    tap_done
    define_find_ram find_ram32, E820_ENTRY_BYTES

    .code64
    .set tap_count, 0
long_mode_part:
    mov %rsi, %rbp
    mov $stack_top, %esp
    pushf
    popq entry_flags
    testl $EFLAGS_IF, entry_flags
    ok_if z, "interrupts are off"
    check_long_mode
    check_boot_segments
    mov %rbp, %rax
    shr $32, %rax
    ok_if z, "RSI points below 4 GiB"
    check_boot_params find_ram64
    check_header_bounds
    tap_done
    define_find_ram find_ram64, E820_ENTRY_BYTES

    .section .entry, "ax"
    .code32
    jmp start32
    .org 0x200
    .code64
    jmp long_mode_part

    .bss
    .balign 16
entry_registers: .skip 4
    .balign 8
entry_flags: .skip 8
    .balign 16
    .skip 256
stack_top:
