/* SPDX-License-Identifier: Apache-2.0 */
/* Host instructions as bytes; see encode_private.h. */
#include "accel/soft/translator/encode_private.h"

#include "base/check.h"

enum { REX = 0x40, REX_B = 0x1, REX_X = 0x2, REX_R = 0x4, REX_W = 0x8 };

#define PREFIX_GS 0x65
#define PREFIX_LOCK 0xf0
/* ModRM.rm and SIB.base, SIB.index of the encodings that mean something else. */
#define RM_SIB 4
#define INDEX_NONE 4
#define BASE_NONE 5

/* What follows puts bytes at `at` and returns where the next ones go: a place in a
 * register, not in a struct that each of these bytes could be part of. */
static uint8_t *put_u8(uint8_t *at, unsigned value)
{
    *at = (uint8_t)value;
    return at + 1;
}

static uint8_t *put_modrm(uint8_t *at, unsigned mod, unsigned reg, unsigned rm)
{
    return put_u8(at, mod << 6 | (reg & 7) << 3 | (rm & 7));
}

static uint8_t *put_sib(uint8_t *at, unsigned scale, unsigned index, unsigned base)
{
    return put_u8(at, scale << 6 | (index & 7) << 3 | (base & 7));
}

/* `bytes` of the displacement; all four are written, what follows goes over the rest. */
static uint8_t *put_displacement(uint8_t *at, int32_t displacement, unsigned bytes)
{
    memcpy(at, &displacement, sizeof(displacement));
    return at + bytes;
}

/* Without base: SIB with a displacement of four bytes. RBP and R13 as base need one, RSP
 * and R12 need a SIB byte (SDM table 2-2). */
static uint8_t *put_memory(uint8_t *at, unsigned reg, const struct host_memory *memory)
{
    static const uint8_t displacement_bytes[] = {0, 1, 4};
    const int32_t displacement = memory->displacement;
    const bool indexed = memory->index != HOST_NO_REGISTER;
    const unsigned index = indexed ? memory->index : INDEX_NONE;
    unsigned mod = 2;

    if (memory->base == HOST_NO_REGISTER) {
        at = put_modrm(at, 0, reg, RM_SIB);
        at = put_sib(at, memory->scale, index, BASE_NONE);
        return put_displacement(at, displacement, 4);
    }
    if (displacement == 0 && (memory->base & 7) != BASE_NONE)
        mod = 0;
    else if (displacement == (int8_t)displacement)
        mod = 1;
    if (indexed || (memory->base & 7) == RM_SIB) {
        at = put_modrm(at, mod, reg, RM_SIB);
        at = put_sib(at, memory->scale, index, memory->base);
    } else {
        at = put_modrm(at, mod, reg, memory->base);
    }
    return put_displacement(at, displacement, displacement_bytes[mod]);
}

/* The bits of REX that say something. Bit 3 of a register's number goes there. */
static unsigned rex_of(const struct host_instruction *instruction)
{
    const bool memory = instruction->is_memory;
    const unsigned rm = memory ? instruction->memory.base : instruction->rm;
    const unsigned index = memory ? instruction->memory.index : 0;

    return (instruction->wide ? REX_W : 0) | (instruction->reg >> 3 & 1) * REX_R |
           (index >> 3 & 1) * REX_X | (rm >> 3 & 1) * REX_B;
}

static uint8_t *put_prefixes(uint8_t *at, const struct host_instruction *instruction)
{
    if (instruction->lock)
        at = put_u8(at, PREFIX_LOCK);
    if (instruction->prefix_66 != 0)
        at = put_u8(at, instruction->prefix_66);
    if (instruction->prefix_repeat != 0)
        at = put_u8(at, instruction->prefix_repeat);
    return at;
}

/* Of the opcode all bytes of the field are written, too. */
void encode(struct code_writer *writer, const struct host_instruction *instruction)
{
    const unsigned rex = rex_of(instruction);
    uint8_t *at = writer->at;

    if (instruction->is_memory && instruction->memory.state)
        at = put_u8(at, PREFIX_GS);
    if ((instruction->lock | instruction->prefix_66 | instruction->prefix_repeat) != 0)
        at = put_prefixes(at, instruction);
    if (rex != 0 || instruction->rex)
        at = put_u8(at, REX | rex);
    memcpy(at, instruction->opcode, sizeof(instruction->opcode));
    at += instruction->opcode_bytes;
    if (instruction->is_memory)
        at = put_memory(at, instruction->reg, &instruction->memory);
    else
        at = put_modrm(at, 3, instruction->reg, instruction->rm);
    if (instruction->immediate_bytes != 0)
        memcpy(at, &instruction->immediate, instruction->immediate_bytes);
    writer->at = at + instruction->immediate_bytes;
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

void encode_short_jump_if(struct code_writer *writer, unsigned condition, uint32_t target)
{
    const int32_t distance = (int32_t)(target - (writer_offset(writer) + 2));

    CHECK(distance == (int8_t)distance);
    encode_u8(writer, (uint8_t)(0x70 | condition));
    encode_u8(writer, (uint8_t)distance);
}
