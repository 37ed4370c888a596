/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest of `husk bench multiboot` and the code that makes files of it agree on;
 * included by assembly too, so there are only constants here. */
#ifndef HUSK_BENCH_MULTIBOOT_GUEST_PRIVATE_H
#define HUSK_BENCH_MULTIBOOT_GUEST_PRIVATE_H

/* Where its first byte lies: the start of memory that no PC uses for itself. */
#define GUEST_ADDRESS 0x100000

/* Fields behind the Multiboot header, from the first byte: */
#define GUEST_END_OFFSET 12 /* address behind the last byte, filled in */
#define GUEST_ENTRY_OFFSET 16

/* Zeroed memory that it wants behind its end, for the stack. */
#define GUEST_STACK_BYTES 4096

/* What it adds up of the kernel and of a module: so many bytes at the start and as many
 * at the end, as 32-bit words. */
#define GUEST_SUM_BYTES 4096

/* Its line is this, the sum in 8 hexadecimal digits, and a newline. */
#define GUEST_GREETING "husk-bench "
#define GUEST_SUM_DIGITS 8

/* It ends by a write of this value, which a PC emulator makes exit status 33. */
#define GUEST_EXIT_PORT 0xf4
#define GUEST_EXIT_VALUE 0x10

#endif
