# SPDX-License-Identifier: Apache-2.0
# PVH: the state at entry, and what start_info says. Built as ELF64 with a note of 8 bytes
# and as ELF32 with one of 4.
    .include "tap.inc"
    .include "pvh.inc"
    .include "memory_map.inc"

.set CR0_PE_ET, 0x11
.set EFLAGS_VM_IF_TF, 0x20300
.set MSR_EFER, 0xc0000080
.set LOCAL_APIC_VERSION, 0xfee00030

    .data
all_ones: .long 0xffffffff

    .text
    .code32
pvh_main:
    # Flat segments: the same device is seen through each, 4 GiB are within the limit.
    mov %ds:LOCAL_APIC_VERSION, %eax
    cmp $0, %al
    ok_if ne, "DS reaches the local APIC"
    cmp %es:LOCAL_APIC_VERSION, %eax
    ok_if e, "ES is flat"
    cmp %ss:LOCAL_APIC_VERSION, %eax
    ok_if e, "SS is flat"
    cmp %cs:LOCAL_APIC_VERSION, %eax
    ok_if e, "CS is flat"
    cmpl $CR0_PE_ET, entry_cr0
    ok_if e, "CR0 has PE and ET only"
    cmpl $0, entry_cr4
    ok_if e, "CR4 is 0"
    testl $EFLAGS_VM_IF_TF, entry_eflags
    ok_if z, "EFLAGS has VM, IF and TF clear"
    mov $MSR_EFER, %ecx
    rdmsr
    or %edx, %eax
    ok_if z, "EFER is 0"
    cmpl $-1, all_ones
    ok_if e, "data segment is loaded"
    mov $bss_start, %edi
    xor %eax, %eax
    mov $(bss_probe_end - bss_start) / 4, %ecx
    cld
    repe scasl
    ok_if e, "bss is zero"

    mov entry_ebx, %ebp
    test $3, %ebp
    ok_if z, "EBX is aligned"
    cmpl $START_INFO_MAGIC, (%ebp)
    ok_if e, "start_info has its magic"
    cmpl $1, START_INFO_VERSION(%ebp)
    ok_if e, "start_info is version 1"
    cmpl $0, START_INFO_FLAGS(%ebp)
    ok_if e, "start_info has no flags"
    mov START_INFO_RSDP(%ebp), %eax
    test %eax, %eax
    ok_if nz, "start_info has an RSDP"
    cmpl $0x20445352, (%eax)    # "RSD "
    ok_if e, "RSDP has its signature"
    cmpl $1, START_INFO_MEMMAP_COUNT(%ebp)
    ok_if a, "memory map has entries"
    mov START_INFO_MEMMAP(%ebp), %ebx
    mov START_INFO_MEMMAP_COUNT(%ebp), %ecx
    mov $pvh_main, %eax
    call find_ram
    ok_if e, "memory map has RAM where this code is"
    cmpl $0, (%ebx)
    ok_if e, "memory map starts at 0"
    cmpl $E820_RAM, 16(%ebx)
    ok_if e, "memory map starts with RAM"

    mov START_INFO_CMDLINE(%ebp), %ebx
    test %ebx, %ebx
    ok_if nz, "there is a command line"
    print "# command line: "
    mov %ebx, %esi
    print_c_string
    print "\n"

    cmpl $1, START_INFO_MODULE_COUNT(%ebp)
    ok_if e, "there is one module"
    mov START_INFO_MODULES(%ebp), %ebx
    print "# module: "
    mov (%ebx), %esi            # address
    mov 8(%ebx), %ecx           # size
    mov $DEBUG_CONSOLE_PORT, %dx
    rep outsb
    tap_done

    define_find_ram find_ram, 24

    .bss
    .balign 4
bss_start: .skip 8192
bss_probe_end:
