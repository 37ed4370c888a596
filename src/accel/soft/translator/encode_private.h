/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host instructions as bytes (SDM vol. 2, chapter 2). Registers have the numbers of enum
 * x86_register: translated code runs on the processor that it was written for.
 */
#ifndef HUSK_SOFT_ENCODE_PRIVATE_H
#define HUSK_SOFT_ENCODE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "x86/x86.h"

/* Longer than what any call of an encode_ function writes. Behind what it leaves there
 * may be bytes that it has written, too, within this limit. */
#define ENCODE_LIMIT 32

/* Where bytes go: `at` moves on. `offset` is the place's name in code memory. */
struct code_writer {
    uint8_t *at;
    uint8_t *start;
    uint32_t start_offset;
};

static inline uint32_t writer_offset(const struct code_writer *writer)
{
    return writer->start_offset + (uint32_t)(writer->at - writer->start);
}

/* A memory operand. The number that is none has bit 3 clear, as those that need no REX.
 */
#define HOST_NO_REGISTER 0xf7
struct host_memory {
    uint8_t base;  /* or HOST_NO_REGISTER */
    uint8_t index; /* or HOST_NO_REGISTER; not RSP */
    uint8_t scale; /* shift */
    bool state;    /* relative to GS: in struct soft_cpu */
    int32_t displacement;
};

/* An instruction with a ModRM byte. */
struct host_instruction {
    uint8_t prefix_66;
    uint8_t prefix_repeat; /* f2 or f3: part of the opcode */
    bool lock;
    bool wide; /* REX.W */
    bool rex;  /* REX even if it says nothing: SPL, BPL, SIL, DIL */
    uint8_t opcode[3];
    uint8_t opcode_bytes;
    uint8_t reg; /* ModRM.reg */
    bool is_memory;
    uint8_t rm; /* not is_memory */
    struct host_memory memory;
    uint8_t immediate_bytes; /* 0, 1, 2, 4 */
    uint64_t immediate;
};

void encode(struct code_writer *writer, const struct host_instruction *instruction);

static inline void encode_bytes(struct code_writer *writer, const void *bytes,
                                unsigned count)
{
    memcpy(writer->at, bytes, count);
    writer->at += count;
}

static inline void encode_u8(struct code_writer *writer, uint8_t value)
{
    encode_bytes(writer, &value, sizeof(value));
}

static inline void encode_u32(struct code_writer *writer, uint32_t value)
{
    encode_bytes(writer, &value, sizeof(value));
}

/* MOV between 64-bit registers, and between a register and eight bytes of memory. */
void encode_move(struct code_writer *writer, unsigned to, unsigned from);
void encode_load(struct code_writer *writer, unsigned to, struct host_memory from);
void encode_store(struct code_writer *writer, struct host_memory to, unsigned from);
/* The shortest MOV of a constant. Flags stay. */
void encode_constant(struct code_writer *writer, unsigned to, uint64_t value);
/* LEA of 64 or 32 bits. */
void encode_lea(struct code_writer *writer, unsigned to, struct host_memory address,
                bool wide);
/* Two-operand ALU instruction by its opcode (reg, rm form: 03 ADD, 2b SUB, 33 XOR, 3b
 * CMP), 64 bits, with memory or register. */
void encode_alu_memory(struct code_writer *writer, uint8_t opcode, unsigned reg,
                       struct host_memory memory);
void encode_alu(struct code_writer *writer, uint8_t opcode, unsigned reg, unsigned rm);

/* JMP, CALL and Jcc with a distance of four bytes, to a place named by its offset. */
void encode_jump(struct code_writer *writer, uint32_t target);
void encode_call(struct code_writer *writer, uint32_t target);
void encode_jump_if(struct code_writer *writer, unsigned condition, uint32_t target);
/* Jcc with a distance of one byte, which the target must be in. */
void encode_short_jump_if(struct code_writer *writer, unsigned condition,
                          uint32_t target);

/* Condition codes (SDM vol. 1, table B-1). */
enum condition {
    CONDITION_O,
    CONDITION_NO,
    CONDITION_B,
    CONDITION_AE,
    CONDITION_E,
    CONDITION_NE,
    CONDITION_BE,
    CONDITION_A,
};

#endif
