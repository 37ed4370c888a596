/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk's option ROM: starts the kernel that fw_cfg holds, on behalf of PC firmware.
 *
 * Firmware finds it as an fw_cfg file, copies it below 1 MiB, and boots from it because it
 * has a bootstrap entry vector (PnP BIOS 1.0A, 3.2; BIOS Boot Specification 1.01, 3.3).
 * What is in fw_cfg and how each kind of kernel wants to be entered is said in
 * boot/fw_cfg_private.h. Bytes come by DMA if fw_cfg offers it, else one by one through
 * its data port.
 *
 * The bytes go to places above 1 MiB, so the work is done in protected mode; kernels with
 * a setup part are then entered in real mode. Stack and variables lie in the ROM itself:
 * husk's RAM below 1 MiB is never write-protected, and no kernel is ever loaded there.
 *
 * Everything is addressed relative to `rom`: the code runs wherever firmware has put it.
 * In protected mode EBP is its linear address.
 */

#define CODE32 0x08 /* selectors: all memory */
#define DATA32 0x10
#define CODE16 0x18 /* 64 KiB from the ROM on: the way back to real mode */
#define DATA16 0x20

#define CR0_PE 0x01

#define FW_CFG_SELECTOR 0x510 /* ports; QEMU, docs/specs/fw_cfg.rst */
#define FW_CFG_DATA 0x511
#define FW_CFG_DMA_LOW 0x518 /* big-endian; its upper half stays 0 */

#define FW_CFG_FEATURES 0x01 /* keys */
#define FW_CFG_KERNEL_ADDR 0x07
#define FW_CFG_KERNEL_SIZE 0x08
#define FW_CFG_INITRD_ADDR 0x0a
#define FW_CFG_INITRD_SIZE 0x0b
#define FW_CFG_KERNEL_ENTRY 0x10
#define FW_CFG_KERNEL_DATA 0x11
#define FW_CFG_INITRD_DATA 0x12
#define FW_CFG_CMDLINE_ADDR 0x13
#define FW_CFG_CMDLINE_SIZE 0x14
#define FW_CFG_CMDLINE_DATA 0x15
#define FW_CFG_SETUP_ADDR 0x16
#define FW_CFG_SETUP_SIZE 0x17
#define FW_CFG_SETUP_DATA 0x18
#define FW_CFG_FILE_DIRECTORY 0x19

#define FEATURE_DMA 0x02

#define DMA_ERROR 0x01 /* of the control word, which is big-endian in memory */
#define DMA_READ 0x02
#define DMA_SKIP 0x04

/* Video memory, ROMs and firmware: no kernel has anything here, but one that has segments
 * below as well as above comes in one piece. */
#define HOLE_START 0xa0000
#define HOLE_END 0x100000

#define DIRECTORY_ENTRY_BYTES 64 /* big-endian size and key, then the name */
#define DIRECTORY_ENTRY_KEY 4
#define DIRECTORY_ENTRY_NAME 8

#define SETUP_CODE_PARAGRAPHS 0x20 /* the real-mode entry is 0x200 behind the setup part */
#define SETUP_STACK_GAP 16

#define STACK_BYTES 512

	.section .rodata
	.balign 16
	.globl boot_option_rom_image
	.hidden boot_option_rom_image
boot_option_rom_image:

/* ---- the header ---- */

	.code16
rom:
	.byte 0x55, 0xaa
	.byte (rom_end - rom) / 512
	jmp initialise			/* at offset 3 */
	.org rom + 6
	.byte 0				/* checksum: filled in when husk hands the ROM over */
	.org rom + 0x1a
	.word pnp_header - rom

	.balign 16
pnp_header:
	.ascii "$PnP"
	.byte 1				/* revision */
	.byte 0x20 / 16			/* size in paragraphs */
	.word 0				/* no other header */
	.byte 0
	.byte 0				/* checksum: as above */
	.long 0				/* device id */
	.word manufacturer - rom
	.word product - rom
	.byte 0, 0, 0			/* device type */
	.byte 0				/* indicators */
	.word 0				/* boot connection vector: it hooks nothing */
	.word 0				/* disconnect vector */
	.word bootstrap - rom
	.word 0
	.word 0				/* static resources */

manufacturer:
	.asciz "husk"
product:
	.asciz "husk: kernel by fw_cfg"

/* Called when firmware scans for ROMs. Returns that there is something to boot from. */
initialise:
	mov $0x0020, %ax
	lret

/* ---- real mode: into protected mode ---- */

bootstrap:
	cli
	cld
	mov %cs, %ax
	mov %ax, %ds
	mov %ax, %ss
	mov $(stack_end - rom), %esp
	movzwl %ax, %ebp
	shl $4, %ebp

	/* What in the GDT depends on where the ROM is. */
	mov %ebp, %eax
	mov %ax, gdt_code16 - rom + 2
	mov %ax, gdt_data16 - rom + 2
	shr $16, %eax
	mov %al, gdt_code16 - rom + 4
	mov %al, gdt_data16 - rom + 4
	lea (gdt - rom)(%ebp), %eax
	mov %eax, gdt_pointer - rom + 2
	lgdtl gdt_pointer - rom

	/* A far pointer on an aligned stack: nothing crosses a cache line. */
	pushl $CODE32
	lea (protected - rom)(%ebp), %eax
	pushl %eax
	mov %cr0, %eax
	or $CR0_PE, %al
	mov %eax, %cr0
	lretl

	.code32
protected:
	mov $DATA32, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %fs
	mov %eax, %gs
	mov %eax, %ss
	lea (stack_end - rom)(%ebp), %esp

	mov $FW_CFG_FEATURES, %eax
	call read_number
	mov %al, (features - rom)(%ebp)

	mov $FW_CFG_SETUP_SIZE, %eax
	call read_number
	test %eax, %eax
	jnz with_setup
	mov $FW_CFG_KERNEL_SIZE, %eax
	call read_number
	test %eax, %eax
	jz nothing_to_boot

/* ---- kernels that are entered in protected mode ---- */

without_setup:
	lea (kernel_keys - rom)(%ebp), %esi
	call load
	call find_entry_file
	jne nothing_to_boot
	lea (entry_registers - rom)(%ebp), %edi
	mov $(entry_registers_end - entry_registers), %ecx
	call read
	mov $FW_CFG_KERNEL_ENTRY, %eax
	call read_number
	mov %eax, %ecx
	mov (entry_registers - rom)(%ebp), %eax
	mov (entry_registers - rom + 4)(%ebp), %ebx
	jmp *%ecx

/* Selects the file with the registers. ZF is clear if there is none. */
find_entry_file:
	mov $FW_CFG_FILE_DIRECTORY, %eax
	call read_number
	bswap %eax
	mov %eax, %ebx
1:	sub $1, %ebx
	jb 3f				/* ZF is clear here: EBX has become -1 */
	lea (directory_entry - rom)(%ebp), %edi
	mov $DIRECTORY_ENTRY_BYTES, %ecx
	call read
	lea (directory_entry - rom + DIRECTORY_ENTRY_NAME)(%ebp), %edi
	lea (entry_file - rom)(%ebp), %esi
	mov $(entry_file_end - entry_file), %ecx
	repe cmpsb
	jne 1b
	movzwl (directory_entry - rom + DIRECTORY_ENTRY_KEY)(%ebp), %eax
	xchg %al, %ah
	mov $FW_CFG_SELECTOR, %edx
	out %ax, %dx
	cmp %eax, %eax
3:	ret

/* ---- kernels that are entered in real mode ---- */

with_setup:
	lea (setup_keys - rom)(%ebp), %esi
1:	call load
	lea (setup_keys_end - rom)(%ebp), %eax
	cmp %eax, %esi
	jne 1b

	mov $FW_CFG_SETUP_ADDR, %eax
	call read_number
	mov %eax, %ebx
	mov $FW_CFG_CMDLINE_ADDR, %eax
	call read_number
	sub %ebx, %eax
	sub $SETUP_STACK_GAP, %eax
	mov %eax, %edi			/* SP */
	shr $4, %ebx			/* segment of the setup part */
	mov $(enter_setup - rom), %ecx
	jmp leave_protected_mode

nothing_to_boot:
	mov $(next_device - rom), %ecx

/* Goes to CX in the ROM, in real mode. */
leave_protected_mode:
	pushl $CODE16
	pushl $(1f - rom)
	lret
	.code16
1:	mov $DATA16, %ax		/* for its limit of 64 KiB */
	mov %ax, %ds
	mov %ax, %es
	mov %ax, %fs
	mov %ax, %gs
	mov %ax, %ss
	mov $(stack_end - rom), %esp
	mov %ebp, %eax
	shr $4, %eax
	push %ax
	push %cx
	mov %cr0, %edx
	and $~CR0_PE, %dl
	mov %edx, %cr0
	lret

enter_setup:
	mov %bx, %ds
	mov %bx, %es
	mov %bx, %fs
	mov %bx, %gs
	mov %bx, %ss
	mov %edi, %esp
	add $SETUP_CODE_PARAGRAPHS, %bx
	push %bx
	pushw $0
	lret

/* Boot failure: firmware goes on with what else it has. */
next_device:
	mov %ax, %ds
	mov %ax, %ss
	sti
	int $0x18

/* ---- fw_cfg, in protected mode ---- */

	.code32
/* What the three keys at ESI describe goes to memory. ESI moves on to the next three. */
load:
	movzwl (%esi), %eax
	call read_number
	mov %eax, %edi
	movzwl 2(%esi), %eax
	call read_number
	mov %eax, %ecx
	movzwl 4(%esi), %eax
	add $6, %esi
	mov $FW_CFG_SELECTOR, %edx
	out %ax, %dx

	mov $HOLE_START, %eax
	sub %edi, %eax
	jbe read			/* all of it lies above */
	cmp %eax, %ecx
	jbe read			/* all of it lies below */
	sub %eax, %ecx
	push %ecx
	mov %eax, %ecx
	call read
	mov $(HOLE_END - HOLE_START), %ecx
	call skip
	pop %ecx
	sub $(HOLE_END - HOLE_START), %ecx
	mov $HOLE_END, %edi
	ja read
	ret

/* ECX bytes of what is selected go to EDI. */
read:
	mov $(DMA_READ << 24), %eax
	testb $FEATURE_DMA, (features - rom)(%ebp)
	jnz transfer
	mov $FW_CFG_DATA, %edx
	rep insb
	ret

/* ECX bytes of what is selected are left out. */
skip:
	mov $(DMA_SKIP << 24), %eax
	testb $FEATURE_DMA, (features - rom)(%ebp)
	jnz transfer
	mov $FW_CFG_DATA, %edx
1:	in %dx, %al
	dec %ecx
	jnz 1b
	ret

/* Does what the control word EAX says with ECX bytes and address EDI. */
transfer:
	bswap %edi
	bswap %ecx
	mov %eax, (dma_control - rom)(%ebp)
	mov %ecx, (dma_length - rom)(%ebp)
	mov %edi, (dma_address - rom + 4)(%ebp)
	lea (dma_control - rom)(%ebp), %eax
	bswap %eax
	mov $FW_CFG_DMA_LOW, %edx
	out %eax, %dx
1:	mov (dma_control - rom)(%ebp), %eax
	test $(DMA_ERROR << 24), %eax
	jnz nothing_to_boot
	test %eax, %eax
	jnz 1b
	ret

/* EAX becomes the number of 4 bytes that key EAX has. */
read_number:
	push %edx
	push %ecx
	push %edi
	mov $FW_CFG_SELECTOR, %edx
	out %ax, %dx
	lea (number - rom)(%ebp), %edi
	mov $4, %ecx
	mov $FW_CFG_DATA, %edx
	rep insb
	pop %edi
	pop %ecx
	pop %edx
	mov (number - rom)(%ebp), %eax
	ret

/* ---- constants ---- */

	.balign 2
setup_keys:				/* where to, how much, what */
	.word FW_CFG_SETUP_ADDR, FW_CFG_SETUP_SIZE, FW_CFG_SETUP_DATA
	.word FW_CFG_CMDLINE_ADDR, FW_CFG_CMDLINE_SIZE, FW_CFG_CMDLINE_DATA
	.word FW_CFG_INITRD_ADDR, FW_CFG_INITRD_SIZE, FW_CFG_INITRD_DATA
kernel_keys:
	.word FW_CFG_KERNEL_ADDR, FW_CFG_KERNEL_SIZE, FW_CFG_KERNEL_DATA
setup_keys_end:

entry_file:
	.asciz "etc/husk/entry"
entry_file_end:

	.balign 8
gdt:
	.quad 0
	.quad 0x00cf9b000000ffff	/* CODE32 */
	.quad 0x00cf93000000ffff	/* DATA32 */
gdt_code16:
	.quad 0x00009b000000ffff	/* its base, and the next one's, is the ROM */
gdt_data16:
	.quad 0x000093000000ffff
gdt_end:

/* ---- variables ---- */

	.balign 16
dma_control:				/* big-endian, all three */
	.long 0
dma_length:
	.long 0
dma_address:
	.quad 0
	.word 0				/* aligns the base behind it */
gdt_pointer:
	.word gdt_end - gdt - 1
	.long 0
number:
	.long 0
features:
	.byte 0
	.balign 4
entry_registers:			/* EAX, EBX */
	.long 0, 0
entry_registers_end:
directory_entry:
	.skip DIRECTORY_ENTRY_BYTES
	.balign 16
	.skip STACK_BYTES
stack_end:

	.balign 512
rom_end:

	.section .note.GNU-stack, "", @progbits
