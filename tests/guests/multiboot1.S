# SPDX-License-Identifier: Apache-2.0
# Multiboot 1: prints the state at entry and every field of the information structure.
# Source: Multiboot Specification 0.6.96, sections 3.1 and 3.3.
#
# HEADER_FLAGS: the header's. With bit 16, WHOLE_FILE leaves the ends of file and bss open.
    .include "tap.inc"
    .include "report.inc"
    .include "multiboot.inc"

.set HEADER_MAGIC, 0x1badb002
.set HEADER_VIDEO, 1 << 2
.set HEADER_ADDRESSES, 1 << 16

.ifndef HEADER_FLAGS
.set HEADER_FLAGS, 0
.endif
.ifndef WHOLE_FILE
.set WHOLE_FILE, 0
.endif

# struct multiboot_info: flag bits and fields (3.3)
.set INFO_MEMORY, 0
.set INFO_BOOT_DEVICE, 1
.set INFO_CMDLINE, 2
.set INFO_MODULES, 3
.set INFO_AOUT_SYMBOLS, 4
.set INFO_ELF_SECTIONS, 5
.set INFO_MEMORY_MAP, 6
.set INFO_DRIVES, 7
.set INFO_CONFIG, 8
.set INFO_LOADER, 9
.set INFO_APM, 10
.set INFO_VBE, 11
.set INFO_FRAMEBUFFER, 12

# A field's line, if its flag bit is set; else execution goes on at `next`.
.macro field bit:req, next:req
    btl $\bit, (%ebp)
    jnc \next
.endm

    .section .multiboot, "ax"
head:
.if HEADER_FLAGS & HEADER_ADDRESSES && !WHOLE_FILE
    .fill 4, 4, 0xeeeeeeee      # in front of load_addr
.endif
    .balign 4
loaded_start:
header:
    .long HEADER_MAGIC
    .long HEADER_FLAGS
    .long -(HEADER_MAGIC + HEADER_FLAGS)
.if HEADER_FLAGS & (HEADER_ADDRESSES | HEADER_VIDEO)
    .long header                # header_addr
    .long loaded_start          # load_addr
.if WHOLE_FILE
    .long 0                     # load_end_addr
    .long 0                     # bss_end_addr
.else
    .long loaded_end
    .long image_end
.endif
    .long address_start         # entry_addr
.endif
.if HEADER_FLAGS & HEADER_VIDEO
    .long 1                     # mode_type: text
    .long 80                    # width
    .long 25                    # height
    .long 0                     # depth
.endif

.if WHOLE_FILE
    .section .tail, "aw"        # so that the file holds the bss, too
.else
    .data
.endif
loaded_end:
tail:
    .fill 4, 4, 0xeeeeeeee      # behind load_end_addr, if that is given

    .text
    .code32
    .globl elf_start
elf_start:
    keep_entry
    say "entered by: ELF header\n"
    jmp report
address_start:
    keep_entry
    say "entered by: address fields\n"
.if HEADER_FLAGS & HEADER_ADDRESSES
.if WHOLE_FILE
    cmpl $0xeeeeeeee, tail + 12
    say_if e, "tail: loaded\n", "tail: not loaded\n"
.else
    cmpl $0, head
    say_if e, "head: not loaded\n", "head: loaded\n"
    cmpl $0, tail
    say_if e, "tail: not loaded\n", "tail: loaded\n"
.endif
.endif

report:
    say_entry
    mov entry_ebx, %ebp
    say "flags: "
    say_hex (%ebp)
    say "\n"

    field INFO_MEMORY, no_memory
    say "mem_lower: "
    say_decimal 4(%ebp)
    say "\nmem_upper: "
    say_decimal 8(%ebp)
    say "\n"
no_memory:
    field INFO_BOOT_DEVICE, no_boot_device
    say "boot_device: "
    say_hex 12(%ebp)
    say "\n"
no_boot_device:
    field INFO_CMDLINE, no_cmdline
    say "cmdline: "
    say_string 16(%ebp)
    say "\n"
no_cmdline:
    field INFO_MODULES, no_modules
    call print_modules
no_modules:
    field INFO_AOUT_SYMBOLS, no_aout_symbols
    say "a.out symbols\n"
no_aout_symbols:
    field INFO_ELF_SECTIONS, no_sections
    say "sections: "
    say_decimal 28(%ebp)
    say " of "
    say_decimal 32(%ebp)
    say " bytes\n"
    mov 28(%ebp), %eax
    mov 36(%ebp), %ebx
    mov 40(%ebp), %ecx
    call print_sections
no_sections:
    field INFO_MEMORY_MAP, no_memory_map
    call print_memory_map
no_memory_map:
    field INFO_DRIVES, no_drives
    say "drives: "
    say_decimal 52(%ebp)
    say " bytes\n"
no_drives:
    field INFO_CONFIG, no_config
    say "config_table: "
    say_hex 60(%ebp)
    say "\n"
no_config:
    field INFO_LOADER, no_loader
    say "boot_loader_name: "
    say_string 64(%ebp)
    say "\n"
no_loader:
    field INFO_APM, no_apm
    say "apm_table: "
    say_hex 68(%ebp)
    say "\n"
no_apm:
    field INFO_VBE, no_vbe
    say "vbe_mode: "
    movzwl 80(%ebp), %eax
    say_hex %eax
    say "\n"
no_vbe:
    field INFO_FRAMEBUFFER, no_framebuffer
    call print_framebuffer
no_framebuffer:
    say "end\n"
    debug_exit EXIT_DONE

print_modules:
    say "modules: "
    say_decimal 20(%ebp)
    say "\n"
    mov 20(%ebp), %edi
    mov 24(%ebp), %ebx
1:  test %edi, %edi
    jz 2f
    mov 4(%ebx), %ecx
    sub (%ebx), %ecx
    say "  module at "
    say_hex (%ebx)
    say ", "
    say_decimal %ecx
    say " bytes, sum "
    sum_of (%ebx), %ecx
    say_hex %eax
    say ", string: "
    say_string 8(%ebx)
    cmpl $0, 12(%ebx)
    say_if e, "\n", ", reserved is not 0\n"
    add $16, %ebx
    dec %edi
    jmp 1b
2:  ret

# Entries begin with their size, which counts from the next field on.
print_memory_map:
    say "memory map: "
    say_decimal 44(%ebp)
    say " bytes\n"
    mov 48(%ebp), %ebx
    mov %ebx, %edi
    add 44(%ebp), %edi
1:  cmp %edi, %ebx
    jae 2f
    say "  "
    say_hex64 4(%ebx)
    say " "
    say_hex64 12(%ebx)
    say " type "
    say_decimal 20(%ebx)
    say ", size "
    say_decimal (%ebx)
    say "\n"
    add (%ebx), %ebx
    add $4, %ebx
    jmp 1b
2:  ret

print_framebuffer:
    say "framebuffer: "
    say_hex64 88(%ebp)
    say ", pitch "
    say_decimal 96(%ebp)
    say ", "
    say_decimal 100(%ebp)
    say " x "
    say_decimal 104(%ebp)
    movzbl 108(%ebp), %eax
    say " x "
    say_decimal %eax
    movzbl 109(%ebp), %eax
    say ", type "
    say_decimal %eax
    say "\n"
    ret

    define_report
    define_multiboot
