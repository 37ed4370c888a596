# SPDX-License-Identifier: Apache-2.0
# A bzImage that can only be entered in real mode, as by a BIOS's boot loader: its setup
# part looks at its entry state, asks the BIOS for memory, and goes to the part at 1 MiB.
# Source: linux Documentation/arch/x86/boot.rst ("Running the Kernel").
    .include "tap.inc"

.set SETUP_SECTORS, 7           # behind the boot sector
.set KERNEL_ADDRESS, 0x100000
.set HEADER_END, 0x268
.set ENTRY_OFFSET, 0x200

.set HEADER_LOADER_TYPE, 0x210
.set HEADER_LOADFLAGS, 0x211
.set HEADER_INITRD, 0x218
.set HEADER_INITRD_BYTES, 0x21c
.set HEADER_HEAP_END, 0x224
.set HEADER_CMDLINE, 0x228

.set CODE32_SELECTOR, 0x08
.set DATA32_SELECTOR, 0x10
.set SETUP32_SELECTOR, 0x18     # from the setup part on: the strings are there
.set EFLAGS_IF, 0x200
.set END_MARK, 0x5a5a1234

    .section .setup, "ax"
    .code16
setup_start:
    .fill 0x1f1, 1, 0
    .byte SETUP_SECTORS
    .word 0                     # root_flags
    .long kernel_paragraphs     # syssize
    .word 0                     # ram_size
    .word 0xffff                # vid_mode
    .word 0                     # root_dev
    .word 0xaa55                # boot_flag
    .byte 0xeb, HEADER_END - 0x202
    .ascii "HdrS"
    .word 0x020c                # version
    .long 0                     # realmode_swtch
    .word 0x1000                # start_sys_seg
    .word 0                     # kernel_version
    .byte 0                     # type_of_loader
    .byte 0x01                  # loadflags: LOADED_HIGH
    .word 0                     # setup_move_size
    .long KERNEL_ADDRESS        # code32_start
    .long 0, 0                  # ramdisk_image, ramdisk_size
    .long 0                     # bootsect_kludge
    .word 0                     # heap_end_ptr
    .byte 0, 0                  # ext_loader_ver, ext_loader_type
    .long 0                     # cmd_line_ptr
    .long 0x7fffffff            # initrd_addr_max
    .long 0x1000                # kernel_alignment
    .byte 0                     # relocatable_kernel
    .byte 12                    # min_alignment
    .word 0                     # xloadflags
    .long 255                   # cmdline_size
    .long 0                     # hardware_subarch
    .quad 0                     # hardware_subarch_data
    .long 0, 0                  # payload_offset, payload_length
    .quad 0                     # setup_data
    .quad KERNEL_ADDRESS        # pref_address
    .long 0x10000               # init_size
    .long 0                     # handover_offset
    .if . - setup_start != HEADER_END
    .error "the setup header has the wrong size"
    .endif

# DS is where the setup part is, CS 0x200 bytes further on.
setup_entry:
    pushfw
    popw entry_flags
    mov %sp, entry_sp
    mov %cs, entry_cs

    mov %ds, %ax
    add $ENTRY_OFFSET >> 4, %ax
    cmp %ax, entry_cs
    ok_if e, "CS is 0x20 more than DS"
    mov %ds, %ax
    mov %es, %bx
    cmp %ax, %bx
    ok_if e, "ES is DS"
    mov %fs, %bx
    cmp %ax, %bx
    ok_if e, "FS is DS"
    mov %gs, %bx
    cmp %ax, %bx
    ok_if e, "GS is DS"
    mov %ss, %bx
    cmp %ax, %bx
    ok_if e, "SS is DS"
    testw $EFLAGS_IF, entry_flags
    ok_if z, "interrupts are off"
    mov %cr0, %eax
    test $1, %al
    ok_if z, "real mode"
    cmpb $0, HEADER_LOADER_TYPE
    ok_if ne, "a loader says that it is there"
    testb $0x80, HEADER_LOADFLAGS
    ok_if nz, "there is a heap"
    movzwl HEADER_HEAP_END, %eax
    add $ENTRY_OFFSET, %eax
    movzwl entry_sp, %ebx
    add $0x200, %ebx            # the header's end of the heap leaves so much for the stack
    cmp %eax, %ebx
    ok_if ae, "and a stack above it"

    mov %ds, %ax
    movzwl %ax, %ebp
    shl $4, %ebp                # linear address of the setup part
    print "# command line: "
    mov HEADER_CMDLINE, %eax
    mov %ds, %bx
    shr $4, %eax
    mov %ax, %ds
    mov %bx, %es
    mov %es:HEADER_CMDLINE, %esi
    and $0xf, %esi
    print_c_string
    mov %bx, %ds
    print "\n"

    sti
    mov $0xe820, %eax
    xor %ebx, %ebx
    mov $20, %ecx
    mov $0x534d4150, %edx       # "SMAP"
    mov $map_entry, %di
    int $0x15
    cmp $0x534d4150, %eax
    ok_if e, "the BIOS has a memory map"
    mov map_entry, %eax
    or map_entry + 4, %eax
    ok_if z, "it starts at address 0"
    cmpl $1, map_entry + 16
    ok_if e, "with RAM"
    cli

    mov %ebp, %eax
    mov %ax, gdt_setup32 + 2
    shr $16, %eax
    mov %al, gdt_setup32 + 4
    lea gdt(%ebp), %eax
    mov %eax, gdt_pointer + 2
    lgdtl gdt_pointer
    mov %cr0, %eax
    or $1, %al
    mov %eax, %cr0
    ljmpl $CODE32_SELECTOR, $continue_high

    .balign 8
gdt:
    .quad 0
    .quad 0x00cf9b000000ffff    # flat 32-bit code
    .quad 0x00cf93000000ffff    # flat data
gdt_setup32:
    .quad 0x00cf93000000ffff
gdt_pointer:
    .word gdt_pointer - gdt - 1
    .long 0
map_entry:
    .skip 20
entry_flags:
    .word 0
entry_sp:
    .word 0
entry_cs:
    .word 0

# ---- at 1 MiB ----

    .text
    .code32
    give_up "entered without its setup part"

continue_high:
    mov $SETUP32_SELECTOR, %eax
    mov %eax, %ds
    mov $DATA32_SELECTOR, %eax
    mov %eax, %es
    mov %eax, %ss
    mov $KERNEL_ADDRESS - 16, %esp
    cmpl $END_MARK, %es:end_mark
    ok_if e, "the part at 1 MiB has come whole"
    mov HEADER_INITRD, %ebx
    test $0xfff, %ebx
    ok_if z, "the initrd starts at a page"
    cmp $KERNEL_ADDRESS, %ebx
    ok_if a, "above 1 MiB"
    print "# initrd: "
    mov %ebx, %esi
    mov HEADER_INITRD_BYTES, %ecx
    mov $DEBUG_CONSOLE_PORT, %dx
    rep outsb %es:(%esi), %dx
    tap_done

    .balign 4
    .skip 70000                 # more than one segment of real mode
end_mark:
    .long END_MARK
