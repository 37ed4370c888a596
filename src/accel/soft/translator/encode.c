/* SPDX-License-Identifier: Apache-2.0 */
/* Host instructions as bytes; see encode_private.h. */
#include "accel/soft/translator/encode_private.h"

#include <string.h>

enum { REX = 0x40, REX_B = 0x1, REX_X = 0x2, REX_R = 0x4, REX_W = 0x8 };

#define PREFIX_GS 0x65
/* ModRM.rm and SIB.base, SIB.index of the encodings that mean something else. */
#define RM_SIB 4
#define INDEX_NONE 4
#define BASE_NONE 5

void encode_u8(struct code_writer *writer, uint8_t value)
{
    *writer->at++ = value;
}

void encode_u32(struct code_writer *writer, uint32_t value)
{
    memcpy(writer->at, &value, sizeof(value));
    writer->at += sizeof(value);
}

void encode_bytes(struct code_writer *writer, const void *bytes, unsigned count)
{
    memcpy(writer->at, bytes, count);
    writer->at += count;
}

static void put_modrm(struct code_writer *writer, unsigned mod, unsigned reg, unsigned rm)
{
    encode_u8(writer, (uint8_t)(mod << 6 | (reg & 7) << 3 | (rm & 7)));
}

static void put_sib(struct code_writer *writer, unsigned scale, unsigned index,
                    unsigned base)
{
    encode_u8(writer, (uint8_t)(scale << 6 | (index & 7) << 3 | (base & 7)));
}

/* Without base: SIB with a displacement of four bytes. RBP and R13 as base need one, RSP
 * and R12 need a SIB byte (SDM table 2-2). */
static void put_memory(struct code_writer *writer, unsigned reg,
                       const struct host_memory *memory)
{
    bool based = memory->base != HOST_NO_REGISTER;
    bool indexed = memory->index != HOST_NO_REGISTER;
    bool small = memory->displacement == (int8_t)memory->displacement;
    unsigned mod = 2;

    if (!based) {
        put_modrm(writer, 0, reg, RM_SIB);
        put_sib(writer, memory->scale, indexed ? memory->index : INDEX_NONE, BASE_NONE);
        encode_u32(writer, (uint32_t)memory->displacement);
        return;
    }
    if (memory->displacement == 0 && (memory->base & 7) != BASE_NONE)
        mod = 0;
    else if (small)
        mod = 1;
    if (indexed || (memory->base & 7) == RM_SIB) {
        put_modrm(writer, mod, reg, RM_SIB);
        put_sib(writer, memory->scale, indexed ? memory->index : INDEX_NONE,
                memory->base);
    } else {
        put_modrm(writer, mod, reg, memory->base);
    }
    if (mod == 1)
        encode_u8(writer, (uint8_t)memory->displacement);
    else if (mod == 2)
        encode_u32(writer, (uint32_t)memory->displacement);
}

static uint8_t rex_of(const struct host_instruction *instruction)
{
    uint8_t rex = instruction->rex ? REX : 0;

    if (instruction->wide)
        rex |= REX | REX_W;
    if (instruction->reg >= 8)
        rex |= REX | REX_R;
    if (!instruction->is_memory)
        return instruction->rm >= 8 ? rex | REX | REX_B : rex;
    if (instruction->memory.base != HOST_NO_REGISTER && instruction->memory.base >= 8)
        rex |= REX | REX_B;
    if (instruction->memory.index != HOST_NO_REGISTER && instruction->memory.index >= 8)
        rex |= REX | REX_X;
    return rex;
}

void encode(struct code_writer *writer, const struct host_instruction *instruction)
{
    uint8_t rex = rex_of(instruction);

    if (instruction->is_memory && instruction->memory.state)
        encode_u8(writer, PREFIX_GS);
    if (instruction->lock)
        encode_u8(writer, 0xf0);
    if (instruction->prefix_66 != 0)
        encode_u8(writer, instruction->prefix_66);
    if (instruction->prefix_repeat != 0)
        encode_u8(writer, instruction->prefix_repeat);
    if (rex != 0)
        encode_u8(writer, rex);
    encode_bytes(writer, instruction->opcode, instruction->opcode_bytes);
    if (instruction->is_memory)
        put_memory(writer, instruction->reg, &instruction->memory);
    else
        put_modrm(writer, 3, instruction->reg, instruction->rm);
    encode_bytes(writer, &instruction->immediate, instruction->immediate_bytes);
}

/* ---- common ones ---- */

void encode_alu(struct code_writer *writer, uint8_t opcode, unsigned reg, unsigned rm)
{
    encode(writer, &(struct host_instruction){.wide = true,
                                              .opcode = {opcode},
                                              .opcode_bytes = 1,
                                              .reg = (uint8_t)reg,
                                              .rm = (uint8_t)rm});
}

void encode_alu_memory(struct code_writer *writer, uint8_t opcode, unsigned reg,
                       struct host_memory memory)
{
    encode(writer, &(struct host_instruction){.wide = true,
                                              .opcode = {opcode},
                                              .opcode_bytes = 1,
                                              .reg = (uint8_t)reg,
                                              .is_memory = true,
                                              .memory = memory});
}

void encode_move(struct code_writer *writer, unsigned to, unsigned from)
{
    if (to == from)
        return;
    encode_alu(writer, 0x8b, to, from);
}

void encode_load(struct code_writer *writer, unsigned to, struct host_memory from)
{
    encode_alu_memory(writer, 0x8b, to, from);
}

void encode_store(struct code_writer *writer, struct host_memory to, unsigned from)
{
    encode_alu_memory(writer, 0x89, from, to);
}

void encode_lea(struct code_writer *writer, unsigned to, struct host_memory address,
                bool wide)
{
    encode(writer, &(struct host_instruction){.wide = wide,
                                              .opcode = {0x8d},
                                              .opcode_bytes = 1,
                                              .reg = (uint8_t)to,
                                              .is_memory = true,
                                              .memory = address});
}

void encode_constant(struct code_writer *writer, unsigned to, uint64_t value)
{
    uint8_t rex = to >= 8 ? REX | REX_B : 0;

    if (value == (uint64_t)(int32_t)value && value > UINT32_MAX) {
        encode(writer, &(struct host_instruction){.wide = true,
                                                  .opcode = {0xc7},
                                                  .opcode_bytes = 1,
                                                  .rm = (uint8_t)to,
                                                  .immediate_bytes = 4,
                                                  .immediate = value});
        return;
    }
    if (value > UINT32_MAX)
        rex |= REX | REX_W;
    if (rex != 0)
        encode_u8(writer, rex);
    encode_u8(writer, (uint8_t)(0xb8 | (to & 7)));
    encode_bytes(writer, &value, value > UINT32_MAX ? 8 : 4);
}

/* ---- branches ---- */

static void put_distance(struct code_writer *writer, uint32_t target)
{
    encode_u32(writer, target - (writer_offset(writer) + 4));
}

void encode_jump(struct code_writer *writer, uint32_t target)
{
    encode_u8(writer, 0xe9);
    put_distance(writer, target);
}

void encode_call(struct code_writer *writer, uint32_t target)
{
    encode_u8(writer, 0xe8);
    put_distance(writer, target);
}

void encode_jump_if(struct code_writer *writer, unsigned condition, uint32_t target)
{
    encode_u8(writer, 0x0f);
    encode_u8(writer, (uint8_t)(0x80 | condition));
    put_distance(writer, target);
}
