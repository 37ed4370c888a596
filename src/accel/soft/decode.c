/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instruction decoder: prefixes, opcode, ModRM, address and immediates, in the order
 * of the bytes; what the bytes mean is looked up in the index over the forms.
 *
 * References are to the SDM, vol. 2, chapter 2, unless they say otherwise. Where
 * processors differ, this one does what Intel's do.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "accel/soft/cpu_private.h"
#include "accel/soft/form_index_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/instruction_private.h"
#include "base/bytes.h"
#include "base/check.h"

/* ---- bytes ---- */

/* What is known of an instruction while it is decoded. */
struct decoder {
    const uint8_t *bytes;
    size_t at;    /* next byte */
    size_t limit; /* bytes there are, at most INSTRUCTION_LIMIT */

    enum code_class class;
    uint8_t size_mode;   /* row of default sizes: 0, 1, 2 for 16, 32, 64-bit code */
    bool operand_prefix; /* 66h */
    bool address_prefix; /* 67h */
    bool lock;
    uint8_t repeat;  /* F2h or F3h, the last one counts */
    uint8_t segment; /* override, or NO_SEGMENT */
    uint8_t rex;     /* REX; of VEX the same bits: W R X B */
    bool vex;        /* there is VEX, which says: */
    uint8_t vex_register;
    bool vex_256;
    unsigned mandatory; /* enum mandatory_prefix */
    uint8_t map;
    uint8_t opcode;
};
#define NO_SEGMENT 0xff

enum { REX_B = 0x1, REX_X = 0x2, REX_R = 0x4, REX_W = 0x8 };

static bool has_bytes(const struct decoder *decoder, size_t count)
{
    return decoder->limit - decoder->at >= count;
}

/* Why bytes are missing: while fewer than 15 are there, more may come, or their fetch
 * fault. */
static enum decode_result out_of_bytes(const struct decoder *decoder)
{
    return decoder->limit < INSTRUCTION_LIMIT ? DECODE_MORE : DECODE_TOO_LONG;
}

/* 1, 2, 4 or 8 bytes, sign-extended. */
static uint64_t load_extended(const uint8_t *bytes, size_t count)
{
    switch (count) {
    case 1:
        return (uint64_t)(int8_t)bytes[0];
    case 2:
        return (uint64_t)(int16_t)load_le16(bytes);
    case 4:
        return (uint64_t)(int32_t)load_le32(bytes);
    default:
        return load_le64(bytes);
    }
}

/* ---- prefixes ---- */

enum prefix_kind {
    KIND_NONE,
    KIND_REX,
    KIND_OPERAND,
    KIND_ADDRESS,
    KIND_LOCK,
    KIND_REPEAT,
    KIND_SEGMENT, /* KIND_SEGMENT + enum x86_segment_register */
};

static const uint8_t prefix_kinds[256] = {
    [0x26] = KIND_SEGMENT + X86_ES, [0x2e] = KIND_SEGMENT + X86_CS,
    [0x36] = KIND_SEGMENT + X86_SS, [0x3e] = KIND_SEGMENT + X86_DS,
    [0x64] = KIND_SEGMENT + X86_FS, [0x65] = KIND_SEGMENT + X86_GS,
    [0x40 ... 0x4f] = KIND_REX,     [0x66] = KIND_OPERAND,
    [0x67] = KIND_ADDRESS,          [0xf0] = KIND_LOCK,
    [0xf2 ... 0xf3] = KIND_REPEAT,
};

static void take_prefix(struct decoder *decoder, uint8_t byte)
{
    uint8_t kind = prefix_kinds[byte];

    switch (kind) {
    case KIND_OPERAND:
        decoder->operand_prefix = true;
        return;
    case KIND_ADDRESS:
        decoder->address_prefix = true;
        return;
    case KIND_LOCK:
        decoder->lock = true;
        return;
    case KIND_REPEAT:
        decoder->repeat = byte;
        return;
    default:
        /* 64-bit code has only FS and GS; the others do not even cancel these. */
        if (decoder->class != CLASS_64 || kind >= KIND_SEGMENT + X86_FS)
            decoder->segment = (uint8_t)(kind - KIND_SEGMENT);
        return;
    }
}

/* A REX prefix counts only directly before the opcode (2.2.1). */
static bool take_prefixes(struct decoder *decoder)
{
    for (; has_bytes(decoder, 1); decoder->at++) {
        uint8_t byte = decoder->bytes[decoder->at];
        uint8_t kind = prefix_kinds[byte];

        if (kind == KIND_NONE || (kind == KIND_REX && decoder->class != CLASS_64))
            return true;
        decoder->rex = kind == KIND_REX ? byte : 0;
        if (kind != KIND_REX)
            take_prefix(decoder, byte);
    }
    return false;
}

/* ---- opcode ---- */

/* F2h and F3h win over 66h, which is then an operand size prefix (vol. 2, A.2.4.3... as
 * in 66 F2 0F 38 F1, CRC32 of a word). */
static unsigned legacy_mandatory(const struct decoder *decoder)
{
    if (decoder->repeat != 0)
        return decoder->repeat == 0xf3 ? MANDATORY_F3 : MANDATORY_F2;
    return decoder->operand_prefix ? MANDATORY_66 : MANDATORY_NONE;
}

static enum decode_result take_legacy_opcode(struct decoder *decoder)
{
    decoder->map = MAP_ONE;
    decoder->mandatory = legacy_mandatory(decoder);
    decoder->opcode = decoder->bytes[decoder->at++];
    if (decoder->opcode != 0x0f)
        return DECODE_OK;
    if (!has_bytes(decoder, 1))
        return out_of_bytes(decoder);
    decoder->map = MAP_0F;
    decoder->opcode = decoder->bytes[decoder->at++];
    if (decoder->opcode != 0x38 && decoder->opcode != 0x3a)
        return DECODE_OK;
    if (!has_bytes(decoder, 1))
        return out_of_bytes(decoder);
    decoder->map = decoder->opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
    decoder->opcode = decoder->bytes[decoder->at++];
    return DECODE_OK;
}

/* The last VEX byte: vvvv, L and pp; W only in the long form (2.3.5). */
static void take_vex_fields(struct decoder *decoder, uint8_t byte)
{
    decoder->vex_register = (uint8_t)(~byte >> 3 & 0xf);
    decoder->vex_256 = (byte & 0x4) != 0;
    decoder->mandatory = byte & 3u;
    if (decoder->class == CLASS_64)
        return;
    decoder->vex_register &= 7;
    decoder->rex &= REX_W;
}

static enum decode_result take_vex_opcode(struct decoder *decoder)
{
    const uint8_t *bytes = decoder->bytes + decoder->at;
    size_t length = bytes[0] == 0xc5 ? 3 : 4; /* with the opcode */
    bool after_prefix = decoder->lock || decoder->repeat != 0 ||
                        decoder->operand_prefix || decoder->rex != 0;

    if (!has_bytes(decoder, length))
        return out_of_bytes(decoder);
    decoder->vex = true;
    if (length == 3) {
        decoder->map = MAP_0F;
        decoder->rex = (bytes[1] & 0x80) == 0 ? REX_R : 0;
        take_vex_fields(decoder, bytes[1]);
    } else {
        decoder->map = bytes[1] & 0x1f; /* 1, 2, 3 are maps 0F, 0F38, 0F3A */
        decoder->rex = (uint8_t)((~bytes[1] >> 5 & 7) | (bytes[2] & 0x80) >> 4);
        take_vex_fields(decoder, bytes[2]);
    }
    decoder->at += length;
    decoder->opcode = bytes[length - 1];
    if (after_prefix || decoder->map < MAP_0F || decoder->map > MAP_0F3A)
        return DECODE_UNDEFINED; /* 2.3.2, 2.3.3 and 2.3.6.1 */
    return DECODE_OK;
}

/* C4h and C5h are LES and LDS outside 64-bit code, as long as what would be their ModRM
 * is memory; and always in real and virtual-8086 mode (2.3.5). EVEX needs nothing: 62h
 * has no form in 64-bit code, and elsewhere only BOUND, whose operand is memory. */
static enum decode_result take_opcode(struct decoder *decoder)
{
    uint8_t byte = decoder->bytes[decoder->at];
    bool vex = (byte & 0xfe) == 0xc4 && decoder->class != CLASS_REAL;

    if (vex && decoder->class != CLASS_64) {
        if (!has_bytes(decoder, 2))
            return out_of_bytes(decoder);
        vex = decoder->bytes[decoder->at + 1] >= 0xc0;
    }
    return vex ? take_vex_opcode(decoder) : take_legacy_opcode(decoder);
}

/* ---- form ---- */

static const struct form_entry *choose(const struct form_index *index,
                                       const struct decoder *decoder,
                                       const struct form_opcode *opcode, uint8_t modrm)
{
    const struct form_slot *slot = form_index_slot(index, opcode, modrm);
    uint32_t situation = form_situation(decoder->class, decoder->vex, decoder->mandatory);

    for (unsigned i = 0; i < slot->count; i++) {
        const struct form_entry *entry =
            &index->entries[index->candidates[slot->first + i]];

        if ((entry->situations & situation) != 0 &&
            (entry->rm < 0 || entry->rm == (modrm & 7)))
            return entry;
    }
    return NULL;
}

/* 90h is NOP, and with F3h PAUSE; but with REX.B it is XCHG like 91h to 97h. */
static const struct form_opcode *opcode_forms(const struct form_index *index,
                                              const struct decoder *decoder)
{
    unsigned opcode = decoder->opcode;

    if (decoder->map == MAP_ONE && opcode == 0x90 && (decoder->rex & REX_B) != 0)
        opcode = 0x91;
    return &index->opcodes[decoder->map][opcode];
}

/* ---- sizes ---- */

/* Operand sizes for [66h] and with REX.W [2]; SDM vol. 1, tables 3-3 and 3-4. Near
 * branches of 64-bit code ignore 66h, as on Intel (AMD cuts the target to 16 bits). */
static const uint8_t operand_sizes[][3][3] = {
    [SIZE_NONE] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
    [SIZE_8] = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    [SIZE_16] = {{2, 2, 2}, {2, 2, 2}, {2, 2, 2}},
    [SIZE_32] = {{4, 4, 4}, {4, 4, 4}, {4, 4, 4}},
    [SIZE_64] = {{8, 8, 8}, {8, 8, 8}, {8, 8, 8}},
    [SIZE_V] = {{2, 4, 2}, {4, 2, 4}, {4, 2, 8}},
    [SIZE_Y] = {{4, 4, 4}, {4, 4, 4}, {4, 4, 8}},
    [SIZE_STACK] = {{2, 4, 2}, {4, 2, 4}, {8, 2, 8}},
    [SIZE_BRANCH] = {{2, 4, 2}, {4, 2, 4}, {8, 8, 8}},
    [SIZE_NATIVE] = {{4, 4, 4}, {4, 4, 4}, {8, 8, 8}},
};

static uint8_t operand_size(const struct decoder *decoder, const struct form_entry *entry)
{
    unsigned prefix = decoder->operand_prefix && !entry->mandatory_66 ? 1 : 0;

    if ((decoder->rex & REX_W) != 0)
        prefix = 2;
    return operand_sizes[entry->size][decoder->size_mode][prefix];
}

static uint8_t address_size(const struct decoder *decoder)
{
    static const uint8_t sizes[3][2] = {{2, 4}, {4, 2}, {8, 4}};

    return sizes[decoder->size_mode][decoder->address_prefix];
}

/* ---- memory operand ---- */

static bool take_displacement(struct decoder *decoder, size_t size, int64_t *displacement)
{
    const uint8_t *bytes = decoder->bytes + decoder->at;

    if (!has_bytes(decoder, size))
        return false;
    decoder->at += size;
    if (size != 0)
        *displacement = (int64_t)load_extended(bytes, size);
    return true;
}

/* Registers and SIB byte of an address; what is said of its displacement is how many
 * bytes it has. Table 2-1. */
static size_t take_address16(uint8_t modrm, struct instruction *instruction)
{
    static const uint8_t bases[8] = {X86_RBX, X86_RBX, X86_RBP, X86_RBP,
                                     X86_RSI, X86_RDI, X86_RBP, X86_RBX};
    static const uint8_t indices[8] = {X86_RSI,   X86_RDI,   X86_RSI,   X86_RDI,
                                       SOFT_ZERO, SOFT_ZERO, SOFT_ZERO, SOFT_ZERO};
    unsigned mod = modrm >> 6;
    bool absolute = mod == 0 && (modrm & 7) == 6;

    instruction->base = absolute ? SOFT_ZERO : bases[modrm & 7];
    instruction->index = indices[modrm & 7];
    return absolute ? 2 : mod;
}

/* Tables 2-2 and 2-3; 2.2.1.3 and 2.2.1.6 for 64-bit code. */
static bool take_address32(struct decoder *decoder, uint8_t modrm,
                           struct instruction *instruction, size_t *displacement_bytes)
{
    unsigned mod = modrm >> 6;
    bool has_sib = (modrm & 7) == 4;
    uint8_t base = modrm & 7;

    *displacement_bytes = mod == 2 ? 4 : mod;
    if (has_sib) {
        uint8_t sib, index;

        if (!has_bytes(decoder, 1))
            return false;
        sib = decoder->bytes[decoder->at++];
        base = sib & 7;
        index = (uint8_t)((sib >> 3 & 7) | ((decoder->rex & REX_X) << 2));
        instruction->index = index == X86_RSP ? SOFT_ZERO : index;
        instruction->scale = index == X86_RSP ? 0 : sib >> 6;
    }
    if (base == X86_RBP && mod == 0) {
        *displacement_bytes = 4;
        instruction->rip_relative = decoder->class == CLASS_64 && !has_sib;
        instruction->base = SOFT_ZERO;
    } else {
        instruction->base = (uint8_t)(base | (decoder->rex & REX_B) << 3);
    }
    return true;
}

static bool take_modrm_memory(struct decoder *decoder, uint8_t modrm,
                              struct instruction *instruction)
{
    size_t displacement_bytes;

    instruction->memory = true;
    if (instruction->address_size == 2)
        displacement_bytes = take_address16(modrm, instruction);
    else if (!take_address32(decoder, modrm, instruction, &displacement_bytes))
        return false;
    if (instruction->base == X86_RSP || instruction->base == X86_RBP)
        instruction->segment = X86_SS;
    return take_displacement(decoder, displacement_bytes, &instruction->displacement);
}

/* MOV's moffs: an absolute address as wide as the address size. */
static bool take_offset(struct decoder *decoder, struct instruction *instruction)
{
    const uint8_t *bytes = decoder->bytes + decoder->at;

    if (!has_bytes(decoder, instruction->address_size))
        return false;
    decoder->at += instruction->address_size;
    instruction->memory = true;
    if (instruction->address_size == 2)
        instruction->displacement = load_le16(bytes);
    else if (instruction->address_size == 4)
        instruction->displacement = load_le32(bytes);
    else
        instruction->displacement = (int64_t)load_le64(bytes);
    return true;
}

/* ---- immediates ---- */

static size_t immediate_bytes(uint8_t operand, unsigned size)
{
    switch (operand) {
    case OPERAND_I8:
    case OPERAND_IS8:
    case OPERAND_J8:
        return 1;
    case OPERAND_I16:
        return 2;
    case OPERAND_IV:
        return size;
    default: /* IZ, JZ, FAR's offset */
        return size == 2 ? 2 : 4;
    }
}

/* Sign-extended, but for operands that are not: I8, I16, FAR, and IV, which is as wide as
 * the operand. */
static uint64_t extend(uint8_t operand, uint64_t value, size_t count)
{
    switch (operand) {
    case OPERAND_I8:
    case OPERAND_I16:
    case OPERAND_FAR:
    case OPERAND_IV:
        return count == 8 ? value : value & ((UINT64_C(1) << 8 * count) - 1);
    default:
        return value;
    }
}

static bool take_immediates(struct decoder *decoder, const struct form_entry *entry,
                            struct instruction *instruction)
{
    const uint8_t *bytes = decoder->bytes + decoder->at;
    size_t count = immediate_bytes(entry->immediate, instruction->operand_size);
    size_t count2 = 0;

    if (entry->immediate == OPERAND_FAR)
        count2 = 2; /* the selector */
    else if (entry->immediate2 != OPERAND_NONE)
        count2 = 1; /* ENTER's nesting level */
    if (!has_bytes(decoder, count + count2))
        return false;
    decoder->at += count + count2;
    instruction->immediate_bytes = (uint8_t)(count + count2);
    instruction->immediate = extend(entry->immediate, load_extended(bytes, count), count);
    if (count2 == 2)
        instruction->immediate2 = load_le16(bytes + count);
    else if (count2 == 1)
        instruction->immediate2 = bytes[count];
    return true;
}

/* ---- putting it together ---- */

static struct decoder start(const uint8_t *bytes, size_t available, uint32_t mode)
{
    struct decoder decoder = {
        .bytes = bytes,
        .limit = available < INSTRUCTION_LIMIT ? available : INSTRUCTION_LIMIT,
        .segment = NO_SEGMENT,
    };

    if ((mode & MODE_CODE64) != 0)
        decoder.class = CLASS_64;
    else if ((mode & MODE_PROTECTED) != 0 && (mode & MODE_VIRTUAL86) == 0)
        decoder.class = CLASS_PROTECTED;
    else
        decoder.class = CLASS_REAL;
    if ((mode & MODE_CODE64) != 0)
        decoder.size_mode = 2;
    else
        decoder.size_mode = (mode & MODE_CODE32) != 0;
    return decoder;
}

/* Every field by itself: gcc would clear a struct of this size with a string instruction,
 * which takes longer than the rest of the decoder. */
static void clear(struct instruction *instruction, uint64_t rip, uint32_t mode)
{
    instruction->form = NULL;
    instruction->form_number = 0;
    instruction->rip = rip;
    instruction->immediate = 0;
    instruction->immediate2 = 0;
    instruction->immediate_bytes = 0;
    instruction->operand_prefix = false;
    instruction->displacement = 0;
    instruction->mode = mode;
    instruction->length = 0;
    instruction->opcode = 0;
    instruction->operand_size = 0;
    instruction->address_size = 0;
    instruction->segment = X86_DS;
    instruction->has_rex = false;
    instruction->rex_w = false;
    instruction->lock = false;
    instruction->repeat = 0;
    instruction->has_modrm = false;
    instruction->mod = 0;
    instruction->reg = 0;
    instruction->rm = 0;
    instruction->memory = false;
    instruction->memory_size = 0;
    instruction->rip_relative = false;
    instruction->base = SOFT_ZERO;
    instruction->index = SOFT_ZERO;
    instruction->scale = 0;
    instruction->vex = false;
    instruction->vex_register = 0;
    instruction->vex_256 = false;
}

static void fill_vex(struct instruction *instruction, const struct decoder *decoder)
{
    instruction->vex = true;
    instruction->vex_register = decoder->vex_register;
    instruction->vex_256 = decoder->vex_256;
}

static void fill_registers(struct instruction *instruction, const struct decoder *decoder,
                           const struct form_entry *entry, uint8_t modrm)
{
    uint8_t high_reg = (uint8_t)((decoder->rex & REX_R) << 1);
    uint8_t high_rm = (uint8_t)((decoder->rex & REX_B) << 3);

    if (entry->opcode_register) {
        instruction->reg = (uint8_t)((decoder->opcode & 7) | high_rm);
        return;
    }
    if (!instruction->has_modrm)
        return; /* REX.R and REX.B name nothing: the accumulator is register 0 */
    instruction->mod = entry->ignores_mod ? 3 : modrm >> 6;
    instruction->reg = (modrm >> 3) & 7;
    instruction->rm = modrm & 7;
    if (!entry->narrow_reg)
        instruction->reg |= high_reg;
    if (!entry->narrow_rm)
        instruction->rm |= high_rm;
}

/* Makes displacements relative to the next instruction absolute. The offset in CS wraps
 * with the operand size (branches) and the address size (memory). */
static void add_next_rip(struct instruction *instruction, const struct form_entry *entry)
{
    uint64_t next = instruction->rip + instruction->length;

    if (entry->immediate == OPERAND_J8 || entry->immediate == OPERAND_JZ) {
        instruction->immediate += next;
        if (instruction->operand_size == 2)
            instruction->immediate = (uint16_t)instruction->immediate;
        else if (instruction->operand_size == 4)
            instruction->immediate = (uint32_t)instruction->immediate;
    }
    if (instruction->rip_relative) {
        uint64_t address = next + (uint64_t)instruction->displacement;

        if (instruction->address_size == 4)
            address = (uint32_t)address;
        instruction->displacement = (int64_t)address;
    }
}

/* LOCK without a memory destination, segment registers that do not exist, and loading CS:
 * all #UD. */
static bool is_legal(const struct instruction *instruction,
                     const struct form_entry *entry)
{
    if (instruction->lock && !(entry->lock && instruction->memory))
        return false;
    if (!entry->segment_register)
        return true;
    return instruction->reg <= X86_GS &&
           !(entry->form->operands[0] == OPERAND_S && instruction->reg == X86_CS);
}

static enum decode_result take_operands(struct decoder *decoder,
                                        const struct form_entry *entry, uint8_t modrm,
                                        struct instruction *instruction)
{
    if (instruction->has_modrm && instruction->mod != 3 &&
        !take_modrm_memory(decoder, modrm, instruction))
        return out_of_bytes(decoder);
    if (entry->moffs && !take_offset(decoder, instruction))
        return out_of_bytes(decoder);
    if (decoder->segment != NO_SEGMENT)
        instruction->segment = decoder->segment;
    if (entry->immediate != OPERAND_NONE && !take_immediates(decoder, entry, instruction))
        return out_of_bytes(decoder);
    return DECODE_OK;
}

static enum decode_result decode_form(struct decoder *decoder,
                                      const struct form_index *index,
                                      struct instruction *instruction)
{
    const struct form_opcode *opcode = opcode_forms(index, decoder);
    const struct form_entry *entry;
    enum decode_result result;
    uint8_t modrm = 0;

    if (!opcode->known)
        return DECODE_UNDEFINED;
    if (opcode->has_modrm) {
        if (!has_bytes(decoder, 1))
            return out_of_bytes(decoder);
        modrm = decoder->bytes[decoder->at++];
    }
    entry = choose(index, decoder, opcode, modrm);
    if (entry == NULL)
        return DECODE_UNDEFINED;
    instruction->form = entry->form;
    instruction->form_number = (uint16_t)(entry - index->entries);
    instruction->has_modrm = opcode->has_modrm;
    instruction->opcode = decoder->opcode;
    instruction->immediate = entry->constant;
    instruction->operand_size = operand_size(decoder, entry);
    instruction->address_size = address_size(decoder);
    instruction->memory_size =
        entry->memory_size != 0 ? entry->memory_size : instruction->operand_size;
    instruction->has_rex = decoder->rex != 0 && !decoder->vex;
    instruction->rex_w = (decoder->rex & REX_W) != 0;
    instruction->operand_prefix = decoder->operand_prefix;
    instruction->lock = decoder->lock;
    instruction->repeat = entry->repeats ? decoder->repeat : 0;
    if (decoder->vex)
        fill_vex(instruction, decoder);
    fill_registers(instruction, decoder, entry, modrm);
    result = take_operands(decoder, entry, modrm, instruction);
    if (result != DECODE_OK)
        return result;
    instruction->length = (uint8_t)decoder->at;
    add_next_rip(instruction, entry);
    return is_legal(instruction, entry) ? DECODE_OK : DECODE_UNDEFINED;
}

/* ---- all forms ---- */

static struct form_index all_forms;
static _Atomic(const struct form_index *) ready; /* &all_forms, once it is built */

static void build_all_forms(void)
{
    const struct form_table tables[] = {
        {soft_integer_forms, soft_integer_form_count},
        {soft_system_forms, soft_system_form_count},
        {soft_vector_forms, soft_vector_form_count},
    };

    form_index_init(&all_forms, tables, ARRAY_SIZE(tables));
    atomic_store_explicit(&ready, &all_forms, memory_order_release);
}

static const struct form_index *index_of_all(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct form_index *index = atomic_load_explicit(&ready, memory_order_acquire);

    if (index != NULL)
        return index;
    CHECK(pthread_once(&once, build_all_forms) == 0);
    return &all_forms;
}

enum decode_result soft_decode(const uint8_t *bytes, size_t available, uint64_t rip,
                               uint32_t mode, struct instruction *instruction)
{
    struct decoder decoder = start(bytes, available, mode);
    enum decode_result result;

    clear(instruction, rip, mode);
    if (!take_prefixes(&decoder))
        return out_of_bytes(&decoder);
    result = take_opcode(&decoder);
    if (result == DECODE_OK)
        result = decode_form(&decoder, index_of_all(), instruction);
    if (result == DECODE_UNDEFINED)
        instruction->length = (uint8_t)decoder.at;
    return result;
}

size_t soft_form_count(void)
{
    return index_of_all()->entry_count;
}

const struct form *soft_form(size_t index)
{
    CHECK(index < soft_form_count());
    return index_of_all()->entries[index].form;
}
