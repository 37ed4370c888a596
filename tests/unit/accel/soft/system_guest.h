/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guests of a few instructions in real, protected and long mode, with descriptor tables
 * and a gate for each vector. A gate's handler only stops the processor, so that a test
 * can look at it as the handler finds it.
 */
#ifndef HUSK_TESTS_SOFT_SYSTEM_GUEST_H
#define HUSK_TESTS_SOFT_SYSTEM_GUEST_H

#include "fixture.h"

/* Code as assembly. `bits` is the .code directive's. */
/* NOLINTBEGIN(bugprone-macro-parentheses): strings to be joined */
#define GUEST(name, bits, text)                                                          \
    __asm__(".pushsection .rodata\n"                                                     \
            ".code" #bits "\n" #name ":\n" text "\n" #name "_end:\n"                     \
            ".code64\n"                                                                  \
            ".popsection\n");                                                            \
    extern const uint8_t name[] __asm__(#name);                                          \
    extern const uint8_t name##_end[] __asm__(#name "_end")
/* NOLINTEND(bugprone-macro-parentheses) */

#define GUEST_BYTES(name) ((size_t)((uintptr_t)(name##_end) - (uintptr_t)(name)))

/* Puts a guest at GUEST_CODE, where it runs next. */
#define GUEST_LOAD(fixture, name) guest_load((fixture), (name), GUEST_BYTES(name))

/* Stops the processor; it goes on behind it. */
#define GUEST_STOP "outb %al, $0xf4\n"
#define GUEST_STOP_PORT 0xf4

enum guest_layout {
    GUEST_IDT = 0x1000,
    GUEST_HANDLERS = 0x3000, /* sixteen bytes each */
    GUEST_GDT = 0x4000,
    GUEST_TSS = 0x4800,
    GUEST_OTHER_TSS = 0x4a00,
    GUEST_STACK = 0x6000,       /* tops of stacks: of the guest when it starts */
    GUEST_STACK0 = 0x7000,      /* in the TSS for CPL 0 */
    GUEST_STACK_TABLE = 0x8000, /* entry 1 of the interrupt stack table */
    GUEST_USER_STACK = 0x9000,
    GUEST_DATA = 0xa000,
    GUEST_CODE = 0x10000, /* CS base in real mode */
    GUEST_PAGES = 0x20000,
    GUEST_CHAIN = 0x100000,
};

/* Selectors in the GDT. */
enum guest_selector {
    GUEST_CS32 = 0x08,
    GUEST_CS64 = 0x10,
    GUEST_DS = 0x18,
    GUEST_USER_CS32 = 0x23,
    GUEST_USER_DS = 0x2b,
    GUEST_USER_CS64 = 0x33,
    GUEST_TR = 0x38,
    GUEST_OTHER_TR = 0x48,
    GUEST_CALL_GATE = 0x5b, /* to a handler */
    GUEST_USER_SS16 = 0x6b,
    GUEST_CONFORMING = 0x70,
    GUEST_TASK_GATE = 0x78,
    GUEST_ABSENT_DS = 0x80,
    GUEST_DS1 = 0x89,
    GUEST_EXECUTE_ONLY = 0x90,
    GUEST_GDT_LIMIT = 0x97,
};

void guest_real(struct soft_fixture *fixture);
void guest_protected(struct soft_fixture *fixture); /* CS32 and DS, paging off */
void guest_long(struct soft_fixture *fixture);      /* first 16 MiB mapped for all */

void guest_load(struct soft_fixture *fixture, const void *code, size_t size);

/* Loads a guest that runs three times through so many pages from GUEST_CHAIN on, each
 * with `add eax, 1` and a jump to the next, and stops. */
void guest_load_chain(struct soft_fixture *fixture, uint64_t pages);

/* Makes the program run at CPL 3, in segments of the current mode, on its own stack. */
void guest_to_user(struct soft_fixture *fixture);

/* Replaces a gate of protected or long mode: type and DPL as in its sixth byte. */
void guest_set_gate(struct soft_fixture *fixture, uint8_t vector, uint16_t selector,
                    uint8_t access, uint8_t stack_entry);

/* Runs until the handler of a vector has stopped it, which is returned, or the guest
 * itself, or a triple fault. */
enum { GUEST_STOPPED = 0x100, GUEST_SHUT_DOWN };
unsigned guest_run(struct soft_fixture *fixture);

/* Slot `number` from the top of the stack, of two, four or eight bytes by mode. */
uint64_t guest_stack(struct soft_fixture *fixture, unsigned number);

uint32_t guest_read32(struct soft_fixture *fixture, uint64_t gpa);
void guest_write64(struct soft_fixture *fixture, uint64_t gpa, uint64_t value);

#endif
