# SPDX-License-Identifier: Apache-2.0
# Multiboot 2: prints the state at entry and every tag of the information structure.
# Source: Multiboot2 Specification 2.0, sections 3.1 and 3.6.
#
# ADDRESSES: loaded by the address tag. RELOCATABLE: by the preference it gives (1 lowest,
# 2 highest address). REQUESTS: asks for information, and optionally for what nobody has.
    .include "tap.inc"
    .include "report.inc"
    .include "multiboot.inc"

.ifndef ADDRESSES
.set ADDRESSES, 0
.endif
.ifndef RELOCATABLE
.set RELOCATABLE, 0
.endif
.ifndef REQUESTS
.set REQUESTS, 0
.endif

.set HEADER_MAGIC, 0xe85250d6
.set ARCHITECTURE_I386, 0
.set OPTIONAL, 1

# Header tags (3.1.4 to 3.1.13).
.set HEADER_END, 0
.set HEADER_REQUEST, 1
.set HEADER_ADDRESS, 2
.set HEADER_ENTRY, 3
.set HEADER_CONSOLE, 4
.set HEADER_FRAMEBUFFER, 5
.set HEADER_MODULE_ALIGN, 6
.set HEADER_RELOCATABLE, 10
.set HEADER_UNKNOWN, 0x4242

# Information tags (3.6).
.set TAG_END, 0
.set TAG_CMDLINE, 1
.set TAG_LOADER, 2
.set TAG_MODULE, 3
.set TAG_MEMORY, 4
.set TAG_BOOT_DEVICE, 5
.set TAG_MEMORY_MAP, 6
.set TAG_VBE, 7
.set TAG_FRAMEBUFFER, 8
.set TAG_ELF_SECTIONS, 9
.set TAG_APM, 10
.set TAG_RSDP_1, 14
.set TAG_RSDP_2, 15
.set TAG_NETWORK, 16
.set TAG_LOAD_BASE, 21

.set RSDP_1_BYTES, 20           # ACPI 6.4, 5.2.5.3

# A tag of `bytes` bytes, which follow.
.macro header_tag type:req, bytes:req, flags=0
    .balign 8
    .short \type, \flags
    .long \bytes
.endm

    .section .multiboot, "ax"
head:
.if ADDRESSES
    .fill 4, 4, 0xeeeeeeee      # in front of load_addr
.endif
    .balign 8
loaded_start:
header:
    .long HEADER_MAGIC
    .long ARCHITECTURE_I386
    .long header_end - header
    .long -(HEADER_MAGIC + ARCHITECTURE_I386 + (header_end - header))
.if REQUESTS
    header_tag HEADER_REQUEST, (8 + 5 * 4)
    .long TAG_CMDLINE, TAG_LOADER, TAG_MEMORY, TAG_MEMORY_MAP, TAG_MODULE
    header_tag HEADER_REQUEST, (8 + 4 * 4), OPTIONAL
    .long TAG_APM, TAG_NETWORK, TAG_RSDP_2, HEADER_UNKNOWN
    header_tag HEADER_CONSOLE, 12, OPTIONAL
    .long 3                     # there must be one, and text is fine
    header_tag HEADER_FRAMEBUFFER, 20, OPTIONAL
    .long 1024, 768, 32
    header_tag HEADER_MODULE_ALIGN, 8
    header_tag HEADER_UNKNOWN, 13, OPTIONAL
    .ascii "stuff"
.endif
.if ADDRESSES
    header_tag HEADER_ADDRESS, 24
    .long header                # header_addr
    .long loaded_start          # load_addr
    .long loaded_end            # load_end_addr
    .long image_end             # bss_end_addr
    header_tag HEADER_ENTRY, 12
    .long address_start
.endif
.if RELOCATABLE
    header_tag HEADER_RELOCATABLE, 24
    .long 0x400000              # min_addr
    .long 0x17fffff             # max_addr
    .long 0x200000              # align
    .long RELOCATABLE           # preference
.endif
    header_tag HEADER_END, 8
header_end:

    .data
loaded_end:
tail:
    .fill 4, 4, 0xeeeeeeee      # behind load_end_addr

    .section .rodata
handlers:                       # tag type, subroutine that gets the tag in EBX
    .long TAG_CMDLINE, print_text
    .long TAG_LOADER, print_text
    .long TAG_MODULE, print_module
    .long TAG_MEMORY, print_memory
    .long TAG_BOOT_DEVICE, print_boot_device
    .long TAG_MEMORY_MAP, print_memory_map
    .long TAG_VBE, print_vbe
    .long TAG_FRAMEBUFFER, print_framebuffer
    .long TAG_ELF_SECTIONS, print_elf_sections
    .long TAG_RSDP_1, print_rsdp_1
    .long TAG_RSDP_2, print_rsdp_2
    .long TAG_LOAD_BASE, print_load_base
    .set handler_bytes, . - handlers

    .text
    .code32
    .globl elf_start
elf_start:
.if RELOCATABLE
    relocate
.endif
    keep_entry
    say "entered by: ELF header\n"
    jmp report
address_start:
    keep_entry
    say "entered by: entry address\n"
    cmpl $0, head
    say_if e, "head: not loaded\n", "head: loaded\n"
    cmpl $0, tail
    say_if e, "tail: not loaded\n", "tail: loaded\n"

report:
    say_entry
.if RELOCATABLE
    say "moved by: "
    say_hex moved_by
    say "\n"
.endif
    mov entry_ebx, %ebp
    test $7, %ebp
    say_if z, "information: aligned\n", "information: not aligned\n"
    cmpl $0, 4(%ebp)
    say_if e, "reserved: 0\n", "reserved: not 0\n"
    mov (%ebp), %edi            # total_size
    add %ebp, %edi
    lea 8(%ebp), %ebx
next_tag:
    say "tag "
    say_decimal (%ebx)
    say ", "
    say_decimal 4(%ebx)
    say " bytes: "
    cmpl $TAG_END, (%ebx)
    je last_tag
    call print_tag
    mov 4(%ebx), %eax           # the size leaves the padding out
    lea 7(%ebx,%eax), %ebx
    and $~7, %ebx
    jmp next_tag
last_tag:
    add 4(%ebx), %ebx
    cmp %edi, %ebx
    say_if e, "ends the information\n", "does not end the information\n"
    debug_exit EXIT_DONE

print_tag:
    xor %esi, %esi
1:  mov handlers(%esi), %eax
    cmp (%ebx), %eax
    je 2f
    add $8, %esi
    cmp $handler_bytes, %esi
    jne 1b
    say "not known\n"
    ret
2:  jmp *handlers+4(%esi)

print_text:
    lea 8(%ebx), %eax
    say_string %eax
    say "\n"
    ret

print_module:
    say "module at "
    say_hex 8(%ebx)
    mov 12(%ebx), %ecx
    sub 8(%ebx), %ecx
    say ", "
    say_decimal %ecx
    say " bytes, sum "
    sum_of 8(%ebx), %ecx
    say_hex %eax
    say ", string: "
    lea 16(%ebx), %eax
    say_string %eax
    say "\n"
    ret

print_memory:
    say "mem_lower "
    say_decimal 8(%ebx)
    say ", mem_upper "
    say_decimal 12(%ebx)
    say "\n"
    ret

print_boot_device:
    say "boot device "
    say_hex 8(%ebx)
    say "\n"
    ret

print_memory_map:
    say "memory map, entries of "
    say_decimal 8(%ebx)
    say " bytes, version "
    say_decimal 12(%ebx)
    say "\n"
    lea 16(%ebx), %esi
    mov 4(%ebx), %ecx
    add %ebx, %ecx              # end of the tag
1:  cmp %ecx, %esi
    jae 2f
    say "  "
    say_hex64 0(%esi)
    say " "
    say_hex64 8(%esi)
    say " type "
    say_decimal 16(%esi)
    cmpl $0, 20(%esi)
    say_if e, "\n", ", reserved is not 0\n"
    add 8(%ebx), %esi
    jmp 1b
2:  ret

print_vbe:
    movzwl 8(%ebx), %eax
    say "VBE mode "
    say_hex %eax
    say "\n"
    ret

print_framebuffer:
    say "framebuffer "
    say_hex64 8(%ebx)
    say ", pitch "
    say_decimal 16(%ebx)
    say ", "
    say_decimal 20(%ebx)
    say " x "
    say_decimal 24(%ebx)
    movzbl 28(%ebx), %eax
    say " x "
    say_decimal %eax
    movzbl 29(%ebx), %eax
    say ", type "
    say_decimal %eax
    say "\n"
    ret

print_elf_sections:
    say_decimal 8(%ebx)
    say " sections of "
    say_decimal 12(%ebx)
    say " bytes\n"
    push %ebx
    mov 8(%ebx), %eax
    mov 16(%ebx), %ecx
    add $20, %ebx
    call print_sections
    pop %ebx
    ret

print_rsdp_1:
    mov $RSDP_1_BYTES, %ecx
    jmp print_rsdp
print_rsdp_2:
    mov 8 + 20(%ebx), %ecx      # its own length
print_rsdp:
    lea 8(%ebx), %esi
    xor %eax, %eax
1:  add (%esi), %al
    inc %esi
    dec %ecx
    jnz 1b
    test %al, %al
    say_if z, "RSDP, ", "RSDP with a wrong checksum, "
    movzbl 8 + 15(%ebx), %eax
    say "revision "
    say_decimal %eax
    cmpl $0x20445352, 8(%ebx)   # "RSD "
    say_if e, "\n", ", wrong signature\n"
    ret

print_load_base:
    say "load base "
    say_hex 8(%ebx)
    say "\n"
    ret

    define_report
    define_multiboot
